"""Names of kernels in a column that is too narrow for them: their beginning stays, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ncu_roofline.base.texts import shorten
from ncu_roofline.rendering.table import Table

_GAP, _PARAMETERS = "...", "..)"
_BEGINNING = 5  # characters of a name before what tells it apart


def cut_apart(names: Iterable[str], most: int) -> dict[str, str]:
    """Each name in ``most`` characters; where no cut tells names apart, they have numbers: ``nodeByPoint5(..) #1``."""
    found = dict.fromkeys(names, "")
    for name in found:
        found[name] = cut(name, most)
    alike: dict[str, list[str]] = {}
    for name in found:
        if found[name] != name:
            alike.setdefault(name[: most // 2], []).append(name)
    for members in alike.values():
        if len(members) > 1 and not any("(" in name for name in members):
            places = enumerate(zip(*members, strict=False))
            start = next((place for place, letters in places if len(set(letters)) > 1), min(map(len, members)))
            found |= {name: _with_end(name, name[start:], most) for name in members}
    same: dict[str, list[str]] = {}
    for name, text in found.items():
        same.setdefault(text, []).append(name)
    for members in same.values():
        if len(members) > 1:
            for number, name in enumerate(members, 1):
                mark = f" #{number}"
                found[name] = cut(name, most - len(mark)) + mark
    return found


def cut(name: str, most: int) -> str:
    """A name in ``most`` characters: parameters go first, then the middle of the function's name."""
    function, bracket, parameters = name.partition("(")
    if len(name) <= most or not function or len(function) + len(_PARAMETERS) + 1 > most:
        return shorten(name if len(name) <= most or not function else function, most)
    room = most - len(function) - len(_PARAMETERS) - 1
    return f"{function}{bracket}{parameters[:room].partition(_GAP)[0].rstrip(' ,')}{_PARAMETERS}"


def told_apart(table: Table) -> tuple[Table, list[str]]:
    """The table, whose first column has names, with these cut such that they differ; and what the numbered ones are in full."""
    names, most = table.columns[0], table.widths[0]
    short = cut_apart(names.cells, most)
    cut_names = replace(names, cells=[short[name] for name in names.cells])
    return replace(table, columns=(cut_names, *table.columns[1:])), numbered(short)


def numbered(cuts: Mapping[str, str]) -> list[str]:
    """What the names with numbers are in full, for a line below the table."""
    return [f"{text}: {name}" for name, text in cuts.items() if " #" in text and " #" not in name]


def _with_end(name: str, end: str, most: int) -> str:
    """The beginning of a name and this end of it."""
    first = max(_BEGINNING, most - len(_GAP) - len(end))
    return (
        shorten(name, most) if first > len(name) - len(end) else f"{name[:first]}{_GAP}{shorten(end, most - len(_GAP) - first)}"
    )
