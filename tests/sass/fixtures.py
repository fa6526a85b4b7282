"""Cubins of our own small kernels, as `kernels/compile.sh` makes them, in ``cubins.tar.xz``.

``python -m tests.sass.fixtures`` compiles them all and writes it anew.
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
    return {f"{FOLDER}/{path.name}": path.read_text() for path in sorted(KERNELS.glob("*.*[uh]"))}


def compiled(chip: str, folder: Path = FOLDER) -> dict[str, bytes]:
    """The cubins of a chip, compiled in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run([KERNELS / "compile.sh", chip, folder], check=True, capture_output=True)
    return {f"{chip}/{name}.cubin": (folder / f"{name}.cubin").read_bytes() for name in NAMES}


def version() -> bytes:
    """Of nvcc on PATH or in $NVCC, as "13.0.88"; nothing where there is none."""
    found = shutil.which(os.environ.get("NVCC", "nvcc"))
    said = subprocess.run([found, "--version"], capture_output=True, check=True).stdout if found else b""
    return next(iter(re.findall(rb"V(\d+[.\d]+)", said)), b"")


if __name__ == "__main__":
    made = {name: content for chip in CHIPS for name, content in compiled(chip).items()}
    pack(ARCHIVE, {VERSION: version(), **made})
