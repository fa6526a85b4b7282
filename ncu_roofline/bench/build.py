"""Building the benchmark program, once per machine: with nvcc for GPUs, with the system's C++ compiler for the CPU here."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError, UsageError, explained
from ncu_roofline.base.files import pack_folder, temporary_folder, temporary_place
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, parse_capability, parse_target

OLDEST = (11, 8)
_NO_BENCH = "`ncu-roofline bench theory` needs no compiler."
_RECIPE, _INFO = "build.json", "build-info.json"
_SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".h", ".json")
_HOST_COMPILERS = ("c++", "g++", "clang++")
_PROBE = "#include <omp.h>\nint main() { return omp_get_max_threads() < 1; }\n"
_OTHER_NVCC = "Try another compiler with --nvcc; its host compiler must be one that this CUDA supports."
_OTHER_HOST = "Install GCC or Clang with OpenMP (Debian: g++; Clang also libomp-dev), or name another compiler with CXX."

NEXT_CACHE = "Set XDG_CACHE_HOME to a place that you may write to."


def cache_folder(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The user's cache folder for this program; below the folder for temporary files where there is no home.

    Raises RooflineError where there is neither.
    """
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or temporary_place()) / "ncu-roofline" / "cache"
    home = environment.get("HOME")
    if platform != "darwin" and environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "ncu-roofline"
    if not home:
        return temporary_place() / f"ncu-roofline-{os.getuid() if hasattr(os, 'getuid') else 0}"
    return Path(home) / ("Library/Caches" if platform == "darwin" else ".cache") / "ncu-roofline"


class Compiler(NamedTuple):
    """A compiler; ``version`` as (13, 0), ``text`` as "nvcc 13.0.88"."""

    path: Path
    version: tuple[int, int]
    text: str

    def compiles_for(self, target: str) -> bool:
        """Whether it knows a target like 90 or 90a; `--list-gpu-code` names none of the latter kind, a dry run knows them."""
        with temporary_folder({"empty.cu": b""}) as folder:
            words = ["--dryrun", "-c", *code_for(target), "-o", str(folder / "empty.o"), str(folder / "empty.cu")]
            return ask([str(self.path), *words], place=folder) is not None


def code_for(target: str) -> list[str]:
    """nvcc's words for machine code of a target, without PTX: what runs is what was checked."""
    return ["-gencode", f"arch=compute_{target},code=sm_{target}"]


