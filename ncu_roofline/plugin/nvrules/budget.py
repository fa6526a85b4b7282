"""Advice in so many characters: the most valuable findings, and how many are left out."""

from __future__ import annotations

from collections.abc import Callable

from ncu_roofline.plugin.nvrules.telling import BARE, FULL, SENTENCE, TITLE, Told

LEAST = 200
"""Characters that hold how much was left out, in text and JSON."""
_ENOUGH = 3  # findings: where fewer fit, they are told in less detail

Printer = Callable[[Told], str]


def within(budget: int, told: Told, printed: Printer) -> str:
    """What of ``told`` is no longer than ``budget`` characters (at least LEAST) where ``printed`` writes it."""
    whole = printed(told)
    if len(whole) <= budget:
        return whole
    brief, best = told.brief(), -1
    text = printed(told.bare())
    for detail in (FULL, SENTENCE, TITLE, BARE):
        if detail == BARE and best > 0:
            break
        count = _most(budget, brief, detail, printed)
        if count > best:
            best, text = count, printed(brief.first(count, detail))
        if count >= min(_ENOUGH, len(told.found)):
            break
    return text


def _most(budget: int, told: Told, detail: str, printed: Printer) -> int:
    """How many findings fit, -1 if not even none does; more are found to fit as long as fewer do."""
    low, high = -1, len(told.found)
    while low < high:
        middle = (low + high + 1) // 2
        if len(printed(told.first(middle, detail))) <= budget:
            low = middle
        else:
            high = middle - 1
    return low
