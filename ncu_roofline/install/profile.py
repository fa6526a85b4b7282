"""The ncu command that profiles an application for rooflines, and what running it came to."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.clocks import default_clocks
from ncu_roofline.install.machine import Machine
from ncu_roofline.install.ncu import Ncu

SECTIONS = {
    "fp64": "HierarchicalDoubleRooflineChart",
    "fp32": "HierarchicalSingleRooflineChart",
    "fp16": "HierarchicalHalfRooflineChart",
    "tensor": "HierarchicalTensorRooflineChart",
}
"""Precision (or the first word of it): the section that counts it."""

SUFFIXES = (".ncu-rep", ".ncu-repz")
COMPRESSED_SINCE = (2025, 4)
"""The first release of ncu that writes .ncu-repz; from 2026.3 on it does where no suffix is named."""

LIGHT_TENSOR = "HierarchicalTensorLightRooflineChart"
# Launchers tell a process its number among all and how many there are, first one set wins.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_NRANKS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
_TAIL_SECONDS = 0.2


@dataclass(frozen=True)
class Wanted:
    """What to profile: ``sections``, ``folders`` to find them in (none: where ncu looks), ``kernel`` a regular expression.

    ``output`` is the report's path without its suffix, ``suffix`` the one that the user named,
    ``clocks`` what ncu is to do with them ("none", "base", "boost"); "" for either: as this ncu does by itself.
    """

    application: tuple[str, ...]
    output: str
    sections: tuple[str, ...]
    folders: tuple[Path, ...] = ()
    kernel: str = ""
    clocks: str = ""
    force: bool = False
    suffix: str = ""


@dataclass(frozen=True)
class Run:
    """How it went: the exit code of ncu and what it said."""

    code: int
    log: str


def sections_for(precisions: Sequence[str], light: bool) -> tuple[str, ...]:
    """Identifiers of the sections that count some precisions (none: all); ``light`` counts one tensor type instead of all."""
    families = dict.fromkeys(SECTIONS if not precisions else (_family(one) for one in precisions))
    names = [LIGHT_TENSOR if light and one == "tensor" else SECTIONS[one] for one in families]
    return tuple(names)


def _family(precision: str) -> str:
    """The key of `SECTIONS` for a precision; KeyError for one without a section."""
    first = precision.split(".")[0]
    if first not in SECTIONS:
        raise KeyError(precision)
    return first


def light_type(precisions: Sequence[str]) -> str:
    """The tensor type for the section of few passes ("bf16" of tensor.bf16); "" where none is named."""
    named = [one.split(".")[1] for one in precisions if one.startswith("tensor.")]
    return named[0] if named else ""


def rank_of(environ: Mapping[str, str]) -> str:
    """The MPI rank of this process, "" where it runs alone."""
    for rank, size in _RANKS:
        if environ.get(rank, "").isdecimal() and (size in environ or not size.startswith("SLURM_STEP")):
            return "" if environ.get(size) == "1" else environ[rank]
    return ""


def output_name(output: str, application: str, rank: str) -> tuple[str, str]:
    """(path of the report without its suffix: as given, or after the application, with the MPI rank behind it; that suffix)."""
    suffix = next((one for one in SUFFIXES if output.endswith(one)), "")
    name = output.removesuffix(suffix) or f"{Path(application).stem}-roofline"
    return f"{name}.rank{rank}" if rank else name, suffix


def possible(ncu: Ncu, wanted: Wanted) -> tuple[str, ...]:
    """Suffixes that the report may get; without a name for it that depends on the release."""
    if ncu.release < COMPRESSED_SINCE:
        return SUFFIXES[:1]
    return (wanted.suffix,) if wanted.suffix else SUFFIXES


def reports(output: str) -> dict[Path, object]:
    """The files that ncu may write for ``output``, as far as they are there, each with what changes when it is written."""
    found: dict[Path, object] = {}
    for path in (Path(f"{output}{suffix}") for suffix in SUFFIXES):
        if path.is_file():
            status = path.stat()
            found[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def written(output: str, before: Mapping[Path, object]) -> Path | None:
    """The report that was written since `reports` said ``before``: one that ncu did not write now must not pass for its own."""
    return next((path for path, state in reports(output).items() if before.get(path) != state), None)


def command(ncu: Ncu, wanted: Wanted) -> list[str]:
    """The command line, the application's last."""
    words = [os.fspath(ncu.path)]
    words += [word for folder in wanted.folders for word in ("--section-folder", os.fspath(folder))]
    words += [word for section in wanted.sections for word in ("--section", section)]
    words += ["--kernel-name", f"regex:{wanted.kernel}"] if wanted.kernel else []
    words += ["--clock-control", wanted.clocks] if wanted.clocks not in ("", default_clocks(ncu.version)) else []
    # A release that knows one suffix only adds it by itself.
    suffix = wanted.suffix if ncu.release >= COMPRESSED_SINCE else ""
    words += ["--target-processes", "all", "-o", f"{wanted.output}{suffix}".replace("%", "%%")]
    words += ["-f"] if wanted.force else []
    return [*words, *wanted.application]


def as_text(words: Sequence[str], system: str = "linux") -> str:
    """A command line as a shell takes it."""
    return subprocess.list2cmdline(words) if system == "windows" else shlex.join(words)


def run(machine: Machine, words: Sequence[str], say: Callable[[str], None]) -> Run:
    """Run ncu with the application's input and output left alone; what ncu itself says goes line by line to ``say``.

    Raises OSError where ncu can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="ncu-roofline-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "ncu.log"
        process = subprocess.Popen([words[0], "--log-file", str(log), *words[1:]], env=dict(machine.environ))
        tail = _Tail(log, say)
        try:
            while True:
                try:
                    code = process.wait(_TAIL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    tail.read()
                except KeyboardInterrupt:  # ncu and the application got it, too, and want to end in their own way
                    continue
        finally:
            tail.read(whole=True)
        return Run(code, tail.text)


class _Tail:
    """Follows a growing file."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = path, say
        self._place, self._rest = 0, ""
        self.text = ""

    def read(self, *, whole: bool = False) -> None:
        """Say the lines that were added; with ``whole`` also one without an end."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._place)
                data = stream.read()
        except OSError:
            data = b""
        self._place += len(data)
        added = data.decode("utf-8", errors="replace")
        self.text += added
        *lines, self._rest = f"{self._rest}{added}".split("\n")
        for line in [*lines, self._rest] if whole else lines:
            if line.strip():
                self._say(line.rstrip("\r"))
