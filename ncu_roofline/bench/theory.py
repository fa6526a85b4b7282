"""What a ceiling could be at most: the data sheet's units times a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device
from ncu_roofline.chips import Architecture, Gpu, load_spec
from ncu_roofline.chips.gpus import link_rates
from ncu_roofline.chips.precisions import ROOF_FACTORS


@dataclass(frozen=True)
class Theory:
    """A peak: ``per_cycle`` operations or bytes of the whole device and cycle of the ceiling's clock.

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

    def share(self, value: float, clock: float | None, per_cycle: float | None) -> float:
        """A value's share of the theory at the measured clock (Hz).

        ``per_cycle``: of the whole device, from each trial's own clock, where it is known: under a power limit the clock swings
        from trial to trial.
        """
        return per_cycle / self.per_cycle if per_cycle else value / self.at(clock)


class Units(NamedTuple):
    """What theory needs to know of a device; clocks in Hz, 0 or None where unknown; ``link``: generation and lanes."""

    architecture: Architecture | None
    name: str
    sm_count: int
    bus_bits: int
    core_clock: float
    tensor_clock: float
    memory_clock: float
    l2_slices: int
    is_mig: bool = False
    link: tuple[int, int] | None = None


def units_of_device(device: Device, link: tuple[int, int] | None = None) -> Units:
    """Of a device at hand; ``link``: PCI Express generation and lanes."""
    gpu, clock = device.gpu, device.sm_clock_max
    architecture = load_spec().architecture(device.compute_capability)
    clocks = (gpu.core_clock, gpu.tensor_clock) if gpu else (clock, clock)
    slices = gpu.l2_slices if gpu else 0
    units = (architecture, device.name, device.sm_count, device.bus_bits, *clocks, device.memory_clock_max, slices)
    return Units(*units, is_mig=device.is_mig, link=link)


def units_of_gpu(gpu: Gpu) -> Units:
    """Of a row of the table of GPUs."""
    architecture = load_spec().architecture(gpu.compute_capability)
    clocks = gpu.core_clock, gpu.tensor_clock, gpu.memory_clock
    return Units(architecture, gpu.names[0], gpu.sm_count, gpu.bus_bits, *clocks, gpu.l2_slices)


def theory(kind: CeilingKind, units: Units) -> Theory | None:
    """The peak of a ceiling; None where it has none (latencies, division), where it is unknown or not on the part."""
    if kind.domain == "link":
        return _link(kind, units)
    if units.architecture is None or kind.unit == "s":
        return None
    found = (_bandwidth if kind.unit == "B/s" else _compute)(kind, units, units.architecture)
    return found if found and found.value > 0 else None


def _bandwidth(kind: CeilingKind, units: Units, architecture: Architecture) -> Theory | None:
    level = load_spec().level_of_ceiling(kind.id)
    if level not in architecture.bandwidth:
        return None
    product, per = architecture.bandwidth[level]
    if per == "sm":
        return Theory(product * units.sm_count, units.core_clock, f"{product:g} B x {units.sm_count} SMs x SM clock")
    if units.is_mig:  # an instance has a share of the bus and of L2, and the driver tells neither
        return None
    if per == "bus":
        return Theory(product * units.bus_bits, units.memory_clock, f"2 x memory clock x {units.bus_bits} bit / 8")
    formula = f"{product:g} B x {units.l2_slices} slices x SM clock"
    slow = "the L2 cache has a clock of its own, which may be lower, and its slices share a crossbar"
    return Theory(product * units.l2_slices, units.core_clock, formula, uncertain=True, slow=slow)


def _link(kind: CeilingKind, units: Units) -> Theory | None:
    coherent = (name for architecture in load_spec().architectures for name in architecture.coherent)
    if units.link is None or units.is_mig or any(name in units.name for name in coherent):
        return None
    generation, lanes = units.link
    if generation not in link_rates():
        return None
    ways = 2 if kind.id == "host.bidir" else 1
    slow = "the host's memory, its CPU socket or a switch limits the link"
    formula = f"{'2 x ' if ways == 2 else ''}PCI Express {generation} x{lanes}, line code taken off"
    # Virtual machines report links that are not there: what is above disproves the link, not the measurement.
    return Theory(ways * lanes * link_rates()[generation], 1.0, formula, uncertain=True, slow=slow)


