"""Cubins of our own small kernels: ``python -m tests.sass.fixtures`` compiles them all and writes ``cubins.tar.xz`` anew.

linked.cubin    all of kernels/*.cu, each compiled apart (-rdc), then linked: functions in sections of their own
inlined.cubin   stencil.cu alone: one kernel and what is inlined in it
local.cubin     local.cu alone: functions in the section of the kernel that calls them
bare.cubin      as linked.cubin, without -lineinfo
"""

from __future__ import annotations

import functools
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"
ARCHIVE = Path(__file__).parent / "cubins.tar.xz"
FOLDER = Path("/tmp/ncu-roofline-kernels")  # line tables hold the path
CHIPS = ("75", "80", "86", "89", "90", "100", "120")
NAMES = ("linked", "inlined", "local", "bare")
VERSION = "nvcc.txt"


@functools.cache
def unpacked(archive: Path) -> dict[str, bytes]:
    """The files of an archive."""
    with tarfile.open(archive) as found:
        return {member.name: file.read() for member in found.getmembers() if (file := found.extractfile(member))}


def pack(target: Path, files: Mapping[str, bytes]) -> None:
    """Write an archive."""
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name, content in sorted(files.items(), key=lambda item: item[0].partition("/")[::-1]):  # alike beside alike
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def cubin(chip: str, name: str = "linked") -> bytes:
    """A cubin of a chip ("75" to "120")."""
    return unpacked(ARCHIVE)[f"{chip}/{name}.cubin"]


def sources() -> dict[str, str]:
    """The text of every source, by its path in the line tables."""
    return {f"{FOLDER}/{path.name}": path.read_text() for path in sorted(KERNELS.iterdir())}


def compile_all(nvcc: str, folder: Path, chip: str) -> dict[str, bytes]:
    """The cubins of a chip, compiled in a folder, to which the sources are copied."""

    def run(*words: object) -> None:
        subprocess.run([str(word) for word in words], cwd=folder, check=True, capture_output=True)

    def one(source: str, *options: str) -> bytes:
        run(nvcc, "-std=c++17", f"-arch=sm_{chip}", "-cubin", *options, f"{source}.cu", "-o", f"{source}.cubin")
        return (folder / f"{source}.cubin").read_bytes()

    for path in KERNELS.iterdir():
        shutil.copy(path, folder)
    names = sorted(path.stem for path in KERNELS.glob("*.cu"))
    made = {}
    for name, lines in (("linked", ["-lineinfo"]), ("bare", [])):
        for source in names:
            one(source, "-rdc=true", *lines)
        run(Path(nvcc).with_name("nvlink"), f"-arch=sm_{chip}", *(f"{source}.cubin" for source in names), "-o", "linked")
        made[name] = (folder / "linked").read_bytes()
    return made | {"inlined": one("stencil", "-lineinfo"), "local": one("local", "-lineinfo")}


def nvcc() -> tuple[str, str] | None:
    """nvcc on PATH or in $NVCC, and its version, as "13.0.88"."""
    if not (found := shutil.which(os.environ.get("NVCC", "nvcc"))):
        return None
    said = re.search(r"V(\d+[.\d]+)", subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout)
    return found, said[1] if said else ""


def main() -> None:
    """Compile all and write the archive."""
    if (compiler := nvcc()) is None:
        raise SystemExit("no nvcc on PATH")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    made = {chip: compile_all(compiler[0], FOLDER, chip) for chip in CHIPS}
    shutil.rmtree(FOLDER)
    files = {f"{chip}/{name}.cubin": content for chip, each in made.items() for name, content in each.items()}
    pack(ARCHIVE, {VERSION: compiler[1].encode(), **files})
    print(ARCHIVE, ARCHIVE.stat().st_size)


if __name__ == "__main__":
    main()
