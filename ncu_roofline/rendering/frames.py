"""What is drawn and written: frames with declared columns, from any analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ncu_roofline.rendering.document import Column as Column

if TYPE_CHECKING:
    import pandas as pd


Tables = Mapping[str, tuple[Column, ...]]  # the tables of an analysis by name, with their columns


class Frames(Protocol):
    """What renderers draw: the three frames of a Roofline, columns as in ``ncu_roofline.model.columns``."""

    @property
    def points(self) -> pd.DataFrame: ...
    @property
    def roofs(self) -> pd.DataFrame: ...
    @property
    def kernels(self) -> pd.DataFrame: ...


def table(frames: Frames, name: str) -> Any:
    """The ``points``, ``roofs`` or ``kernels`` of a Roofline as a mapping of columns; without pandas where it holds arrays."""
    columns = getattr(frames, f"{name.removesuffix('s')}_columns", None)
    return getattr(frames, name) if columns is None else columns


def column(frames: Frames, name: str, label: str) -> list[Any]:
    """One column of the frame ``name`` as Python values."""
    values: list[Any] = table(frames, name)[label].tolist()
    return values


def optional(frames: Frames, name: str, label: str, missing: Any) -> list[Any]:
    """A column that not every view has: ``missing`` in each row where the frame ``name`` lacks it."""
    columns = table(frames, name)
    return column(frames, name, label) if label in columns else [missing] * len(columns[next(iter(columns))])


def rows(frames: Frames, name: str, *labels: str) -> Iterator[tuple[Any, ...]]:
    """Some columns of the frame ``name``, row by row, as Python values."""
    return zip(*(column(frames, name, label) for label in labels), strict=True)


def records(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a table of columns as Python values by column."""
    names = list(table)
    return [dict(zip(names, row, strict=True)) for row in zip(*(table[name].tolist() for name in names), strict=True)]


def view_of(frames: object) -> str:
    """The view of what is drawn: "roofline" for frames that name none."""
    return str(getattr(frames, "view", "roofline"))
