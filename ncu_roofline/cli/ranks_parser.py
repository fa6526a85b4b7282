"""Options of `ncu-roofline ranks`."""

from __future__ import annotations

import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of the command."""
    parser.add_argument("reports", nargs="+", metavar="REPORT", help="report files")
