"""What a ceiling could be at most: the data sheet's units times a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.device import Device, device_of
from ncu_roofline.chips import Architecture, Gpu, load_spec
from ncu_roofline.chips.spec import ROOF_FACTORS, link_rates


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


def theory(kind: CeilingKind, device: Device, link: tuple[int, int] | None = None) -> Theory | None:
    """The peak of a ceiling; None where it has none (latencies, division), where it is unknown or not on the part.

    ``link``: PCI Express generation and lanes.
    """
    if kind.domain == "link":
        return _link(kind, device, link)
    architecture = load_spec().architecture(device.compute_capability)
    if architecture is None or kind.unit == "s":
        return None
    found = (_bandwidth if kind.unit == "B/s" else _compute)(kind, device, architecture)
    return found if found and found.value > 0 else None


def _bandwidth(kind: CeilingKind, device: Device, architecture: Architecture) -> Theory | None:
    level = load_spec().level_of_ceiling(kind.id)
    if level not in architecture.bandwidth:
        return None
    product, per = architecture.bandwidth[level]
    if per == "sm":
        return Theory(product * device.sm_count, device.core_clock, f"{product:g} B x {device.sm_count} SMs x SM clock")
    if device.is_mig:  # an instance has a share of the bus and of L2, and the driver tells neither
        return None
    if per == "bus":
        return Theory(product * device.bus_bits, device.memory_clock_max, f"2 x memory clock x {device.bus_bits} bit / 8")
    formula = f"{product:g} B x {device.l2_slices} slices x SM clock"
    slow = "the L2 cache has a clock of its own, which may be lower, and its slices share a crossbar"
    return Theory(product * device.l2_slices, device.core_clock, formula, uncertain=True, slow=slow)


def _link(kind: CeilingKind, device: Device, link: tuple[int, int] | None) -> Theory | None:
    coherent = (name for architecture in load_spec().architectures for name in architecture.coherent)
    if link is None or device.is_mig or any(name in device.name for name in coherent):
        return None
    generation, lanes = link
    if generation not in link_rates():
        return None
    ways = 2 if kind.id == "host.bidir" else 1
    slow = "the host's memory, its CPU socket or a switch limits the link"
    formula = f"{'2 x ' if ways == 2 else ''}PCI Express {generation} x{lanes}, line code taken off"
    # Virtual machines report links that are not there: what is above disproves the link, not the measurement.
    return Theory(ways * lanes * link_rates()[generation], 1.0, formula, uncertain=True, slow=slow)


def _compute(kind: CeilingKind, device: Device, architecture: Architecture) -> Theory | None:
    family, _, mix = kind.id.partition(".")
    if family == "tensor":
        return _tensor(kind.id, device, architecture)
    factor = ROOF_FACTORS.get(mix, 1.0 if mix == "mad" else None)
    if factor is None:  # a division is a routine of the compiler
        return None
    rates = architecture.rates
    published = architecture.peak(f"{family}.fma", device.name)
    found = (published, False) if published is not None else rates.get(kind.id) or rates.get(family)
    if found is None:
        return None
    peak, uncertain = found
    if mix == "nofma" and family not in load_spec().plain:
        slow = "the compiler writes part of these operations as multiply-adds of the other half-precision pipe"
        return _per_sm(peak * factor, device, device.core_clock, True, slow)
    return _per_sm(peak * factor, device, device.core_clock, uncertain, "")


def _tensor(ceiling: str, device: Device, architecture: Architecture) -> Theory | None:
    _, name, family = ceiling.split(".") if ceiling.count(".") == 2 else ("", "", "")
    if not name or family not in ("mma", architecture.tensor):
        return None
    # What caps an instruction family caps it for either kind of accumulators: HMMA at two thirds on an H100, measured.
    bare = name.partition("_")[0]
    own = f"tensor.{bare}.{family}"
    accumulators = {"fp16": ["tensor.fp16.acc32"], "fp16_acc16": ["tensor.fp16.acc16"]}.get(name, [])
    ids = [own, *accumulators, f"tensor.{bare if accumulators else name}", *(["tensor.fp8fp6fp4"] if name == "fp8" else [])]
    found = next(((roof, peak) for roof in ids if (peak := architecture.peak(roof, device.name)) is not None), None)
    if found is None:
        return None
    slow = ""
    if family != architecture.tensor and name != "fp64" and found[0] != own:
        slow = f"{family} is not the full-rate instruction of this architecture, {architecture.tensor} is"
    # The vendors' FP64 tensor figures stand at the clock of the CUDA cores (H100 SXM: 66.9 = 132 x 256 x 1980 MHz).
    return _per_sm(found[1], device, device.core_clock if name == "fp64" else device.tensor_clock, False, slow)


def _per_sm(peak: float, device: Device, clock: float, uncertain: bool, slow: str) -> Theory:
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
    device = device_of(gpu)
    return {kind.id: found.value for kind in data_sheet() if (found := theory(kind, device)) is not None}
