"""Environment modules that are not loaded: the folders that their files would put on the PATH.

Asking `module avail` needs a shell and can take minutes; the files themselves say it in a line.  Only files in folders named
after CUDA, the HPC SDK or Nsight are read, and what they compute with anything but plain variables is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ncu_roofline.install.machine import Machine

_NAMES = ("cuda", "nvhpc", "nsight")
_MOST_FILES = 200
_MOST_BYTES = 65536
_VARIABLE = re.compile(r'^\s*(?:set\s+(\w+)\s+|local\s+(\w+)\s*=\s*)"?([^"\s]+)"?', re.MULTILINE)
_TCL = re.compile(r'^\s*prepend-path\s+PATH\s+"?([^"\s]+)"?', re.MULTILINE)
_LUA = re.compile(r'^\s*prepend_path\s*\(\s*"PATH"\s*,\s*([^)]+)\)', re.MULTILINE)


def folders_of_modules(machine: Machine) -> list[Path]:
    """Folders that modules of CUDA, the HPC SDK and Nsight Compute add to the PATH, each once."""
    found: dict[Path, None] = {}
    for file in islice(_files(machine), _MOST_FILES):
        try:
            with file.open(encoding="utf-8", errors="replace") as stream:
                text = stream.read(_MOST_BYTES)
        except OSError:
            continue
        found.update(dict.fromkeys(path_entries(text)))
    return list(found)


def _files(machine: Machine) -> Iterator[Path]:
    for entry in machine.environ.get("MODULEPATH", "").split(os.pathsep):
        if not entry:
            continue
        try:
            folders = [path for path in sorted(Path(entry).iterdir()) if path.name.lower().startswith(_NAMES)]
        except OSError:
            continue
        for folder in folders:
            yield from sorted(path for path in folder.glob("*") if path.is_file()) if folder.is_dir() else [folder]


def path_entries(text: str) -> list[Path]:
    """Absolute folders that a module file (Tcl or Lua) prepends to PATH."""
    values: dict[str, str] = {}
    for one, other, value in _VARIABLE.findall(text):
        values[one or other] = _tcl(value, values)
    words = [_tcl(word, values) for word in _TCL.findall(text)]
    words += [_lua(expression, values) for expression in _LUA.findall(text)]
    return [Path(word) for word in words if os.path.isabs(word) and "$" not in word]


def _tcl(word: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], match[0]), word)


def _lua(expression: str, values: dict[str, str]) -> str:
    """``pathJoin(base, "bin")`` without its closing bracket, ``base .. "/bin"`` or a plain string."""
    inside = expression.replace("pathJoin(", "")
    parts = re.findall(r'"([^"]*)"|(\w+)', inside)
    words = [text if text or not name else values.get(name, "$") for text, name in parts]
    return "/".join(words).replace("//", "/")
