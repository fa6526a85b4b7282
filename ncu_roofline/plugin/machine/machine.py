"""Everything that is known of the computer comes through `Machine`, tests pass a made-up one; its GPUs, ncus and nvdisasm."""

from __future__ import annotations

import csv
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import matching, temporary_folder
from ncu_roofline.chips.fields import Capability, parse_capability, parse_release
from ncu_roofline.formats.sass.instructions import SIZE

SECONDS = 60
"""How long a program asked for its version or a list may take; on a busy file server Nsight Compute needs some of them."""
VENDOR_FOLDER = "NVIDIA Nsight Compute"
NO_DEPLOYMENT = "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT"
"""With this set, ncu (2021.2 and later, not ncu-ui) reads the sections of its own installation instead of the user's."""


class Output(NamedTuple):
    """What a program said; ``code`` is None where it could not be run at all, ``errors`` then says why."""

    code: int | None
    text: str
    errors: str

    @property
    def reason(self) -> str:
        """Why it failed: the last line it wrote, or its exit code."""
        lines = [line.strip() for line in f"{self.text}\n{self.errors}".splitlines() if line.strip()]
        return lines[-1] if lines else f"it ended with exit code {self.code}"


class Machine(NamedTuple):
    """``system`` is "linux", "windows" or "darwin"; ``root`` is where absolute folders of the system are looked for."""

    environ: Mapping[str, str]
    system: str = "linux"
    root: Path = Path("/")

    @property
    def home(self) -> Path | None:
        """The user's home folder; None where the environment names none."""
        text = self.environ.get("USERPROFILE" if self.system == "windows" else "HOME", "")
        return Path(text) if text else None

    @property
    def documents(self) -> Path | None:
        """The folder under which Nsight Compute keeps its files: Documents in the home folder, whatever the language."""
        return self.home / "Documents" if self.home else None

    @property
    def data(self) -> Path:
        """Our own folder for data of the user.  Without a home folder it is below the folder for temporary files."""
        home = self.home or Path(self.environ.get("TMPDIR") or self.environ.get("TEMP") or "/tmp")
        own = self.environ.get("XDG_DATA_HOME") or home / ".local" / "share"
        if self.system == "windows":
            own = self.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        elif self.system == "darwin":
            own = home / "Library" / "Application Support"
        return Path(own) / "ncu-roofline"

    def path(self, name: str) -> Path:
        """The place of a system file ("/proc/version")."""
        return self.root / name.lstrip("/")

    def which(self, name: str) -> Path | None:
        """The program that a shell would start."""
        found = shutil.which(name, path=self.environ.get("PATH", ""))
        return Path(found) if found else None

    def run(self, command: Sequence[str | os.PathLike[str]], seconds: float = SECONDS) -> Output:
        """Run a program that only answers, without input and in this environment."""
        pipe, words = subprocess.PIPE, [os.fspath(word) for word in command]
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=dict(self.environ), start_new_session=True
            )
        except OSError as error:
            return Output(None, "", error.strerror or str(error))
        with process:
            try:
                text, errors = (data.decode("utf-8", errors="replace") for data in process.communicate(timeout=seconds))
            except BaseException as error:
                with suppress(OSError):  # what it started is in its group and may hold its output
                    os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
                if isinstance(error, subprocess.TimeoutExpired):
                    return Output(None, "", f"it did not answer within {seconds:.0f} seconds")
                raise
        return Output(process.returncode, text, errors)

    def read(self, name: str) -> str:
        """The text of a system file; "" where there is none or it may not be read."""
        try:
            return self.path(name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def has_driver(self) -> bool:
        """Whether the CUDA driver can be used: its library loads.  Wherever the root is not real, its version file decides."""
        if self.path("/proc/driver/nvidia/version").is_file() or self.root != Path("/"):
            return self.path("/proc/driver/nvidia/version").is_file()
        try:
            ctypes.CDLL("nvcuda.dll" if self.system == "windows" else "libcuda.so.1")
        except OSError:
            return False
        return True


def this_machine() -> Machine:
    """The machine that this runs on."""
    return Machine(dict(os.environ), {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux"))


# The longest list first: an nvidia-smi that does not know one of the fields answers none of them.
_FIELDS = ("index,name,uuid,driver_version,compute_cap,mig.mode.current", "index,name,uuid,driver_version")


@dataclass(frozen=True)
class Gpu:
    """A GPU; texts "" where unknown."""

    index: int
    name: str
    uuid: str
    driver: str
    compute_capability: tuple[int, int] | None = None
    mig: bool = False


def find_gpus(machine: Machine) -> tuple[list[Gpu], str]:
    """The GPUs, and why there are none ("" where there are some)."""
    program = machine.which("nvidia-smi")
    if not program:
        return [], "there is no nvidia-smi on the PATH"
    for fields in _FIELDS:
        output = machine.run([program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
        if output.code == 0:
            break
    else:
        return [], f"nvidia-smi failed: {output.reason}"
    gpus = []
    for cells in csv.reader(output.text.splitlines()):
        row = {name: cell.strip() for name, cell in zip(fields.split(","), cells, strict=False)}
        if len(cells) < 4 or not row["index"].isdecimal():
            continue
        known = {key: value for key, value in row.items() if value and value[0] not in "[N"}  # [N/A], [Not Supported]
        gpus.append(
            Gpu(
                index=int(row["index"]),
                name=row["name"],
                uuid=known.get("uuid", ""),
                driver=known.get("driver_version", ""),
                compute_capability=parse_capability(row.get("compute_cap", "")),
                mig=row.get("mig.mode.current") == "Enabled",
            )
        )
    return gpus, "" if gpus else "nvidia-smi lists none"


def choose(gpus: list[Gpu], device: str) -> Gpu | None:
    """The GPU that ``device`` names by index or (part of) UUID, "" for the first; None where there is none at all.

    Raises RooflineError for a device that is not there.
    """
    if not device:
        return gpus[0] if gpus else None
    found = [gpu for gpu in gpus if device in (str(gpu.index), gpu.uuid) or (len(device) > 4 and gpu.uuid.startswith(device))]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{gpu.index} ({gpu.name}, {gpu.uuid})" for gpu in gpus) or "none"
    reason = "it names several GPUs" if found else f"the GPUs here are: {known}"
    raise RooflineError("Cannot use --device", device, reason, "Give an index or a UUID, as `nvidia-smi -L` lists them.")


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
    for folder, how in _folders_of_ncu(machine):
        for path in (folder / name for name in programs):
            real = os.path.realpath(path)
            if real not in found and os.path.isfile(path) and os.access(path, os.X_OK):
                found[real] = ask_version(machine, path, how)
    return list(found.values())


_HOMES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "NVHPC_ROOT", "NSIGHT_COMPUTE_HOME", "NSIGHT_COMPUTE_ROOT", "CONDA_PREFIX")
_IN_HOME = ("bin", "nsight-compute*", "nsight-compute/*", "profilers/Nsight_Compute")
_IN_SYSTEM = (
    "opt/nvidia/nsight-compute/*",
    "usr/local/cuda*/bin",
    "usr/local/cuda*/nsight-compute-*",
    "usr/local/NVIDIA-Nsight-Compute*",
    "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute",
    "usr/lib/nsight-compute",
)


def _folders_of_ncu(machine: Machine) -> Iterator[tuple[Path, str]]:
    """Where one may be, and how we know; the newest first, as far as names tell."""
    yield from ((Path(part), "PATH") for part in machine.environ.get("PATH", "").split(os.pathsep) if part)
    for variable in _HOMES:
        if home := machine.environ.get(variable):
            yield Path(home), variable
            yield from ((folder, variable) for pattern in _IN_HOME for folder in matching(home, pattern)[::-1])
    yield from ((folder, "installed") for pattern in _IN_SYSTEM for folder in matching(machine.root, pattern)[::-1])
    if machine.system == "windows":
        programs = Path(machine.environ.get("PROGRAMFILES", "C:/Program Files")) / "NVIDIA Corporation"
        yield from ((folder, "installed") for folder in matching(programs, "Nsight Compute *")[::-1])


def named(path: Path, version: str, found: str = "") -> Ncu:
    """The ncu at ``path`` that is of this version; a problem where it is too old."""
    old = (parse_release(version) or (0, 0)) < (2020, 3)
    return Ncu(path, version, found, f"{version} is older than 2020.3, the first that can draw our roofs" if old else "")


def ask_version(machine: Machine, path: Path, found: str) -> Ncu:
    """The ncu at ``path`` with its version or its problem."""
    output = machine.run([path, "--version"])
    match = re.search(r"^Version (20\d\d\.\d+\.\d+(?:\.\d+)*)", output.text, re.MULTILINE)
    if output.code == 0 and match:
        return named(path, match[1], found)
    return Ncu(path, "", found, output.reason if output.code != 0 else "it does not say its version")


class Listing(NamedTuple):
    """What `ncu --list-sections` or `--list-rules` said: (identifier, file) pairs, file -> error, and everything else."""

    entries: tuple[tuple[str, str], ...]
    errors: dict[str, str]
    messages: str


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


_SECONDS, _PER_SECOND, _MOST_SECONDS = 15.0, 100_000, 60.0
"""How long nvdisasm may take: to start, from a busy file server too, and for so many bytes of code; it does five times as
much."""
_HEXADECIMAL = re.compile(r"\b0x[0-9a-f]{1,16}\b")
_BASE, _NEAR = 1 << 40, 1 << 32
"""Where code is said to lie, and how far from there jumps may go: no other operand is as large."""
_SKIP = "Opcodes without operands are shown in place of it; an nvdisasm that knows the chip shows all."


def find_nvdisasm(machine: Machine | None = None) -> Path | None:
    """The nvdisasm on the PATH, else that of the package nvidia-cuda-nvdisasm of PyPI; None where there is none."""
    machine = machine or this_machine()
    if found := machine.which("nvdisasm"):
        return found
    name = "nvdisasm.exe" if machine.system == "windows" else "nvdisasm"
    try:
        files = metadata.files("nvidia-cuda-nvdisasm") or []
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
    machine, whole, name = machine or this_machine(), b"".join(codes), "SM{}{}".format(*capability)
    most = min(_SECONDS + len(whole) / _PER_SECOND, _MOST_SECONDS, seconds)
    with temporary_folder({"code.bin": whole}) as folder:
        for chip in (f"{name}a", name):  # first with the instructions that only this one has, where a release tells them apart
            options = ["--binary", chip, "--no-dataflow", "--base-address", hex(_BASE)]
            done = machine.run([tool, *options, folder / "code.bin"], most)
            if "not defined for option" not in done.errors:
                break
    if done.code != 0:
        said = [line.partition(":")[2].strip() for line in done.errors.splitlines() if line.startswith("nvdisasm")]
        reason = f"of {len(whole):,} bytes of code it says: {said[0]}" if said else done.reason
        raise RooflineError("Cannot disassemble with", tool, reason, _SKIP)
    lines = re.findall(r"/\*([0-9a-f]{4,16})\*/([^;/\n]{1,400});", done.text)
    if whole and not lines:
        raise RooflineError("Cannot disassemble with", tool, "it printed no instructions", _SKIP)
    texts = {int(address, 16) - _BASE: " ".join(text.split()) for address, text in lines}

    def placed(text: str, start: int) -> str:
        """An instruction with its addresses counted from ``start``."""
        offsets = ((found, int(found, 16) - _BASE) for found in _HEXADECIMAL.findall(text))
        near = {found: hex(offset - start) for found, offset in offsets if abs(offset) < _NEAR}
        return _HEXADECIMAL.sub(lambda found: near.get(found[0], found[0]), text)

    return [
        {at - start: placed(texts[at], start) for at in range(start, end, SIZE) if texts.get(at)}
        for start, end in pairwise(accumulate(map(len, codes), initial=0))
    ]
