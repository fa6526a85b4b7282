"""GPUs as they are sold, and links to the host: facts, never measurements."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ncu_roofline.chips import Gpu, load_spec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_FOLDER = Path(__file__).resolve().parent.parent / "data" / "gpus"


def gpus() -> tuple[Gpu, ...]:
    """GPUs as they are sold, of all architectures."""
    return tuple(gpu for architecture in load_spec().architectures for gpu in architecture.gpus)


@cache
def link_rates() -> Mapping[int, float]:
    """Bytes per second and lane of each PCI Express generation, one way."""
    return {row["generation"]: row["rate"] * row["code"] / 8 for row in _read("rates.toml")["link"]}


def find_gpu(name: str, sm_count: int | None = None) -> Gpu | None:
    """The GPU whose name the driver reports as ``name``; None if it is in no table or has another number of SMs."""
    found = [gpu for gpu in gpus() if any(_is_named(name, part) for part in gpu.names)]
    return next((gpu for gpu in found if sm_count is None or gpu.sm_count == sm_count), None)


def named(word: str) -> tuple[Gpu, ...]:
    """GPUs whose id contains ``word``, whatever its case."""
    return tuple(gpu for gpu in gpus() if word.lower() in gpu.id.lower())


def _is_named(name: str, part: str) -> bool:
    words, wanted = name.split(), part.split()
    places = range(len(words) - len(wanted) + 1)
    return any(
        words[i : i + len(wanted) - 1] == wanted[:-1]
        and (words[i + len(wanted) - 1] == wanted[-1] or words[i + len(wanted) - 1].startswith(wanted[-1] + "-"))
        for i in places
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / name).read_text(encoding="utf-8"))
