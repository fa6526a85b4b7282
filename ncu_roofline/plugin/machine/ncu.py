"""The Nsight Compute releases of a machine, also those that environment modules name: found, and asked where they look."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.files import matching
from ncu_roofline.chips.fields import parse_release
from ncu_roofline.plugin.machine.machine import Machine

_NAMES = ("cuda", "nvhpc", "nsight")
_MOST_FILES = 200
_MOST_BYTES = 65536
_VARIABLE = re.compile(r'^[^\S\n]*(?:set\s+(\w+)\s+|local\s+(\w+)\s*=\s*)"?([^"\s]+)"?', re.MULTILINE)
_TCL = re.compile(r'^[^\S\n]*prepend-path\s+PATH\s+"?([^"\s]+)"?', re.MULTILINE)
_LUA = re.compile(r'^[^\S\n]*prepend_path\s*\(\s*"PATH"\s*,([^)]{1,300})\)', re.MULTILINE)
VENDOR_FOLDER = "NVIDIA Nsight Compute"
NO_DEPLOYMENT = "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"
"""With this set, ncu (2021.2 and later, not ncu-ui) reads the sections of its own installation instead of the user's."""
_VERSION = re.compile(r"^Version ((20\d\d)\.(\d+)\.(\d+)(?:\.\d+)*)", re.MULTILINE)
_HOMES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "NVHPC_ROOT", "NSIGHT_COMPUTE_HOME", "NSIGHT_COMPUTE_ROOT", "CONDA_PREFIX")
_IN_HOME = ("", "bin", "nsight-compute*", "nsight-compute/*", "profilers/Nsight_Compute")
_IN_SYSTEM = (
    "opt/nvidia/nsight-compute/*",
    "usr/local/cuda*/bin",
    "usr/local/cuda*/nsight-compute-*",
    "usr/local/NVIDIA-Nsight-Compute*",
    "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute",
    "usr/lib/nsight-compute",
)


def folders_of_modules(machine: Machine) -> list[Path]:
    """Folders that modules of CUDA, the HPC SDK and Nsight Compute add to the PATH, each once."""
    entries = filter(None, machine.environ.get("MODULEPATH", "").split(os.pathsep))
    modules = (module for entry in entries for module in matching(entry, "*") if module.name.lower().startswith(_NAMES))
    files = (file for module in modules for file in (matching(module, "*") if os.path.isdir(module) else [module]))
    found: dict[Path, None] = {}
    for file in islice(filter(os.path.isfile, files), _MOST_FILES):
        with suppress(OSError), file.open(encoding="utf-8", errors="replace") as stream:
            found.update(dict.fromkeys(path_entries(stream.read(_MOST_BYTES))))
    return list(found)


def path_entries(text: str) -> list[Path]:
    """Absolute folders that a module file (Tcl or Lua) prepends to PATH."""
    values: dict[str, str] = {}

    def tcl(word: str) -> str:
        return re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], match[0]), word)

    for one, other, value in _VARIABLE.findall(text):
        values[one or other] = tcl(value)
    words = [tcl(word) for word in _TCL.findall(text)]
    for expression in _LUA.findall(text):  # pathJoin(base, "bin") without its closing bracket, base .. "/bin", a plain string
        parts = re.findall(r'"([^"]*)"|(\w+)', expression.replace("pathJoin(", ""))
        words.append("/".join(part if part or not name else values.get(name, "$") for part, name in parts).replace("//", "/"))
    return [Path(word) for word in words if os.path.isabs(word) and "$" not in word]


class Ncu(NamedTuple):
    """An ncu: ``version`` in full ("2024.2.0.0"); ``found`` says where it was found, ``problem`` why it can't be used."""

    path: Path
    version: str = ""
    found: str = ""
    problem: str = ""

    @property
    def release(self) -> tuple[int, int]:
        """(year, number)."""
        return parse_release(self.version) or (0, 0)

    @property
    def folder_name(self) -> str:
        """x.y.z: what its folder among the user's documents is called."""
        return ".".join(self.version.split(".")[:3])


class Listing(NamedTuple):
    """What `ncu --list-sections` or `--list-rules` said: (identifier, file) pairs, file -> error, and everything else."""

    entries: tuple[tuple[str, str], ...]
    errors: dict[str, str]
    messages: str


