"""What `.github/SECURITY.md` promises is held by tests that exist, and says of the attack what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attack.commands import QUICK_LINES, SLOW_LINES, TABLE_LINES
from tests.attack.judging import FINDINGS
from tests.attack.running import TOO_LONG, TOO_MUCH

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]*test_\w+\.py(?:::\w+)?)`", PAGE)))
PROMISES = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_a_promise_names_exists(named: str) -> None:
    path, _, function = named.partition("::")
    assert f"def {function}" in (ROOT / path).read_text(encoding="utf-8")


def test_every_promise_names_a_test() -> None:
    assert len(PROMISES) >= 10
    assert [line for line in PROMISES if not re.search(r"\| `tests/[^|]*\|$", line)] == []


def test_its_numbers_are_those_of_the_attack() -> None:
    words = " ".join(PAGE.split())
    assert f"{len({*QUICK_LINES, *SLOW_LINES, *TABLE_LINES})} command lines" in words
    assert f"after {TOO_LONG:.0f} s of processor time" in words
    assert f"{TOO_MUCH // 1000} MB of memory" in words
    assert [kind for kind in FINDINGS if kind not in words] == []
