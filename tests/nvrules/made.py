"""Reports of a few kernels, for what is said of all of a report together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ncu_roofline.formats.report import KernelData
from tests.factory import Metrics, complete, kernel, report
from tests.nvrules.running import Case, data_of, full, toml

FEW_LANES: Metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}
"""Makes advice without a number, "Lanes without work", of a kernel that nothing limits."""


def slow(seconds: float = 1e-3, share: float = 0.5) -> Metrics:
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds)}


def launch(name: str, metrics: Metrics) -> KernelData:
    return kernel(metrics, f"void {name}(int)")


def _write(cases: list[Case], path: Path, ncu_version: str = "2024.1.0.0") -> None:
    launches = []
    for case in cases:
        made = data_of(case)
        if "name" in case:
            made = replace(made, name=f"void {case['name']}(int)", function_name=case["name"], nvtx=tuple(case.get("nvtx", ())))
        launches += [made] * case.get("times", 1)
    report(path, *launches, ncu_version=ncu_version)


_DATA = toml(Path(__file__).with_name("reports.toml"))
FILES: dict[str, Callable[[Path], None]] = {
    name: partial(_write, [full(case, _DATA["names"]) for case in cases]) for name, cases in _DATA["cases"].items()
}
# Tensor cores were busy, by what nobody counted; of releases that can count it and of others.
for _version in ("2020.3.0.0", "2022.3.0.0", "2023.2.0.0", "2023.3.0.0", "2025.2.0.0", "", "odd"):
    for _device in ("A100", "H100"):
        _case = full({"on": _device, "only": ["device__", "time_d", "cycles"], "metrics": {"busy": 50.0}}, _DATA["names"])
        FILES[f"busy-{_version}-{_device}.ncu-rep"] = partial(_write, [_case], ncu_version=_version)
