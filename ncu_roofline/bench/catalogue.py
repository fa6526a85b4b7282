"""Ceilings: what each is follows from its id, a program lists what it measures, the data sheet says what it is at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.records import inside, number
from ncu_roofline.bench.device import Device, device_of
from ncu_roofline.bench.runner import Variant
from ncu_roofline.chips import Architecture, Gpu, load_spec
from ncu_roofline.chips.fields import capability
from ncu_roofline.chips.fields import table as table_of
from ncu_roofline.chips.spec import ROOF_FACTORS, link_rates
from ncu_roofline.formats.ceilings import SPARSE, Ceiling, proven

UNPROVEN = "unproven on hardware"
_words = table_of("ceiling_words.toml", dict[str, str])
_ATOMICS = {"red", "atom"}
# Ceilings that a quick run leaves out, by the last word of their ids; of tensor cores, those with 16-bit accumulators.
_NOT_QUICK = {"write", "copy", "triad", *_ATOMICS, "nofma", "div", "bidir", "sync", "graph", "sparse"}


def about(ceiling: Ceiling) -> str:
    """What it is, for people."""
    return ", ".join(_words().get(word, word.upper().replace("_ACC", " with FP")) for word in ceiling.id.split("."))


def clock_of(ceiling: Ceiling, entry: Mapping[str, Any]) -> float | None:
    """The clock (Hz) that it ran at, of its entry in a ceilings file."""
    key = {"sm": "sm_mhz_mean", "memory": "mem_mhz"}.get(ceiling.domain, "")
    megahertz = number(inside(entry, "clock", key))
    return megahertz * 1e6 if megahertz > 0 else None


def is_quick(ceiling: Ceiling) -> bool:
    """Whether a quick run measures it, too."""
    return ceiling.id.rpartition(".")[2] not in _NOT_QUICK and "_acc16" not in ceiling.id


def kinds_of(variants: Sequence[Variant]) -> tuple[Ceiling, ...]:
    """The ceilings of a program in its order, links and launches last."""
    kinds = dict.fromkeys(Ceiling(variant.ceiling, unit=variant.unit) for variant in variants)
    return tuple(sorted(kinds, key=lambda kind: kind.domain in ("link", "")))


def select(kinds: Sequence[Ceiling], only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Ceiling, ...]:
    """Ceilings that the words choose: an id, or its beginning up to a dot (``dram``, ``tensor.fp16``).

    Raises UsageError for a word that chooses nothing, and where nothing is left.
    """

    def chosen_by(words: Sequence[str]) -> set[Ceiling]:
        return {kind for kind in kinds for word in words if kind.id == word or kind.id.startswith(word + ".")}

    for option, words in (("--only", only), ("--skip", skip)):
        for word in words:
            if not chosen_by([word]):
                heads = ", ".join(dict.fromkeys(kind.id.partition(".")[0] for kind in kinds))
                next_step = f"There are: {heads}; see `bench list`."
                raise UsageError(f"Cannot use {option}", word, "there is no such ceiling", next_step)
    wanted = (chosen_by(only) if only else set(kinds)) - chosen_by(skip)
    if not wanted:
        raise UsageError("Cannot use --skip", ",".join(skip), "it leaves no ceiling to measure", "Skip fewer.")
    return tuple(kind for kind in kinds if kind in wanted)


def rows(variants: Sequence[Variant], capabilities: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per ceiling; ``capabilities``: of the GPUs that are meant, all if empty; what none of them has is left out."""

    def where(of: Sequence[Variant]) -> list[str]:
        if capabilities:
            return [text for text in capabilities if any(variant.on(text) for variant in of)]
        if any(not variant.capabilities for variant in of):
            return ["all"]
        return sorted({text for variant in of for text in variant.capabilities}, key=capability)

    tried, found = proven(), []
    for kind in kinds_of(variants):
        own = [variant for variant in variants if variant.ceiling == kind.id]
        made = [v for v in own if not v.reason]
        names = [v.name for v in made if not capabilities or any(map(v.on, capabilities))]
        seen = sorted(text for text, ids in tried.items() if kind.id in ids and (not capabilities or text in capabilities))
        row: dict[str, Any] = {"ceiling": kind.id, "unit": kind.unit, "measures": about(kind)}
        row |= {"quick": "yes" if is_quick(kind) else "no"}
        row |= {"variants": list(dict.fromkeys(names)), "applies to": where(made)}
        row["emulated on"] = where([v for v in own if v.reason == "emulated"])
        row["status"] = f"run on {', '.join(seen)}" if seen else UNPROVEN
        if not any(variant.capabilities for variant in own):  # what a CPU was measured with is no news: it measures itself
            row["status"] = ""
        if not capabilities or row["applies to"] or row["emulated on"]:
            found.append(row)
    return found