def find_ncus(machine: Machine, given: str = "") -> list[Ncu]:
    """Every ncu of the machine, or the one ``given`` (the program, or a folder it lies in), best known place first.

    One file is listed once.  Those that do not work are listed with their ``problem``.
    """
    programs = ("ncu.exe", "ncu.bat") if machine.system == "windows" else ("ncu",)
    if given:
        path = Path(given)
        if os.path.isdir(path):
            inside = (folder / name for folder in (path, path / "bin") for name in programs)
            path = next(filter(os.path.isfile, inside), path / programs[0])
        elif os.sep not in given and not os.path.exists(path):
            path = machine.which(given) or path
        return [ask_version(machine, path.absolute(), "--ncu")]
    found: dict[str, Ncu] = {}
    for folder, how in _folders(machine):
        for path in (folder / name for name in programs):
            real = os.path.realpath(path)
            if real not in found and os.path.isfile(path) and os.access(path, os.X_OK):
                found[real] = ask_version(machine, path, how)
    return list(found.values())


def _folders(machine: Machine) -> Iterator[tuple[Path, str]]:
    yield from ((folder, "PATH") for folder in machine.search_path())
    for variable in _HOMES:
        home = machine.environ.get(variable, "")
        if home:
            yield from ((folder, variable) for pattern in _IN_HOME for folder in _newest_first(Path(home), pattern))
    yield from ((folder, "installed") for pattern in _IN_SYSTEM for folder in _newest_first(machine.root, pattern))
    if machine.system == "windows":
        programs = Path(machine.environ.get("PROGRAMFILES", "C:/Program Files")) / "NVIDIA Corporation"
        yield from ((folder, "installed") for folder in _newest_first(programs, "Nsight Compute *"))
    yield from ((folder, "module") for folder in folders_of_modules(machine))


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    return matching(folder, pattern)[::-1] if pattern else [folder]  # as far as names tell


def ask_version(machine: Machine, path: Path, found: str) -> Ncu:
    """The ncu at ``path`` with its version or its problem."""
    output = machine.run([path, "--version"])
    match = _VERSION.search(output.text)
    if output.code == 0 and match:
        return Ncu(path, match[1], found)
    return Ncu(path, "", found, output.reason if output.code != 0 else "it does not say its version")


def list_files(machine: Machine, ncu: Ncu, what: str, folder: Path | None = None) -> Listing:
    """What ncu finds: ``what`` is "sections" or "rules"; ``folder`` instead of where it looks by itself."""
    where: list[str | Path] = ["--section-folder", folder] if folder else []
    output = machine.run([ncu.path, "--csv", f"--list-{what}", *where])
    return parse_listing(output.text, output.errors if output.code is not None else output.reason)


def parse_listing(text: str, messages: str = "") -> Listing:
    """A listing in CSV; lines around the table are messages."""
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith('"Identifier"')), len(lines))
    end = next((n for n, line in enumerate(lines) if line.startswith('"Filename"')), len(lines))
    rows = [row for row in csv.reader(lines[start + 1 : end]) if len(row) >= 4]
    # Quotes inside error texts are not doubled, so this table is no CSV.
    errors = [re.match(r'"(.+?)","(?:Error: )?(.*)', line) for line in lines[end + 1 :]]
    return Listing(
        tuple((row[0], row[-1]) for row in rows),
        {match[1]: match[2].rstrip('"') for match in errors if match},
        "\n".join([*lines[:start], messages]).strip(),
    )


def expected_folder(machine: Machine, ncu: Ncu) -> Path | None:
    """Where this release keeps the user's section files by default; None without a home folder."""
    return machine.documents / VENDOR_FOLDER / ncu.folder_name / "Sections" if machine.documents else None


def sections_folder(machine: Machine, ncu: Ncu) -> Path | None:
    """Where ncu looks for sections: it is asked, which also makes it deploy its own files at its first start.

    Were ours there first, releases up to 2022 would take the folder for deployed and never bring their own.  None where it
    does not look anywhere.
    """
    expected = expected_folder(machine, ncu)
    parents = [Path(os.path.normpath(file)).parent for _, file in list_files(machine, ncu, "sections").entries]
    if expected and any(parent == expected or expected in parent.parents for parent in parents):
        return expected
    return Counter(parents).most_common(1)[0][0] if parents else expected
