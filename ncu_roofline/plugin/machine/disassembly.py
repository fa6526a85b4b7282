"""Instructions as nvdisasm writes them, with their operands, where it is on this machine: of a CUDA toolkit or from PyPI."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.temporary import temporary_folder
from ncu_roofline.chips.fields import Capability
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.plugin.machine.machine import Machine, Output, this_machine

PACKAGE = "nvidia-cuda-nvdisasm"
"""On PyPI, by NVIDIA."""

_SECONDS, _PER_SECOND, _MOST_SECONDS = 15.0, 100_000, 60.0
"""How long it may take: to start, from a busy file server too, and for so many bytes of code; it does five times as much."""
_BYTES, _PER_BYTE = 1 << 16, 16
"""How much it may write: for itself, and for each byte of code; real code gives four or five."""
_BASES = (1 << 40, 1 << 41)
"""Where code is said to lie of which functions have to be told apart: further from 0 than code is long."""
_NUMBER = re.compile(r"\b0x[0-9a-f]{1,16}\b")
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


def disassemble(
    codes: Sequence[bytes], capability: Capability, tool: Path, seconds: float = _MOST_SECONDS, machine: Machine | None = None
) -> list[dict[int, str]]:
    """The instructions of the code of some functions, each by their offsets in it: ``@P0 BRA 0x2f0``.

    The code alone is given to nvdisasm, so that damaged cubins, and those of releases that it doesn't read, don't matter;
    targets are offsets, and what a linker fills in (addresses of other functions) is as it stands in the code.
    Raises RooflineError where nvdisasm fails, takes more than ``seconds`` or than such code can take, writes more than it can
    give or doesn't know the chip.
    """
    if seconds <= 0:
        reason = f"the time for it was over with {len(codes)} function{'s' * (len(codes) > 1)} left"
        raise RooflineError("Cannot disassemble with", tool, reason, _SKIP)
    machine = machine or this_machine()
    whole = b"".join(codes)
    bases = _BASES if len(codes) > 1 else (0,)
    deadline = time.monotonic() + seconds
    with temporary_folder({_FILE: whole}) as folder:
        found = [
            _listed(whole, capability, [tool, folder / _FILE], base, machine, max(0.0, deadline - time.monotonic()))
            for base in bases
        ]
    return _apart(codes, found) if len(codes) > 1 else found


def _listed(
    code: bytes, capability: Capability, words: Sequence[Path], base: int, machine: Machine, seconds: float
) -> dict[int, str]:
    """The instructions of code that begins at the address ``base``, by their offsets."""
    tool, file = words
    seconds, most = min(_SECONDS + len(code) / _PER_SECOND, _MOST_SECONDS, seconds), _BYTES + _PER_BYTE * len(code)
    for chip in _chips(capability):
        options = ["--binary", chip, "--no-dataflow", *(["--base-address", hex(base)] if base else [])]
        done = machine.run([tool, *options, file], seconds, most)
        if _UNDEFINED not in done.errors:
            break
    if done.code != 0:
        raise RooflineError("Cannot disassemble with", tool, _reason(done, code), _SKIP)
    found = {int(offset, 16) - base: " ".join(text.split()) for offset, text in _LINE.findall(done.text)}
    if code and not found:
        raise RooflineError("Cannot disassemble with", tool, "it printed no instructions", _SKIP)
    return found


def _apart(codes: Sequence[bytes], found: Sequence[Mapping[int, str]]) -> list[dict[int, str]]:
    """The instructions of each function, of code that was listed at each of `_BASES`: the numbers that differ are addresses."""
    one, other = found
    result, start = [], 0
    for code in codes:
        offsets = range(start, start + len(code), SIZE)
        both = ((offset, one.get(offset, ""), other.get(offset, "")) for offset in offsets)
        result.append({offset - start: _moved(text, again, _BASES[0] + start) for offset, text, again in both if text})
        start += len(code)
    return result


def _moved(text: str, again: str, start: int) -> str:
    """An instruction with its addresses counted from ``start``; ``again``: the same instruction elsewhere."""
    if text == again:
        return text
    numbers = iter(_NUMBER.findall(again))

    def counted(number: re.Match[str]) -> str:
        return hex(int(number[0], 16) - start) if next(numbers, "") != number[0] else number[0]

    return _NUMBER.sub(counted, text)


def _chips(capability: Capability) -> tuple[str, str]:
    """What nvdisasm calls a chip: with the instructions that only this one has, as releases know it that tell them apart."""
    name = "SM{}{}".format(*capability)
    return f"{name}a", name


def _reason(done: Output, code: bytes) -> str:
    lines = [line.partition(":")[2].strip() for line in done.errors.splitlines() if line.startswith("nvdisasm")]
    if not lines:
        return done.reason
    return f"of {len(code):,} bytes of code it says: {lines[0]}"
