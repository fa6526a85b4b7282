"""Instructions as nvdisasm writes them, with their operands, where it is on this machine: of a CUDA toolkit or from PyPI."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import temporary_folder
from ncu_roofline.chips.fields import Capability
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.plugin.machine.machine import Machine, this_machine

PACKAGE = "nvidia-cuda-nvdisasm"
"""On PyPI, by NVIDIA."""

_SECONDS, _PER_SECOND, _MOST_SECONDS = 15.0, 100_000, 60.0
"""How long it may take: to start, from a busy file server too, and for so many bytes of code; it does five times as much."""
_BASES = (1 << 40, 1 << 41)
"""Where code is said to lie of which functions have to be told apart: further from 0 than code is long."""
_NUMBER = re.compile(r"\b0x[0-9a-f]{1,16}\b")
_FILE = "code.bin"
_LINE = re.compile(r"/\*([0-9a-f]{4,16})\*/([^;/\n]{1,400});")
_SKIP = "Opcodes without operands are shown in place of it; an nvdisasm that knows the chip shows all."


def find_nvdisasm(machine: Machine | None = None) -> Path | None:
    """The nvdisasm on the PATH, else that of the package nvidia-cuda-nvdisasm; None where there is none."""
    machine = machine or this_machine()
    found = machine.which("nvdisasm")
    if found:
        return found
    name = "nvdisasm.exe" if machine.system == "windows" else "nvdisasm"
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
    Raises RooflineError where nvdisasm fails, takes more than ``seconds`` or than such code can take, or doesn't know the chip.
    """
    if seconds <= 0:
        reason = f"the time for it was over with {len(codes)} function{'s' * (len(codes) > 1)} left"
        raise RooflineError("Cannot disassemble with", tool, reason, _SKIP)
    machine = machine or this_machine()
    whole = b"".join(codes)
    deadline = time.monotonic() + seconds
    with temporary_folder({_FILE: whole}) as folder:
        if len(codes) <= 1:
            return [_listed(folder / _FILE, whole, capability, tool, 0, machine, deadline)]
        one, other = (_listed(folder / _FILE, whole, capability, tool, base, machine, deadline) for base in _BASES)
    starts = [0]
    for code in codes:
        starts.append(starts[-1] + len(code))
    return [
        {
            offset - start: _moved(one[offset], other.get(offset, ""), _BASES[0] + start)
            for offset in range(start, end, SIZE)
            if one.get(offset)
        }
        for start, end in pairwise(starts)
    ]


def _listed(
    file: Path, code: bytes, capability: Capability, tool: Path, base: int, machine: Machine, deadline: float
) -> dict[int, str]:
    """The instructions of code that begins at the address ``base``, by their offsets."""
    seconds = min(_SECONDS + len(code) / _PER_SECOND, _MOST_SECONDS, max(0.0, deadline - time.monotonic()))
    name = "SM{}{}".format(*capability)
    for chip in (f"{name}a", name):  # with the instructions that only this one has, as releases know it that tell them apart
        options = ["--binary", chip, "--no-dataflow", *(["--base-address", hex(base)] if base else [])]
        done = machine.run([tool, *options, file], seconds)
        if "not defined for option" not in done.errors:
            break
    if done.code != 0:
        said = [line.partition(":")[2].strip() for line in done.errors.splitlines() if line.startswith("nvdisasm")]
        reason = f"of {len(code):,} bytes of code it says: {said[0]}" if said else done.reason
        raise RooflineError("Cannot disassemble with", tool, reason, _SKIP)
    found = {int(offset, 16) - base: " ".join(text.split()) for offset, text in _LINE.findall(done.text)}
    if code and not found:
        raise RooflineError("Cannot disassemble with", tool, "it printed no instructions", _SKIP)
    return found


def _moved(text: str, again: str, start: int) -> str:
    """An instruction with its addresses counted from ``start``; ``again``: the same elsewhere, where addresses differ."""
    if text == again:
        return text
    numbers = iter(_NUMBER.findall(again))

    def counted(number: re.Match[str]) -> str:
        return hex(int(number[0], 16) - start) if next(numbers, "") != number[0] else number[0]

    return _NUMBER.sub(counted, text)
