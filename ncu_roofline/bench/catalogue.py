"""The ceilings there are, in the order they are measured and shown, and their variants as `bench list` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ncu_roofline.bench.runner import Variant
from ncu_roofline.errors import UsageError
from ncu_roofline.facts.fields import parse_capability
from ncu_roofline.facts.gpus import proven

UNPROVEN = "unproven on hardware"
NO_KERNEL = "not measured, data-sheet peak only"
Row = dict[str, str | list[str]]


@dataclass(frozen=True)
class CeilingKind:
    """A ceiling: id, unit (SI) and what it is; ``quick`` ones are measured by a quick run, too.

    ``measured`` is False where no kernel measures it: then only its data-sheet peak is known.

    ``domain`` is the clock it runs at: "sm", "memory", "link", or "" for a latency.
    """

    id: str
    unit: str
    about: str
    domain: str = "sm"
    quick: bool = True
    measured: bool = True

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


def _memory() -> list[CeilingKind]:
    return [
        CeilingKind("dram.read", "B/s", "device memory, loads", "memory"),
        CeilingKind("dram.write", "B/s", "device memory, stores", "memory"),
        CeilingKind("dram.copy", "B/s", "device memory, loads and stores", "memory"),
        CeilingKind("dram.triad", "B/s", "device memory, two loads and a store per FMA", "memory", quick=False),
        CeilingKind("l2.read", "B/s", "L2 cache, a working set that fits the near part"),
        CeilingKind("l2.read_far", "B/s", "L2 cache, a working set that fills both parts", quick=False),
        CeilingKind("l2.write", "B/s", "L2 cache, stores", quick=False),
        CeilingKind("l2.copy", "B/s", "L2 cache, loads and stores", quick=False),
        CeilingKind("l1.read", "B/s", "L1 cache, loads"),
        CeilingKind("smem.read", "B/s", "shared memory, loads"),
    ]


def _arithmetic() -> list[CeilingKind]:
    mixes = {"fma": "multiply-adds", "nofma": "multiplies and adds, not fused", "div": "multiply-adds and divisions"}
    names = ("fp64", "fp32", "fp16", "bf16")
    rows = [
        CeilingKind(f"{name}.{mix}", "FLOP/s", f"{name.upper()} {about}", quick=mix == "fma" or name in ("fp64", "fp32"))
        for name in names
        for mix, about in mixes.items()
    ]
    rows = [row if not row.id.endswith(".div") else CeilingKind(row.id, row.unit, row.about, quick=False) for row in rows]
    return [*rows, CeilingKind("int32.mad", "OP/s", "32-bit integer multiply-adds")]


def _tensor() -> list[CeilingKind]:
    types = {
        "fp64": "FP64",
        "tf32": "TF32",
        "bf16": "BF16",
        "fp16": "FP16, FP32 accumulators",
        "fp16_acc16": "FP16, FP16 accumulators",
        "int8": "INT8",
        "fp8": "FP8",
        "fp4": "FP4",
    }
    rows = []
    for name, about in types.items():
        families = {"fp64": ("mma",), "fp4": ("mma", "tcgen05")}.get(name, ("mma", "wgmma", "tcgen05"))
        unit = "OP/s" if name == "int8" else "FLOP/s"
        here = name != "fp4"
        rows += [
            CeilingKind(f"tensor.{name}.{family}", unit, f"tensor cores, {about}, {family}", quick=here, measured=here)
            for family in families
        ]
    return rows


def _others() -> list[CeilingKind]:
    return [
        CeilingKind("host.h2d", "B/s", "host to device, pinned memory", "link"),
        CeilingKind("host.d2h", "B/s", "device to host, pinned memory", "link"),
        CeilingKind("host.bidir", "B/s", "host link, both ways at once", "link", quick=False),
        CeilingKind("launch.stream", "s", "kernel launch, back to back in a stream", ""),
        CeilingKind("launch.sync", "s", "kernel launch and wait", ""),
        CeilingKind("launch.graph", "s", "kernel launch as node of a graph", ""),
    ]


def catalogue() -> tuple[CeilingKind, ...]:
    """All ceilings."""
    return (*_memory(), *_arithmetic(), *_tensor(), *_others())


def kind_of(ceiling: str, unit: str) -> CeilingKind:
    """The kind of a ceiling id; one that this program does not know is taken as its unit says."""
    known = {kind.id: kind for kind in catalogue()}
    return known.get(ceiling) or CeilingKind(ceiling, unit, "", domain="sm" if unit != "s" else "")


def select(kinds: Sequence[CeilingKind], only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[CeilingKind, ...]:
    """Ceilings that the words choose: an id, or its beginning up to a dot (``dram``, ``tensor.fp16``).

    Raises UsageError for a word that chooses nothing, and where nothing is left.
    """
    for option, words in (("--only", only), ("--skip", skip)):
        for word in words:
            if not any(_matches(kind.id, word) for kind in kinds):
                heads = ", ".join(dict.fromkeys(kind.id.partition(".")[0] for kind in kinds))
                raise UsageError(
                    f"Cannot use {option}", word, "there is no such ceiling", f"There are: {heads}; see `bench list`."
                )
    chosen = [kind for kind in kinds if not only or any(_matches(kind.id, word) for word in only)]
    chosen = [kind for kind in chosen if not any(_matches(kind.id, word) for word in skip)]
    if not chosen:
        raise UsageError("Cannot use --skip", ",".join(skip), "it leaves no ceiling to measure", "Skip fewer.")
    return tuple(chosen)


def _matches(ceiling: str, word: str) -> bool:
    return ceiling == word or ceiling.startswith(word + ".")


def rows(variants: Sequence[Variant] | None, capabilities: Sequence[str] = ()) -> list[Row]:
    """One row per ceiling; ``variants`` None where there is no program to ask, ``capabilities`` the GPUs that are meant."""
    kinds = list(catalogue())
    known = {kind.id for kind in kinds}
    for variant in variants or ():
        if variant.ceiling not in known:
            known.add(variant.ceiling)
            kinds.append(kind_of(variant.ceiling, variant.unit))
    return [_row(kind, variants, capabilities) for kind in kinds]


def _row(kind: CeilingKind, variants: Sequence[Variant] | None, capabilities: Sequence[str]) -> Row:
    row: Row = {"ceiling": kind.id, "unit": kind.unit, "measures": kind.about, "quick": "yes" if kind.quick else "no"}
    if variants is not None:
        own = [variant for variant in variants if variant.ceiling == kind.id]
        row["variants"] = list(dict.fromkeys(v.name for v in own if not v.reason and _on_any(v, capabilities)))
        row["applies to"] = _where(own, "", capabilities)
        row["emulated on"] = _where(own, "emulated", capabilities)
    row["status"] = _status(kind.id, capabilities) if kind.measured else NO_KERNEL
    return row


def _on_any(variant: Variant, capabilities: Sequence[str]) -> bool:
    return not capabilities or any(variant.on(text) for text in capabilities)


def _where(variants: Sequence[Variant], reason: str, capabilities: Sequence[str]) -> list[str]:
    chosen = [variant for variant in variants if variant.reason == reason]
    if capabilities:
        return [text for text in capabilities if any(variant.on(text) for variant in chosen)]
    if any(not variant.capabilities for variant in chosen):
        return ["all"]
    found = {text for variant in chosen for text in variant.capabilities}
    return sorted(found, key=lambda text: parse_capability(text) or (0, 0))


def _status(ceiling: str, capabilities: Sequence[str]) -> str:
    where = [text for text, ids in proven().items() if ceiling in ids and (not capabilities or text in capabilities)]
    return f"run on {', '.join(sorted(where))}" if where else UNPROVEN
