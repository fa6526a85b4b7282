"""`ncu-roofline portability`: performance portability over platforms."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.analyses import ANALYSES, render
from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.chips import load_spec
from ncu_roofline.cli.options import (
    AUTO,
    AUTO_HELP,
    KEEP_GOING,
    LaunchOptions,
    argument,
    choice,
    flag,
    names,
    option,
    step_label,
)
from ncu_roofline.cli.outputs import (
    PLATFORM_FILE,
    STANDARD_OUTPUT,
    check_output,
    chosen_format,
    deliver,
    tell,
    terminal_width,
    warn,
)

if TYPE_CHECKING:
    from ncu_roofline.analyses.portability.frames import Choices
    from ncu_roofline.analyses.portability.platforms import Platform

_DESCRIPTION = (
    "How much of what each platform can give an application gets, and over all of them: "
    "e = P / min(F, B I) per platform, PP = |H| / sum(1/e), 0 where it does not run everywhere."
)


def _assigned(text: str) -> tuple[str, str]:
    """(name, value) of NAME=VALUE, ("", value) without a name."""
    name, equals, value = text.partition("=")
    if not equals:
        return "", text
    if not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE")
    return name, value


def _operations(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{number!r} is no positive number of operations")
    return name, value


@dataclass(frozen=True, kw_only=True)
class EfficiencyOptions:
    """What goes into the efficiency of a platform."""

    TITLE: ClassVar[str] = "what is compared"
    ceilings: tuple[tuple[str, str], ...] = option(
        "measured ceilings of a platform, of any known format; without PLATFORM= they go by the GPU they name; may be "
        f"repeated; {AUTO_HELP} (default: the roofs of the inputs, theoretical ones as the last resort)",
        "[PLATFORM=]FILE|auto",
        action="append",
        type=_assigned,
    )
    ceiling: str = choice(
        "compute ceiling; mix is what the share of fused instructions can reach (default: %(default)s)",
        ("fma", "nofma", "divide", "divide_nofma", "mix"),
    )
    flops: str = choice(
        "executed: counted by the hardware; canonical: what the algorithm needs on paper (default: %(default)s)",
        ("executed", "canonical"),
    )
    canonical_flops: tuple[tuple[str, float], ...] = option(
        "canonical operations, where no table gives them; may be repeated; implies --flops canonical",
        "[VARIANT=]N",
        action="append",
        type=_operations,
    )
    level: tuple[tuple[str, str], ...] = option(
        "memory level of intensity and bandwidth, or binding for the one that limits most (default: dram)",
        "[PLATFORM=]LEVEL",
        action="append",
        type=_assigned,
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is a run, and which count."""

    TITLE: ClassVar[str] = "runs"
    precision: str = option("precision of the work (default: the one with the most)", "ID")
    platforms: tuple[str, ...] = option(
        "the platforms that count; one that no input has makes the portability 0 (default: all of the inputs)",
        "NAME,...",
        type=names,
        default=(),
    )
    application: str = option("what files that name no application are of", "NAME")
    by: str = choice("kernel: each kernel is a variant of its own (default: %(default)s)", ("application", "kernel"))
    label: str = option(
        "variant of a report: a regular expression searched in its path (first group, or the whole match), nvtx for its "
        "NVTX ranges, or nvtx:PATTERN searched in them",
        "PATTERN",
        type=step_label,
    )
    clock: str = choice("clock the theoretical roofs stand at (default: %(default)s)", ("profiled", "max"))


@dataclass(frozen=True, kw_only=True)
class PortabilityOutput:
    """How the result is told, and where."""

    TITLE: ClassVar[str] = "output"
    json: bool = flag("as JSON on standard output")
    output: str = option("write a .csv, .md, .json or .txt file instead", "FILE", short="-o")
    format: str = option("text, csv, md or json, where the suffix does not say it", "FORMAT")
    title: str = option("title of a Markdown file", "TEXT")
    force: bool = flag("overwrite FILE")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which files of which platforms, and how they are compared."""

    DESCRIPTION: ClassVar[str] = _DESCRIPTION
    inputs: tuple[str, ...] = argument(
        "reports, other tools' files and plain tables (CSV, JSON), - is standard input; PLATFORM= says what the machine is "
        "called",
        PLATFORM_FILE,
        nargs="+",
    )
    keep_going: bool = flag(KEEP_GOING)
    compared: EfficiencyOptions
    runs: RunOptions
    launches: LaunchOptions
    output: PortabilityOutput


def run(request: Request) -> int:
    """Print the table (or JSON), or write a file."""
    from ncu_roofline.analyses.portability.frames import portability
    from ncu_roofline.analyses.portability.platforms import Reading, read_runs
    from ncu_roofline.cli.ceilings import Shelf, ceiling_files
    from ncu_roofline.cli.reading import launches

    how, of, known = request.output, request.runs, ANALYSES["portability"].formats
    output_format = chosen_format(how.output, "json" if how.json else how.format, known, "none of {}")
    inputs = _inputs(request.inputs)
    named = [path for _, path in request.compared.ceilings]
    check_output(how.output or STANDARD_OUTPUT, how.force, [*(one.path for one in inputs), *ceiling_files(named)])
    given = [pair for pair in request.compared.ceilings if pair != ("", AUTO)]
    find = Shelf().find if len(given) < len(request.compared.ceilings) else None
    reading = Reading(of.precision, of.by, of.label, of.clock, of.application, launches(request.launches))
    unread: list[RooflineError] = []

    def leave_out(error: RooflineError) -> None:
        if not request.keep_going or isinstance(error, UsageError):
            raise error
        tell(error)
        unread.append(error)

    runs, warnings = read_runs(inputs, _ceilings(given), reading, find, leave_out)
    if unread and not runs:
        raise RooflineError(
            "Cannot read", " ".join(request.inputs), "none of the reports could be read", "See the messages above."
        )
    result = portability(runs, replace(_choices(request.compared, of.platforms), incomplete=bool(unread)))
    warn((*warnings, *result.warnings))
    data = render(result, output_format, title=how.title, width=terminal_width())
    deliver(how.output, data, how.force, output_format)
    return 1 if unread else 0


def _inputs(given: Sequence[str]) -> list[Platform]:
    """The files, with what was written before them; a file whose name has an = in it is a file."""
    from ncu_roofline.analyses.portability.platforms import Platform
    from ncu_roofline.cli.reading import expand

    found = []
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name or os.path.exists(text):
            name, path = "", text
        found += [Platform(one, name) for one in expand([path])]
    return found


def _ceilings(given: Sequence[tuple[str, str]]) -> dict[str, str] | list[str]:
    named = {name: path for name, path in given if name}
    plain = [path for name, path in given if not name]
    if named and plain:
        reason = "some ceilings say of which platform they are, and this one does not"
        raise UsageError("Cannot use ceilings", plain[0], reason, "Write PLATFORM= before each.")
    if len(named) < len(given) and named:
        raise UsageError("Cannot use --ceilings", next(iter(named)), "it is given twice", "Give one file for each platform.")
    return named or plain


def _choices(asked: EfficiencyOptions, platforms: tuple[str, ...]) -> Choices:
    from ncu_roofline.analyses.portability.frames import Choices

    levels = {name: level.lower() for name, level in asked.level}
    return Choices(
        flops="canonical" if asked.canonical_flops else asked.flops,
        ceiling=asked.ceiling,
        level=levels.pop("", load_spec().memory),
        levels=levels,
        canonical=dict(asked.canonical_flops),
        platforms=platforms,
    )
