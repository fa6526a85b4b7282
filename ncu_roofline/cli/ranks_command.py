"""`ncu-roofline ranks`: reports of many MPI ranks, merged by kernel."""

from __future__ import annotations

import argparse


def run(args: argparse.Namespace) -> int:
    """To be written."""
    raise NotImplementedError(args)
