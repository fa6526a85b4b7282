"""What `--view instruction` asks of a command line."""

from __future__ import annotations

import argparse

from ncu_roofline.errors import RooflineError, UsageError
from ncu_roofline.facts import load_instructions

VIEW = "instruction"


def counts_instructions(args: argparse.Namespace) -> bool:
    """Whether the command line asks for the instruction roofline."""
    return getattr(args, "view", "") == VIEW


def check_instruction_options(args: argparse.Namespace) -> None:
    """Raise UsageError for options that don't go with the view of the command line."""
    if counts_instructions(args) and args.source == "embedded":
        reason = "the instruction roofline is made from counters, not from charts inside the report"
        raise UsageError("Cannot use --source", "embedded", reason, "Leave out --source or --view instruction.")


def check_kinds(given: tuple[str, ...]) -> None:
    """Raise RooflineError for a --precision that is no kind of instruction."""
    known = [kind.id for kind in load_instructions().kinds]
    for one in given:
        if one not in known:
            reason = "it is no kind of instruction"
            raise RooflineError("Cannot use --precision", one, reason, f"With --view instruction name {', '.join(known)}.")
