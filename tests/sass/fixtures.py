"""The cubins of `compiling.py` and the sources they were made of."""

from __future__ import annotations

import functools
import tarfile

from tests.sass.compiling import ARCHIVE, CHIPS, FOLDER, KERNELS, NAMES

__all__ = ["CHIPS", "NAMES", "cubin", "sources"]


@functools.cache
def _archive() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {member.name: file.read() for member in archive.getmembers() if (file := archive.extractfile(member))}


def cubin(chip: str, name: str = "linked") -> bytes:
    """A cubin of a chip ("75" to "120"): as `compiling` names them."""
    return _archive()[f"{chip}/{name}.cubin"]


def sources() -> dict[str, str]:
    """The text of every source, by its path in the line tables."""
    return {f"{FOLDER}/{path.name}": path.read_text() for path in sorted(KERNELS.iterdir())}
