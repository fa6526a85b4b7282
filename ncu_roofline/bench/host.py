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
from ncu_roofline.base.files import matching, pack_folder
from ncu_roofline.base.temporary import temporary_folder
from ncu_roofline.bench.build import Built, Compiler, Task, ask, build_once, read_recipe
from ncu_roofline.bench.statistics import median
from ncu_roofline.bench.telemetry import NoTelemetry, Reading, Telemetry

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
    # What -march=native stands for: nodes with one home folder and several kinds of CPU must not share a program.
    macros = ask([str(compiler.path), "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    if macros is None:
        raise RooflineError("Cannot use", compiler.path, "it does not know -march=native", _NEXT)
    target = f"{platform.machine()}-{hashlib.sha256(macros.encode()).hexdigest()[:8]}"
    folder = folder or pack_folder("bench") / "openmp"
    return build_once(Task(folder, read_recipe(folder), compiler, target, (), _NEXT), cache, force=force, say=say)


def find_host_compiler() -> Compiler:
    """The compiler that CXX names, else the first of c++, g++ and clang++ that knows OpenMP.  Raises RooflineError."""
    wanted = os.environ.get("CXX", "").split()[:1]
    paths = [Path(found) for name in (wanted or _COMPILERS) if (found := shutil.which(name))]
    for path in paths:
        text = ask([str(path), "--version"])
        with temporary_folder({"probe.cpp": _PROBE.encode()}) as folder:
            probe = [str(path), "-fopenmp", str(folder / "probe.cpp"), "-o", str(folder / "probe")]
            if text and ask(probe) is not None:
                return Compiler(path, (0, 0), text.splitlines()[0].strip())
    if paths:
        raise RooflineError("Cannot use", ", ".join(map(str, paths)), "it does not compile and link with -fopenmp", _NEXT)
    reason = "CXX names it, and there is no such program" if wanted else f"there is none of {', '.join(_COMPILERS)}"
    raise RooflineError("Cannot find", wanted[0] if wanted else "a C++ compiler", reason, _NEXT)


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
class CpuTelemetry(Telemetry):
    """The packages' energy and the cores' clocks; either may be missing.  Linux does not tell how long it held a CPU back."""

    zones: list[Zone]
    clocks: list[Path]
    facts: dict[str, Any]
    clock: Callable[[], float] = time.monotonic
    _before: tuple[float, float] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def identity(self) -> dict[str, Any]:
        """Governor and driver of the clocks, where there are any."""
        return self.facts

    def read(self, thorough: bool = True) -> Reading:  # noqa: ARG002
        """Median clock of the cores, and the power since the reading before (None at the first)."""
        clocks = [value for path in self.clocks if (value := _number(path)) is not None]
        clock, power = median([value * 1e3 for value in clocks]) if clocks else None, None
        now, energy = self.clock(), self.energy()
        if energy is not None:
            if self._before and now > self._before[0]:
                power = (energy - self._before[1]) / (now - self._before[0])
            self._before = now, energy
        return Reading(sm_clock=clock, power=power)

    def energy(self) -> float | None:
        """J since this was opened."""
        with self._lock:  # a thread reads while trials run
            return sum(zone.read() for zone in self.zones) * 1e-6 if self.zones else None


def open_cpu_telemetry(sysfs: Path = Path("/sys")) -> Telemetry:
    """What ``sysfs`` shows of this machine.  Never raises: without anything to read the result says why."""
    zones = []
    # One per package; those inside packages are parts of them, and "psys" is more than the processor.
    for path in matching(sysfs / "class/powercap", "intel-rapl:*"):
        now, limit = _number(path / "energy_uj"), _number(path / "max_energy_range_uj")
        if _text(path / "name").startswith("package") and now is not None and limit:
            zones.append(Zone(path / "energy_uj", limit, now))
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    folders = [sysfs / f"devices/system/cpu/cpu{cpu}/cpufreq" for cpu in allowed]
    clocks = [folder / "scaling_cur_freq" for folder in folders if _number(folder / "scaling_cur_freq")]
    if not zones and not clocks:
        return NoTelemetry("Linux shows neither energy (powercap, mostly for root only) nor clocks (cpufreq) of this CPU")
    names = {"clock_governor": "scaling_governor", "clock_driver": "scaling_driver"} if clocks else {}
    facts = {key: text for key, name in names.items() if (text := _text(clocks[0].parent / name))}
    return CpuTelemetry(zones, clocks, facts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None
