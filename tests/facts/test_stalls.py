"""Why warps wait, in plain words."""

from __future__ import annotations

from pathlib import Path
from string import Formatter

import pytest

from ncu_roofline.chips import load_stalls
from ncu_roofline.formats.report import read_report


def test_what_they_say_fits_a_sentence() -> None:
    for name, stall in load_stalls().items():
        assert name.islower()
        assert not stall.waits.endswith("."), name
        assert all(one.text.endswith(".") and one.text[0].isupper() for one in (*stall.cause, *stall.advice)), name
        assert f"{stall}".isascii(), name


def test_what_sentences_are_filled_with_is_known_where_they_are_said() -> None:
    """Of words that ask for it, and of no others."""
    words = {"dram": ("dram", "no_dram"), "warps": ("few_blocks", "last_wave", "few_warps"), "slow": ("slow",)}
    words |= {"warps_possible": ("capped",), "limits": ("capped",), "waves": ("last_wave",)}
    for name, stall in load_stalls().items():
        for one in (*stall.cause, *stall.advice):
            for _, field, _, _ in Formatter().parse(one.text):
                assert field is None or set(words[field]) & set(one.where), (name, one.text)


def test_whoever_waits_without_reason_to_act() -> None:
    idle = {name for name, stall in load_stalls().items() if not stall.advice}
    assert idle == {"selected", "not_selected", "misc"}


def test_every_reason_of_real_reports_is_known(real_reports: dict[str, Path]) -> None:
    start, end = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"
    seen = set()
    for path in real_reports.values():
        with read_report(path) as report:
            for kernel in report.kernels:
                seen |= {name for name in kernel.metrics.names() if name.startswith(start)}
    if not seen:
        pytest.skip("no report with samples")
    assert {name.removeprefix(start).removesuffix(end) for name in seen} <= load_stalls().keys()
