"""Instructions as nvdisasm writes them, with their operands, where it is on this machine: of a CUDA toolkit or from PyPI."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from ncu_roofline.errors import RooflineError
from ncu_roofline.facts.fields import Capability
from ncu_roofline.machine.machine import Machine, Output, this_machine
from ncu_roofline.temporary import temporary_folder

PACKAGE = "nvidia-cuda-nvdisasm"
"""On PyPI, by NVIDIA."""

_SECONDS, _PER_SECOND, _MOST_SECONDS = 15.0, 100_000, 60.0
"""How long it may take: to start, from a busy file server too, and for so many bytes of code; it does five times as much."""
_BYTES, _PER_BYTE = 1 << 16, 16
"""How much it may write: for itself, and for each byte of code; real code gives four or five."""
_FILE = "code.bin"
_LINE = re.compile(r"/\*([0-9a-f]{4,16})\*/([^;/\n]{1,400});")
_UNDEFINED = "not defined for option"
_SKIP = "Opcodes without operands are shown in place of it; an nvdisasm that knows the chip shows all."


def find_nvdisasm(machine: Machine | None = None) -> Path | None:
    """The nvdisasm on the PATH, else that of the package nvidia-cuda-nvdisasm; None where there is none."""
    machine = machine or this_machine()
    return machine.which("nvdisasm") or _of_package("nvdisasm.exe" if machine.system == "windows" else "nvdisasm")


def _of_package(name: str) -> Path | None:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in files if file.name == name]
    return next((path for path in paths if path.is_file()), None)


def disassemble(code: bytes, capability: Capability, tool: Path, machine: Machine | None = None) -> dict[int, str]:
    """The instructions of a function's code, by their offsets: ``@P0 BRA 0x2f0``.

    The code alone is given to nvdisasm, so that damaged cubins, and those of releases that it doesn't read, don't matter;
    targets are offsets, and what a linker fills in (addresses of other functions) is as it stands in the code.
    Raises RooflineError where nvdisasm fails, is too slow, writes more than such code can give or doesn't know the chip.
    """
    machine = machine or this_machine()
    seconds, most = min(_SECONDS + len(code) / _PER_SECOND, _MOST_SECONDS), _BYTES + _PER_BYTE * len(code)
    with temporary_folder({_FILE: code}) as folder:
        for chip in _chips(capability):
            done = machine.run([tool, "--binary", chip, "--no-dataflow", folder / _FILE], seconds, most)
            if _UNDEFINED not in done.errors:
                break
    if done.code != 0:
        raise RooflineError("Cannot disassemble with", tool, _reason(done, code), _SKIP)
    found = {int(offset, 16): " ".join(text.split()) for offset, text in _LINE.findall(done.text)}
    if code and not found:
        raise RooflineError("Cannot disassemble with", tool, "it printed no instructions", _SKIP)
    return found


def _chips(capability: Capability) -> tuple[str, str]:
    """What nvdisasm calls a chip: with the instructions that only this one has, as releases know it that tell them apart."""
    name = "SM{}{}".format(*capability)
    return f"{name}a", name


def _reason(done: Output, code: bytes) -> str:
    lines = [line.partition(":")[2].strip() for line in done.errors.splitlines() if line.startswith("nvdisasm")]
    if not lines:
        return done.reason
    return f"of {len(code):,} bytes of code it says: {lines[0]}"
