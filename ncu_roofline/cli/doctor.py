"""`ncu-roofline doctor`: what is missing on this machine, and what to do."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from ncu_roofline.base.texts import printable
from ncu_roofline.cli.outputs import write_text
from ncu_roofline.plugin.machine.doctor import ABSENT, PROBLEM, Line, examine
from ncu_roofline.plugin.machine.machine import this_machine


def add_options(parser: ArgumentParser) -> None:
    """How to say it."""
    parser.epilog = "Exit code 1 if something that is here does not work; what is absent is no problem for reading reports."
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def run(args: Namespace) -> int:
    """Print every line; exit code 1 if something here does not work, 0 if things are merely absent."""
    lines = examine(this_machine())
    if args.json:
        write_text(json.dumps([line._asdict() for line in lines], indent=2))
    else:
        write_text("\n".join([*map(_text, lines), "", _verdict(lines)]))
    return 1 if any(line.status == PROBLEM for line in lines) else 0


def _text(line: Line) -> str:
    text = f"{line.status:8} {line.topic:9} {line.text}"
    return printable(text) + (f"\n{'':19}-> {printable(line.advice)}" if line.advice else "")


def _verdict(lines: list[Line]) -> str:
    problems = sum(line.status == PROBLEM for line in lines)
    if problems:
        return f"{problems} problem{'s' if problems > 1 else ''}; reading and rendering reports needs only Python."
    if any(line.status == ABSENT for line in lines):
        return "No problem: reports can be read and rendered here; what is absent is needed for measuring and profiling only."
    return "No problem."
