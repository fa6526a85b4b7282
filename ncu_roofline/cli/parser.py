"""Commands and options.  Nothing heavy is imported here: `--help` must be instant."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence

from ncu_roofline.cli import compare_parser, machine_parser, portability_parser, ranks_parser, report_options, view_parser
from ncu_roofline.cli.bench_options import add_options
from ncu_roofline.cli.version import ShowVersion

LISTS = ("architectures", "precisions", "levels", "formats", "inputs")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line with `run`, the function that executes it."""
    parser = argparse.ArgumentParser(
        prog="ncu-roofline",
        description="Hierarchical rooflines of NVIDIA GPUs from any Nsight Compute report: offline, no GPU, no Nsight needed.",
        epilog="`ncu-roofline demo` shows what it does on a bundled sample; `ncu-roofline COMMAND --help` lists the options.",
    )
    parser.add_argument("--version", action=ShowVersion)
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
    report_options.reports(parser)
    report_options.model_options(parser)
    view_parser.add_options(parser)
    parser.add_argument("--json", action="store_true", help="all tables of the view as JSON on standard output")
    parser.add_argument(
        "--width", type=report_options.positive, metavar="COLUMNS", help="width of the table (default: the terminal's)"
    )


def _render(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(
        commands,
        "render",
        "draw rooflines: pictures, an interactive page, tables and data",
        epilog="Formats: see `ncu-roofline list formats`.",
    )
    report_options.reports(parser)
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
        choices=("points", "roofs", "kernels", "machines", "absent"),
        help="what csv and parquet hold: points, roofs or kernels; with --view time points, machines or absent "
        "(default: points, or kernels where no kernel has any)",
    )
    report_options.model_options(parser)
    view_parser.add_options(parser)


def _explain(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "explain", "say which charts a report can give, what is missing, and the ncu command that adds it")
    report_options.reports(parser)
    report_options.filters(parser)
    view_parser.add_view(parser, ("roofline", "instruction"))
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def _advise(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(
        commands,
        "advise",
        "run rules, ours or any folder's, on existing reports and print what they say",
        epilog="Rules are Python programs and run with your rights: name only folders that you trust.",
    )
    report_options.reports(parser)
    report_options.launch_filters(parser)
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
        "--all-findings", action="store_true", help="also what concerns less than 1 %% of the run time of the report's launches"
    )
    parser.add_argument(
        "--ceilings",
        action="append",
        default=[],
        metavar="FILE",
        help="measured ceilings (JSON) of the GPU; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def _annotate(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "annotate", "write our charts and advice into a copy of a report, for ncu-ui and ncu --import")
    parser.add_argument("report", metavar="REPORT", help="report file (.ncu-rep, .ncu-repz); it is not changed")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the copy to write, a .ncu-rep; .ncu-repz is compressed"
    )
    parser.add_argument(
        "--ceilings",
        action="append",
        default=[],
        metavar="FILE",
        help="measured ceilings (JSON) of the GPU; may be repeated",
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
        type=report_options.names,
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
    parser.add_argument("--ceilings", metavar="FILE", help="draw these measured ceilings beside the theoretical roofs")
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
        report_options.words,
        report_options.regex,
    )


def _bench(commands: Commands[argparse.ArgumentParser]) -> None:
    add_options(_add(commands, "bench", "measure the ceilings of the GPU at hand, and what belongs to it"))


def _list(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "list", "list what is known: " + ", ".join(LISTS))
    parser.add_argument("what", choices=LISTS, help="what to list")
    parser.add_argument("--json", action="store_true", help="as JSON")
