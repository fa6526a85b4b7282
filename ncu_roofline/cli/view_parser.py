"""Options of `show` and `render` that choose another model than the hierarchical roofline, or join points of a sweep."""

from __future__ import annotations

import argparse
import re

VIEWS = ("roofline", "time", "instruction")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "\N{MICRO SIGN}s": 1e-6, "\N{GREEK SMALL LETTER MU}s": 1e-6, "ns": 1e-9}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of a command."""
    group = parser.add_argument_group("view")
    add_view(group, VIEWS)
    group.add_argument(
        "--launch-latency",
        type=_latency,
        metavar="TIME",
        help="what one kernel launch costs, as 4.2us: --view time shows the overhead of all launches (default: the latency in "
        "--ceilings, else no overhead is shown)",
    )
    group.add_argument(
        "--trajectory",
        action="store_true",
        help="the reports are the steps of a sweep: join the dots of each kernel by arrows, in the order of the reports",
    )
    group.add_argument(
        "--label",
        type=_label,
        default="",
        metavar="PATTERN",
        help="what a step of the sweep is called: a regular expression searched in the report's path (its first group, or the "
        "whole match), nvtx for the NVTX ranges as steps, or nvtx:PATTERN searched in them (default: what tells the file "
        "names apart); implies --trajectory",
    )


def add_view(parser: argparse.ArgumentParser | argparse._ArgumentGroup, views: tuple[str, ...]) -> None:
    """Add the choice of a view alone."""
    meanings = {
        "roofline": "FLOP/s over FLOPs per byte",
        "time": "run time, complexity and launch overhead",
        "instruction": "warp instructions over transactions",
    }
    text = "; ".join(f"{view}: {meanings[view]}" for view in views)
    parser.add_argument("--view", choices=views, default="roofline", help=f"{text} (default: %(default)s)")


def _label(text: str) -> str:
    pattern = text.removeprefix("nvtx:") if text != "nvtx" else ""
    try:
        re.compile(pattern)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{pattern!r} is not a regular expression: {error}") from None
    return text


def _latency(text: str) -> float:
    """Seconds of a text like 4.2us."""
    found = re.fullmatch(r"(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)\s*(s|ms|us|\u00b5s|\u03bcs|ns)", text.strip(), re.IGNORECASE)
    seconds = float(found[1]) * _SECONDS[found[2].lower()] if found else 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time like 4.2us (a positive number, then s, ms, us or ns)")
    return seconds
