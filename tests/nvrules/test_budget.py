"""Whatever rules find in whatever reports: no answer is longer than its budget, and it says what it leaves out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

from hypothesis import example, given
from hypothesis import strategies as st

from ncu_roofline.plugin.nvrules import Finding
from ncu_roofline.plugin.nvrules.budget import LEAST, within
from ncu_roofline.plugin.nvrules.document import as_json
from ncu_roofline.plugin.nvrules.findings import Kernel
from ncu_roofline.plugin.nvrules.telling import Silence, Told
from ncu_roofline.plugin.nvrules.text import as_text

WORDS = st.text(max_size=80)
SECONDS = st.one_of(st.just(float("nan")), st.floats(0, 1e6))
COUNTS = st.integers(0, 5_000_000)


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """A kernel on one of two GPUs."""
    numbers = [draw(SECONDS) for _ in range(4)]
    return Kernel(draw(WORDS), draw(WORDS), draw(st.sampled_from(["A", "B"])), draw(st.integers(1, 10**6)), *numbers)


@st.composite
def told(draw: st.DrawFn) -> Told:
    """Findings of any words and numbers on some kernels."""
    known = draw(st.lists(kernels(), min_size=1, max_size=3))
    found = [
        Finding(
            id="0" * 12,
            kernel=draw(st.sampled_from(known)),
            rule=draw(WORDS),
            rule_name="",
            type=draw(st.sampled_from(["optimization", "warning", "ok", "error"])),
            title=draw(WORDS),
            text=draw(st.text(max_size=300)),
            spoken=draw(st.sampled_from(["", "ranges", "longest launch"])),
            launches=tuple((draw(WORDS), number) for number in range(draw(st.integers(1, 5)))),
            seconds=draw(SECONDS),
            share=draw(SECONDS),
            speedup=draw(SECONDS),
            recoverable=draw(SECONDS),
        )
        for _ in range(draw(st.integers(0, 12)))
    ]
    sentences = {device: draw(st.lists(WORDS, max_size=4)) for device in ("A", "B")}
    silences = tuple(Silence(draw(WORDS), draw(WORDS), 1) for _ in range(draw(st.integers(0, 3))))
    places = {device: draw(st.lists(WORDS, max_size=3)) for device in sentences}
    reports = tuple((name, "2024.1") for name in draw(st.lists(WORDS, max_size=4)))
    notes = tuple(draw(st.lists(st.text(min_size=1, max_size=80), max_size=3)))
    return Told(tuple(found), (), sentences, reports, places, 9, silences, {}, notes, draw(COUNTS), draw(COUNTS))


ALONE = Told((), (), {"A": []}, (), {"A": []}, 1, (), {}, (), 0)
SHORTENED = replace(
    ALONE,
    found=(
        Finding(
            "0" * 12,
            Kernel("", "", "A", 1, 0.0, 1.0, 1.0, 0.0),
            "",
            "",
            "warning",
            "0",
            "0" * 300,
            "",
            (("", 0),),
            *[float("nan")] * 4,
        ),
    ),
)
SILENT = replace(ALONE, places={"A": ["r" * 300]})


@example(SHORTENED, LEAST, False, 60)
@example(SILENT, LEAST, True, 60)
@given(told(), st.integers(LEAST, 6_000), st.booleans(), st.sampled_from([60, 100, 200]))
def test_nothing_is_longer_than_its_budget(one: Told, budget: int, as_text_too: bool, width: int) -> None:
    printed = partial(as_text, width=width, whole=as_text_too)
    text = within(budget, one, printed)
    assert len(text) <= budget
    shown = within(budget, one, partial(as_json, compact=True))
    assert len(shown) <= budget
    document = json.loads(shown)
    kept, left_out = document["findings"], document["left_out"]
    assert len(kept) + left_out["minor"] + left_out["findings"] == len(one.found) + one.minor + one.left_out
    assert [found["title"] for found in kept] == [found.title for found in one.found[: len(kept)]]
    if len(kept) < len(one.found):
        assert left_out["notes"] == len(one.notes) + len(one.silences)
    if text != printed(one):
        assert re.search(r"left\sout\.$", text)
    in_full = {found.text for found in one.found}
    assert left_out["texts"] >= sum(found.get("text") not in in_full for found in kept)


@given(told(), st.integers(LEAST, 3_000))
def test_more_room_never_tells_less(one: Told, budget: int) -> None:
    printed = partial(as_json, compact=True)
    some, more = (json.loads(within(size, one, printed)) for size in (budget, 50_000))
    assert len(more["findings"]) == len(one.found) >= len(some["findings"])
