"""What `--view time` asks of a command line, and how it gets its model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.ceilings import Ceilings
from ncu_roofline.errors import UsageError
from ncu_roofline.model import Roofline


def check_time_options(args: argparse.Namespace) -> None:
    """Raise UsageError for options that don't go with the view of the command line."""
    if args.view != "time":
        if args.launch_latency is not None:
            reason = "launch overhead is part of the time view only"
            raise UsageError("Cannot use --launch-latency", f"{args.launch_latency:g} s", reason, "Add --view time.")
        return
    if len(args.level) > 1:
        reason = "the time view shows the traffic of one memory level"
        raise UsageError("Cannot use --level", ",".join(args.level), reason, "Name one level.")
    if args.source == "embedded":
        reason = "charts inside a report give rates, and the time view needs operations, bytes and seconds"
        raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view time.")


def time_view(roofline: Roofline, args: argparse.Namespace, ceilings: Sequence[Ceilings]) -> TimeRoofline:
    """The time-based model of an ordinary one that has points at every level."""
    level = args.level[0] if args.level else ""
    return time_roofline(roofline, level=level, launch_latency=args.launch_latency, ceilings=ceilings)
