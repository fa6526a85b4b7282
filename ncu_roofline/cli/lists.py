"""`ncu-roofline list`: what is known."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from ncu_roofline.cli.outputs import write_text

LISTS = {
    "architectures": "chips, with what they have no counters for",
    "precisions": "kinds of arithmetic, and on which chips they are counted",
    "levels": "levels of memory, and their counters",
    "formats": "what `render` writes",
    "inputs": "what is read beside reports",
    "ceilings": "measured roofs that come with the program",
}
_CHIPS = ("architectures", "precisions", "levels")


def add_list(parser: ArgumentParser) -> None:
    """Which list, and how."""
    parser.add_argument("what", choices=LISTS, nargs="?", help="what to list (default: what there is to list)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_list(args: Namespace) -> int:
    """Print one list, as an aligned table or as JSON."""
    from ncu_roofline.rendering.table import listing

    rows = [{"list": name, "holds": about} for name, about in LISTS.items()]
    if args.what:
        rows = _chips(args.what) if args.what in _CHIPS else _files(args.what)
    write_text(json.dumps(rows, indent=2) if args.json else "\n".join(listing(rows)))
    return 0


def _chips(what: str) -> list[dict[str, str]]:
    """What is counted on which chips."""
    from ncu_roofline.chips import load_spec
    from ncu_roofline.chips.fields import capability_text

    spec, rows = load_spec(), []
    if what == "levels":
        return [
            {"id": level.id, "label": level.label, "counters, first choice": level.bindings[0].counters.text()}
            for level in spec.levels
        ]
    if what == "precisions":
        for p in spec.precisions:
            on = [capability_text(a.compute_capability) for a in spec.architectures if spec.bindings(p, a.compute_capability)]
            counted = "opcode counts of a report (section SourceCounters)" if p.opcodes else " ".join(on)
            rows.append({"id": p.id, "label": p.label, "unit": p.unit.upper(), "on": counted})
        return rows
    return [
        {
            "capability": capability_text(a.compute_capability),
            "name": a.name,
            "chips": " ".join(a.chips),
            "products": ", ".join(a.products),
            "without counters for": " ".join(sorted(a.lacks)) or "-",
        }
        for a in spec.architectures
    ]


def _files(what: str) -> list[dict[str, str]]:
    """What is read and written."""
    if what == "formats":
        from ncu_roofline.analyses import ANALYSES

        formats = ANALYSES["roofline"].formats
        return [{"format": name, "suffixes": " ".join(row.suffixes), "holds": row.about} for name, row in formats.items()]
    if what == "inputs":
        from ncu_roofline.base.files import REPORT_SUFFIXES
        from ncu_roofline.formats.inputs import FORMATS

        suffixes = ", ".join(REPORT_SUFFIXES)
        report = {"input": "report", "gives": "metrics", "is": f"a report of Nsight Compute ({suffixes}; zstd or not)"}
        return [report, *({"input": row.id, "gives": row.holds, "is": row.meaning} for row in FORMATS)]
    from ncu_roofline.formats.ceilings import registry

    return [
        {
            "model": one.device,
            "status": one.status,
            "date": one.date or "-",
            "driver": one.driver or "-",
            "ceilings": str(len(one.by_id)),
            "source": one.source or "-",
        }
        for one in registry()
    ]
