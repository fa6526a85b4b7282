"""The ceilings that a benchmark program can measure: its own list is the catalogue, what a ceiling is follows from its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.records import inside, number
from ncu_roofline.bench.runner import Variant
from ncu_roofline.chips.fields import capability
from ncu_roofline.formats.ceilings import proven

UNPROVEN = "unproven on hardware"
# What a word of an id means, for people.
_WORDS = {
    "dram": "device memory",
    "l1": "L1 cache",
    "l2": "L2 cache",
    "l3": "L3 cache",
    "smem": "shared memory",
    "host": "host link",
    "launch": "kernel launch",
    "tensor": "tensor cores",
    "read": "loads",
    "read_far": "loads, a working set of three quarters of it",
    "write": "stores",
    "copy": "loads and stores",
    "triad": "two loads and a store per multiply-add",
    "fma": "multiply-adds",
    "nofma": "multiplies and adds, not fused",
    "div": "eight multiply-adds and a division",
    "mad": "integer multiply-adds",
    "h2d": "host to device, pinned memory",
    "d2h": "device to host, pinned memory",
    "bidir": "both ways at once",
    "stream": "back to back in a stream",
    "sync": "and wait",
    "graph": "as node of a graph",
}
# Ceilings that a quick run leaves out, by the last word of their ids; of tensor cores, those with 16-bit accumulators.
_NOT_QUICK = {"write", "copy", "triad", "read_far", "nofma", "div", "bidir", "sync", "graph"}


class CeilingKind(NamedTuple):
    """A ceiling: its id, like "dram.read" or "tensor.fp16.wgmma", and its unit ("B/s", "FLOP/s", "OP/s" or "s")."""

    id: str
    unit: str

    @property
    def about(self) -> str:
        """What it is, for people."""
        return ", ".join(_WORDS.get(word, word.upper().replace("_ACC", " with FP")) for word in self.id.split("."))

    @property
    def domain(self) -> str:
        """The clock it runs at: "sm", "memory", "link", or "" for a latency."""
        return {"dram": "memory", "host": "link", "launch": ""}.get(self.id.partition(".")[0], "sm")

    def clock_of(self, entry: Mapping[str, Any]) -> float | None:
        """The clock (Hz) that it ran at, of its entry in a ceilings file."""
        key = {"sm": "sm_mhz_mean", "memory": "mem_mhz"}.get(self.domain, "")
        megahertz = number(inside(entry, "clock", key))
        return megahertz * 1e6 if megahertz > 0 else None

    @property
    def quick(self) -> bool:
        """Whether a quick run measures it, too."""
        return self.id.rpartition(".")[2] not in _NOT_QUICK and "_acc16" not in self.id

    @property
    def kind(self) -> str:
        """ "bandwidth", "compute" or "latency"."""
        return {"B/s": "bandwidth", "s": "latency"}.get(self.unit, "compute")

    @property
    def level(self) -> str:
        """Memory level of a bandwidth, "" for others."""
        return self.id.partition(".")[0] if self.unit == "B/s" else ""

    @property
    def higher_is_better(self) -> bool:
        """False for latencies."""
        return self.unit != "s"


def kinds_of(variants: Sequence[Variant]) -> tuple[CeilingKind, ...]:
    """The ceilings of a program in its order, links and launches last."""
    kinds = dict.fromkeys(CeilingKind(variant.ceiling, variant.unit) for variant in variants)
    return tuple(sorted(kinds, key=lambda kind: kind.domain in ("link", "")))


def select(kinds: Sequence[CeilingKind], only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[CeilingKind, ...]:
    """Ceilings that the words choose: an id, or its beginning up to a dot (``dram``, ``tensor.fp16``).

    Raises UsageError for a word that chooses nothing, and where nothing is left.
    """
    for option, words in (("--only", only), ("--skip", skip)):
        for word in words:
            if not any(_matches(kind.id, word) for kind in kinds):
                heads = ", ".join(dict.fromkeys(kind.id.partition(".")[0] for kind in kinds))
                next_step = f"There are: {heads}; see `bench list`."
                raise UsageError(f"Cannot use {option}", word, "there is no such ceiling", next_step)
    chosen = [kind for kind in kinds if not only or any(_matches(kind.id, word) for word in only)]
    chosen = [kind for kind in chosen if not any(_matches(kind.id, word) for word in skip)]
    if not chosen:
        raise UsageError("Cannot use --skip", ",".join(skip), "it leaves no ceiling to measure", "Skip fewer.")
    return tuple(chosen)


def _matches(ceiling: str, word: str) -> bool:
    return ceiling == word or ceiling.startswith(word + ".")


def rows(variants: Sequence[Variant], capabilities: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per ceiling; ``capabilities``: of the GPUs that are meant, all if empty; what none of them has is left out."""
    tried, found = proven(), []
    for kind in kinds_of(variants):
        own = [variant for variant in variants if variant.ceiling == kind.id]
        made = [v for v in own if not v.reason]
        names = [v.name for v in made if not capabilities or any(map(v.on, capabilities))]
        where = sorted(text for text, ids in tried.items() if kind.id in ids and (not capabilities or text in capabilities))
        row = {
            "ceiling": kind.id,
            "unit": kind.unit,
            "measures": kind.about,
            "quick": "yes" if kind.quick else "no",
            "variants": list(dict.fromkeys(names)),
            "applies to": _where(made, capabilities),
            "emulated on": _where([v for v in own if v.reason == "emulated"], capabilities),
            "status": f"run on {', '.join(where)}" if where else UNPROVEN,
        }
        if not any(variant.capabilities for variant in own):  # what a CPU was measured with is no news: it measures itself
            row["status"] = ""
        if not capabilities or row["applies to"] or row["emulated on"]:
            found.append(row)
    return found


def _where(variants: Sequence[Variant], capabilities: Sequence[str]) -> list[str]:
    if capabilities:
        return [text for text in capabilities if any(variant.on(text) for variant in variants)]
    if any(not variant.capabilities for variant in variants):
        return ["all"]
    return sorted({text for variant in variants for text in variant.capabilities}, key=capability)
