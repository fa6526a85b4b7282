"""Building the benchmark program with nvcc from the sources of bench/, once per machine: the result is kept by hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ncu_roofline import pack
from ncu_roofline.bench.compiler import Compiler, code_for, find_compiler, native_capabilities
from ncu_roofline.bench.folders import cache_folder
from ncu_roofline.errors import RooflineError, UsageError
from ncu_roofline.spec import load_spec
from ncu_roofline.spec.validation import parse_capability

_INFO = "build-info.json"
_SOURCES = (".cu", ".cuh", ".cpp", ".hpp", ".h", ".json")


@dataclass(frozen=True)
class Recipe:
    """What build.json says: sources and flags."""

    folder: Path
    output: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]


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


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a bench folder.  Raises RooflineError."""
    path = folder / "build.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Recipe(
            folder=folder,
            output=str(content["output"]),
            sources=tuple(map(str, content["sources"])),
            flags=tuple(map(str, content["flags"])),
            link_flags=tuple(map(str, content.get("link_flags", []))),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        raise RooflineError("Cannot read", path, reason, "Install ncu-roofline again.") from error


def build(
    arch: str = "native",
    nvcc: str = "",
    *,
    folder: Path | None = None,
    cache: Path | None = None,
    force: bool = False,
    say: Callable[[str], None] = lambda _text: None,
) -> Built:
    """The benchmark program for ``arch``: "native" or compute capabilities like "8.0,9.0" (80, 90a and sm_90 are the same).

    ``folder``: the bench folder, ``cache``: where programs are kept.  ``say`` is told what takes long.  Raises RooflineError
    where there is no nvcc, no GPU for "native", or the sources do not compile.
    """
    wanted = native_capabilities() if arch == "native" else parse_architectures(arch)
    compiler = find_compiler(nvcc)
    recipe = read_recipe(folder or pack.folder("bench"))
    targets = [choose_target(compiler, capability) for capability in wanted]
    place = (cache or cache_folder()) / "bench" / _hash(recipe, compiler, targets)
    found = None if force else _kept(place, recipe.output)
    if found is not None:
        return found
    say(f"compiling the benchmark with {compiler.text} for {', '.join(f'sm_{target}' for target in targets)} ...")
    return _make(place, recipe, compiler, targets)


def describe(program: Path) -> Built:
    """A program that is there already, with what is known of its build."""
    return _kept(program.parent, program.name) or Built(program, "", "", "", _digest(program), reused=True)


def parse_architectures(text: str) -> tuple[str, ...]:
    """Compute capabilities of a list like "80,9.0,sm_100a"; UsageError for anything else."""
    found = []
    for word in text.split(","):
        match = re.fullmatch(r"(?:sm_|compute_)?(\d{1,2})\.?(\d)[af]?", word.strip())
        if not match:
            next_step = "Give native, or compute capabilities like 8.0,9.0."
            raise UsageError("Cannot use --arch", word, "it is no compute capability", next_step)
        found.append(f"{match[1]}.{match[2]}")
    return tuple(dict.fromkeys(found))


def choose_target(compiler: Compiler, capability: str) -> str:
    """The best target of a compute capability that the compiler knows.  Raises RooflineError."""
    architecture = load_spec().architecture(parse_capability(capability) or (0, 0))
    for target in architecture.targets if architecture else (capability.replace(".", ""),):
        if compiler.compiles_for(target):
            return target
    reason = f"{compiler.text} does not compile for compute capability {capability}"
    last = architecture.cuda_until if architecture else 0
    next_step = f"Name an nvcc of CUDA {last} with --nvcc." if last else "Name a newer nvcc with --nvcc, or leave that one out."
    raise RooflineError("Cannot build", "the benchmark", reason, next_step)


def _hash(recipe: Recipe, compiler: Compiler, targets: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{compiler.path.resolve()} {compiler.text} {' '.join(targets)}".encode())
    for path in sorted(recipe.folder.rglob("*")):
        if path.is_file() and path.suffix in _SOURCES:
            digest.update(path.relative_to(recipe.folder).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def _kept(place: Path, name: str) -> Built | None:
    try:
        content: Any = json.loads((place / _INFO).read_text(encoding="utf-8"))
        compiler, target, flags, sha256 = (str(content[key]) for key in ("compiler", "target", "flags", "sha256"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    found = Built(place / name, compiler, target, flags, sha256, reused=True)
    return found if _digest(found.path) == found.sha256 else None


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _make(place: Path, recipe: Recipe, compiler: Compiler, targets: Sequence[str]) -> Built:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="building-") as name:
            return _make_in(Path(name), place, recipe, compiler, targets)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", place, reason, "Set XDG_CACHE_HOME to a place that you may write to.") from error


def _make_in(folder: Path, place: Path, recipe: Recipe, compiler: Compiler, targets: Sequence[str]) -> Built:
    code = [word for target in targets for word in code_for(target)]
    objects = [folder / f"{number}.o" for number in range(len(recipe.sources))]
    commands = [
        [str(compiler.path), "-c", *recipe.flags, *code, "-I", str(recipe.folder), "-o", str(out), str(recipe.folder / source)]
        for source, out in zip(recipe.sources, objects, strict=True)
    ]
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
        for source, output in zip(recipe.sources, pool.map(_run, commands), strict=True):
            _check(source, output)
    target = folder / recipe.output
    link = [str(compiler.path), *recipe.link_flags, *code, "-o", str(target), *map(str, objects)]
    _check(recipe.output, _run(link))
    if not target.is_file():
        raise RooflineError("Cannot build", recipe.output, "nvcc wrote no program", "Try another with --nvcc.")
    built = Built(
        place / recipe.output, compiler.text, ",".join(f"sm_{t}" for t in targets), " ".join(recipe.flags), _digest(target)
    )
    (folder / _INFO).write_text(json.dumps(asdict(built), default=str, indent=1), encoding="utf-8")
    for path in objects:
        path.unlink(missing_ok=True)
    _move(folder, place)
    return built


def _move(folder: Path, place: Path) -> None:
    if place.exists():  # an older or broken build of the same hash, or one that another process has just finished
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir(), key=lambda path: path.name == _INFO):  # what declares it whole comes last
        os.replace(path, place / path.name)


def _run(command: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(
        list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, timeout=1800
    )
    return done.returncode, done.stdout + done.stderr


def _check(what: str, output: tuple[int, str]) -> None:
    code, text = output
    if code == 0:
        return
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line or "fatal" in line), lines[0] if lines else f"code {code}")
    next_step = "Try another compiler with --nvcc; its host compiler must be one that this CUDA supports."
    raise RooflineError("Cannot compile", what, first[:300], next_step)
