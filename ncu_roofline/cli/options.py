"""Options that several commands share, and how values are read."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from ncu_roofline.base.texts import expression
from ncu_roofline.cli.outputs import REPORT

T = TypeVar("T")
Group = argparse._ArgumentGroup
Container = argparse.ArgumentParser | argparse._ArgumentGroup
AUTO_HELP = "auto: for each GPU your own, else those of `list ceilings`"
KEEP_GOING = "go on with the other reports when one can't be read (exit code 1 all the same)"


def value(wrong: str, read: Callable[[str], T | None]) -> Callable[[str], T]:
    """A type for argparse: what ``read`` makes of a text, and where that is None, or a ValueError, that it is ``wrong``."""

    def convert(text: str) -> T:
        with suppress(ValueError):
            if (found := read(text)) is not None:
                return found
        raise argparse.ArgumentTypeError(f"{text!r} {wrong}")

    return convert


def whole_from(least: int, most: float = math.inf) -> Callable[[str], int]:
    """A whole number from ``least``."""
    upper = "" if math.isinf(most) else f" to {most}"
    wrong = f"is not a whole number from {least}{upper}"
    return value(wrong, lambda text: int(text) if text.isdecimal() and least <= int(text) <= most else None)


def number(wrong: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """A number that fits."""
    return value(wrong, lambda text: found if fits(found := float(text)) else None)


def _ratio(text: str) -> float | None:
    found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    return found if 0 <= found < 1 else None


def _capability(text: str) -> tuple[int, int] | None:
    from ncu_roofline.chips.fields import parse_capability

    return parse_capability(text)


def _latency(text: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)\s*(s|ms|[u\u00b5\u03bc]s|ns)", text.strip(), re.IGNORECASE)
    units = {"s": 1.0, "ms": 1e-3, "ns": 1e-9}
    seconds = float(match[1]) * units.get(match[2].lower(), 1e-6) if match else 0.0
    return seconds if 0 < seconds < math.inf else None


whole, positive = whole_from(0), whole_from(1)
ratio = value("is neither a ratio from 0 to 1 nor a percentage such as 2%", _ratio)
capability = value("is no compute capability, such as 7.0", _capability)
latency = value("is no time like 4.2us (a positive number, then s, ms, us or ns)", _latency)
scheduler = value(
    "is neither an address such as tcp://host:8786 nor a scheduler file (.json)",
    lambda text: text if re.fullmatch(r"\w+://\S+:\d+/?", text) or text.endswith(".json") else None,
)


def place(text: str) -> str:
    """The name of a file or folder."""
    if not text:  # an unset variable of a script
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def report(text: str) -> str:
    """A report, whose place a file takes where it is standard input."""
    from ncu_roofline.cli.reading import given_report

    return given_report(text)


def regex(text: str) -> str:
    """A regular expression, as text."""
    try:
        return expression(text).pattern
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def step_label(text: str) -> str:
    """What names a step or variant: a regular expression, nvtx, or nvtx: and a regular expression."""
    regex(text.removeprefix("nvtx:"))
    return text


def names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def words(text: str) -> tuple[str, ...]:
    """Words between commas, in lower case."""
    return names(text.lower())


def ids(text: str) -> tuple[str, ...]:
    """Ids of levels or precisions between commas, also by what else people call them: HBM, double."""
    from ncu_roofline.chips import load_spec

    return tuple(load_spec().called.get(word, word) for word in words(text))


def ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Inclusive ranges: 3 and 5-7."""
    found = [re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip()) for part in text.split(",")]
    wrong = next((part for part, match in zip(text.split(","), found, strict=True) if not match), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(f"{wrong!r} is neither a number nor a range like 3-5")
    return tuple((int(match[1]), int(match[2] or match[1])) for match in found if match)


def add_reports(parser: argparse.ArgumentParser) -> None:
    """The reports, what to do with those that can't be read, and where to read them."""
    about = "report files (.ncu-rep, .ncu-repz, .nsight-cuprof-report), globs or folders; - is standard input"
    parser.add_argument("reports", metavar=REPORT, nargs="+", type=report, help=about)
    parser.add_argument("--keep-going", action="store_true", help=KEEP_GOING)
    about = "read them on the workers of this dask scheduler: tcp://host:port, or its scheduler file (.json)"
    parser.add_argument("--dask", metavar="ADDRESS", type=scheduler, help=about)


def add_launches(
    parser: argparse.ArgumentParser, top: str | None = "only the N with the longest run time", of: int = 0
) -> Group:
    """Which launches, with an option ``top`` unless that is None; the group of filters, for more."""
    group = parser.add_argument_group("filters")
    about = "kernels whose name matches (searched anywhere in it)"
    group.add_argument("--kernel", metavar="REGEX", type=regex, default="", help=about)
    group.add_argument("--launch", metavar="N,N-M", type=ranges, default=(), help="launches by position in the report, from 0")
    group.add_argument("--nvtx", metavar="REGEX", type=regex, default="", help="launches inside NVTX ranges that match")
    if top is not None:
        group.add_argument("--top", metavar="N", type=positive, default=of, help=top)
    return group


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which launches, precisions and levels."""
    group = add_launches(parser)
    about = "precisions, as `list precisions` names them; tensor is all tensor types"
    group.add_argument("--precision", metavar="ID,...", type=ids, default=(), help=about)
    group.add_argument("--level", metavar="ID,...", type=ids, default=(), help="memory levels, as `list levels` names them")
    about = "compute capability (7.0 for V100) of launches whose file does not name it, such as CSV of older ncu releases"
    group.add_argument("--gpu", metavar="X.Y", type=capability, help=about)


def add_ceilings(group: Container, about: str = "measured ceilings (JSON) of the GPU", **options: Any) -> None:
    """Measured ceilings of GPUs."""
    options = {"metavar": "FILE|auto", "action": "append", "default": [], **options}
    group.add_argument("--ceilings", help=f"{about}; {AUTO_HELP}; may be repeated", **options)


def add_roofs(parser: argparse.ArgumentParser) -> Group:
    """At which clock the roofs stand, and measured ones; the group of the model, for more."""
    group = parser.add_argument_group("model")
    add_clock(group)
    add_ceilings(group, "measured ceilings of the GPU (JSON of `bench run`, ERT, roofline data)")
    return group


def add_clock(group: Group) -> None:
    """At which clock the theoretical roofs stand."""
    about = "clock the theoretical roofs stand at (default: %(default)s)"
    group.add_argument("--clock", choices=("profiled", "max"), default="profiled", help=about)


def add_model(parser: argparse.ArgumentParser) -> None:
    """How the roofline is built; ``by`` None is as the view has it."""
    group = add_roofs(parser)
    about = "what a row or dot stands for (default: kernel, all its launches; in csv, json, parquet and nersc: launch)"
    group.add_argument("--by", choices=("launch", "kernel", "application"), help=about)
    about = "embedded: the roofline charts inside the report, exactly as Nsight Compute draws them (default: %(default)s)"
    group.add_argument("--source", choices=("auto", "embedded"), default="auto", help=about)


def add_view(parser: Container, command: str) -> None:
    """The view that a command is to give."""
    from ncu_roofline.analyses import views

    known = views(command)
    text = "; ".join(f"{name}: {row.about}" for name, row in known.items())
    parser.add_argument("--view", choices=known, default="roofline", help=f"{text} (default: %(default)s)")


def add_views(parser: argparse.ArgumentParser) -> None:
    """Another model than the hierarchical roofline, and points of a sweep joined."""
    group = parser.add_argument_group("view")
    add_view(group, "show")
    about = "what one kernel launch costs, as 4.2us: --view time shows the overhead of all launches (default: the latency in "
    about += "--ceilings, else no overhead is shown)"
    group.add_argument("--launch-latency", metavar="TIME", type=latency, help=about)
    about = "the reports are the steps of a sweep: join the dots of each kernel by arrows, in the order of the reports"
    group.add_argument("--trajectory", action="store_true", help=about)
    about = "what a step of the sweep is called: a regular expression searched in the report's path (its first group, or the "
    about += "whole match), nvtx for the NVTX ranges as steps, or nvtx:PATTERN searched in them (default: where file names "
    about += "differ); implies --trajectory"
    group.add_argument("--label", metavar="PATTERN", type=step_label, default="", help=about)


def add_output(
    parser: argparse.ArgumentParser,
    files: str,
    about_json: str = "all tables as JSON on standard output",
    analysis: str = "",
    default: str = "kernels",
) -> Group:
    """Where the result goes; the group of the output, for more.  Of an ``analysis`` also width, and what files of rows hold."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help=about_json)
    group.add_argument("-o", "--output", metavar="FILE", action="append", default=[], help=f"{files}; may be repeated")
    group.add_argument("--format", metavar="FORMAT", default="", help="format of FILE, where the suffix does not say it")
    group.add_argument("--force", action="store_true", help="overwrite FILE")
    if analysis:
        from ncu_roofline.analyses import ANALYSES

        add_width(group)
        about = f"what csv and parquet hold (default: {default})"
        tables = ANALYSES[analysis].holds or ANALYSES[analysis].tables
        group.add_argument("--table", choices=tables, default=default if default in tables else None, help=about)
    return group


def add_width(group: Container, about: str = "width of the text") -> None:
    """How wide text is."""
    group.add_argument("--width", metavar="COLUMNS", type=positive, help=about)


def add_looks(group: Container) -> None:
    """Title and colours of a page or picture."""
    about = 'title of the page, picture or Markdown; "" leaves it out of a picture'
    group.add_argument("--title", metavar="TEXT", help=about)
    about = "colours; auto follows the reader's system (default: auto of a page, else light)"
    group.add_argument("--theme", choices=("auto", "light", "dark"), help=about)
