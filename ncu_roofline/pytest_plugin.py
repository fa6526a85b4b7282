"""The fixture ``roofline_budget`` of pytest: tests that fail where a report or trace is over its budget.

Nothing of the package is imported before a test uses it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ncu_roofline.analyses.compare.budget import Checked


class RooflineBudget:
    """What the fixture gives."""

    def check(self, new: str | os.PathLike[str], budget: str | os.PathLike[str], *options: str) -> Checked:
        """Every limit of the file ``budget`` on a report or trace; ``options`` as `ncu-roofline budget check` has them.

        Raises AssertionError, with the table, where that command has exit code 1; RooflineError for files that can't be read.
        """
        __tracebackhide__ = True
        from ncu_roofline.analyses import text_table
        from ncu_roofline.cli import parse
        from ncu_roofline.cli.budget import checked_of

        words = ["budget", "check", f"--budget={os.fspath(budget)}", *options, "--", os.fspath(new)]
        checked, failed = checked_of(parse(words))
        if failed:
            raise AssertionError(text_table(checked, width=120))
        return checked


@pytest.fixture(scope="session")
def roofline_budget() -> RooflineBudget:
    """Fails a test where a report or trace is over its budget: ``roofline_budget.check("new.ncu-rep", "budget.toml")``."""
    return RooflineBudget()
