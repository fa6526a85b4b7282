"""Chips and the GPUs that they are sold in: identity, what they lack, vendor peaks: ``data/architectures``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ncu_roofline.chips.fields import Release, Releases, StatedCapability
from ncu_roofline.chips.roofs import board_rule


class BoardRule(NamedTuple):
    """Where boards of one chip differ: applies to devices whose name contains one of ``names``."""

    names: tuple[str, ...]
    note: str
    peaks: Mapping[str, float] = {}
    absent: tuple[str, ...] = ()

    def applies(self, device: str) -> bool:
        """Whether the rule is for a device of this name."""
        return any(name in device for name in self.names)


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU as its vendor sells it: what turns peaks per SM into TFLOP/s and GB/s.

    ``names``: parts of the name that the driver reports, the first is what board rules see; ``sm_count`` tells apart cards of
    like names.  Clocks in Hz: those behind the vendor's figures for CUDA cores and for tensor cores (H100, H200, B200 and L40S
    use two), and the memory's as the driver reports it; two bits per pin and cycle, so that ``bus_bits`` / 4 bytes move per
    cycle.  ``dram``: bandwidth as the vendor prints it, in B/s.  ``l2_slices``: 0 where unknown.  ``compute_capability``: that
    of its architecture.
    """

    id: str
    names: tuple[str, ...]
    compute_capability: StatedCapability = (0, 0)
    sm_count: int
    core_clock: float
    tensor_clock: float
    memory_clock: float
    bus_bits: int
    dram: float
    l2_slices: int = 0
    source: str


class Bandwidth(NamedTuple):
    """Bytes per cycle and one SM, L2 slice or bit of the memory bus."""

    bytes: float
    per: Literal["sm", "slice", "bus"]


class OperationRate(NamedTuple):
    """Operations per SM and cycle; where they are ``uncertain``, a measurement above disproves them."""

    per_sm: float
    uncertain: bool = False


@dataclass(frozen=True)
class Architecture:
    """A compute capability: identity, what its chips lack, and vendor peaks.

    ``peaks``: roof id -> operations per SM and cycle, dense, an FMA counted as two; unknown ones are absent.
    ``bandwidth``: level id -> (bytes per cycle, per what): "sm", L2 "slice", or bit of the memory "bus" and DRAM cycle.
    ``slices``: L2 slices by name of the GPU (without maker), where attributes of the device tell too many.
    ``launching``: seconds that a launch costs, by a part of the name of the GPUs that it was measured on and published for.
    ``lacks``: level ids without counters of their own.  ``costly``: clocks that cost a replay pass of their own.
    ``caveat``: a clause that goes with every number of such a chip, "" where recorded reports have proven its counters.
    ``tensor_passes``: replay passes that the operations of every tensor type add to those of all else, 0 where not stated.
    ``releases``: those of Nsight Compute whose sections know it by a number, by the compute capability that this is ten times.
    ``left_out``: ids of what our sections don't count here, as it would cost a replay pass of its own.
    ``tensor``: the instruction family of the full tensor rate.  ``targets``: those of nvcc, best first, and ``cuda_until`` the
    last CUDA that has them, 0 for all.  ``rates``: operations per SM and cycle of arithmetic (``bf16``, ``int32.mad``) that no
    counter tells apart, and whether the figure is uncertain: then a measurement above disproves it.
    ``coherent``: parts of names of GPUs whose host link is NVLink-C2C, so that no PCI Express link carries copies.
    ``gpus``: some as they are sold.
    """

    compute_capability: StatedCapability
    name: str
    chips: tuple[str, ...]
    products: tuple[str, ...]
    lacks: frozenset[str] = frozenset()
    costly: frozenset[str] = frozenset()
    peaks: Mapping[str, float] = field(default_factory=dict, hash=False)
    bandwidth: Mapping[str, Bandwidth] = field(default_factory=dict, hash=False)
    boards: tuple[BoardRule, ...] = field(default=(), hash=False)
    notes: tuple[str, ...] = ()
    slices: Mapping[str, int] = field(default_factory=dict, hash=False)
    launching: Mapping[str, float] = field(default_factory=dict, hash=False)
    caveat: str = ""
    tensor_passes: int = 0
    releases: Mapping[StatedCapability, Releases] = field(default_factory=dict, hash=False)
    left_out: frozenset[str] = frozenset()
    tensor: Literal["mma", "wgmma", "tcgen05"] = "mma"
    targets: tuple[str, ...] = ()
    cuda_until: int = 0
    rates: Mapping[str, OperationRate] = field(default_factory=dict, hash=False)
    coherent: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()

    @property
    def halves(self) -> bool:
        """Whether it issues integer multiply-adds, and all other integer work, at half rate."""
        return "int32.mad" in self.rates

    def number(self, release: Release) -> int | None:
        """The number that sections of a release of Nsight Compute know it by: 90, None if by none."""
        known = (capability for capability, (since, until) in self.releases.items() if since <= release <= until)
        return next((10 * major + minor for major, minor in known), None)

    def board_rule(self, roof: str, device: str) -> BoardRule | None:
        """The rule that changes this roof on a device of this name, if any."""
        found: BoardRule | None = board_rule(self.boards, roof, device)
        return found

    def peak(self, roof: str, device: str = "") -> float | None:
        """Operations per SM and cycle of a roof on a device of this name; None where unknown or not there."""
        rule = self.board_rule(roof, device)
        return rule.peaks.get(roof) if rule else self.peaks.get(roof)
