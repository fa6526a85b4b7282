"""Why warps wait: reasons that ncu samples, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from ncu_roofline.facts.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "stalls.toml"
ASYNCHRONOUS = (8, 0)
"""The first compute capability with cp.async."""
HIT_RATES = (("L1", "l1tex__t_sector_hit_rate.pct"), ("L2", "lts__t_sector_hit_rate.pct"))
"""Metrics of what caches served, in percent."""
ALL_HIT = 101.0
"""Percent of hits up to which they may be: sums of several passes come out a little above 100."""


class Stall(NamedTuple):
    """``waits`` completes "warps wait here ..."; ``cause`` and ``advice`` are sentences, ``advice`` "" where there is no need.

    ``asynchronous``: a further one for GPUs that have cp.async.  ``caches``: hit rates of the kernel say more.  ``issue``: the
    warp issued, could issue, or waited for its own arithmetic only.
    """

    waits: str
    cause: str
    advice: str
    asynchronous: str
    caches: bool
    issue: bool

    def advice_on(self, capability: tuple[int, int]) -> str:
        """What helps on GPUs of a compute capability."""
        return " ".join(filter(None, (self.advice, self.asynchronous if capability >= ASYNCHRONOUS else "")))


@lru_cache(maxsize=1)
def load_stalls() -> Mapping[str, Stall]:
    """By reason as ncu names it (long_scoreboard), those that come with the package, read once."""
    return read_stalls(resources.files("ncu_roofline") / "data" / FILE)


def read_stalls(path: Traversable) -> Mapping[str, Stall]:
    """Read and check a file.  `SpecError` names file and key of the first mistake."""
    file = read_fields(path, FILE)
    found: dict[str, Stall] = {}
    for fields in file.tables("stalls"):
        name = fields.text("id")
        if name in found:
            fields.fail("id", f"{name} stands there twice")
        texts = (fields.text("waits"), fields.text("cause"), fields.text("advice", ""), fields.text("asynchronous", ""))
        found[name] = Stall(*texts, fields.flag("caches"), fields.flag("issue"))
        fields.finish()
    file.finish()
    return found
