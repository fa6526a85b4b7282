"""What this machine has, lacks and gets wrong for measuring and profiling; reading and rendering reports needs none of it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.plugin.machine import machine as here
from ncu_roofline.plugin.machine.install import kept, kept_for, known_folders, read_manifest
from ncu_roofline.plugin.machine.machine import Gpu, Machine, Ncu
from ncu_roofline.plugin.machine.profile import failure_of
from ncu_roofline.version import __version__

OK, ABSENT, PROBLEM = "ok", "absent", "problem"
"""Works; is not here, which only matters for measuring and profiling; is here and does not work."""

_SYS_ADMIN = 21
"""The capability CAP_SYS_ADMIN (linux/capability.h), which the driver takes for an administrator."""

# Import name: distribution.
_PACKAGES = {name: name for name in ("jinja2", "matplotlib", "msgspec", "numpy", "pandas", "shtab", "tqdm")}
_PACKAGES |= {"google.protobuf": "protobuf"}


class Line(NamedTuple):
    """One finding; ``advice`` says what to do, "" where nothing is to be done."""

    topic: str
    status: str
    text: str
    advice: str = ""


def examine(machine: Machine) -> list[Line]:
    """Every line, in the order in which one thing needs the other."""
    gpus, why_none = here.find_gpus(machine)
    ncus = here.find_ncus(machine)
    return [
        *_gpus(machine, gpus, why_none),
        *_compiler(machine),
        *_ncus(ncus),
        *_folders(machine, ncus),
        *_ceilings(machine, gpus),
        *_python(),
    ]


def _gpus(machine: Machine, gpus: list[Gpu], why_none: str) -> Iterator[Line]:
    """GPUs, driver, who may read counters, MIG."""

    def is_gpu(device: str) -> bool:
        vendor, kind = (machine.read(f"/sys/bus/pci/devices/{device}/{name}") for name in ("vendor", "class"))
        return vendor.strip() == "0x10de" and kind.startswith("0x03")  # NVIDIA, a display

    for gpu in gpus:
        capability = f"compute capability {capability_text(gpu.compute_capability)}, " if gpu.compute_capability else ""
        yield Line("GPU", OK, f"{gpu.index}: {gpu.name}, {capability}{gpu.uuid}")
    version, has_driver = next((gpu.driver for gpu in gpus if gpu.driver), ""), machine.has_driver()
    if not gpus and has_driver and machine.which("nvidia-smi"):
        yield Line("GPU", PROBLEM, f"the driver is here, but {why_none}", "See `dmesg | grep -i nvrm`, or restart.")
    elif not gpus and any(is_gpu(device.name) for device in machine.path("/sys/bus/pci/devices").glob("*")):
        yield Line("GPU", PROBLEM, "an NVIDIA GPU is on the PCI bus, but no driver answers", "Install the NVIDIA driver.")
    elif not gpus:
        yield Line("GPU", ABSENT, f"none: {why_none}", "Nothing to do here; measuring and profiling need a machine with one.")
    if version or has_driver:
        yield Line("driver", OK, version or "its library loads, its version is not known")
    else:
        yield Line("driver", ABSENT, "none", "Nothing to do here; measuring and profiling need one.")
    restricted = re.search(r"^RmProfilingAdminOnly:\s*(\d)", machine.read("/proc/driver/nvidia/params"), re.MULTILINE)
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", machine.read("/proc/self/status"), re.MULTILINE)
    if restricted and restricted[1] == "0":
        yield Line("counters", OK, "every user may read them")
    elif restricted and effective and int(effective[1], 16) >> _SYS_ADMIN & 1:
        yield Line("counters", OK, "only administrators may read them, and you are one")
    elif restricted:
        text = "only administrators may read them, so ncu will fail with ERR_NVGPUCTRPERM"
        yield Line("counters", PROBLEM, text, f"{failure_of('permission').next_step}.")
    elif has_driver:
        yield Line("counters", OK, "the driver does not say who may read them; profiling will show it")
    for gpu in gpus:
        if gpu.mig:
            text = f"GPU {gpu.index} is split by MIG: an instance sees part of its units, and not all counters"
            yield Line("MIG", OK, text, "For rooflines of the whole GPU: `nvidia-smi -mig 0` as administrator.")


def _compiler(machine: Machine) -> Iterator[Line]:
    homes = [machine.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    places = [Path(home) / "bin" / "nvcc" for home in homes if home] + [machine.path("/usr/local/cuda/bin/nvcc")]
    path = machine.which("nvcc") or next((place for place in places if os.access(place, os.X_OK)), None)
    if path is None:
        yield Line("nvcc", ABSENT, "none", "To measure ceilings here: install the CUDA toolkit, or load its module.")
        return
    output = machine.run([path, "--version"])
    release = re.search(r"release (\d+)\.(\d+), V(\S+)", output.text)
    if output.code != 0 or not release:
        yield Line("nvcc", PROBLEM, f"{path} does not work: {output.reason}", "Install the CUDA toolkit again.")
    elif (int(release[1]), int(release[2])) < (11, 8):
        yield Line("nvcc", PROBLEM, f"{path} is {release[3]}, too old for the benchmarks", "Install CUDA 11.8 or later.")
    else:
        yield Line("nvcc", OK, f"{release[3]}, {path}")


def _ncus(ncus: list[Ncu]) -> Iterator[Line]:
    for ncu in ncus:
        if ncu.problem and ncu.version:
            yield Line("ncu", ABSENT, f"{ncu.path}: {ncu.problem}", "Install 2020.3 or later.")
        elif ncu.problem:
            yield Line(
                "ncu", PROBLEM, f"{ncu.path} does not work: {ncu.problem}", "Remove it from the PATH, or install it again."
            )
        else:
            yield Line("ncu", OK, f"{ncu.version}, {ncu.path} ({ncu.found})")
    if not ncus:
        yield Line("ncu", ABSENT, "none", "To profile here: install Nsight Compute, or load its module.")


def _folders(machine: Machine, ncus: list[Ncu]) -> Iterator[Line]:
    if machine.environ.get(here.NO_DEPLOYMENT, "0") not in ("", "0") and ncus:
        text = f"{here.NO_DEPLOYMENT} is set: ncu reads the sections of its installation, ncu-ui those of your documents"
        yield Line("sections", OK, text)
    names = {}
    for name, ncu in {ncu.folder_name: ncu for ncu in ncus if not ncu.problem}.items():
        folder = here.expected_folder(machine, ncu)
        if folder is None:
            yield Line("sections", PROBLEM, f"{name}: there is no home folder to keep them in", "Set HOME.")
        else:
            names[folder] = name
    # Also those of an ncu that is not found here now, of ncu-ui only, and of --dest.
    for folder in known_folders(machine):
        own = machine.documents is not None and (machine.documents / here.VENDOR_FOLDER) in folder.parents
        names.setdefault(folder, folder.parent.name if own else "elsewhere")
    for folder, name in names.items():
        try:
            manifest = read_manifest(folder)
        except RooflineError as error:
            yield Line("sections", PROBLEM, str(error), error.next_step)
            continue
        gone = [file for file in manifest.files if not os.path.exists(folder / file)] if manifest else []
        if manifest is None:
            yield Line("sections", ABSENT, f"{name}: ours are not installed", "Run `ncu-roofline install`.")
        elif gone:
            yield Line("sections", PROBLEM, f"{name}: {', '.join(gone)} is missing in {folder}", "Run `ncu-roofline install`.")
        else:
            roofs = f"roofs of {manifest.ceilings}" if manifest.ceilings else "theoretical roofs"
            text = f"{name}: {folder}, {len(manifest.files)} files of version {manifest.version}, {roofs}"
            old = manifest.version != __version__
            yield Line("sections", OK, text, f"Run `ncu-roofline install` for version {__version__}." if old else "")


def _ceilings(machine: Machine, gpus: list[Gpu]) -> Iterator[Line]:
    for gpu in gpus:
        text = f"GPU {gpu.index}: not measured, charts have theoretical roofs"
        if found := kept_for(machine, gpu):
            yield Line("ceilings", OK, f"GPU {gpu.index}: {found.path}, of {found.date or 'an unknown date'}")
        else:
            yield Line("ceilings", ABSENT, text, "Run `ncu-roofline install` where there is nvcc.")
    for one in [] if gpus else kept(machine):
        yield Line("ceilings", OK, f"of another machine's {one.device}: {one.path}")


def _python() -> Iterator[Line]:
    # From 3.14 on zstd, which .ncu-repz files need, is Python's own.
    own = {} if sys.version_info >= (3, 14) else {"backports.zstd": "backports.zstd"}
    missing: list[str] = []
    versions: list[str] = []
    for module, distribution in (dict(sorted(_PACKAGES.items())) | own).items():
        here, version = False, ""
        with suppress(ImportError):  # of the package around it
            here = find_spec(module) is not None
        with suppress(metadata.PackageNotFoundError):
            version = metadata.version(distribution) if here else ""
        (versions if here else missing).append(f"{distribution} {version}".strip())
    if missing:
        yield Line("Python", PROBLEM, f"{', '.join(missing)} missing", f"Run `pip install {' '.join(missing)}`.")
    else:
        yield Line("Python", OK, ", ".join(versions))