def find_compiler(wanted: str = "") -> Compiler:
    """The nvcc named, else of NVCC, the PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda.  Raises RooflineError."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    others = [os.environ.get("NVCC"), "nvcc", *(str(Path(home) / "bin" / "nvcc") for home in homes if home)]
    path = next((Path(found) for name in ([wanted] if wanted else others) if name and (found := shutil.which(name))), None)
    oldest = f"{OLDEST[0]}.{OLDEST[1]}"
    if path is None:
        reason = "there is no such program" if wanted else "it is not on the PATH, nor below CUDA_HOME or /usr/local/cuda"
        next_step = f"Install the CUDA toolkit {oldest} or newer, or name its compiler with --nvcc. {_NO_BENCH}"
        raise RooflineError("Cannot find", wanted or "nvcc", reason, next_step)
    match = re.search(r"release (\d+)\.(\d+), V([\d.]+)", ask([str(path), "--version"]) or "")
    if not match:
        raise RooflineError("Cannot use", path, "it does not tell a version of nvcc", f"Name another with --nvcc. {_NO_BENCH}")
    version = int(match[1]), int(match[2])
    if version < OLDEST:
        reason = f"it is release {version[0]}.{version[1]}, and {oldest} is the oldest that will do"
        raise RooflineError("Cannot use", path, reason, f"Name a newer one with --nvcc. {_NO_BENCH}")
    return Compiler(path, version, f"nvcc {match[3]}")


def find_host_compiler() -> Compiler:
    """The compiler that CXX names, else the first of c++, g++ and clang++ that knows OpenMP.  Raises RooflineError."""
    wanted = os.environ.get("CXX", "").split()[:1]
    paths = [Path(found) for name in (wanted or _HOST_COMPILERS) if (found := shutil.which(name))]
    for path in paths:
        text = ask([str(path), "--version"])
        with temporary_folder({"probe.cpp": _PROBE.encode()}) as folder:
            probe = [str(path), "-fopenmp", str(folder / "probe.cpp"), "-o", str(folder / "probe")]
            if text and ask(probe) is not None:
                return Compiler(path, (0, 0), text.splitlines()[0].strip())
    if paths:
        raise RooflineError("Cannot use", ", ".join(map(str, paths)), "it does not compile and link with -fopenmp", _OTHER_HOST)
    reason = "CXX names it, and there is no such program" if wanted else f"there is none of {', '.join(_HOST_COMPILERS)}"
    raise RooflineError("Cannot find", wanted[0] if wanted else "a C++ compiler", reason, _OTHER_HOST)


def native_capabilities() -> tuple[str, ...]:
    """Compute capabilities of the GPUs here, as nvidia-smi tells.  Raises RooflineError where there is none."""
    text = ask(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    found = tuple(sorted(set(re.findall(r"^[^\S\n]*(\d+\.\d+)[^\S\n]*$", text or "", re.MULTILINE))))
    if not found:
        reason = "nvidia-smi is missing or fails, so there is no driver" if text is None else "nvidia-smi lists no GPU"
        next_step = (
            "Run where there is one; else `bench run --device cpu` measures the CPU, and `bench theory` gives peaks of GPUs."
        )
        raise RooflineError("Cannot find", "an NVIDIA GPU", reason, next_step)
    return found


def ask(command: Sequence[str], seconds: float = 60.0, *, place: Path | None = None) -> str | None:
    """What a program prints, None if it is not there, fails or hangs; ``place`` is for its temporary files."""
    try:
        done = _started(command, seconds, place, subprocess.PIPE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _started(command: Sequence[str], seconds: float, place: Path | None, errors: int) -> subprocess.CompletedProcess[str]:
    """What a program did that was started with its temporary files in ``place``.  Raises OSError, TimeoutExpired."""
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": errors, "text": True, "errors": "replace"}
    environment = {**os.environ, **({"TMPDIR": str(place)} if place else {})}
    return subprocess.run(list(command), timeout=seconds, env=environment, check=False, **pipes)


def parse_architectures(text: str) -> tuple[str, ...]:
    """Compute capabilities of a list like "80,9.0,sm_100a"; UsageError for anything else."""
    found = []
    for word in text.split(","):
        capability = parse_target(word)
        if capability is None:
            next_step = "Give native, or compute capabilities like 8.0,9.0."
            raise UsageError("Cannot use --arch", word, "it is no compute capability", next_step)
        found.append(capability_text(capability))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Built:
    """A program and how it was built."""

    path: Path
    compiler: str
    target: str
    flags: str
    sha256: str
    reused: bool = False

    def facts(self) -> dict[str, str]:
        """The "build" of a ceilings file."""
        return {"compiler": self.compiler, "target": self.target, "flags": self.flags, "sha256": self.sha256}


class How(NamedTuple):
    """How to build: ``folder`` of the sources, ``cache``: where programs are kept; ``strict``: warnings are errors, for who
    changes the sources; ``say`` is told what takes long.
    """

    folder: Path | None = None
    cache: Path | None = None
    force: bool = False
    strict: bool = False
    say: Callable[[str], object] = str


USUAL = How()


class _Task(NamedTuple):
    """What to build in ``folder``, by the recipe in its build.json, and with what; ``next_step`` is for who sees it fail."""

    folder: Path
    recipe: Mapping[str, Any]
    compiler: Compiler
    target: str
    words: list[str]
    next_step: str


def build(arch: str = "native", nvcc: str = "", how: How = USUAL) -> Built:
    """The benchmark program for ``arch``: "native" or compute capabilities like "8.0,9.0" (80, 90a and sm_90 are the same).

    Raises RooflineError where there is no nvcc, no GPU for "native", or the sources do not compile.
    """
    return _build_once(_task(arch, nvcc, how), how)


def build_apps(arch: str = "native", nvcc: str = "", how: How = USUAL) -> tuple[Built, ...]:
    """The applications to try a roofline on, each a program of one source; otherwise as `build`."""
    task = _task(arch, nvcc, how)
    recipes = [{**task.recipe, "output": name, "sources": [source]} for name, source in task.recipe["apps"].items()]
    return tuple(_build_once(task._replace(recipe=recipe), how) for recipe in recipes)


def build_host(how: How = USUAL) -> Built:
    """The benchmark program for the CPU here; otherwise as `build`.

    Raises RooflineError where this is not Linux, there is no compiler with OpenMP, or the sources do not compile.
    """
    if not sys.platform.startswith("linux"):
        reason = "its cores, caches and clocks are read as Linux shows them"
        raise RooflineError("Cannot measure on", "this CPU", reason, "Measure on a Linux machine.")
    compiler = find_host_compiler()
    # What -march=native stands for: nodes with one home folder and several kinds of CPU must not share a program.
    macros = ask([str(compiler.path), "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    if macros is None:
        raise RooflineError("Cannot use", compiler.path, "it does not know -march=native", _OTHER_HOST)
    target = f"{platform.machine()}-{hashlib.sha256(macros.encode()).hexdigest()[:8]}"
    folder = how.folder or pack_folder("bench") / "openmp"
    recipe = json.loads((folder / _RECIPE).read_text(encoding="utf-8"))
    return _build_once(_Task(folder, recipe, compiler, target, [], _OTHER_HOST), how)


def describe(program: Path) -> Built:
    """A program that is there already, with what is known of its build."""
    return _kept(program) or Built(program, "", "", "", hashlib.sha256(program.read_bytes()).hexdigest(), reused=True)


def _task(arch: str, nvcc: str, how: How) -> _Task:
    """Of each compute capability the best target that the compiler knows."""
    wanted = native_capabilities() if arch == "native" else parse_architectures(arch)
    compiler, folder, targets = find_compiler(nvcc), how.folder or pack_folder("bench"), []
    for capability in wanted:
        architecture = load_spec().architecture(parse_capability(capability) or (0, 0))
        known = architecture.targets if architecture else (capability.replace(".", ""),)
        target = next(filter(compiler.compiles_for, known), "")
        if not target:
            reason = f"{compiler.text} does not compile for compute capability {capability}"
            last = f"an nvcc of CUDA {architecture.cuda_until}" if architecture and architecture.cuda_until else "a newer nvcc"
            raise RooflineError("Cannot build", "the benchmark", reason, f"Name {last} with --nvcc.")
        targets.append(target)
    recipe = json.loads((folder / _RECIPE).read_text(encoding="utf-8"))
    recipe["flags"] += recipe["strict_flags"] if how.strict else []
    words = [word for target in targets for word in code_for(target)]
    return _Task(folder, recipe, compiler, ",".join(f"sm_{target}" for target in targets), words, _OTHER_NVCC)


def _build_once(task: _Task, how: How) -> Built:
    """The program of a task, compiled unless the cache holds one of this compiler, target and sources.

    Raises RooflineError, also where another user could have put a program there.
    """
    cache, recipe = how.cache or cache_folder(), task.recipe
    shelf = cache / "bench"
    words = (task.compiler.path.resolve(), task.compiler.text, task.target, recipe["output"], *recipe["flags"])
    digest = hashlib.sha256(" ".join(map(str, words)).encode())
    for path in sorted(task.folder.rglob("*")):
        if path.is_file() and path.suffix in _SOURCES:
            digest.update(path.relative_to(task.folder).as_posix().encode())
            digest.update(path.read_bytes())
    place = shelf / digest.hexdigest()[:20]
    program = place / recipe["output"]
    with explained("Cannot write", place, NEXT_CACHE):
        for folder in (cache, shelf):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        for path in (cache, shelf, place, place / _INFO, program):
            if hasattr(os, "getuid") and os.path.lexists(path):  # what another user may have made or changed would be run
                found, reason = path.stat() if path.exists() else path.lstat(), ""
                if {path.lstat().st_uid, found.st_uid} != {os.getuid()}:
                    reason = "it belongs to another user"
                elif found.st_mode & 0o022:
                    reason = "another user may write to it"
                if reason:
                    raise RooflineError("Cannot use", path, reason, "Set XDG_CACHE_HOME to a folder of your own.")
        if not how.force and (kept := _kept(program)):
            return kept
        how.say(f"compiling {recipe['output']} with {task.compiler.text} for {task.target.replace(',', ', ')} ...")
        with tempfile.TemporaryDirectory(dir=shelf, prefix="building-") as name:
            return _make(Path(name), program, task)


def _kept(program: Path) -> Built | None:
    """The program with what stands beside it; None where that is missing, or of another program."""
    try:
        content: Any = json.loads((program.parent / _INFO).read_text(encoding="utf-8"))
        known = {key: str(content[key]) for key in ("compiler", "target", "flags", "sha256")}
        same = hashlib.sha256(program.read_bytes()).hexdigest() == known["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Built(program, **known, reused=True) if same else None


def _make(folder: Path, program: Path, task: _Task) -> Built:
    """Compile in a folder for the time being; what declares the program whole is moved last."""
    recipe, compiler = task.recipe, str(task.compiler.path)

    def run(what: str, target: Path, words: list[str]) -> str:
        command = [compiler, *words[:-1], "-o", str(target), words[-1]]
        done = _started(command, 1800, folder, subprocess.STDOUT)
        if done.returncode or not target.is_file():
            lines = [line.strip() for line in done.stdout.splitlines() if line.strip()] or [f"code {done.returncode}"]
            first = next((line for line in lines if "error" in line or "fatal" in line), lines[0])
            raise RooflineError("Cannot compile", what, first[:300], task.next_step)
        return str(target)

    def compiled(number: int, source: str) -> str:
        words = ["-c", *recipe["flags"], *task.words, "-I", str(task.folder), str(task.folder / source)]
        return run(source, folder / f"{number}.o", words)

    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
        objects = list(pool.map(compiled, range(len(recipe["sources"])), recipe["sources"]))
    target = folder / recipe["output"]
    run(recipe["output"], target, [*recipe.get("link_flags", []), *task.words, *objects])
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    built = Built(program, task.compiler.text, task.target, " ".join(recipe["flags"]), digest)
    if program.parent.exists():  # an older or broken build of the same hash, or one that another process has just finished
        shutil.rmtree(program.parent, ignore_errors=True)
    program.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(target, program)
    (folder / _INFO).write_text(json.dumps(asdict(built), default=str, indent=1), encoding="utf-8")
    os.replace(folder / _INFO, program.parent / _INFO)
    return built
