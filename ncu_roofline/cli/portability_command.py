"""`ncu-roofline portability`: performance portability over platforms."""

from __future__ import annotations

import argparse


def run(args: argparse.Namespace) -> int:
    """To be written."""
    raise NotImplementedError(args)
