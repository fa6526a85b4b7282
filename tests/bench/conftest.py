"""What the proofs of the benchmark kernels need: compilers, the disassembler, the model program; skipped aloud where absent."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.bench.proof import read_table
from tests.bench.sass import Function, disassemble
from tests.sharing import made_once

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("vector", "memory", "mma", "wgmma", "tcgen05")
_HOST_FLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-ffp-contract=off"]


@pytest.fixture(scope="session")
def nvcc() -> str:
    """Path of nvcc, from $NVCC or the PATH."""
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    if not found:
        pytest.skip("no nvcc on this machine (set NVCC to its path): the machine code of the kernels stays unproven")
    return found


@pytest.fixture(scope="session")
def disassembler() -> tuple[Path, Path]:
    """cuobjdump and nvdisasm of a toolkit or of the packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm."""
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        places += sorted(Path(folder).glob("cu*/bin"), reverse=True)
    for place in places:
        if (place / "cuobjdump").is_file() and (place / "nvdisasm").is_file():
            return place / "cuobjdump", place / "nvdisasm"
    pytest.skip("no cuobjdump and nvdisasm (pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm)")


def build_model(bench: Path, out: Path, *, optimise: str = "-O2") -> Path:
    """Compile the CPU model of the kernels in ``bench`` into the folder ``out``."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("no C++ compiler on this machine (set CXX): the CPU model of the kernels can't be built")
    own = bench.parent / "tests" / "bench" / "cpu"
    sources = [own / "model.cpp", own / "checks.cpp", bench / "cpu" / "reference.cpp"]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda source: _host_object(compiler, source, out, optimise), sources))
    subprocess.run([compiler, *map(str, objects), "-o", str(out / "model")], check=True)
    return out / "model"


def _host_object(compiler: str, source: Path, out: Path, optimise: str) -> Path:
    target = out / f"{source.stem}.o"
    subprocess.run([compiler, *_HOST_FLAGS, optimise, "-c", str(source), "-o", str(target)], check=True)
    return target


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs the kernels on the CPU model."""
    return made_once(tmp_path_factory, "model", lambda folder: build_model(ROOT / "bench", folder)) / "model"


@pytest.fixture(scope="session")
def table(model: Path) -> list[dict[str, Any]]:
    """What every kernel promises."""
    return read_table(model)


def compile_unit(nvcc: str, bench: Path, unit: str, target: str, out: Path, *flags: str) -> Path:
    """The cubin of one translation unit for one target."""
    cubin = out / f"{unit}.{target}.cubin"
    words = [
        nvcc,
        "-std=c++17",
        "-O3",
        "-Werror",
        "all-warnings",
        "-cubin",
        "-gencode",
        f"arch=compute_{target},code=sm_{target}",
    ]
    subprocess.run([*words, *flags, "-o", str(cubin), str(bench / "units" / f"{unit}.cu")], check=True, capture_output=True)
    return cubin


@pytest.fixture(scope="session")
def kernels(
    nvcc: str, disassembler: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Function]]:
    """Gives the machine code of all kernels for a target; each is compiled once."""

    @cache
    def for_target(target: str) -> dict[str, Function]:
        words = [nvcc, "--dryrun", "-cubin", "-gencode", f"arch=compute_{target},code=sm_{target}", "-x", "cu", os.devnull]
        if subprocess.run(words, capture_output=True, check=False).returncode:  # --list-gpu-code leaves out targets with an a
            pytest.skip(f"this nvcc does not compile for sm_{target}")

        def build(out: Path) -> None:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda unit: compile_unit(nvcc, ROOT / "bench", unit, target, out), UNITS))

        functions: dict[str, Function] = {}
        for cubin in sorted(made_once(tmp_path_factory, f"cubins-{target}", build).iterdir()):
            functions.update(disassemble(disassembler, cubin))
        return functions

    return for_target