def _compute(kind: CeilingKind, units: Units, architecture: Architecture) -> Theory | None:
    family, _, mix = kind.id.partition(".")
    if family == "tensor":
        return _tensor(kind.id, units, architecture)
    factor = ROOF_FACTORS.get(mix, 1.0 if mix == "mad" else None)
    if factor is None:  # a division is a routine of the compiler
        return None
    rates = architecture.rates
    published = architecture.peak(f"{family}.fma", units.name)
    found = (published, False) if published is not None else rates.get(kind.id) or rates.get(family)
    if found is None:
        return None
    peak, uncertain = found
    if mix == "nofma" and family not in load_spec().plain:
        slow = "the compiler writes part of these operations as multiply-adds of the other half-precision pipe"
        return _per_sm(peak * factor, units, units.core_clock, True, slow)
    return _per_sm(peak * factor, units, units.core_clock, uncertain, "")


def _tensor(ceiling: str, units: Units, architecture: Architecture) -> Theory | None:
    _, name, family = ceiling.split(".") if ceiling.count(".") == 2 else ("", "", "")
    if not name or family not in ("mma", architecture.tensor):
        return None
    # What caps an instruction family caps it for either kind of accumulators: HMMA at two thirds on an H100, measured.
    bare = name.partition("_")[0]
    own = f"tensor.{bare}.{family}"
    accumulators = {"fp16": ["tensor.fp16.acc32"], "fp16_acc16": ["tensor.fp16.acc16"]}.get(name, [])
    ids = [own, *accumulators, f"tensor.{bare if accumulators else name}", *(["tensor.fp8fp6fp4"] if name == "fp8" else [])]
    found = next(((roof, peak) for roof in ids if (peak := architecture.peak(roof, units.name)) is not None), None)
    if found is None:
        return None
    slow = ""
    if family != architecture.tensor and name != "fp64" and found[0] != own:
        slow = f"{family} is not the full-rate instruction of this architecture, {architecture.tensor} is"
    # The vendors' FP64 tensor figures stand at the clock of the CUDA cores (H100 SXM: 66.9 = 132 x 256 x 1980 MHz).
    return _per_sm(found[1], units, units.core_clock if name == "fp64" else units.tensor_clock, False, slow)


def _per_sm(peak: float, units: Units, clock: float, uncertain: bool, slow: str) -> Theory:
    formula = f"{peak:g} per SM and cycle x {units.sm_count} SMs x SM clock"
    return Theory(peak * units.sm_count, clock, formula, uncertain, slow)


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


def data_sheet() -> tuple[CeilingKind, ...]:
    """The ceilings that some architecture of the facts has a peak for."""
    spec = load_spec()
    found = [CeilingKind(name, "B/s") for level in spec.levels for name in level.ceilings if not name.startswith("host.")]
    peaks = dict.fromkeys(name for architecture in spec.architectures for name in (*architecture.peaks, *architecture.rates))
    ordinary = [name for name in peaks if name.partition(".")[2] in ROOF_FACTORS or name == "int32.mad"]
    found += [CeilingKind(name, "OP/s" if name == "int32.mad" else "FLOP/s") for name in ordinary]
    families = dict.fromkeys(("mma", *(architecture.tensor for architecture in spec.architectures if architecture.tensor)))
    types = dict.fromkeys(name.split(".")[1] for name in peaks if name.startswith("tensor."))
    types = dict.fromkeys(each for name in types for each in ((name, "fp16_acc16") if name == "fp16" else (name,)))
    found += [
        CeilingKind(f"tensor.{name}.{family}", "OP/s" if name.startswith("int") else "FLOP/s")
        for name in types
        if name != "fp8fp6fp4"  # one counter for what are FP8 instructions here
        for family in (families if name != "fp64" else ("mma",))
    ]
    return tuple(found)


def table(gpu: Gpu) -> dict[str, float]:
    """Peaks of a GPU of the table in SI units, by ceiling id; ceilings without a theory are left out."""
    units = units_of_gpu(gpu)
    return {kind.id: found.value for kind in data_sheet() if (found := theory(kind, units)) is not None}
