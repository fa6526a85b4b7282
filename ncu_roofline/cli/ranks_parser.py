"""Options of `ncu-roofline ranks`."""

from __future__ import annotations

import argparse

from ncu_roofline.cli import report_options

TABLES = ("kernels", "ranks", "points")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.epilog = (
        "Without --rank the rank is a number after a word such as rank in every path, else the one number in which all paths "
        "differ, else host and process id, else the file name."
    )
    report_options.reports(parser)
    parser.add_argument(
        "--rank",
        type=report_options.regex,
        default="",
        metavar="REGEX",
        help="tells the rank from a report's path: the first group is the rank, as in 'node\\d+-(\\d+)'",
    )
    parser.add_argument(
        "--by", choices=("kernel", "application"), default="kernel", help="what one row is (default: %(default)s)"
    )
    report_options.filters(parser)
    report_options.roof_options(parser.add_argument_group("model"))
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="all tables as JSON on standard output")
    output.add_argument("--width", type=report_options.positive, metavar="COLUMNS", help="width of the text")
    output.add_argument(
        "-o", "--output", metavar="FILE", help="write to a file: .csv, .parquet, .json or .txt; - is standard output"
    )
    output.add_argument("--format", metavar="FORMAT", help="format of FILE, where the suffix does not say it")
    output.add_argument("--table", choices=TABLES, default="kernels", help="what csv and parquet hold (default: %(default)s)")
    output.add_argument("--force", action="store_true", help="overwrite FILE")
