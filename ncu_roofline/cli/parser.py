"""Commands and options.  Nothing heavy is imported here: `--help` must be instant."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Callable, Sequence

from ncu_roofline import __version__
from ncu_roofline.cli import compare_parser, machine_parser, portability_parser, ranks_parser, view_parser
from ncu_roofline.cli.bench_options import add_options

LISTS = ("architectures", "precisions", "levels", "formats")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line with `run`, the function that executes it."""
    parser = argparse.ArgumentParser(
        prog="ncu-roofline",
        description="Hierarchical rooflines of NVIDIA GPUs from any Nsight Compute report: offline, no GPU, no Nsight needed.",
        epilog="`ncu-roofline demo` shows what it does on a bundled sample; `ncu-roofline COMMAND --help` lists the options.",
    )
    parser.add_argument("--version", action="version", version=f"ncu-roofline {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _demo(commands)
    _show(commands)
    _render(commands)
    _explain(commands)
    compare_parser.add_options(
        _add(commands, "compare", "say what changed between reports of one application, kernel by kernel")
    )
    portability_parser.add_options(_add(commands, "portability", "performance portability of an application over platforms"))
    ranks_parser.add_options(
        _add(commands, "ranks", "merge the reports of many MPI ranks by kernel: spread over ranks, and outliers")
    )
    _advise(commands)
    _annotate(commands)
    _check(commands)
    _generate(commands)
    _bench(commands)
    _list(commands)
    _machine(commands)
    args = parser.parse_args(argv)
    args.run = _runner(args.command)
    return args


def _runner(command: str) -> Callable[[argparse.Namespace], int]:
    run: Callable[[argparse.Namespace], int] = importlib.import_module(f"ncu_roofline.cli.{command}_command").run
    return run


Commands = argparse._SubParsersAction  # the public name for this class does not exist


def _add(commands: Commands[argparse.ArgumentParser], name: str, help_text: str, epilog: str = "") -> argparse.ArgumentParser:
    return commands.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".", epilog=epilog)


def _demo(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "demo", "render the bundled sample report (html, png, text): the first thing to run")
    parser.add_argument(
        "-o", "--out", default="ncu-roofline-demo", metavar="DIR", help="folder to write to (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files of an earlier run")


def _show(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "show", "print each kernel's intensity, performance, share of the roof and what binds it")
    _reports(parser)
    _model_options(parser)
    view_parser.add_options(parser)
    parser.add_argument("--json", action="store_true", help="points, roofs and kernels as JSON on standard output")
    parser.add_argument("--width", type=_positive, metavar="COLUMNS", help="width of the table (default: the terminal's)")


