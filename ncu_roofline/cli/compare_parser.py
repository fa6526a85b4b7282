"""Options of `ncu-roofline compare`."""

from __future__ import annotations

import argparse

from ncu_roofline.cli import report_options

TABLES = ("kernels", "levels", "summary", "thresholds")
_EPILOG = """\
REPORT: each is one state of the application, the first the baseline.  A folder or quoted pattern stands for all its reports
together; if it is the only argument, each of its reports is a state.

Kernels are matched by full name, grid and block; what is left then by name alone, and last, where that is unambiguous, by
names that differ in the function's parameters or in numbers.  Notes say so.

Launches of one kernel and configuration are compared per launch: the median of their times, the mean of their work and traffic.
Another number of launches is told, and is neither slower nor faster.  The application's time is summed over the kernels that
both reports have, with as many launches as the baseline; what is new or gone, and the totals of all launches, are told apart.

Noise: where a kernel has several launches in a report, the spread of their times is 1.4826 * median absolute deviation /
median; changes below sqrt(spread before^2 + spread now^2), or below --tolerance, are "same".  Thresholds do not know noise,
unless they name it.

EXPRESSION: comparisons (< <= > >= == !=) of + - * / ( ), numbers and names, joined by and, or.  `baseline` is the baseline's
value of what the comparison is about; `baseline.NAME` is any.  Numbers are SI or carry a unit: 5 %, 10 us, 2 GB, 1 TFLOP/s.
  fraction < 0.9 * baseline       fraction.l2 < 0.3       time > 1.05 * baseline and share > 1 %
  bytes.dram > 1.1 * baseline     flops.fp64 > baseline   time > (1 + noise) * baseline
names:
  time                 run time of a launch, the median, on the basis that --times chooses [s]
  time.raw             run time as measured [s]
  time.normalised      run time at the baseline's SM clock [s]
  time.total           run time of all launches, on the basis that --times chooses [s]
  cycles               SM cycles of a launch: time.raw * clock
  clock                SM clock while profiled [Hz]
  launches             number of launches
  share                share of the report's time, all launches [ratio]
  noise                change of time up to which it counts as the same [ratio]
  flops, flops.PRECISION                  floating-point operations of a launch, the mean [FLOP]
  flops.total, flops.total.PRECISION      the same of all launches [FLOP]
  bytes.LEVEL                             bytes of a launch at a memory level, the mean [B]
  bytes.total.LEVEL                       the same of all launches [B]
  bandwidth.LEVEL                         bytes per second [B/s]
  intensity.LEVEL, intensity.PRECISION.LEVEL    FLOPs per byte [FLOP/B]
  performance, performance.PRECISION            FLOPs per second [FLOP/s]
  fraction, fraction.PRECISION, fraction.LEVEL, fraction.PRECISION.LEVEL    share of the attainable performance [ratio]
Without PRECISION: the one with most work.  `list precisions` and `list levels` name them.

Exit code: 0; 1 if a threshold trips (or with --strict can't be evaluated), a report can't be read, or reports have no kernel in
common; 2 for wrong options.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    report_options.reports(parser)
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--against",
        choices=("baseline", "previous", "both"),
        default="both",
        help="of three reports or more, what each is compared with (default: %(default)s)",
    )
    group.add_argument(
        "--match",
        choices=("aggregate", "order"),
        default="aggregate",
        help="launches of one kernel and configuration: all with all, or the n-th with the n-th (default: %(default)s)",
    )
    group.add_argument(
        "--times",
        choices=("auto", "raw", "normalised"),
        default="auto",
        help="times as measured, or at the baseline's SM clock: scaled where compute, L1, shared memory or L2 bind, not where "
        "DRAM or system memory do; auto: normalised where clocks differ by more than 1 %% (default: %(default)s)",
    )
    group.add_argument(
        "--tolerance", type=_ratio, default=0.02, metavar="RATIO", help="changes of time up to this are none (default: 2%%)"
    )
    thresholds = parser.add_argument_group("thresholds")
    thresholds.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="exit code 1 if it is true of a kernel against the baseline; may be repeated; see below",
    )
    thresholds.add_argument("--strict", action="store_true", help="also if a number it needs is missing")
    thresholds.add_argument("--junit", metavar="FILE", help="write the thresholds as JUnit XML")
    report_options.filters(parser)
    report_options.roof_options(parser.add_argument_group("model"))
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="all tables as JSON on standard output")
    output.add_argument("--width", type=report_options.positive, metavar="COLUMNS", help="width of the text")
    output.add_argument(
        "-o", "--output", metavar="FILE", help="write to a file: .md, .csv, .json, .parquet or .txt; - is standard output"
    )
    output.add_argument("--format", metavar="FORMAT", help="format of FILE, where the suffix does not say it")
    output.add_argument("--table", choices=TABLES, default="kernels", help="what csv and parquet hold (default: %(default)s)")
    output.add_argument("--title", default="", metavar="TEXT", help="title of Markdown")
    output.add_argument("--force", action="store_true", help="overwrite FILE")


def _ratio(text: str) -> float:
    number, percent = (text[:-1].strip(), 0.01) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) * percent
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a ratio from 0 to 1 nor a percentage such as 2%")
    return value
