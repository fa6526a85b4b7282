"""Which ceilings a command draws: the files that `--ceilings` names, or with `auto` the best that there are for each GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.files import matching
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.cli.options import AUTO
from ncu_roofline.cli.outputs import say
from ncu_roofline.formats.ceilings import MEASURED, Ceilings, read_ceilings, registry

if TYPE_CHECKING:
    from ncu_roofline.plugin.machine.machine import Machine

Capability = tuple[int, int]


class Shelf:
    """All ceilings of a machine to choose from; what is chosen for a GPU is said, once."""

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine
        self._chosen: dict[tuple[str, Capability | None], Ceilings | None] = {}

    @cached_property
    def all(self) -> list[Ceilings]:
        """First choice first: the user's own, the newest before others, then the package's; published ones behind measured."""
        own = sorted(self._own(), key=lambda one: one.date, reverse=True)
        return sorted([*own, *registry()], key=lambda one: one.status != MEASURED)

    def _own(self) -> list[Ceilings]:
        """What `install` and `bench run` kept, and what `ncu_roofline.bench.measure` left in the cache."""
        return [one for one in map(_readable, _own_files(self._machine)) if one]

    def find(self, device: str, capability: Capability | None = None) -> Ceilings | None:
        """The first choice for a model of GPU, by its name alone where its capability is unknown; None if there is none."""
        if (device, capability) not in self._chosen:
            fitting = (one for one in self.all if device and one.applies_to(device, capability or one.compute_capability))
            self._chosen[device, capability] = found = next(fitting, None)
            say(f"ncu-roofline: {_said(device, capability, found)}")
        return self._chosen[device, capability]


def _own_files(machine: Machine | None = None) -> list[Path]:
    from ncu_roofline.bench.build import cache_folder
    from ncu_roofline.plugin.machine.install import folder
    from ncu_roofline.plugin.machine.machine import this_machine

    machine = machine or this_machine()
    places = (folder(machine), cache_folder(machine.environ) / "ceilings")
    return [path for place in places for path in matching(place, "*.json")]


def ceiling_files(given: Sequence[str]) -> list[str]:
    """The files that values of `--ceilings` have a command read, with `auto` all of the user's own."""
    own = map(str, _own_files()) if AUTO in given else ()
    return [*(path for path in given if path != AUTO), *own]


def _readable(path: Path) -> Ceilings | None:
    try:
        return read_ceilings(path)
    except RooflineError as error:
        say(f"ncu-roofline: left out: {error}")
        return None


def _said(device: str, capability: Capability | None, found: Ceilings | None) -> str:
    if found is not None:
        own = "" if found in registry() else f"{Path(found.path).parent}: "
        return f"ceilings of {device}: {own}{found.provenance}"
    of = f"{device}{f' ({capability_text(capability)})' if capability else ''}" if device else "a report that names no GPU"
    where = "none was measured here and none comes with ncu-roofline"
    return f"no ceilings of {of}: {where}, so its roofs are theoretical; `ncu-roofline bench run` measures a GPU"


@dataclass(frozen=True)
class Wanted:
    """What `--ceilings` asks for: files, read, and with ``auto`` the best there are for GPUs that no file is of."""

    files: tuple[Ceilings, ...]
    auto: bool
    shelf: Shelf

    @property
    def all(self) -> list[Ceilings]:
        """Whatever may be chosen, first choice first."""
        return [*self.files, *(self.shelf.all if self.auto else ())]

    def of(self, devices: Iterable[tuple[str, Capability]]) -> list[Ceilings]:
        """The ceilings for reports from these GPUs (name and compute capability)."""
        found = {one.path: one for one in self.files}
        for device, capability in dict.fromkeys(devices) if self.auto else ():
            if not any(one.applies_to(device, capability) for one in self.files):
                chosen = self.shelf.find(str(device), capability)
                found.update({chosen.path: chosen} if chosen else {})
        return list(found.values())


def wanted(given: Sequence[str], read: Callable[[str], Ceilings] = read_ceilings) -> Wanted:
    """What the values of `--ceilings` ask for.  Raises RooflineError for a file that can't be read."""
    return Wanted(tuple(read(path) for path in given if path != AUTO), AUTO in given, Shelf())


def check_named(given: str, why: str) -> None:
    """Raise UsageError for `auto` where it can't be: ``why`` is a clause that says what is lacking."""
    if given == AUTO:
        raise UsageError("Cannot use --ceilings", AUTO, why, "Name a file.")
