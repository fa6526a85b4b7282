"""`--version`: the release."""

from __future__ import annotations

import ncu_roofline
from tests.cli.command import Command


def test_version(run: Command) -> None:
    assert run("--version").out == f"ncu-roofline {ncu_roofline.__version__}\n"
