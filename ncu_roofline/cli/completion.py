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
_FOLDER = "DIR"
# In the place of a command may be a report: where no command fits, bash is to look for files.
_MORE = {"bash": "\ncomplete -o bashdefault -o default -F _shtab_ncu_roofline ncu-roofline"}


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
    from ncu_roofline.cli import command_line

    parser = command_line()
    known = _ids()
    for action in _actions(parser):
        if action.choices is None and action.metavar in _FILES:
            action.complete = shtab.DIRECTORY if action.metavar == _FOLDER else shtab.FILE
        elif action.choices is None and action.dest in known:
            action.choices = known[action.dest]
        elif action.choices is not None:
            action.choices = tuple(action.choices)  # the first releases of shtab index them
    write_text(f"{shtab.complete(parser, args.shell).rstrip()}{_MORE.get(args.shell, '')}")
    return 0


def _ids() -> dict[str, tuple[str, ...]]:
    """Values of options that argparse does not know, by the names of these."""
    from ncu_roofline.analyses import ANALYSES
    from ncu_roofline.chips import load_spec
    from ncu_roofline.cli.guide import topics

    spec = load_spec()
    return {
        "precision": ("tensor", *(precision.id for precision in spec.precisions)),
        "level": tuple(level.id for level in spec.levels),
        "format": tuple(ANALYSES["roofline"].formats),
        "topic": tuple(topics()),
    }


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Options and arguments of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action
