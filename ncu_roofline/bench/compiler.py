"""nvcc: where it is, what it is, what it can compile for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.errors import RooflineError

OLDEST = (11, 8)
_NO_BENCH = "`ncu-roofline bench theory` needs no compiler."


@dataclass(frozen=True)
class Compiler:
    """An nvcc; ``version`` as (13, 0), ``text`` as "nvcc 13.0.88"."""

    path: Path
    version: tuple[int, int]
    text: str

    def compiles_for(self, target: str) -> bool:
        """Whether it knows a target like 90 or 90a; `--list-gpu-code` names none of the latter kind, a dry run knows them."""
        with tempfile.TemporaryDirectory(prefix="ncu-roofline-") as folder:
            source = Path(folder) / "empty.cu"
            source.write_text("", encoding="utf-8")
            words = ["--dryrun", "-c", *code_for(target), "-o", str(Path(folder) / "empty.o"), str(source)]
            return ask([str(self.path), *words]) is not None


def code_for(target: str) -> list[str]:
    """nvcc's words for machine code of a target, without PTX: what runs is what was checked."""
    return ["-gencode", f"arch=compute_{target},code=sm_{target}"]


def find_compiler(wanted: str = "") -> Compiler:
    """The nvcc named, else of NVCC, the PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda.  Raises RooflineError."""
    path = _find(wanted)
    if path is None:
        reason = "there is no such program" if wanted else "it is not on the PATH, nor below CUDA_HOME or /usr/local/cuda"
        next_step = f"Install the CUDA toolkit {_dotted(OLDEST)} or newer, or name its compiler with --nvcc. {_NO_BENCH}"
        raise RooflineError("Cannot find", wanted or "nvcc", reason, next_step)
    text = ask([str(path), "--version"])
    found = re.search(r"release (\d+)\.(\d+), V([\d.]+)", text or "")
    if not found:
        raise RooflineError("Cannot use", path, "it does not tell a version of nvcc", f"Name another with --nvcc. {_NO_BENCH}")
    version = int(found[1]), int(found[2])
    if version < OLDEST:
        reason = f"it is release {_dotted(version)}, and {_dotted(OLDEST)} is the oldest that will do"
        raise RooflineError("Cannot use", path, reason, f"Name a newer one with --nvcc. {_NO_BENCH}")
    return Compiler(path, version, f"nvcc {found[3]}")


def _find(wanted: str) -> Path | None:
    if wanted:
        found = shutil.which(wanted)
        return Path(found) if found else None
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    places = [os.environ.get("NVCC", ""), "nvcc", *(str(Path(folder) / "bin" / "nvcc") for folder in folders if folder)]
    return next((Path(found) for place in places if place and (found := shutil.which(place))), None)


def native_capabilities() -> tuple[str, ...]:
    """Compute capabilities of the GPUs here, as nvidia-smi tells.  Raises RooflineError where there is none."""
    text = ask(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    found = tuple(sorted(set(re.findall(r"^\s*(\d+\.\d+)\s*$", text or "", re.MULTILINE))))
    if not found:
        reason = "nvidia-smi is missing or fails, so there is no driver" if text is None else "nvidia-smi lists no GPU"
        next_step = (
            "Run where there is one; `bench build --arch 9.0` compiles and `bench theory` gives data-sheet peaks without."
        )
        raise RooflineError("Cannot find", "an NVIDIA GPU", reason, next_step)
    return found


def ask(command: Sequence[str], seconds: float = 60.0) -> str | None:
    """What a program prints, None if it is not there, fails or hangs."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
