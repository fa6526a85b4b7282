"""Measured ceilings kept among the user's data, one file per GPU, and found again."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ncu_roofline.base.errors import RooflineError, explained
from ncu_roofline.base.files import matching, read_file
from ncu_roofline.formats.ceilings import MOST_BYTES, Ceilings, read_ceilings
from ncu_roofline.plugin.machine.gpus import Gpu
from ncu_roofline.plugin.machine.install import put_data, tidy
from ncu_roofline.plugin.machine.machine import Machine

_FOLDER = "ceilings"


def keep(machine: Machine, path: str | Path) -> Ceilings:
    """Keep a ceilings file for its GPU in place of an earlier one; returns what is kept.  Raises RooflineError."""
    ceilings = read_ceilings(path)
    target = folder(machine) / _file_name(ceilings.device, ceilings.uuid)
    if Path(path).resolve() == target.resolve():
        return ceilings
    with explained("Cannot keep", path, "Give the name of an ordinary file."):  # a pipe gives everything once
        data = read_file(path, MOST_BYTES)
    put_data(target, data)
    return read_ceilings(target)


def folder(machine: Machine) -> Path:
    """Where ceilings are kept."""
    return machine.data / _FOLDER


def kept(machine: Machine) -> list[Ceilings]:
    """All ceilings kept that can be read, by file name."""
    found = (_readable(path) for path in matching(folder(machine), "*.json"))
    return [one for one in found if one]


def kept_for(machine: Machine, gpu: Gpu) -> Ceilings | None:
    """The ceilings kept for this very GPU (name and UUID), None if there are none."""
    return _readable(folder(machine) / _file_name(gpu.name, gpu.uuid))


def _readable(path: Path) -> Ceilings | None:
    try:
        return read_ceilings(path) if os.path.isfile(path) else None
    except RooflineError:
        return None


def forget_ceilings(machine: Machine) -> list[Path]:
    """Remove all ceilings kept; returns their paths.  Raises RooflineError."""
    paths = sorted(folder(machine).glob("*.json"))
    with explained("Cannot remove", folder(machine), "Remove it by hand."):
        for path in paths:
            path.unlink()
        if paths:
            folder(machine).rmdir()
    tidy(machine)
    return paths


def _file_name(device: str, uuid: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", f"{device.replace('NVIDIA', '')} {uuid.removeprefix('GPU-')}")
    return "-".join(words) + ".json"
