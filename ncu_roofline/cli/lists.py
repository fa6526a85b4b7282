"""`ncu-roofline list`: what is known."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from ncu_roofline.cli.outputs import write_text

LISTS = {
    "architectures": "chips, with what they have no counters for",
    "precisions": "kinds of arithmetic, and on which chips they are counted",
    "levels": "levels of memory, and their counters",
    "formats": "what `render` writes",
    "inputs": "what is read beside reports",
    "ceilings": "measured roofs that come with the program",
}


def add_list(parser: ArgumentParser) -> None:
    """Which list, and how."""
    parser.add_argument("what", choices=LISTS, nargs="?", help="what to list (default: what there is to list)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_list(args: Namespace) -> int:
    """Print one list, as an aligned table or as JSON."""
    from ncu_roofline.rendering.table import listing

    rows = list(_rows(args.what) if args.what else ({"list": name, "holds": about} for name, about in LISTS.items()))
    write_text(json.dumps(rows, indent=2) if args.json else "\n".join(listing(rows)))
    return 0


def _rows(what: str) -> Iterator[dict[str, str]]:
    """What is known, a row each."""
    from ncu_roofline.analyses import ANALYSES
    from ncu_roofline.base.files import REPORT_SUFFIXES
    from ncu_roofline.chips import load_spec
    from ncu_roofline.chips.fields import capability_text
    from ncu_roofline.formats.ceilings import registry
    from ncu_roofline.formats.inputs import FORMATS

    spec = load_spec()
    if what == "architectures":
        for a in spec.architectures:
            row = {"capability": capability_text(a.compute_capability), "name": a.name, "chips": " ".join(a.chips)}
            yield {**row, "products": ", ".join(a.products), "without counters for": " ".join(sorted(a.lacks)) or "-"}
    elif what == "precisions":
        for p in spec.precisions:
            on = [capability_text(a.compute_capability) for a in spec.architectures if spec.bindings(p, a.compute_capability)]
            counted = "opcode counts of a report (section SourceCounters)" if p.opcodes else " ".join(on)
            yield {"id": p.id, "label": p.label, "unit": p.unit.upper(), "on": counted}
    elif what == "levels":
        for level in spec.levels:
            yield {"id": level.id, "label": level.label, "counters, first choice": level.bindings[0].counters.text()}
    elif what == "formats":
        for name, row_of in ANALYSES["roofline"].formats.items():
            yield {"format": name, "suffixes": " ".join(row_of.suffixes), "holds": row_of.about}
    elif what == "inputs":
        suffixes = ", ".join(REPORT_SUFFIXES)
        yield {"input": "report", "gives": "metrics", "is": f"a report of Nsight Compute ({suffixes}; zstd or not)"}
        for one in FORMATS:
            yield {"input": one.id, "gives": one.holds, "is": one.meaning}
    else:
        for file in registry():
            row = {"model": file.device, "status": file.status, "date": file.date or "-", "driver": file.driver or "-"}
            yield {**row, "ceilings": str(len(file.by_id)), "source": file.source or "-"}
