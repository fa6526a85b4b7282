"""How `ncu-roofline source` reads a report: which launches, with which ceilings, and instructions as nvdisasm writes them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli.options import LaunchFilters
from ncu_roofline.cli.outputs import has_cursor, say

if TYPE_CHECKING:
    from ncu_roofline.analyses.source.build import NotCountedError
    from ncu_roofline.analyses.source.code import Disassemble
    from ncu_roofline.analyses.source.frames import SourceRoofline
    from ncu_roofline.formats.ceilings import Ceilings

    Capability = tuple[int, int]
    Gpu = tuple[str, Capability]

_PATIENCE = 120.0  # seconds for all code of a report: of a launch it takes one for 0.5 MB
_LONG = 1_000_000  # bytes of code that take so long that people wonder


@dataclass(frozen=True)
class Shelf:
    """Ceilings to choose from: those ``given``, and for GPUs that none of them is of the first that fits of the ``others``."""

    given: tuple[Ceilings, ...]
    others: tuple[Ceilings, ...]

    def of(self, gpus: Iterable[Gpu]) -> list[Ceilings]:
        """Those of some GPUs."""
        found: dict[str, Ceilings] = {}
        for gpu in gpus:
            mine = [one for one in self.given if one.applies_to(*gpu)]
            found |= {one.path: one for one in mine or [one for one in self.others if one.applies_to(*gpu)][:1]}
        return list(found.values())


class Whole(Enum):
    """Of which launches instructions are shown, and so disassembled, which takes a program of its own."""

    ALL = "all"
    UNLINED = "those without source lines"
    NONE = "none"


@dataclass(frozen=True)
class Reading:
    """How reports are read: the ``top`` kernels of which launches, under which roofs at which clock.

    ``folders`` hold sources that the reports don't; of launches that ``whole`` names instructions are disassembled.
    """

    launches: LaunchFilters
    top: int
    clock: str
    folders: tuple[str, ...]
    shelf: Shelf
    whole: Whole


@dataclass(frozen=True)
class Read:
    """What a worker brings back of one report; ``undone`` says why instructions are not whole."""

    frames: SourceRoofline
    gpus: tuple[Gpu, ...]
    undone: tuple[str, ...] = ()


def read_view(path: str, name: str, how: Reading) -> tuple[Read | NotCountedError | None, tuple[str, ...]]:
    """The view of a report, or why it has none (None if no launch passes the filters), and sentences."""
    from ncu_roofline.analyses.source.build import NotCountedError, source_roofline
    from ncu_roofline.cli.reading import check_kernels
    from ncu_roofline.formats.inputs import check_report
    from ncu_roofline.formats.report import read_report
    from ncu_roofline.model import Selection, measurements_of

    check_report(path, "source counters are in reports only")
    select = Selection(kernel=how.launches.kernel, nvtx=how.launches.nvtx, launch=how.launches.launch)
    undone: list[str] = []
    with read_report(path) as report:
        check_kernels(report)
        if select != Selection() and not len(select.positions(measurements_of(report))):
            return None, report.warnings
        gpus = tuple((device.name, device.compute_capability or (0, 0)) for device in report.devices)
        try:
            frames = source_roofline(
                report,
                how.shelf.of(gpus),
                select=select,
                top=how.top,
                clock=how.clock,
                disassemble=None if how.whole is Whole.NONE else _disassembler(undone.append),
                only_unlined=how.whole is Whole.UNLINED,
                folders=how.folders,
                label=name,
            )
        except NotCountedError as error:
            return error, report.warnings
        return Read(frames, gpus, tuple(undone)), report.warnings


def _disassembler(failure: Callable[[str], None]) -> Disassemble | None:
    """Whole instructions of functions by offset, None where nvdisasm is not installed; once it failed there are no more."""
    from ncu_roofline.plugin.machine.disassembly import disassemble, find_nvdisasm

    tool = find_nvdisasm()
    failed: list[RooflineError] = []
    deadline = time.monotonic() + _PATIENCE

    def texts(codes: Sequence[bytes], capability: Capability) -> Sequence[Mapping[int, str]]:
        if not tool or failed:
            return [{}] * len(codes)
        size = sum(map(len, codes))
        if size > _LONG and has_cursor(sys.stderr):
            say(f"nvdisasm reads {size / 1e6:.1f} MB of code (--no-disassembly leaves that out) ...")
        try:
            return disassemble(codes, capability, tool, deadline - time.monotonic())
        except RooflineError as error:
            failed.append(error)
            failure(str(error))
            return [{}] * len(codes)

    return texts if tool else None
