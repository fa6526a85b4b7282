"""The cubins of the tests are what nvcc makes of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

from ncu_roofline.formats.sass.cubin import Cubin
from tests.sass.compiling import CHIPS, compile_all, recorded_version, version
from tests.sass.fixtures import cubin

_VARIANTS = ("87", "88", "90a", "100a", "100f", "103", "110", "120a", "121")


@pytest.fixture
def nvcc() -> str:
    """nvcc on PATH or in $NVCC."""
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    if not found:
        pytest.skip("no nvcc on this machine (set NVCC to its path): the cubins of the tests can't be compiled again")
    return found


def _content(read: Cubin) -> Counter[tuple[object, ...]]:
    """The functions' code with the lines; not the names, which hold the folder's hash."""
    found: Counter[tuple[object, ...]] = Counter()
    for name, function in read.functions.items():
        lines = read.lines(name)
        chains = [lines.at(offset) for offset in range(0, len(function.code), 16)]
        places = tuple(tuple((PurePosixPath(each.file).name, each.line) for each in chain) for chain in chains)
        found[function.code, places] += 1
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("chip", CHIPS)
def test_recorded_cubins_are_current(nvcc: str, chip: str, tmp_path: Path) -> None:
    if version(nvcc) != recorded_version():
        pytest.skip(f"nvcc {version(nvcc)}, and the cubins were made by {recorded_version()}")
    for name, made in compile_all(nvcc, tmp_path, chip).items():
        assert _content(Cubin(made)) == _content(Cubin(cubin(chip, name))), name


@pytest.mark.sampled("100f")
@pytest.mark.parametrize("chip", _VARIANTS)
def test_capability_of_variants(nvcc: str, chip: str, tmp_path: Path) -> None:
    (tmp_path / "empty.cu").write_text("__global__ void empty() {}")
    made = tmp_path / "empty.cubin"
    done = subprocess.run(
        [nvcc, f"-arch=sm_{chip}", "-cubin", tmp_path / "empty.cu", "-o", made], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this nvcc does not compile for sm_{chip}")
    number = chip.rstrip("af")
    assert Cubin(made.read_bytes()).capability == (int(number[:-1]), int(number[-1]))
