"""Options of `show` and `render` that choose another model than the hierarchical roofline, or join points of a sweep."""

from __future__ import annotations

import argparse

VIEWS = ("roofline", "time", "instruction")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of a command."""
    group = parser.add_argument_group("view")
    group.add_argument(
        "--view",
        choices=VIEWS,
        default="roofline",
        help="roofline: FLOP/s over FLOPs per byte; time: run time, complexity and launch overhead; "
        "instruction: warp instructions over transactions (default: %(default)s)",
    )
