"""The command line: the only place that prints and exits.

Nothing heavy is imported here, and of the commands only the one that is meant: `--help` must be instant.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from ncu_roofline.base.errors import RooflineError, Terminated, unexpected
from ncu_roofline.base.texts import did_you_mean
from ncu_roofline.cli.outputs import PLACES, at_end, say, standard_output, tell
from ncu_roofline.version import __version__

# A command NAME is declared by add_NAME(parser) in a file of its name here, or that of HOMES, and is done by run_NAME(args).
# No file is called like what Python has built in: it would be found by that name here.
COMMANDS = {
    "demo": "render the bundled sample report (html, png, text): the first thing to run",
    "show": "print each kernel's intensity, performance, share of the roof and what binds it",
    "render": "draw rooflines: pictures, an interactive page, tables and data",
    "source": "say where in a kernel its time, work and traffic are: loops, lines, functions, instructions",
    "explain": "say which charts a report can give, what is missing, and the ncu command that adds it",
    "compare": "say what changed between reports, or traces, of one application, kernel by kernel",
    "budget": "write limits for kernels or operators into a file, and check new reports or traces against them",
    "portability": "performance portability of an application over platforms",
    "ranks": "merge the reports of many MPI ranks by kernel: spread over ranks, and outliers",
    "advise": "run rules, ours or any folder's, on existing reports and print what they say",
    "annotate": "write our charts and advice into a copy of a report, for ncu-ui and ncu --import",
    "check": "lint section files of Nsight Compute: syntax, releases, metric names per chip, charts, replay passes",
    "generate": "write the sections and rules for Nsight Compute, or check that they are up to date",
    "bench": "measure the ceilings of this GPU; merge, compare, check and draw files of them",
    "list": "list what is known: architectures, precisions, levels, formats, inputs, ceilings",
    "schema": "print the JSON Schema of what a command writes as JSON",
    "mcp": "answer language models over the Model Context Protocol: five tools on reports and traces",
    "guide": "print a page of the user guide: levels, counters, formulas, verdicts, CI, troubleshooting and more",
    "install": "put sections and rules where Nsight Compute looks, with measured roofs",
    "uninstall": "remove exactly what was installed",
    "doctor": "say what is missing on this machine for measuring and profiling, and what to do",
    "profile": "run an application under ncu with our sections and render the result",
    "completion": "print a script that completes commands, options and their values in bash, zsh or fish",
}
MOST_OPTIONS = 12
"""That `--help` shows."""
HOMES = {"list": "lists", "render": "show", "generate": "check", "uninstall": "install", "doctor": "install"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (0 done, 1 an error we explain, 2 usage, 128 and its number for a signal)."""
    for stream in (sys.stdout, sys.stderr):  # a console that can't show a character gets a replacement, not a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if argv is None else argv
    try:
        with ended_by_signals() as interrupts, at_end:
            try:
                args = parse(words)
                return int(args.run(args))
            except BrokenPipeError:  # `ncu-roofline show ... | head`
                return 0
            except Exception as error:
                if interrupts:  # extension modules say of an interrupted import that they can't be loaded
                    raise KeyboardInterrupt from error
                if isinstance(error, RooflineError):
                    raise
                raise unexpected("Cannot run", f"ncu-roofline {' '.join(words)}", error) from error
    except RooflineError as error:
        tell(error)
        return error.exit_code
    except Terminated as error:
        say(f"ncu-roofline: ended by {signal.Signals(error.number).name}")
        return 128 + error.number  # as shells tell of a signal
    except KeyboardInterrupt:
        say("ncu-roofline: interrupted")
        return 130


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Inside, SIGTERM or SIGHUP raises Terminated, and more of them change nothing: tidying up goes on to its end.

    Ctrl-C raises KeyboardInterrupt as ever, and stands in the list that is given: imports may make another error of it.
    A signal that is ignored (under nohup) or that somebody listens to already is left alone.
    """
    interrupts: list[int] = []

    def end(number: int, _frame: object) -> None:
        for other in before:
            if other != signal.SIGINT:
                signal.signal(other, signal.SIG_IGN)
        raise Terminated(number)

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    listeners: dict[int, Any] = {signal.SIGINT: interrupt}
    listeners |= {getattr(signal, name): end for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)}
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: handler for number in listeners if (handler := signal.getsignal(number)) in defaults}
    try:
        for number in before:
            signal.signal(number, listeners[number])
    except ValueError:  # signals are for the main thread
        before = {}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Shown(NamedTuple):
    """What `--help` shows of a command (`data/help.toml`): two examples; where it has many options, which of them."""

    examples: tuple[str, ...]
    options: str = ""


class _HelpAll(argparse.Action):
    """Like the help of argparse, with all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        parser._print_message(argparse.ArgumentParser.format_help(parser))
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Like argparse's own; asks whether another name was meant, and says much only where much is asked for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.add_help:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, default=argparse.SUPPRESS, help=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        """What is wrong and where help is, without the whole usage."""
        self.exit(2, f"{self.prog}: error: {message}\n`{self.prog} --help` says what it takes.\n")

    def format_help(self) -> str:
        """The options that most people need, and two examples."""
        command = self.prog.partition(" ")[2]
        if not command:
            return super().format_help()
        from ncu_roofline.chips.fields import DATA, read

        shown = read(DATA / "help.toml", dict[str, Shown])[command]
        options = [action for action in self._actions if action.option_strings and action.help != argparse.SUPPRESS]
        kept = ("help", *shown.options.split()) if len(options) > MOST_OPTIONS + 1 else ()
        hidden = [one for one in options if kept and one.option_strings[-1].lstrip("-") not in kept and not one.required]
        texts = [one.help for one in hidden]
        for one in hidden:
            one.help = argparse.SUPPRESS
        try:
            found = super().format_help()
        finally:
            for one, text in zip(hidden, texts, strict=True):
                one.help = text
        found += f"\n{len(hidden)} more options: --help-all\n" if hidden else ""
        return "\n".join([found, "examples:", *(f"  ncu-roofline {one}" for one in shown.examples), ""])

    def _print_message(self, message: str, file: Any = None) -> None:
        """Help and version, which argparse keeps silent about where they can't be printed.  Raises RooflineError."""
        if file is sys.stderr:
            super()._print_message(message, file)
        else:
            with standard_output() as stream:
                stream.write(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See argparse.  What a command does not know is told by its own parser, with its own usage."""
        several = self._subparsers is not None
        for word in takewhile(lambda word: word.startswith("-") if several else word != "--", args):
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in self._option_string_actions):
                self.error(did_you_mean(f"there is no option {name}", name, self._option_string_actions))
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not several:
            self.error(did_you_mean(f"unrecognized arguments: {' '.join(unknown)}", unknown[0], self._option_string_actions))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.option_strings and action.metavar in PLACES and value == "":  # an unset variable of a script
            raise argparse.ArgumentError(action, "the name is empty")
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            reason = f"invalid choice: {value!r} (choose from {', '.join(known)})"
            raise argparse.ArgumentError(action, did_you_mean(reason, str(value), known))


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
    if words[0] in ("help", "version"):  # what many type for these options, which then follow what else is named: `help show`
        return completed([*words[1:], f"--{words[0]}"])
    named = [word for word in words if word == "-" or not word.startswith("-")]
    if (named[:1] and (named[0] in COMMANDS)) or words[0] in ("-h", "--help", "--version"):
        return list(words)
    # Behind options the first name may be the value of one.
    meant = named[:1] if named and words[0] == named[0] else named
    # There is such a file or folder, or the word can't be meant for a command.
    shown = any(os.path.exists(word) or re.fullmatch(r"[\w-]*\w", word) is None for word in meant)
    return ["show", *words] if shown else list(words)


def command_line(complete: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser with all commands, of which these have their options."""
    parser = _Parser(
        prog="ncu-roofline",
        description="Hierarchical rooflines of NVIDIA GPUs from any Nsight Compute report, and of a run's operators from a "
        "trace of PyTorch's profiler or Nsight Systems: offline, no GPU, no Nsight needed.",
        usage="%(prog)s [-h] [--version] COMMAND ...\n       %(prog)s REPORT ...",
        epilog="`ncu-roofline REPORT` is `ncu-roofline show REPORT`.  `ncu-roofline demo` shows it on a bundled sample; "
        "`ncu-roofline COMMAND --help` lists the options.",
    )
    about = "show the version and exit"
    parser.add_argument("--version", action="version", version=f"ncu-roofline {__version__}", help=about)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=parser.prog)
    for name, about in COMMANDS.items():
        one = commands.add_parser(name, add_help=name in complete, help=about, description=f"{about[0].upper()}{about[1:]}.")
        if name in complete:
            declare(one, name)
    return parser


def declare(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    module = importlib.import_module(f"ncu_roofline.cli.{HOMES.get(command, command)}")
    getattr(module, f"add_{command}")(parser)
    parser.set_defaults(run=getattr(module, f"run_{command}"))
    if "\n" in (parser.epilog or ""):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
