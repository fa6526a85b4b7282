"""The commands.  Nothing heavy is imported here, and of the commands only the one that is meant: `--help` must be instant."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, NoReturn

from ncu_roofline.base.texts import did_you_mean
from ncu_roofline.cli.outputs import PLACES, STANDARD_INPUT, standard_output, write_text
from ncu_roofline.version import __version__

# Each has a file of its name here, with the functions add_options, which declares the options, and run, which takes the values.
COMMANDS = {
    "demo": "render the bundled sample report (html, png, text): the first thing to run",
    "show": "print each kernel's intensity, performance, share of the roof and what binds it",
    "render": "draw rooflines: pictures, an interactive page, tables and data",
    "source": "say where in a kernel its time, work and traffic are: loops, lines, functions, instructions",
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
    "guide": "print a page of the user guide: levels, counters, formulas, verdicts, CI, troubleshooting and more",
    "install": "put sections and rules where Nsight Compute looks, with measured roofs",
    "uninstall": "remove exactly what was installed",
    "doctor": "say what is missing on this machine for measuring and profiling, and what to do",
    "profile": "run an application under ncu with our sections and render the result",
    "completion": "print a script that completes commands, options and their values in bash, zsh or fish",
}


_USUAL = "show"
"""The command where only reports are named."""
_OWN = ("-h", "--help", "--version")
_WORDS = {"help": "--help", "version": "--version"}
"""What many type for these options, which then follow what else is named: `help show`."""


class _Parser(argparse.ArgumentParser):
    """Like argparse's own, which keeps silent where its help can't be printed; asks whether another name was meant."""

    def print_help(self, file: Any = None) -> None:
        """See argparse.  Raises RooflineError."""
        with standard_output() as stream:
            (file or stream).write(self.format_help())

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See argparse.  What a command does not know is told by its own parser, with its own usage."""
        several = self._subparsers is not None
        for word in takewhile(lambda word: word.startswith("-") if several else word != "--", args):
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in self._option_string_actions):
                self._refuse(f"there is no option {name}", name)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not several:
            self._refuse(f"unrecognized arguments: {' '.join(unknown)}", unknown[0])
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.option_strings and action.metavar in PLACES and value == "":  # an unset variable of a script
            raise argparse.ArgumentError(action, "the name is empty")
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            reason = f"invalid choice: {value!r} (choose from {', '.join(known)})"
            raise argparse.ArgumentError(action, did_you_mean(reason, str(value), known))

    def _refuse(self, reason: str, word: str) -> NoReturn:
        self.error(did_you_mean(reason, word, self._option_string_actions))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for; ``run`` in it is the function of the command, which takes it.

    Reports without a command are shown; without any word the help is printed.  Raises SystemExit where argparse does.
    """
    words = completed(words)
    meant = next((word for word in words if not word.startswith("-")), "")
    return command_line([meant] if meant in COMMANDS else []).parse_args(words)


def completed(words: Sequence[str]) -> list[str]:
    """The words of a command line with what may be left out: the wish for help, and the command that shows reports."""
    if not words:
        return ["--help"]
    if words[0] in _WORDS:
        return completed([*words[1:], _WORDS[words[0]]])
    named = [word for word in words if _is_named(word)]
    if (named[:1] and named[0] in COMMANDS) or words[0] in _OWN:
        return list(words)
    # Behind options the first name may be the value of one.
    shown = any(map(_may_be_report, named if not _is_named(words[0]) else named[:1]))
    return [_USUAL, *words] if shown else list(words)


def _is_named(word: str) -> bool:
    return word == STANDARD_INPUT or not word.startswith("-")


def _may_be_report(word: str) -> bool:
    """Whether there is such a file or folder, or the word can't be meant for a command."""
    return os.path.exists(word) or re.fullmatch(r"[\w-]*\w", word) is None


def command_line(complete: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser with all commands, of which these have their options."""
    parser = _Parser(
        prog="ncu-roofline",
        description="Hierarchical rooflines of NVIDIA GPUs from any Nsight Compute report: offline, no GPU, no Nsight needed.",
        usage="%(prog)s [-h] [--version] COMMAND ...\n       %(prog)s REPORT ...",
        epilog="Reports alone are shown.  `ncu-roofline demo` shows what it does on a bundled sample; "
        "`ncu-roofline COMMAND --help` lists the options.",
    )
    parser.add_argument("--version", action=_ShowVersion)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=parser.prog)
    for name, about in COMMANDS.items():
        one = commands.add_parser(name, add_help=name in complete, help=about, description=f"{about[0].upper()}{about[1:]}.")
        if name in complete:
            declare(one, importlib.import_module(f"ncu_roofline.cli.{name}"))
    return parser


def declare(parser: argparse.ArgumentParser, module: Any) -> None:
    """The options of a command."""
    module.add_options(parser)
    parser.set_defaults(run=module.run)
    if "\n" in (parser.epilog or ""):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter


class _ShowVersion(argparse.Action):
    """Like argparse's own, but git is asked only when somebody wants to know."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, help="show the version and exit", **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it."""
        commit = commit_of(_CHECKOUT)
        write_text(f"ncu-roofline {__version__}{f' (commit {commit})' if commit else ''}")
        parser.exit()


_CHECKOUT = os.path.join(os.path.dirname(__file__), "..", "..")


def commit_of(folder: str | os.PathLike[str]) -> str:
    """The short hash of the commit, "" where ``folder`` is no checkout of this very project or git is missing."""
    import subprocess

    ours = False
    with suppress(OSError, ValueError), open(os.path.join(folder, "pyproject.toml"), encoding="utf-8") as file:
        ours = 'name = "ncu-roofline"' in file.read()
    if not ours or not os.path.exists(os.path.join(folder, ".git")):
        return ""

    # Hooks of git have variables that would name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = ["git", "-C", os.fspath(folder), "rev-parse", "--short=12", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True, timeout=10)
        return done.stdout.strip()
    return ""
