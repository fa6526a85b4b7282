"""`ncu-roofline compare`: what changed between reports."""

from __future__ import annotations

import argparse


def run(args: argparse.Namespace) -> int:
    """To be written."""
    raise NotImplementedError(args)
