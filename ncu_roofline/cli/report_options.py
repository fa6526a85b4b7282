"""Options of every command that reads reports: which reports, launches, precisions and levels, and which roofs."""

from __future__ import annotations

import argparse
import re


def reports(parser: argparse.ArgumentParser) -> None:
    """The reports, what to do with those that can't be read, and where to read them."""
    parser.add_argument(
        "reports",
        nargs="+",
        metavar="REPORT",
        help="report files (.ncu-rep, .ncu-repz, .nsight-cuprof-report), globs or folders",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="go on with the other reports when one can't be read (exit code 1 all the same)",
    )
    parser.add_argument(
        "--dask",
        type=scheduler,
        metavar="ADDRESS",
        help="read them on the workers of this dask scheduler: tcp://host:port, or its scheduler file (.json)",
    )


def launch_filters(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Which launches."""
    group = parser.add_argument_group("filters")
    group.add_argument(
        "--kernel", type=regex, default="", metavar="REGEX", help="kernels whose name matches (searched anywhere in it)"
    )
    group.add_argument("--launch", type=ranges, default=(), metavar="N,N-M", help="launches by position in the report, from 0")
    group.add_argument("--nvtx", type=regex, default="", metavar="REGEX", help="launches inside NVTX ranges that match")
    group.add_argument("--top", type=positive, default=0, metavar="N", help="only the N with the longest run time")
    return group


def filters(parser: argparse.ArgumentParser) -> None:
    """Which launches, precisions and levels."""
    group = launch_filters(parser)
    group.add_argument(
        "--precision",
        type=words,
        default=(),
        metavar="ID,...",
        help="precisions, as `list precisions` names them; tensor is all tensor types",
    )
    group.add_argument("--level", type=words, default=(), metavar="ID,...", help="memory levels, as `list levels` names them")
    group.add_argument(
        "--gpu",
        type=capability,
        metavar="X.Y",
        help="compute capability (7.0 for V100) of launches whose file does not say it, such as CSV of older ncu releases",
    )


def model_options(parser: argparse.ArgumentParser) -> None:
    """Filters, and how the roofline is built."""
    filters(parser)
    group = parser.add_argument_group("model")
    group.add_argument(
        "--by",
        choices=("launch", "kernel", "application"),
        help="what one row or dot is (default: launch; kernel in --view time and in a sweep)",
    )
    roof_options(group)
    group.add_argument(
        "--source",
        choices=("auto", "embedded"),
        default="auto",
        help="embedded: the roofline charts inside the report, exactly as Nsight Compute draws them (default: %(default)s)",
    )


def roof_options(group: argparse._ArgumentGroup) -> None:
    """At which clock the roofs stand, and measured ones."""
    group.add_argument(
        "--clock",
        choices=("profiled", "max"),
        default="profiled",
        help="clock the theoretical roofs stand at (default: %(default)s)",
    )
    group.add_argument(
        "--ceilings",
        action="append",
        default=[],
        metavar="FILE",
        help="measured ceilings of the GPU (JSON of `bench run`, ERT, roofline data); repeatable",
    )


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def regex(text: str) -> str:
    """A regular expression, as text."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def capability(text: str) -> tuple[int, int]:
    """A compute capability: 7.0."""
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal() and 0 < int(major) < 1000 and int(minor) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is no compute capability, such as 7.0")
    return int(major), int(minor)


def words(text: str) -> tuple[str, ...]:
    """Words between commas, in lower case."""
    return tuple(word.strip().lower() for word in text.split(",") if word.strip())


def names(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Inclusive ranges: 3 and 5-7."""
    result = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise argparse.ArgumentTypeError(f"{part!r} is neither a number nor a range like 3-5")
        result.append((int(first), int(last) if dash else int(first)))
    return tuple(result)


def scheduler(text: str) -> str:
    """The address of a dask scheduler, or the path of its scheduler file."""
    if re.fullmatch(r"\w+://\S+:\d+/?", text) or text.endswith(".json"):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is neither an address such as tcp://host:8786 nor a scheduler file (.json)")
