"""Everything that is known of the computer comes through `Machine`; tests pass a made-up one.  And its GPUs."""

from __future__ import annotations

import csv
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import parse_capability

SECONDS = 60
"""How long a program asked for its version or a list may take; on a busy file server Nsight Compute needs some of them."""


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


@dataclass(frozen=True)
class Machine:
    """``system`` is "linux", "windows" or "darwin"; ``root`` is where absolute folders of the system are looked for."""

    environ: Mapping[str, str] = field(repr=False, hash=False)
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

    def search_path(self) -> list[Path]:
        """The folders of PATH."""
        return [Path(part) for part in self.environ.get("PATH", "").split(os.pathsep) if part]

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
        if self.path("/proc/driver/nvidia/version").is_file():
            return True
        if self.root != Path("/"):
            return False
        try:
            ctypes.CDLL("nvcuda.dll" if self.system == "windows" else "libcuda.so.1")
        except OSError:
            return False
        return True


def this_machine() -> Machine:
    """The machine that this runs on."""
    system = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
    return Machine(dict(os.environ), system)


# The longest list first: an nvidia-smi that does not know one of the fields answers none of them.
_FIELDS = (
    "index,name,uuid,driver_version,compute_cap,mig.mode.current,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active",
    "index,name,uuid,driver_version,compute_cap,mig.mode.current,clocks.sm,clocks.max.sm",
    "index,name,uuid,driver_version,clocks.sm,clocks.max.sm",
    "index,name,uuid,driver_version",
)
_SLOWED = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "heat", 0x80: "power brake"}
"""Bits of nvmlClocksEventReasons that make a measurement worthless (nvml.h)."""


@dataclass(frozen=True)
class Gpu:
    """A GPU; clocks in Hz and None where unknown, texts "" where unknown."""

    index: int
    name: str
    uuid: str
    driver: str
    compute_capability: tuple[int, int] | None = None
    mig: bool = False
    clock: float | None = None
    clock_max: float | None = None
    slowed: tuple[str, ...] = ()


def find_gpus(machine: Machine) -> tuple[list[Gpu], str]:
    """The GPUs, and why there are none ("" where there are some)."""
    program = machine.which("nvidia-smi")
    if not program:
        return [], "there is no nvidia-smi on the PATH"
    reason = ""
    for fields in _FIELDS:
        output = machine.run([program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
        if output.code == 0:
            cells = (map(str.strip, row) for row in csv.reader(output.text.splitlines()) if len(row) >= 4)
            rows = (dict(zip(fields.split(","), row, strict=False)) for row in cells)
            gpus = [_gpu(row) for row in rows if row["index"].isdecimal()]
            return gpus, "" if gpus else "nvidia-smi lists none"
        reason = output.reason
    return [], f"nvidia-smi failed: {reason}"


def _gpu(row: dict[str, str]) -> Gpu:
    known = {key: value for key, value in row.items() if value and value[0] not in "[N"}  # [N/A], [Not Supported]
    active = row.get("clocks_throttle_reasons.active", "")
    bits = int(active, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", active) else 0
    return Gpu(
        index=int(row["index"]),
        name=row["name"],
        uuid=known.get("uuid", ""),
        driver=known.get("driver_version", ""),
        compute_capability=parse_capability(row.get("compute_cap", "")),
        mig=row.get("mig.mode.current") == "Enabled",
        clock=_hertz(known.get("clocks.sm")),
        clock_max=_hertz(known.get("clocks.max.sm")),
        slowed=tuple(text for bit, text in _SLOWED.items() if bits & bit),
    )


def _hertz(megahertz: str | None) -> float | None:
    return float(megahertz) * 1e6 if megahertz and megahertz.replace(".", "", 1).isdecimal() else None


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
