"""The commands.  Nothing heavy is imported here, and of the commands only the one that is meant: `--help` must be instant."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from ncu_roofline.cli.outputs import standard_output
from ncu_roofline.cli.version import ShowVersion

# Each has a file of its name here, with the class Request, which declares the options, and the function run, which takes one;
# where it consists of several, these are in ACTIONS by name, each with its line of help.
COMMANDS = {
    "demo": "render the bundled sample report (html, png, text): the first thing to run",
    "show": "print each kernel's intensity, performance, share of the roof and what binds it",
    "render": "draw rooflines: pictures, an interactive page, tables and data",
    "explain": "say which charts a report can give, what is missing, and the ncu command that adds it",
    "compare": "say what changed between reports of one application, kernel by kernel",
    "portability": "performance portability of an application over platforms",
    "ranks": "merge the reports of many MPI ranks by kernel: spread over ranks, and outliers",
    "advise": "run rules, ours or any folder's, on existing reports and print what they say",
    "annotate": "write our charts and advice into a copy of a report, for ncu-ui and ncu --import",
    "check": "lint section files of Nsight Compute: syntax, releases, metric names per chip, charts, replay passes",
    "generate": "write the sections and rules for Nsight Compute, or check that they are up to date",
    "bench": "measure the ceilings of the GPU at hand, and what belongs to it",
    "list": "list what is known: architectures, precisions, levels, formats, inputs, ceilings",
    "install": "put sections and rules where Nsight Compute looks, with measured roofs",
    "uninstall": "remove exactly what was installed",
    "doctor": "say what is missing on this machine for measuring and profiling, and what to do",
    "profile": "run an application under ncu with our sections and render the result",
}


class _Parser(argparse.ArgumentParser):
    """Like argparse's own, which keeps silent where its help can't be printed."""

    def print_help(self, file: Any = None) -> None:
        """See argparse.  Raises RooflineError."""
        with standard_output() as stream:
            (file or stream).write(self.format_help())


Commands = argparse._SubParsersAction  # the public name for this class does not exist


def parse(words: Sequence[str]) -> Callable[[], int]:
    """What the command line asks for, ready to run: a function of a command with its request."""
    parser = _Parser(
        prog="ncu-roofline",
        description="Hierarchical rooflines of NVIDIA GPUs from any Nsight Compute report: offline, no GPU, no Nsight needed.",
        epilog="`ncu-roofline demo` shows what it does on a bundled sample; `ncu-roofline COMMAND --help` lists the options.",
    )
    parser.add_argument("--version", action=ShowVersion)
    commands: Commands[Any] = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    meant = next((word for word in words if not word.startswith("-")), "")
    for name, about in COMMANDS.items():
        one = _add(commands, name, about)
        if name == meant:
            _complete(one, importlib.import_module(f"ncu_roofline.cli.{name}"))
    args = parser.parse_args(words)
    from ncu_roofline.cli.options import taken

    return partial(args.run, taken(args.request, args))


def _add(commands: Commands[Any], name: str, about: str) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    return added


def _complete(parser: argparse.ArgumentParser, module: ModuleType) -> None:
    if not hasattr(module, "ACTIONS"):
        _add_options(parser, module.Request, module.run)
        return
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (about, request, run) in module.ACTIONS.items():
        _add_options(_add(actions, name, about), request, run)


def _add_options(parser: argparse.ArgumentParser, request: Any, run: Callable[[Any], int]) -> None:
    from ncu_roofline.cli.options import add_options

    parser.description = getattr(request, "DESCRIPTION", parser.description)
    parser.epilog = getattr(request, "EPILOG", "")
    if "\n" in parser.epilog:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_options(parser, request)
    parser.set_defaults(request=request, run=run)
