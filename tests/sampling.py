"""Which cases of a large matrix the default run takes; `pytest -m exhaustive` takes the others.

@pytest.mark.sampled              so many cases that every value of every parameter comes up at least once
@pytest.mark.sampled("2024.2*")     the cases whose id (what pytest prints in brackets) fits one of the patterns
@pytest.mark.sampled(every=3)       every third case, the first among them
@pytest.mark.exhaustive             none
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

import pytest


def leave_to_the_exhaustive_run(items: Sequence[pytest.Item]) -> None:
    """Mark the cases that the default run leaves out as exhaustive."""
    sampled = [item for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    sampled = [item for item in sampled if item.get_closest_marker("sampled")]
    for name, group in groupby(sorted(sampled, key=_name_of), _name_of):
        cases = list(group)
        mark = cases[0].get_closest_marker("sampled")
        assert mark
        ids = [item.callspec.id for item in cases]
        values = [{key: _hashable(value) for key, value in item.callspec.params.items()} for item in cases]
        every = mark.kwargs.get("every")
        kept = set(range(0, len(cases), every)) if every else fitting(ids, mark.args) if mark.args else covering(values)
        # A single case by its id is no sample: then the pattern may fit none.
        if not kept and len(cases) > 1:
            raise pytest.UsageError(f"{name}: none of {', '.join(ids)} fits {mark.args}")
        for number, item in enumerate(cases):
            if number not in kept:
                item.add_marker("exhaustive")


def _name_of(item: pytest.Item) -> str:
    """What the cases of one test have in common."""
    return item.nodeid.partition("[")[0]


def fitting(ids: Sequence[str], patterns: Sequence[str]) -> set[int]:
    """The cases whose id fits one of the patterns."""
    return {number for number, each in enumerate(ids) if any(fnmatchcase(each, pattern) for pattern in patterns)}


def _hashable(value: Hashable) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def covering(cases: Sequence[Mapping[str, Hashable]]) -> set[int]:
    """Few cases in which every value of every parameter comes up: those that bring most new values first."""
    kept: set[int] = set()
    seen: set[tuple[str, Hashable]] = set()
    for wanted in range(max(map(len, cases), default=0), 0, -1):
        for number, values in enumerate(cases):
            new = set(values.items()) - seen
            if len(new) >= wanted:
                kept.add(number)
                seen |= new
    return kept
