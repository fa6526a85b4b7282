"""Options of `ncu-roofline bench`.  Nothing heavy is imported here."""

from __future__ import annotations

import argparse

_NEXT = "Everything about how it measures, and what a number means, is in the file it writes."


def add_options(parser: argparse.ArgumentParser) -> None:
    """The actions of `bench` and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _run(_action(actions, "run", "measure the ceilings of the GPUs here and write them as JSON", _NEXT))
    _build(_action(actions, "build", "compile the benchmark with nvcc, for the GPU here or any list, and print its path"))
    _list(_action(actions, "list", "list ceilings and variants, where they apply, and what is unproven on hardware"))
    _theory(_action(actions, "theory", "print data-sheet peaks and their sources; needs no GPU"))
    _merge(_action(actions, "merge", "combine files of several nodes or MPI ranks; names slow GPUs"))
    _verify(_action(actions, "verify", "check a ceilings file: form, shares of theory, spread"))


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str, epilog: str = ""
) -> argparse.ArgumentParser:
    return actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".", epilog=epilog)


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        default="auto",
        metavar="GPU,...",
        help="index, UUID or its beginning, or all (default: the first GPU; under srun or mpirun the rank's own)",
    )
    parser.add_argument(
        "--only", type=_words, default=(), metavar="ID,...", help="only these ceilings, as dram,fp64.fma,tensor"
    )
    parser.add_argument("--skip", type=_words, default=(), metavar="ID,...", help="all but these ceilings")
    parser.add_argument(
        "--quick", action="store_true", help="under 30 s: the main ceilings, one session (default: under 3 min)"
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="file to write, or a folder where there are several")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--json", action="store_true", help="print what is written instead of a table")
    group = parser.add_argument_group("how")
    group.add_argument(
        "--data",
        choices=("random", "zeros"),
        default="random",
        help="what is computed on; zeros flatter (default: %(default)s)",
    )
    group.add_argument("--trials", type=_count, metavar="N", help="trials per session (default: 31, quick 11)")
    group.add_argument("--sessions", type=_count, metavar="N", help="sessions per ceiling (default: 3, quick 1)")
    group.add_argument("--budget", type=_seconds, metavar="SECONDS", help="time for each GPU (default: 170, quick 27)")
    group.add_argument("--seed", type=_count, default=1, metavar="N", help="of the random data (default: %(default)s)")
    _compiler(group)


def _build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arch", default="native", metavar="LIST", help="native, or compute capabilities as 8.0,9.0 (default: %(default)s)"
    )
    parser.add_argument("--nvcc", default="", metavar="PATH", help="compiler (default: of NVCC, PATH, CUDA_HOME)")
    parser.add_argument("--force", action="store_true", help="compile even if it was compiled before")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="", metavar="GPU", help="say which apply to this GPU (index or UUID)")
    parser.add_argument("--arch", default="", metavar="LIST", help="say which apply to compute capabilities, as 9.0")
    parser.add_argument("--json", action="store_true", help="as JSON")
    _compiler(parser.add_argument_group("how"))


def _theory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", default="", metavar="NAME", help="only GPUs whose name contains NAME (default: all)")
    parser.add_argument("--json", action="store_true", help="as JSON, in SI units, by ceiling")


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="ceilings files (JSON) of GPUs of one model")
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="file to write the merged ceilings to")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument("--json", action="store_true", help="print the merged ceilings instead of a table")


def _verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="ceilings file (JSON)")
    parser.add_argument("--json", action="store_true", help="findings as JSON")


def _compiler(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--nvcc", default="", metavar="PATH", help="compiler (default: of NVCC, PATH, CUDA_HOME)")
    group.add_argument("--runner", default="", metavar="PATH", help="a benchmark program that is built already")


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value
