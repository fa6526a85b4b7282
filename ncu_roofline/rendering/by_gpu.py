"""Frames of several GPUs, one GPU after the other: what runs on different machines is no one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from ncu_roofline.rendering.document import Document, Note
from ncu_roofline.rendering.frames import Frames, rows, table

F = TypeVar("F", bound=Frames)
IntArray = np.ndarray[tuple[int], np.dtype[np.intp]]
_NONE: IntArray = np.array([], dtype=np.intp)
_PER_KERNEL = ("work", "traffic")  # what frames hold beside their tables, a number per row of the kernels


def by_gpu(frames: F) -> dict[str, F]:
    """The frames of each GPU model by its name, that with most time first; the frames themselves where there is one.

    ``frames`` of several are a dataclass.  Shares of the time are then of each GPU's time.
    """
    time: dict[str, float] = {}
    for device, seconds in rows(frames, "kernels", "device", "seconds"):
        time[device] = time.get(device, 0.0) + (seconds if seconds > 0 else 0.0)
    if len(time) < 2:
        return dict.fromkeys(time or [""], frames)
    places = {field.name: _places(getattr(frames, field.name)) for field in fields(frames)}  # type: ignore[arg-type]
    places |= dict.fromkeys(_PER_KERNEL, _places(table(frames, "kernels")))
    whole = time | {device: seconds for device, _, _, seconds in getattr(frames, "everything", ())}
    return {
        device: _of_gpu(frames, device, whole[device], {name: found.get(device, _NONE) for name, found in places.items()})
        for device in sorted(time, key=lambda one: -time[one])
    }


def each_gpu(frames: F, title: str, make: Callable[[F, str], Document], notes: Sequence[Note]) -> Document:
    """What is made of some frames and a title: one document with ``notes``, with a part per GPU where there are several."""
    parts = by_gpu(frames)
    if len(parts) == 1:
        return replace(make(frames, title), notes=notes)
    return Document(title, blocks=[make(part, device) for device, part in parts.items()], notes=notes)


def _places(value: Any) -> dict[str, IntArray]:
    """Where the rows of each GPU are in a table, {} for what is none."""
    if isinstance(value, (str, tuple)) or "device" not in value:
        return {}
    found: dict[str, list[int]] = {}
    for place, device in enumerate(value["device"].tolist()):
        found.setdefault(device, []).append(place)
    return {device: np.array(places, dtype=np.intp) for device, places in found.items()}


def _of_gpu(frames: F, device: str, total: float, places: Mapping[str, IntArray]) -> F:
    parts: dict[str, Any] = {}
    for field in fields(frames):  # type: ignore[arg-type]
        value = getattr(frames, field.name)
        if field.name in _PER_KERNEL:
            parts[field.name] = {name: np.asarray(values)[places[field.name]] for name, values in value.items()}
        elif field.name == "sources":
            parts[field.name] = tuple(pair for pair in value if pair[0] == device)
        elif not isinstance(value, (str, tuple)) and "device" in value:
            parts[field.name] = _rows_of(value, places[field.name], total)
    return replace(frames, **parts)  # type: ignore[type-var]


def _rows_of(columns: Any, here: IntArray, total: float) -> dict[str, Any]:
    found = {name: np.asarray(columns[name])[here] for name in columns}
    if "time_share" in found:
        found["time_share"] = found["seconds"] / total if total > 0 else np.full(len(here), np.nan)
    return found
