"""GPUs as they are sold, by name, and links to the host: facts, never measurements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ncu_roofline.chips.architectures import Gpu
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.chips.spec import load_spec


def gpus() -> tuple[Gpu, ...]:
    """GPUs as they are sold, of all architectures."""
    return tuple(gpu for architecture in load_spec().architectures for gpu in architecture.gpus)


def named(word: str) -> tuple[Gpu, ...]:
    """GPUs whose id contains ``word``, whatever its case."""
    return tuple(gpu for gpu in gpus() if word.lower() in gpu.id.lower())


def find_gpu(name: str, sm_count: int | None = None) -> Gpu | None:
    """The GPU whose name the driver reports as ``name``; None if it is in no table or has another number of SMs."""
    found = [gpu for gpu in gpus() if any(_is_named(name, part) for part in gpu.names)]
    return next((gpu for gpu in found if sm_count is None or gpu.sm_count == sm_count), None)


def _is_named(name: str, part: str) -> bool:
    words, wanted = name.split(), part.split()
    places = range(len(words) - len(wanted) + 1)
    return any(
        words[i : i + len(wanted) - 1] == wanted[:-1]
        and (words[i + len(wanted) - 1] == wanted[-1] or words[i + len(wanted) - 1].startswith(wanted[-1] + "-"))
        for i in places
    )


class _Link(NamedTuple):
    generation: int
    rate: float
    code: float


class _Links(NamedTuple):
    link: tuple[_Link, ...]


@cache
def link_rates() -> Mapping[int, float]:
    """Bytes per second and lane of each PCI Express generation, one way."""
    links = read(DATA / "gpus" / "rates.toml", "gpus/rates.toml", _Links).link
    return {link.generation: link.rate * link.code / 8 for link in links}