@dataclass(frozen=True)
class Theory:
    """A peak, the data sheet's units times a clock: ``per_cycle`` operations or bytes of the whole device and cycle.

    ``vendor_clock`` in Hz: the clock behind the vendor's figure.  ``uncertain``: a measurement above it disproves it.
    ``slow`` says why the ceiling stays below 80 % of it, "" where it should not.
    """

    per_cycle: float
    vendor_clock: float
    formula: str
    uncertain: bool = False
    slow: str = ""

    @property
    def value(self) -> float:
        """The peak at the vendor's clock."""
        return self.per_cycle * self.vendor_clock

    def at(self, clock: float | None) -> float:
        """The peak at a measured clock in Hz, at the vendor's where none was measured."""
        return self.per_cycle * (clock or self.vendor_clock)


def theory(kind: Ceiling, device: Device, link: tuple[int, int] | None = None) -> Theory | None:
    """The peak of a ceiling; None where it has none (latencies, division, atomics), where it is unknown or not on the part.

    ``link``: PCI Express generation and lanes.
    """
    spec = load_spec()
    if kind.domain == "link":
        coherent = (name for architecture in spec.architectures for name in architecture.coherent)
        if link is None or device.is_mig or link[0] not in link_rates() or any(name in device.name for name in coherent):
            return None
        generation, lanes = link
        ways = 2 if kind.id == "host.bidir" else 1
        formula = f"{'2 x ' if ways == 2 else ''}PCI Express {generation} x{lanes}, line code taken off"
        slow = "the host's memory, its CPU socket or a switch limits the link"
        # Virtual machines report links that are not there: what is above disproves the link, not the measurement.
        return Theory(ways * lanes * link_rates()[generation], 1.0, formula, True, slow)
    architecture = spec.architecture(device.compute_capability)
    if architecture is None or kind.unit == "s" or kind.id.rpartition(".")[2] in _ATOMICS:
        return None
    if kind.unit == "B/s":
        found = _bandwidth(kind.id, device, architecture)
    elif kind.id.startswith("tensor."):
        found = _tensor(kind.id, device, architecture)
    else:
        found = _plain(kind.id, device, architecture)
    return found if found and found.value > 0 else None


def _bandwidth(ceiling: str, device: Device, architecture: Architecture) -> Theory | None:
    level = load_spec().level_of_ceiling(ceiling)
    if level not in architecture.bandwidth:
        return None
    product, per = architecture.bandwidth[level]
    if per == "sm":
        return Theory(product * device.sm_count, device.core_clock, f"{product:g} B x {device.sm_count} SMs x SM clock")
    if device.is_mig:  # an instance has a share of the bus and of L2, and the driver tells neither
        return None
    if per == "bus":
        return Theory(product * device.bus_bits, device.memory_clock_max, f"2 x memory clock x {device.bus_bits} bit / 8")
    slices = device.gpu.l2_slices if device.gpu else 0
    slow = "the L2 cache has a clock of its own, which may be lower, and its slices share a crossbar"
    return Theory(product * slices, device.core_clock, f"{product:g} B x {slices} slices x SM clock", True, slow)


def _plain(ceiling: str, device: Device, architecture: Architecture) -> Theory | None:
    """The peak of what no tensor core does; a division has none: it is a routine of the compiler."""
    family, _, mix = ceiling.partition(".")
    factor = ROOF_FACTORS.get(mix, 1.0 if mix == "mad" else None)
    published = architecture.peak(f"{family}.fma", device.name)
    stated = (published, family in architecture.uncertain) if published is not None else None
    rate = stated or architecture.rates.get(ceiling) or architecture.rates.get(family)
    if factor is None or rate is None:
        return None
    if mix == "nofma" and family not in load_spec().plain:
        slow = "the compiler writes part of these operations as multiply-adds of the other half-precision pipe"
        return _per_sm(rate[0] * factor, device, device.core_clock, True, slow)
    return _per_sm(rate[0] * factor, device, device.core_clock, rate[1])


