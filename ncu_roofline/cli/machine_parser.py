"""Options of the commands that deal with this machine: install, uninstall, doctor, profile."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def install(parser: argparse.ArgumentParser) -> None:
    """Options of `install`."""
    parser.add_argument(
        "--dest", default="", metavar="DIR", help="folder to put sections and rules into, instead of where Nsight Compute looks"
    )
    parser.add_argument("--ncu", default="", metavar="PATH", help="the ncu to install for (default: every one on this machine)")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--ceilings", default="", metavar="FILE", help="measured ceilings (JSON) to draw, and to keep for their GPU"
    )
    group.add_argument(
        "--no-bench", action="store_true", help="measure nothing; ceilings kept from before are used all the same"
    )
    parser.add_argument("--device", default="", metavar="GPU", help="index or UUID of the GPU to measure (default: the first)")
    parser.add_argument("--force", action="store_true", help="also replace installed files that were changed since")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="what was done, as JSON on standard output")


def uninstall(parser: argparse.ArgumentParser) -> None:
    """Options of `uninstall`."""
    parser.add_argument("--dest", default="", metavar="DIR", help="only from this folder (default: from everywhere)")
    parser.add_argument("--forget-ceilings", action="store_true", help="also remove the measured ceilings that were kept")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    parser.add_argument("--json", action="store_true", help="what was removed, as JSON on standard output")


def doctor(parser: argparse.ArgumentParser) -> None:
    """Options of `doctor`."""
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def profile(parser: argparse.ArgumentParser, words: Callable[[str], object], regex: Callable[[str], str]) -> None:
    """Options of `profile`."""
    parser.add_argument(
        "--precision",
        type=words,
        default=(),
        metavar="ID,...",
        help="count only these: fp64, fp32, fp16, tensor (default: all)",
    )
    parser.add_argument(
        "--light",
        action="store_true",
        help="fewer replay passes: one tensor type (--precision tensor.bf16, else fp16), not all",
    )
    parser.add_argument("--kernel", type=regex, default="", metavar="REGEX", help="only kernels whose name matches")
    parser.add_argument(
        "-o",
        "--output",
        default="",
        metavar="NAME",
        help="write NAME.ncu-rep (NAME.ncu-repz with ncu from 2026.3 on) and NAME.html (default: APPLICATION-roofline)",
    )
    parser.add_argument(
        "--ceilings", default="", metavar="FILE", help="measured ceilings (JSON) (default: those kept for this GPU)"
    )
    parser.add_argument(
        "--clock-control",
        choices=("base", "boost", "none"),
        help="as of ncu (default: none with measured ceilings, which were measured at free clocks, else what ncu does)",
    )
    parser.add_argument("--ncu", default="", metavar="PATH", help="the ncu to use (default: the first found)")
    parser.add_argument("--force", action="store_true", help="overwrite an earlier report and page")
    parser.add_argument("--dry-run", action="store_true", help="print the command of ncu, and run nothing")
    parser.add_argument("application", nargs="+", metavar="-- APPLICATION", help="the application and its arguments, after --")
