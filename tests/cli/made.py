"""Reports that sessions name: `name.ncu-rep`, with a few launches each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.formats.sectionfile.section import messages
from ncu_roofline.model.work import WARPS
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.analyses.ranks_made import Faults, write_ranks
from tests.factory import A100, H100, NO_WORK, Metrics, complete, flops, kernel, opcodes, timing, traffic
from tests.instruction_factory import accesses, executed
from tests.made_up_code import smooth
from tests.published_report import gpp_report

COPY = {**A100, **timing(1e-3), **NO_WORK, **traffic(1, 1, 1)}
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
COUNTS = accesses(global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 2 * 10**6), shared_st=(10**6, 2 * 10**6))
COMPUTE = {**complete(), **flops("d", fma=3_000_000_000)}
TURING = {
    **A100,
    "device__attribute_display_name": "NVIDIA GeForce GTX 1660 Ti",
    "device__attribute_compute_capability_major": 7,
    "device__attribute_compute_capability_minor": 5,
}


def four() -> Iterator[KernelData]:
    """Four launches of three kernels, six milliseconds in all."""
    yield kernel(complete(seconds=1e-3), "void first(int)", nvtx=("setup",))
    yield kernel(complete(seconds=2e-3), "void second(int)", nvtx=("solve", "inner"))
    yield kernel(complete(seconds=2e-3, clock=0.705e9), "void second(int)", nvtx=("solve",))
    yield kernel(COPY, "void copy(int)")


def half_sampled() -> Iterator[KernelData]:
    """Half of the samples by instruction is lost."""
    whole = smooth()
    kept = {name: values for name, values in whole.instances.items() if "_stalled_" not in name}
    yield replace(whole, instances={**kept, "smsp__pcsamp_sample_count": kept["smsp__pcsamp_sample_count"][::2]})


def several() -> Iterator[KernelData]:
    """A kernel with counts by instruction, one without that takes longest, and two of one that take longer together."""
    shorter, other = ({**smooth().metrics, "gpu__time_duration.sum": time} for time in (6e6, 5e6))
    yield replace(smooth(), name="first", function_name="first", metrics=shorter)
    yield kernel(complete(seconds=1.0), "void uncounted()")
    yield replace(smooth(), name="second", function_name="second", metrics=other)
    yield replace(smooth(), name="second", function_name="second")


def many() -> Iterator[KernelData]:
    """25 kernels, each twice, the later the longer."""
    for _ in range(2):
        yield from (kernel(complete(seconds=1e-3 * (1 + place)), f"k{place}") for place in range(25))


def timed(device: Metrics = A100, **extra: Any) -> KernelData:
    """A launch with times only."""
    return kernel({**device, **timing()}, **extra)


def basic(major: int = 8, minor: int = 0) -> Metrics:
    """What ``ncu --set basic`` collects: times and throughputs, no operations; of a compute capability."""
    capability = {"major": major, "minor": minor}
    chip = {f"device__attribute_compute_capability_{name}": number for name, number in capability.items()}
    return {**A100, **chip, **timing(), "dram__bytes.sum": 100}


def sections(*names: str) -> list[bytes]:
    """Sections that a report was collected with."""
    return [messages()["Section"](Identifier=name.encode(), DisplayName=b"x").SerializeToString() for name in names]


Kernels = Callable[[], Iterable[KernelData]]
REPORTS: dict[str, Kernels] = {
    "four": four,
    "many": many,
    "bare": lambda: [kernel(complete())],
    "a100-80gb": lambda: [kernel({**complete(), "device__attribute_display_name": "NVIDIA A100-PCIE-80GB"})],
    "h100": lambda: [kernel(complete(H100, clock=1.98e9))],
    "no-dram": lambda: [kernel({name: value for name, value in complete().items() if name != "dram__bytes.sum"})],
    "mixed": lambda: [kernel({**complete(), **flops("f", fma=500_000_000)})],
    "copy": lambda: [kernel(COPY, "void copy(int)")],
    "tendencies": lambda: [kernel(complete(), "void compute_tendencies_x(int)"), kernel(complete(), "void sort_keys(int)")],
    # Counts by instruction
    "half-sampled": half_sampled,
    "several": several,
    "no-code": lambda: [smooth(code=False)],
    "no-text": lambda: [smooth(text=False)],
    "no-samples": lambda: [smooth(sampled=False)],
    "longer-first": lambda: [kernel(complete(seconds=1.0), "void longer(int)"), smooth()],
    # Views
    "thrice": lambda: [*[kernel(complete())] * 3, kernel({**COPY, **traffic(10**6, 10**4, 10**6)}, "void copy(int *)")],
    "counted": lambda: [
        kernel({**complete(), **executed(40_000_000, 16.0), **COUNTS}, "void stencil(float *)"),
        kernel(complete(seconds=2e-3), "void bare(float *)"),
    ],
    "phases": lambda: [Made().kernel(), kernel(complete(), "void plain(int *)")],
    "two-phased": lambda: [Made(TWO_PHASES, name=f"void {name}(int *)", seconds=1e-3).kernel() for name in "ab"],
    "bands": lambda: [Made((Group({SM: steps(20, 60)}), Group({DRAM: steps(80, 20)}))).kernel()],
    # States to compare
    "before": lambda: [kernel(complete(seconds=5e-3), "void main_loop(double *)"), kernel(complete(), "void gone()")],
    "after": lambda: [
        kernel(complete(seconds=10e-3, **{"dram__bytes.sum": 500_000_000}), "void main_loop(double *)"),
        kernel(complete(), "void fresh()"),
    ],
    "long-names": lambda: [kernel(complete(), f"void {'long_name_' * 20}()")] * 3,
    "two-grids": lambda: [replace(kernel(complete()), grid=(size, 1, 1)) for size in (8, 16)],
    "one": lambda: [kernel(complete(), "void k()")],
    "two": lambda: [kernel(complete(), "void k()")] * 2,
    "brief-11us": lambda: [kernel(complete(seconds=9e-3), "void long()"), kernel(complete(seconds=11e-6), "void brief()")],
    "brief-13us": lambda: [kernel(complete(seconds=9e-3), "void long()"), kernel(complete(seconds=13e-6), "void brief()")],
    "a": lambda: [kernel(complete(), "void a()")],
    "b": lambda: [kernel(complete(seconds=0.3), "void b()")],
    "1ghz": lambda: [kernel({**COMPUTE, **timing(1e-3, 1e9)})],
    "1.4ghz": lambda: [kernel({**COMPUTE, **timing(1e-3 / 1.4, 1.4e9)})],
    "wide-h100": lambda: [kernel(complete({**H100, "device__attribute_global_memory_bus_width": 10240}))],
    # What is missing
    "a-b": lambda: [kernel(basic(), "void a b(int)"), kernel(complete())],
    "turing": lambda: [timed(TURING)],
    "rtx": lambda: [timed({**TURING, "device__attribute_display_name": "NVIDIA GeForce RTX 2060"})],
    "timed": lambda: [timed()],
    "no-clock": lambda: [kernel(complete(device__attribute_max_gpu_frequency_khz=0))],
    "one-integer": lambda: [kernel(complete(), instances=opcodes(IMAD=1e6)), kernel(complete())],
    **{f"cc{major}{minor}": lambda at=(major, minor): [kernel(basic(*at))]  # type: ignore[misc]
       for major, minor in ((7, 2), (8, 7), (11, 0), (12, 1), (42, 0))},
}  # fmt: skip
_BASIC_SET = lambda: [timed(sections=sections("SpeedOfLight", "LaunchStats", "Occupancy"))]  # noqa: E731
_BUSY = lambda **more: [kernel(complete(**{BUSY: 40.0}), **more)]  # noqa: E731
# With other sessions than an ncu of 2024.1, which wrote to "out".
OTHERS: dict[str, tuple[Kernels, dict[str, str]]] = {
    "basic": (lambda: [kernel(basic())], {"command_line": "ncu --set basic -o out ./app --n 3 'a  b'"}),
    **{f"version-{name}": (lambda: [kernel(basic())], {"ncu_version": version})
       for name, version in {"none": "", "x": "x", "year": "2022", "square": "\u00b2.1"}.items()},
    "escapes": (
        lambda: [kernel({**basic(), "device__attribute_display_name": "\x1b[31mGPU\u202e"})],
        {"ncu_version": "\x1b[2J", "command_line": "ncu --set basic -o out ./app \x1b]0;x\x07 '; rm -rf ~ #'"},
    ),
    "own-options": (
        lambda: [timed()],
        {"command_line": "ncu --set full -f -o mine --clock-control none -c 3 --target-processes all -k regex:a|b "
                         "--cache-control=none mpirun ./app"},
    ),
    "quotes": (lambda: [timed()], {"command_line": 'ncu --set full -o x python t.py --cfg {"lr":0.1}'}),
    "dashes": (lambda: [timed()], {"command_line": "ncu --set full -- ./app -o result.txt -c 3"}),
    "attached": (lambda: [timed()], {"command_line": "ncu --mode attach --hostname 10.0.0.1 -o out"}),
    "no-application": (lambda: [timed()], {"command_line": "ncu -o out "}),
    "filtered": (
        lambda: [timed(name="void f(int)")],
        {"command_line": "ncu -k regex:x --kernel-name-base mangled -s 9 -c 3 --devices 0 -o out ./app"},
    ),
    "replayed": (lambda: [timed()], {"command_line": "", "clock_control": "None", "replay": "application"}),
    "odd-controls": (lambda: [timed()], {"command_line": "", "clock_control": "; rm", "replay": "?"}),
    **{f"busy-{version}": (lambda: [*_BUSY(), kernel(complete(**{BUSY: 0.4}))], {"ncu_version": version})
       for version in ("2020.3.0.0", "2024.1.0.0")},
    **{f"busy-h100-{version}": (lambda: [kernel({**complete(H100), BUSY: 40.0})], {"ncu_version": version})
       for version in ("2019.5.1", "2022.3.0.0", "2024.3.0.0")},
    "opcodes": (lambda: _BUSY(instances={WARPS: [("HMMA.16816.F32", 100)]}), {}),
    **{f"odd-opcodes-{version}": (lambda: _BUSY(instances={WARPS: [("HMMA.9.9.9", 100)]}), {"ncu_version": version})
       for version in ("2022.3.0.0", "2024.1.0.0")},
    **{f"timed-{version}": (lambda: [timed()], {"ncu_version": version})
       for version in ("2020.3.0.0", "2022.3.0.0", "2023.3.0.0")},
    **{f"basic-set-{version}": (_BASIC_SET, {"ncu_version": version}) for version in ("2020.3.0.0", "2022.3.0.0", "x.y")},
    "busy-speed-of-light": (
        lambda: [kernel({**A100, **timing(), BUSY: 30.0}, sections=sections("SpeedOfLight"))],
        {"ncu_version": "2022.3.0.0"},
    ),
}  # fmt: skip
REPORTS.update({name: kernels for name, (kernels, _) in OTHERS.items()})


def write(name: str) -> Callable[[Path], None]:
    """What writes the report."""
    session = Session(**{"ncu_version": "2024.1.0.0", "command_line": "ncu -o out ./app", **OTHERS.get(name, (None, {}))[1]})
    return lambda path: write_report(path, ReportData(list(REPORTS[name]()), session), overwrite=True)


def write_sixteen(folder: Path) -> None:
    """The reports of sixteen ranks: a slow GPU, twice the work in one kernel, and four ranks that skip a kernel."""
    folder.mkdir()
    write_ranks(folder, 16, Faults(slow={3}, uneven={5}, skipping={7, 8, 9, 11}))


def write_step(path: Path) -> None:
    """The published runs of GPP, one report each: nw 1, 2 and 3 as n2, n10 and n100."""
    data, step = gpp_report(), ("n2", "n10", "n100").index(path.stem.removeprefix("gpp-"))
    path.parent.mkdir(exist_ok=True)
    write_report(path, ReportData([data.kernels[step]], data.session))


FILES: dict[str, Callable[[Path], None]] = {
    **{f"{name}.ncu-rep": write(name) for name in REPORTS},
    **{f"sweep/gpp-{step}.ncu-rep": write_step for step in ("n2", "n10", "n100")},
    "sixteen-ranks": write_sixteen,
}
