"""A machine without a GPU that has all that validate-on-gpu asks for: nvidia-smi, nvcc, ncu (it copies reports), a runner."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ncu_roofline.bench.catalogue import theory
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.report import KernelData
from ncu_roofline.formats.report.reader import RuleMessage, RuleResult
from tests import factory
from tests.bench.fakes import H200, RATES, Machine, device, kind, make_machine
from tests.bench.validate import script

LEAST, PROFILED = script.LEAST, script.PROFILED

CLOCK, PROFILED_CLOCK = 1.98e9, 1.755e9
SHARE = 0.98
GRID, BLOCK = 528, 256
DEVICE: factory.Metrics = {
    **factory.H100,
    "device__attribute_display_name": H200["name"],
    "device__attribute_max_mem_frequency_khz": 3_201_000,
    "device__attribute_global_memory_bus_width": 6144,
}

# Options before the application are pairs but for -f.  "lie" is a piece of shell that goes before the application.
NCU = r"""#!/bin/sh
here={here}
case "$*" in
  --version) echo "Version 2025.3.1.0 (build 36398880)"; exit 0 ;;
  --import*) echo "gpp (8, 1, 1)x(128, 1, 1)"; exit 0 ;;
esac
while [ "${{1#-}}" != "$1" ]; do
  if [ "$1" = -f ]; then shift; else
    [ "$1" = -o ] && out=$2
    shift 2
  fi
done
[ -f "$here/lie" ] && . "$here/lie"
"$@" || exit
cp "$here/reports/$(basename "$out").ncu-rep" "$out.ncu-rep"
"""
NVCC = r"""#!/bin/sh
case "$*" in
  *--version*) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0 ;;
  *--dryrun*) exit 0 ;;
esac
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && out=$2
  shift
done
case "$out" in
  */ncu-roofline-bench) cp {runner} "$out" ;;
  *) printf '#!/bin/sh\nexit 0\n' > "$out"; chmod +x "$out" ;;
esac
"""
SMI = """#!/bin/sh
case "$*" in
  *compute_cap*) echo 9.0 ;;
  *) echo "    Product Name                          : NVIDIA H200" ;;
