"""What is special about CPUs: their benchmark is built with the system's C++ compiler, Linux tells energy and clocks."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.base.temporary import temporary_folder
from ncu_roofline.bench.build import Built, Compiler, Task, ask, build_once, read_recipe
from ncu_roofline.bench.statistics import median
from ncu_roofline.bench.telemetry import Counters, NoTelemetry, Reading, Telemetry

_COMPILERS = ("c++", "g++", "clang++")
_PROBE = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
_NEXT = "Install GCC or Clang with OpenMP (Debian: g++; Clang also libomp-dev), or name another compiler with CXX."


def build_host(
    *,
    folder: Path | None = None,
    cache: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda _text: None,
) -> Built:
    """The benchmark program for the CPU here.

    ``folder``: the one with its sources, ``cache``: where programs are kept.  ``say`` is told what takes long.  Raises
    RooflineError where this is not Linux, there is no compiler with OpenMP, or the sources do not compile.
    """
    if not sys.platform.startswith("linux"):
        reason = "its cores, caches and clocks are read as Linux shows them"
        raise RooflineError("Cannot measure on", "this CPU", reason, "Measure on a Linux machine.")
    compiler = find_host_compiler()
    recipe = read_recipe(folder or pack_folder("bench") / "openmp")
    task = Task(recipe, compiler, _target(compiler), (), _NEXT)
    return build_once(task, cache, force=force, say=say)


def find_host_compiler() -> Compiler:
    """The compiler that CXX names, else the first of c++, g++ and clang++ that knows OpenMP.  Raises RooflineError."""
    wanted = os.environ.get("CXX", "").split()[:1]
    paths = [Path(found) for name in (wanted or _COMPILERS) if (found := shutil.which(name))]
    for path in paths:
        text = ask([str(path), "--version"])
        if text and _knows_openmp(path):
            return Compiler(path, (0, 0), text.splitlines()[0].strip())
    what = wanted[0] if wanted else "a C++ compiler"
    if not paths:
        reason = "CXX names it, and there is no such program" if wanted else f"there is none of {', '.join(_COMPILERS)}"
        raise RooflineError("Cannot find", what, reason, _NEXT)
    reason = "it does not compile and link with -fopenmp"
    raise RooflineError("Cannot use", ", ".join(map(str, paths)), reason, _NEXT)


def _knows_openmp(path: Path) -> bool:
    with temporary_folder({"probe.cpp": _PROBE.encode()}) as folder:
        return ask([str(path), "-fopenmp", str(folder / "probe.cpp"), "-o", str(folder / "probe")]) is not None


def _target(compiler: Compiler) -> str:
    """What -march=native stands for: nodes with one home folder and several kinds of CPU must not share a program."""
    macros = ask([str(compiler.path), "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    if macros is None:
        raise RooflineError("Cannot use", compiler.path, "it does not know -march=native", _NEXT)
    return f"{platform.machine()}-{hashlib.sha256(macros.encode()).hexdigest()[:8]}"


SYSFS = Path("/sys")


@dataclass
class Zone:
    """The energy counter of a processor package: it starts again from zero above ``limit`` microjoules."""

    path: Path
    limit: int
    last: int
    total: int = 0

    def read(self) -> int:
        """Microjoules since it was opened; the last that was read where it can't be any more."""
        now = _number(self.path)
        if now is not None:
            self.total += now - self.last if now >= self.last else now - self.last + self.limit
            self.last = now
        return self.total


@dataclass
class CpuTelemetry:
    """The packages' energy and the cores' clocks; either may be missing.  Nothing raises."""

    zones: list[Zone]
    clocks: list[Path]
    facts: dict[str, Any]
    clock: Callable[[], float] = time.monotonic
    available: bool = True
    _before: tuple[float, int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def identity(self) -> dict[str, Any]:
        """Governor and driver of the clocks, where there are any."""
        return self.facts

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """Median clock of the cores, and the power since the reading before (None at the first)."""
        clocks = [value for path in self.clocks if (value := _number(path)) is not None]
        return Reading(sm_clock=median([value * 1e3 for value in clocks]) if clocks else None, power=self._power())

    def energy(self) -> float | None:
        """J since this was opened."""
        return self._energy() * 1e-6 if self.zones else None

    def counters(self) -> Counters:
        """Nothing: Linux does not tell how long a CPU was held back."""
        return Counters()

    def _energy(self) -> int:
        with self._lock:  # a thread reads while trials run
            return sum(zone.read() for zone in self.zones)

    def _power(self) -> float | None:
        if not self.zones:
            return None
        before, self._before = self._before, (self.clock(), self._energy())
        if before is None or self._before[0] <= before[0]:
            return None
        return (self._before[1] - before[1]) * 1e-6 / (self._before[0] - before[0])


def open_cpu_telemetry(sysfs: Path = SYSFS) -> Telemetry:
    """What ``sysfs`` shows of this machine.  Never raises: without anything to read the result says why."""
    zones = _zones(sysfs / "class/powercap")
    frequencies = sysfs / "devices/system/cpu"
    clocks = [path for cpu in _allowed() if _number(path := frequencies / f"cpu{cpu}" / "cpufreq" / "scaling_cur_freq")]
    if not zones and not clocks:
        return NoTelemetry("Linux shows neither energy (powercap, mostly for root only) nor clocks (cpufreq) of this CPU")
    facts = {key: _text(clocks[0].parent / name) for key, name in _IDENTITY.items()} if clocks else {}
    return CpuTelemetry(zones, clocks, {key: value for key, value in facts.items() if value})


_IDENTITY = {"clock_governor": "scaling_governor", "clock_driver": "scaling_driver"}


def _zones(folder: Path) -> list[Zone]:
    """One per package; those inside packages are parts of them, and "psys" is more than the processor."""
    found = []
    try:
        paths = sorted(folder.glob("intel-rapl:*"))
    except OSError:
        return []
    for path in paths:
        now, limit = _number(path / "energy_uj"), _number(path / "max_energy_range_uj")
        if _text(path / "name").startswith("package") and now is not None and limit:
            found.append(Zone(path / "energy_uj", limit, now))
    return found


def _allowed() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None
