"""Reports that sessions name: those of `made.toml`, and a folder of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomllib

from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.formats.sectionfile.section import messages
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.analyses.ranks_made import Faults, write_ranks
from tests.factory import A100, H100, NO_WORK, Metrics, complete, kernel, timing, traffic
from tests.instruction_factory import accesses, executed
from tests.machine.fakes import fake_ncu
from tests.made_up_code import smooth

REPORTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
COUNTS = accesses(global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 2 * 10**6), shared_st=(10**6, 2 * 10**6))
DEVICES = {"A100": A100, "H100": H100}


def basic(major: int = 8, minor: int = 0) -> Metrics:
    """What ``ncu --set basic`` collects: times and throughputs, no operations; of a compute capability."""
    of = "device__attribute_compute_capability_"
    return {**A100, f"{of}major": major, f"{of}minor": minor, **timing(), "dram__bytes.sum": 100}


def section(identifier: str) -> bytes:
    return bytes(messages()["Section"](Identifier=identifier.encode(), DisplayName=b"x").SerializeToString())


def smoothed(half: bool = False, lacking: str = "", name: str = "", seconds: float = 0.0) -> KernelData:
    """The launch with counts by instruction; ``half`` of its samples is lost, or it lacks something."""
    whole = smooth(**{lacking: False} if lacking else {})
    if half:
        kept = {name: values for name, values in whole.instances.items() if "_stalled_" not in name}
        whole = replace(whole, instances={**kept, "smsp__pcsamp_sample_count": kept["smsp__pcsamp_sample_count"][::2]})
    time = {"gpu__time_duration.sum": seconds * 1e9} if seconds else {}
    return replace(whole, name=name or whole.name, function_name=name or whole.name, metrics={**whole.metrics, **time})


def launches(kind: str = "complete", device: str = "A100", **of: Any) -> Iterator[KernelData]:
    """What a table of `made.toml` stands for: mostly one launch."""
    chip, clock, name = DEVICES[device], of.pop("clock", 1.41e9), of.pop("name", "void kernel<int>(int *)")
    if kind == "smooth":
        yield smoothed(**of, **({"name": name} if "<" not in name else {}))
    elif kind == "phased":
        yield Made(TWO_PHASES, name=name, seconds=of["seconds"]).kernel() if of else Made().kernel()
    elif kind == "bands":
        yield Made((Group({SM: steps(20, 60)}), Group({DRAM: steps(80, 20)}))).kernel()
    elif kind == "many":
        yield from [kernel(complete(seconds=1e-3 * (1 + place)), f"k{place}") for place in range(25)] * 2
    else:
        seconds = of.pop("seconds", 1e-3)
        moved = traffic(*(of.pop(word, 1) for word in ("l1", "sectors", "dram")))
        metrics = {
            "complete": complete(chip, seconds, clock),
            "counted": {**complete(), **executed(40_000_000, 16.0), **COUNTS},
            "copy": {**chip, **timing(seconds), **NO_WORK, **moved},
            "timed": {**chip, **timing(seconds)},
            "basic": basic(*of.pop("capability", (8, 0))),
        }[kind]
        metrics |= of.pop("metrics", {}) | ({BUSY: of.pop("tensor")} if "tensor" in of else {})
        metrics.pop(of.pop("without", ""), None)
        rest = {word: tuple(of.pop(word)) for word in ("nvtx", "grid") if word in of}
        if "instances" in of:
            rest["instances"] = {name: [tuple(pair) for pair in pairs] for name, pairs in of.pop("instances").items()}
        made = kernel(metrics, name, sections=[section(one) for one in of.pop("sections", ())], **of)
        yield replace(made, **rest)


def write(name: str) -> Callable[[Path], None]:
    told = REPORTS[name]
    session = Session(**{"ncu_version": "2024.1.0.0", "command_line": "ncu -o out ./app", **told.get("session", {})})
    kernels = lambda: [one for launch in told["launches"] for one in launches(**launch)]  # noqa: E731
    return lambda path: write_report(path, ReportData(kernels(), session), overwrite=True)


def write_sixteen(folder: Path) -> None:
    """The reports of sixteen ranks: a slow GPU, twice the work in one kernel, and four ranks that skip a kernel."""
    folder.mkdir()
    write_ranks(folder, 16, Faults(slow={3}, uneven={5}, skipping={7, 8, 9, 11}))


FILES: dict[str, Callable[[Path], None]] = {
    **{f"{name}.ncu-rep": write(name) for name in REPORTS},
    "sixteen-ranks": write_sixteen,
    "ncu": lambda path: fake_ncu(path.parent),
}
