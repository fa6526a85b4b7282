"""Cubins of our own small kernels: ``python -m tests.sass.compiling`` compiles them all and writes ``cubins.tar.xz`` anew.

linked.cubin    all of kernels/*.cu, each compiled apart (-rdc), then linked: functions in sections of their own
inlined.cubin   stencil.cu alone: one kernel and what is inlined in it
local.cubin     local.cu alone: functions in the section of the kernel that calls them
bare.cubin      as linked.cubin, without -lineinfo
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"
ARCHIVE = Path(__file__).parent / "cubins.tar.xz"
FOLDER = Path("/tmp/ncu-roofline-kernels")  # line tables hold the path
CHIPS = ("75", "80", "86", "89", "90", "100", "120")
NAMES = ("linked", "inlined", "local", "bare")
_VERSION = "nvcc.txt"


def compile_all(nvcc: str, folder: Path, chip: str) -> dict[str, bytes]:
    """The cubins of a chip, compiled in a folder, to which the sources are copied."""
    for source in KERNELS.iterdir():
        shutil.copy(source, folder)
    sources = sorted(path.stem for path in KERNELS.glob("*.cu"))
    made = {}
    for name, lines in (("linked", ["-lineinfo"]), ("bare", [])):
        for source in sources:
            compile_one(nvcc, folder, source, chip, "-rdc=true", *lines)
        linker = Path(nvcc).with_name("nvlink")
        _run(folder, linker, f"-arch=sm_{chip}", *(f"{source}.cubin" for source in sources), "-o", "linked")
        made[name] = (folder / "linked").read_bytes()
    for name, source in (("inlined", "stencil"), ("local", "local")):
        made[name] = compile_one(nvcc, folder, source, chip, "-lineinfo")
    return made


def compile_one(nvcc: str, folder: Path, source: str, chip: str, *options: str) -> bytes:
    """The cubin of one source in a folder."""
    _run(folder, nvcc, "-std=c++17", f"-arch=sm_{chip}", "-cubin", *options, f"{source}.cu", "-o", f"{source}.cubin")
    return (folder / f"{source}.cubin").read_bytes()


def version(nvcc: str) -> str:
    """As "13.0.88"."""
    found = re.search(r"V(\d+[.\d]+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout)
    assert found
    return found[1]


def recorded_version() -> str:
    """The version of nvcc that made the archive."""
    with tarfile.open(ARCHIVE) as archive:
        member = archive.extractfile(_VERSION)
        assert member
        return member.read().decode()


def _run(folder: Path, *command: object) -> None:
    subprocess.run([str(word) for word in command], cwd=folder, check=True, capture_output=True)


def _write(nvcc: str) -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    files = {_VERSION: version(nvcc).encode()}
    for chip in CHIPS:
        files |= {f"{chip}/{name}.cubin": content for name, content in compile_all(nvcc, FOLDER, chip).items()}
    shutil.rmtree(FOLDER)
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, content in sorted(files.items(), key=lambda item: item[0].partition("/")[::-1]):  # alike beside alike
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    if not found:
        raise SystemExit("no nvcc on PATH")
    _write(found)
    print(ARCHIVE, ARCHIVE.stat().st_size)
