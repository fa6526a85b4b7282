"""`ncu-roofline completion`: a script that completes commands, options, their values and files in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli.outputs import PLACES, PLATFORM_FILE, REPORT, write_text

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
bash:  ncu-roofline completion bash > ~/.local/share/bash-completion/completions/ncu-roofline
zsh:   ncu-roofline completion zsh > DIR/_ncu-roofline, where DIR is a folder of your $fpath
fish:  ncu-roofline completion fish > ~/.config/fish/completions/ncu-roofline.fish
"""
_FILES = (*PLACES, REPORT, "NAME", "CEILINGS", PLATFORM_FILE, "-- APPLICATION")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """For which shell."""
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run_completion(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    if args.shell not in shtab.SUPPORTED_SHELLS:
        reason = f"the package shtab {shtab.__version__} writes no script for it"
        raise RooflineError("Cannot complete in", args.shell, reason, "Install a newer one: pip install -U shtab.")
    from ncu_roofline.analyses import ANALYSES
    from ncu_roofline.chips import load_spec
    from ncu_roofline.cli import command_line
    from ncu_roofline.cli.guide import topics
    from ncu_roofline.cli.schema import documents

    parser, spec = command_line(), load_spec()
    known = {  # values of options that argparse does not know, by the names of these
        "precision": ("tensor", *(precision.id for precision in spec.precisions)),
        "level": tuple(level.id for level in spec.levels),
        "format": tuple(ANALYSES["roofline"].formats),
        "topic": tuple(topics()),
        "document": tuple(documents()),
    }
    for action in _actions(parser):
        if action.choices is None and action.metavar in _FILES:
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE
        elif action.choices is None and action.dest in known:
            action.choices = known[action.dest]
        elif action.choices is not None:
            action.choices = tuple(action.choices)  # the first releases of shtab index them
    # In the place of a command may be a report: where no command fits, bash is to look for files.
    more = "\ncomplete -o bashdefault -o default -F _shtab_ncu_roofline ncu-roofline" if args.shell == "bash" else ""
    write_text(f"{shtab.complete(parser, args.shell).rstrip()}{more}")
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Options and arguments of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