def _render(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(
        commands,
        "render",
        "draw rooflines: pictures, an interactive page, tables and data",
        epilog="Formats: see `ncu-roofline list formats`.",
    )
    _reports(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="file to write; its suffix says the format; - is standard output"
    )
    parser.add_argument("--format", metavar="FORMAT", help="format, where the suffix does not say it")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--title", default="", metavar="TEXT", help="title of the picture or page")
    parser.add_argument(
        "--theme", choices=("light", "dark"), help="colours (default: light; a page follows the reader's system)"
    )
    parser.add_argument(
        "--table",
        choices=("points", "roofs", "kernels"),
        default="points",
        help="what csv and parquet hold (default: %(default)s)",
    )
    _model_options(parser)
    view_parser.add_options(parser)


def _explain(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "explain", "say which charts a report can give, what is missing, and the ncu command that adds it")
    _reports(parser)
    _filters(parser)
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def _advise(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(
        commands,
        "advise",
        "run rules, ours or any folder's, on existing reports and print what they say",
        epilog="Rules are Python programs and run with your rights: name only folders that you trust.",
    )
    _reports(parser)
    _launch_filters(parser)
    parser.set_defaults(precision=(), level=())
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        metavar="DIR",
        help="folder with rules instead of ours, such as the sections folder of Nsight Compute; may be repeated",
    )
    parser.add_argument("--all-rules", action="store_true", help="also rules of sections that the report was not made with")
    parser.add_argument(
        "--ceilings", action="append", default=[], metavar="FILE", help="measured ceilings (JSON) of the GPU; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def _annotate(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "annotate", "write our charts and advice into a copy of a report, for ncu-ui and ncu --import")
    parser.add_argument("report", metavar="REPORT", help="report file (.ncu-rep); it is not changed")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the copy to write, a .ncu-rep")
    parser.add_argument(
        "--ceilings", action="append", default=[], metavar="FILE", help="measured ceilings (JSON) of the GPU; may be repeated"
    )
    parser.add_argument("--no-rules", action="store_true", help="charts only, no advice")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")


def _check(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(
        commands,
        "check",
        "lint section files of Nsight Compute: syntax, releases, metric names per chip, charts, replay passes",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="section files, globs or folders (default: the sections that come with ncu-roofline)",
    )
    parser.add_argument(
        "--chip",
        type=_names,
        action="extend",
        default=[],
        metavar="CHIP,...",
        help="chip (GH100), compute capability (9.0), product (H100) or all (default: one chip per compute capability)",
    )
    parser.add_argument(
        "--ncu", default="", metavar="VERSION", help="release to check for, as 2024.2 (default: every one from 2020.3 on)"
    )
    parser.add_argument("--passes", action="store_true", help="print the replay passes of each file and of all together")
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def _generate(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "generate", "write the sections and rules for Nsight Compute, or check that they are up to date")
    parser.add_argument("-o", "--out", metavar="DIR", help="write DIR/sections and DIR/rules (default: the pack's own)")
    parser.add_argument(
        "--ncu", default="", metavar="VERSION", help="for this Nsight Compute (default: what every release from 2020.3 loads)"
    )
    parser.add_argument("--ceilings", metavar="FILE", help="draw these measured ceilings (JSON) beside the theoretical roofs")
    parser.add_argument(
        "--clock-consistent", action="store_true", help="measured roofs follow the clock that a kernel is profiled at"
    )
    parser.add_argument(
        "--tensor",
        default="fp16",
        metavar="TYPE",
        help="source type of the tensor section with few passes (default: %(default)s)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name every file that differs")
    parser.add_argument("--force", action="store_true", help="overwrite files that were not generated")


def _machine(commands: Commands[argparse.ArgumentParser]) -> None:
    machine_parser.install(_add(commands, "install", "put sections and rules where Nsight Compute looks, with measured roofs"))
    machine_parser.uninstall(_add(commands, "uninstall", "remove exactly what was installed"))
    machine_parser.doctor(
        _add(
            commands,
            "doctor",
            "say what is missing on this machine for measuring and profiling, and what to do",
            epilog="Exit code 1 if something that is here does not work; what is absent is no problem for reading reports.",
        )
    )
    machine_parser.profile(
        _add(
            commands,
            "profile",
            "run an application under ncu with our sections and render the result",
            epilog="Exit code: the application's; 1 if it could not be profiled.",
        ),
        _words,
        _regex,
    )


def _bench(commands: Commands[argparse.ArgumentParser]) -> None:
    add_options(_add(commands, "bench", "measure the ceilings of the GPU at hand, and what belongs to it"))


def _list(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "list", "list what is known: " + ", ".join(LISTS))
    parser.add_argument("what", choices=LISTS, help="what to list")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reports", nargs="+", metavar="REPORT", help="report files (.ncu-rep, .nsight-cuprof-report), globs or folders"
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="go on with the other reports when one can't be read (exit code 1 all the same)",
    )


def _launch_filters(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("filters")
    group.add_argument(
        "--kernel", type=_regex, default="", metavar="REGEX", help="kernels whose name matches (searched anywhere in it)"
    )
    group.add_argument("--launch", type=_ranges, default=(), metavar="N,N-M", help="launches by position in the report, from 0")
    group.add_argument("--nvtx", type=_regex, default="", metavar="REGEX", help="launches inside NVTX ranges that match")
    group.add_argument("--top", type=_positive, default=0, metavar="N", help="only the N with the longest run time")
    return group


def _filters(parser: argparse.ArgumentParser) -> None:
    group = _launch_filters(parser)
    group.add_argument(
        "--precision",
        type=_words,
        default=(),
        metavar="ID,...",
        help="precisions, as `list precisions` names them; tensor is all tensor types",
    )
    group.add_argument("--level", type=_words, default=(), metavar="ID,...", help="memory levels, as `list levels` names them")


def _model_options(parser: argparse.ArgumentParser) -> None:
    _filters(parser)
    group = parser.add_argument_group("model")
    group.add_argument(
        "--by",
        choices=("launch", "kernel", "application"),
        default="launch",
        help="what one row or dot is (default: %(default)s)",
    )
    group.add_argument(
        "--clock",
        choices=("profiled", "max"),
        default="profiled",
        help="clock the theoretical roofs stand at (default: %(default)s)",
    )
    group.add_argument(
        "--ceilings", action="append", default=[], metavar="FILE", help="measured ceilings (JSON) of the GPU; may be repeated"
    )
    group.add_argument(
        "--source",
        choices=("auto", "embedded"),
        default="auto",
        help="embedded: the roofline charts inside the report, exactly as Nsight Compute draws them (default: %(default)s)",
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    result = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise argparse.ArgumentTypeError(f"{part!r} is neither a number nor a range like 3-5")
        result.append((int(first), int(last) if dash else int(first)))
    return tuple(result)