def _tensor(ceiling: str, device: Device, architecture: Architecture) -> Theory | None:
    dense = ceiling.removesuffix(SPARSE)
    _, name, family = dense.split(".") if dense.count(".") == 2 else ("", "", "")
    if not name or family not in ("mma", architecture.tensor):
        return None
    # What caps an instruction family caps it for either kind of accumulators: HMMA at two thirds on an H100, measured.
    bare = name.partition("_")[0]
    own = f"tensor.{bare}.{family}"
    accumulators = {"fp16": ["tensor.fp16.acc32"], "fp16_acc16": ["tensor.fp16.acc16"]}.get(name, [])
    shared = ["tensor.fp8fp6fp4"] if name in ("fp8", "fp6fp4", "mxfp8") else []  # of 10.0, with block scales, too (CUTLASS)
    whole = family == architecture.tensor or name == "fp64"  # a peak without family is that of the full-rate instructions
    ids = [own, *accumulators, f"tensor.{bare if accumulators else name}", *shared] if whole else [own]
    peaks = ((roof, architecture.peak(roof + ceiling[len(dense) :], device.name)) for roof in ids)
    found = next(((roof, peak) for roof, peak in peaks if peak is not None), None)
    if found is None:
        return None
    # The vendors' FP64 tensor figures stand at the clock of the CUDA cores (H100 SXM: 66.9 = 132 x 256 x 1980 MHz).
    clock = device.core_clock if name == "fp64" else device.tensor_clock
    return _per_sm(found[1], device, clock, found[0] in architecture.uncertain)


def _per_sm(peak: float, device: Device, clock: float, uncertain: bool, slow: str = "") -> Theory:
    formula = f"{peak:g} per SM and cycle x {device.sm_count} SMs x SM clock"
    return Theory(peak * device.sm_count, clock, formula, uncertain, slow)


def as_json(found: Theory | None, clock: float | None, value: float | None, share: float | None) -> dict[str, Any]:
    """The "theory" of a ceiling in a ceilings file; ``fraction`` is of the theory at the measured clock."""
    if found is None:
        return dict.fromkeys(("value", "at_measured_clock", "formula", "fraction", "fraction_vendor_clock"))
    return {
        "value": found.value,
        "at_measured_clock": found.at(clock),
        "formula": found.formula,
        "uncertain": found.uncertain,
        "vendor_clock_mhz": found.vendor_clock / 1e6 if found.vendor_clock != 1.0 else None,
        "fraction": share,
        "fraction_vendor_clock": value / found.value if value is not None else None,
    }


def data_sheet() -> tuple[Ceiling, ...]:
    """The ceilings that some architecture of the facts has a peak for."""
    spec = load_spec()
    found = [Ceiling(name, unit="B/s") for level in spec.levels for name in level.ceilings if not name.startswith("host.")]
    peaks = dict.fromkeys(name for architecture in spec.architectures for name in (*architecture.peaks, *architecture.rates))
    ordinary = [name for name in peaks if name.partition(".")[2] in ROOF_FACTORS or name == "int32.mad"]
    found += [Ceiling(name, unit="OP/s" if name == "int32.mad" else "FLOP/s") for name in ordinary]
    families = dict.fromkeys(("mma", *(architecture.tensor for architecture in spec.architectures if architecture.tensor)))
    types = dict.fromkeys(name.split(".")[1] for name in peaks if name.startswith("tensor."))
    types = dict.fromkeys(each for name in types for each in ((name, "fp16_acc16") if name == "fp16" else (name,)))
    found += [
        Ceiling(f"tensor.{name}.{family}", unit="OP/s" if name.startswith("int") else "FLOP/s")
        for name in types
        if name != "fp8fp6fp4"  # one counter for what are FP8 instructions here
        for family in (families if name != "fp64" else ("mma",))
    ]
    return tuple(found)


def table(gpu: Gpu) -> dict[str, Theory]:
    """Peaks of a GPU of the table, by ceiling id; ceilings without a theory are left out."""
    device = device_of(gpu)
    return {kind.id: found for kind in data_sheet() if (found := theory(kind, device)) is not None}