esac
"""


def rate(ceiling: str) -> float:
    """What a good benchmark finds: just under theory, where there is one."""
    if ceiling == "l2.read":
        return RATES["l2.read"]
    peak = theory(kind(ceiling), device())
    assert peak is not None, ceiling
    return SHARE * peak.at(3.201e9 if ceiling.startswith("dram") else CLOCK)


def scenario(**changes: Mapping[str, Any]) -> dict[str, Any]:
    """What the runner plays: all ceilings that must stand; ``fp64_fma={"rate": 1}`` changes one, None leaves it out."""
    names = [*LEAST, "launch.sync"]
    ceilings = {name: {"rate": 4e5 if name == "launch.sync" else rate(name), "noise": 0.0} for name in names}
    for name, change in changes.items():
        known = name.replace("_", ".")
        if change is None:
            del ceilings[known]
        else:
            ceilings[known].update(change)
    return {"devices": [H200], "rows": [_row(name) for name in ceilings] + [_emulated()], "ceilings": ceilings}


def _row(name: str) -> dict[str, Any]:
    variant = "empty_kernel" if name == "launch.sync" else "best"
    row = {"ceiling": name, "variant": variant, "unit": _unit(name), "kernel": symbol(name)}
    return {**row, "capabilities": ["9.0"], "reason": ""}


def _unit(name: str) -> str:
    if name == "launch.sync":
        return "s"
    return "B/s" if load_spec().level_of_ceiling(name) else "OP/s" if "int" in name else "FLOP/s"


def _emulated() -> dict[str, Any]:
    return {**_row("tensor.fp8.mma"), "reason": "emulated"}


def symbol(ceiling: str) -> str:
    """The kernel of a ceiling."""
    return f"bench_{ceiling.replace('.', '_')}"


def launch(ceiling: str, counted: float = 1.0, speed: float = 1.0, name: str = "", grid: int = GRID) -> KernelData:
    """The launch that the runner promises, as an honest ncu reports it at a clock of its own.

    ``counted``: how much more work it counts than there was; ``speed``: how much faster it says it ran.
    """
    dram = PROFILED[ceiling].level == "dram"
    work = rate(ceiling) * (10e-3 if dram else 5e-3)
    seconds = (10e-3 if dram else 5e-3 * CLOCK / PROFILED_CLOCK) / speed
    metrics: factory.Metrics = {**DEVICE, **factory.timing(seconds, PROFILED_CLOCK), **factory.NO_WORK}
    metrics |= factory.traffic(10**6, 10**5, 10**6)
    counts, instances = _counts(ceiling, work * counted * (speed if speed == 1 else 1))
    kernel = factory.kernel(metrics | counts, name or symbol(ceiling), instances=instances)
    return KernelData(**{**vars(kernel), "grid": (grid, 1, 1), "block": (BLOCK, 1, 1)})


def _counts(ceiling: str, work: float) -> tuple[factory.Metrics, dict[str, Any]]:
    family, level = ceiling.partition(".")[0], PROFILED[ceiling].level
    if level:
        name = {
            "dram": "dram__bytes.sum",
            "l2": "lts__t_sectors_srcunit_tex.sum",
            "l1": "l1tex__t_bytes.sum",
            "shared": "smsp__sass_data_bytes_mem_shared.sum",
        }[level]
        return {name: round(work / (32 if level == "l2" else 1))}, {}
    if family == "tensor":
        precision = next(one for one in load_spec().precisions if one.id == ceiling.rpartition(".")[0])
        terms = load_spec().bindings(precision, (9, 0))[0].counters
        return {f"{name}.sum": round(work) if index == 0 else 0 for index, (name, _) in enumerate(terms)}, {}
    if ceiling == "fp64.nofma":
        return factory.flops("d", add=round(work / 2), mul=round(work / 2)), {}
    if family == "int32":
        return {}, factory.opcodes(IMAD=work / 64, IADD3=work / 640)
    if family == "bf16":
        return factory.flops("h", fma=round(work / 4)), factory.opcodes(HFMA2_BF16__V2=work / 128)
    letter, per = {"fp64": ("d", 2), "fp32": ("f", 2), "fp16": ("h", 4)}[family]
    return factory.flops(letter, fma=round(work / per)), {}


def app(name: str) -> KernelData:
    """A launch of a proxy application, with what a rule said."""
    function = {"gpp": "gpp", "gsrb": "gsrb", "lecture-a": "kernel_a", "lecture-c": "kernel_c"}[name.partition("-nw")[0]]
    said = RuleResult("NcuRooflineVerdict", "Verdict", "RooflineOverview", (RuleMessage("ok", "FP64 binds."),))
    return factory.kernel(factory.complete(DEVICE, clock=PROFILED_CLOCK), function, rule_results=(said,))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def make_gpu_machine(folder: Path, setenv: Any) -> Machine:
    """All programs in ``folder``/bin and an honest scenario; PATH and FAKE_RUNNER are set."""
    machine = make_machine(folder, setenv)
    machine.play(scenario())
    programs, reports = folder / "bin", folder / "reports"
    for made in (programs, reports):
        made.mkdir()
    for name, text in {"ncu": NCU.format(here=folder), "nvcc": NVCC.format(runner=machine.program), "nvidia-smi": SMI}.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    for ceiling in PROFILED:
        factory.report(reports / f"bench.{ceiling}.ncu-rep", launch(ceiling))
    for name in (*(f"gpp-nw{nw}" for nw in range(1, 7)), "gsrb", "lecture-a", "lecture-c"):
        factory.report(reports / f"{name}.ncu-rep", app(name))
    shutil.copy(reports / "gsrb.ncu-rep", reports / "preflight.ncu-rep")
    setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    setenv("XDG_CACHE_HOME", str(folder / "cache"))
    setenv("TMPDIR", str(_made(folder / "tmp")))  # a GPU is measured by one run at a time: other tests have the same one
    for name in ("NVCC", "NCU", "CUDA_HOME", "CUDA_PATH"):
        setenv(name, "")
    return machine
