"""Building the benchmark of the CPU with the system's C++ compiler, once per kind of CPU, and what is special about CPUs."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ncu_roofline.bench.build import Built, Compiler, Task, ask, build_once, read_recipe
from ncu_roofline.errors import RooflineError
from ncu_roofline.files import pack_folder

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
    with tempfile.TemporaryDirectory(prefix="ncu-roofline-") as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(_PROBE, encoding="utf-8")
        return ask([str(path), "-fopenmp", str(source), "-o", str(Path(folder) / "probe")]) is not None


def _target(compiler: Compiler) -> str:
    """What -march=native stands for: nodes with one home folder and several kinds of CPU must not share a program."""
    macros = ask([str(compiler.path), "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    if macros is None:
        raise RooflineError("Cannot use", compiler.path, "it does not know -march=native", _NEXT)
    return f"{platform.machine()}-{hashlib.sha256(macros.encode()).hexdigest()[:8]}"
