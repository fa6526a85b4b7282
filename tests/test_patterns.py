"""No text makes a regular expression of the package slow."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator

import pytest

from ncu_roofline.formats.inputs import vtune
from ncu_roofline.model.names import short_names
from ncu_roofline.plugin.machine.profile import FAILURES
from tests.patterns import Use, faults, uses

# Expressions made of what a function is given: what they then are.  A new one has to be added here, or made a constant.
_MADE = {
    "base/texts.py: text": (),  # a user's own
    'formats/inputs/ncu_cells.py: f"[\\\\s\'{grouping}]"': ("[\\s'.]",),
    "chips/plausible.py: '|'.join(map(translate, wildcards)) or '(?!)'": (),  # longer names than 300 letters are not looked at
    "formats/inputs/ncu_csv.py: f'{mark}{first}{mark} *{re.escape(delimiter)}'": ('"ID" *,', "ID *;"),
    "formats/inputs/ncu_cells.py: f\"[+-]?(?:\\\\d{{1,3}}(?:[\\\\s'{group}]\\\\d{{2,3}})*[\\\\s'{group}]\\\\d{{3}}|\\\\d+)(?:{re.escape(mark)}\\\\d*)?(?:[eE][+-]?\\\\d+)?\"": (  # noqa: E501
        r"[+-]?(?:\d{1,3}(?:[\s',]\d{2,3})*[\s',]\d{3}|\d+)(?:\.\d*)?(?:[eE][+-]?\d+)?",
    ),
    "formats/inputs/vtune.py: way": tuple(way for ways in vtune._COUNTERS.values() for way in ways),
    "formats/inputs/nvprof.py: f'\\\\b{re.escape(product)}\\\\b'": (r"\bV100\b",),
    "plugin/machine/profile.py: failure.pattern": tuple(failure.pattern for failure in FAILURES),
    "formats/sectionfile/classify.py: pattern": (),  # its tables are found as they are
}
_SECONDS = 300  # for all of them; they take about 15


def _every_use() -> list[Use]:
    found, made = uses()
    assert set(made) == set(_MADE), "an expression that these tests don't see"
    return found + [Use(place, text, 0, "search") for place in made for text in _MADE[place]]


def _report_faults(results: multiprocessing.Queue[str]) -> None:
    for use in _every_use():
        results.put(f"at {use.place} {use.pattern!r}")
        for fault in faults(use):
            results.put(fault)
    results.put("")


def _results(results: multiprocessing.Queue[str]) -> Iterator[str]:
    while text := results.get(timeout=_SECONDS):
        yield text


def test_cost_of_every_expression_is_linear() -> None:
    context = multiprocessing.get_context("spawn")  # of its own, so that one that never ends can be ended
    results: multiprocessing.Queue[str] = context.Queue()
    process = context.Process(target=_report_faults, args=(results,), daemon=True)
    process.start()
    seen: list[str] = []
    try:
        seen.extend(_results(results))
    finally:
        process.kill()
        process.join()
    assert len(seen) > 100
    assert [text for text in seen if not text.startswith("at ")] == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"_(?:\d+(?:de|[dce]))*\d+(?:de|[dce])(?:\d+(?:de|[dce])?)*$", "search"),  # stood in the package
        (r"(\w+\s?)+$", "match"),
        (r"\s*\[with (.*)\]$", "search"),
        (r"a*a*b", "fullmatch"),
    ],
)
def test_expressions_known_to_be_slow_are_found(pattern: str, method: str) -> None:
    assert list(faults(Use("here", pattern, 0, method)))


def test_names_made_for_slow_expressions_are_read() -> None:
    names = ["k_1d" + "1" * 4000 + "x", "fused_conv_2d" + "0123456789" * 300 + "_v2", "a" * 4000 + "<", "f [with " * 400]
    assert all(short_names(names))
