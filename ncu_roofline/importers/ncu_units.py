"""Units as Nsight Compute prints them, brought to those that a report stores: byte, nanosecond, hertz, ratios in percent.

Releases up to 2024.1 spell time out (usecond, Gbyte/second, cycle/nsecond), later ones shorten it (us, Gbyte/s, Ghz).
Prefixes are powers of 1000 for bytes, too: 1 Kbyte is 1000 byte, as a comparison with the reports' own values shows.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
# Things that are counted; the report stores their number.
_COUNTED = (
    "%", "#", "bit", "block", "branch", "branches", "byte", "cluster", "clusters", "cycle", "hz", "inst", "instances", "op",
    "page", "pass", "passes", "pixel", "register", "request", "sample", "sector", "sectors", "sm", "thr", "thread", "threads",
    "tpc", "tag", "wavefront", "warp", "warps",
)  # fmt: skip
_TIMES = ("s", "second")
_WORD = re.compile(rf"([KkMGTPmunp]?)({'|'.join(map(re.escape, (*_COUNTED, *_TIMES)))})", re.IGNORECASE)
_NANOSECONDS = 1e9  # in a second


@lru_cache(maxsize=1024)
def factor_of(unit: str) -> float | None:
    """What a printed number has to be multiplied with, None for a unit that is not known.

    Rates are stored per second, cycle, block, ...; only a time that stands alone is in nanoseconds.
    """
    above, _, below = unit.strip().partition("/")
    numerator, denominator = _factor(above), _factor(below)
    if numerator is None or denominator is None:
        return None
    is_time = not below and (found := _WORD.fullmatch(above)) is not None and found.group(2).lower() in _TIMES
    return numerator / denominator * (_NANOSECONDS if is_time else 1.0)


def _factor(word: str) -> float | None:
    """The prefix of one word as a number; 1 for none at all."""
    if word in ("", "%"):
        return 1.0
    if word.lower() in (*_COUNTED, *_TIMES):  # "pass", "page": the first letter is no prefix
        return 1.0
    found = _WORD.fullmatch(word)
    return _PREFIXES.get(found.group(1)) if found else None
