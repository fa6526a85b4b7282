"""What is drawn and written: frames with declared columns, from any analysis; those of several GPUs also one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ncu_roofline.rendering.document import Column as Column
from ncu_roofline.rendering.document import Document, Note

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, tuple[Column, ...]]  # the tables of an analysis by name, with their columns
_PER_KERNEL = ("work", "traffic")  # what frames hold beside their tables, a number per row of the kernels


class Frames(Protocol):
    """What renderers draw: the three frames of a Roofline, columns as in ``ncu_roofline.model.columns``."""

    @property
    def points(self) -> pd.DataFrame: ...
    @property
    def roofs(self) -> pd.DataFrame: ...
    @property
    def kernels(self) -> pd.DataFrame: ...


F = TypeVar("F", bound=Frames)


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
    return [dict(zip(table, row, strict=True)) for row in zip(*(table[name].tolist() for name in table), strict=True)]


def view_of(frames: object) -> str:
    """The view of what is drawn: "roofline" for frames that name none."""
    return str(getattr(frames, "view", "roofline"))


def by_gpu(frames: F) -> dict[str, F]:
    """The frames of each GPU model by its name, that with most time first; the frames themselves where there is one.

    ``frames`` of several are a dataclass.  Shares of the time are then of each GPU's time.
    """
    time: dict[str, float] = {}
    for device, seconds in rows(frames, "kernels", "device", "seconds"):
        time[device] = time.get(device, 0.0) + (seconds if seconds > 0 else 0.0)
    if len(time) < 2:
        return dict.fromkeys(time or [""], frames)
    whole = time | {device: seconds for device, _, _, seconds in getattr(frames, "everything", ())}
    return {device: _of_gpu(frames, device, whole[device]) for device in sorted(time, key=lambda name: -time[name])}


def _of_gpu(frames: F, device: str, total: float) -> F:
    kernels, parts = np.asarray(table(frames, "kernels")["device"]) == device, dict[str, Any]()
    for field in fields(frames):  # type: ignore[arg-type]
        value = getattr(frames, field.name)
        if field.name in _PER_KERNEL:
            parts[field.name] = {name: np.asarray(values)[kernels] for name, values in value.items()}
        elif field.name == "sources":
            parts[field.name] = tuple(pair for pair in value if pair[0] == device)
        elif not isinstance(value, (str, tuple)) and "device" in value:
            here = np.asarray(value["device"]) == device
            found = parts[field.name] = {name: np.asarray(value[name])[here] for name in value}
            if "time_share" in found:
                found["time_share"] = found["seconds"] / total if total > 0 else np.full(here.sum(), np.nan)
    return replace(frames, **parts)  # type: ignore[type-var]


def each_gpu(frames: F, title: str, make: Callable[[F, str], Document], notes: Sequence[Note]) -> Document:
    """What is made of some frames and a title: one document with ``notes``, with a part per GPU where there are several."""
    parts = by_gpu(frames)
    if len(parts) == 1:
        return replace(make(frames, title), notes=notes)
    return Document(title, blocks=[make(part, device) for device, part in parts.items()], notes=notes)
