"""`ncu-roofline explain`: which charts a report can give, what is missing, and how to add it."""

from __future__ import annotations

import argparse
import json
from functools import partial

from ncu_roofline.cli.outputs import write_text
from ncu_roofline.cli.reading import check_kernels, for_each_report, no_launch, selection
from ncu_roofline.errors import printable
from ncu_roofline.metricnames import compact
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import Availability, Explanation, explain
from ncu_roofline.model.kernels import CORE_LEVELS, CORE_PRECISIONS
from ncu_roofline.model.selection import Selection
from ncu_roofline.report import read_report


def run(args: argparse.Namespace) -> int:
    """Explain every report; exit code 1 only if one could not be read."""
    explanations, failed = for_each_report(args, partial(_explain, select=selection(args)))
    if not any(one.launches for one in explanations):
        raise no_launch(args)
    if args.json:
        write_text(json.dumps([one.as_dict() for one in explanations], indent=2))
    else:
        write_text("\n\n".join(_text(one) for one in explanations))
    return 1 if failed else 0


def _explain(path: str, select: Selection) -> Explanation:
    with read_report(path) as report:
        check_kernels(report)
        measurements = select.launches(measurements_of(report, label=path))
        return explain(report, measurements, select.precisions or CORE_PRECISIONS, select.levels or CORE_LEVELS, select.kernel)


def _text(one: Explanation) -> str:
    devices = ", ".join(f"{name} ({capability or 'unknown capability'})" for name, capability in one.devices) or "no GPU named"
    lines = [f"{one.report}: {one.launches} launches, {devices}, Nsight Compute {one.ncu_version or 'of unknown release'}"]
    for title, rows in (("work", one.precisions), ("traffic", one.levels)):
        lines += [f"  {title:8}{_row(row, one.launches)}" for row in rows]
    lines += [f"  note    {note}" for note in one.notes]
    gains = [f"add {', '.join(name for name in one.missing if name in one.added)}"] if set(one.missing) & set(one.added) else []
    gains += [f"count all of {', '.join(one.partial)}"] if one.partial else []
    if one.command:
        lines += [f"To {' and '.join(gains)}, run:", f"  {one.command}"]
    elif not one.missing and (one.precisions or one.levels):
        lines.append("Nothing is missing for what was asked; --precision tensor or --level shared,system asks for more.")
    return "\n".join(map(printable, lines))


def _row(row: Availability, launches: int) -> str:
    if not row.launches:
        return f"{row.label:12} missing"
    note = f"; {row.notes}" if row.notes else ""
    return f"{row.label:12} {row.launches} of {launches} launches ({row.source}: {compact(row.metrics)}{note})"
