"""The GPUs of a machine as NVML lists them, and the processors next to them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ncu_roofline.bench import nvml
from ncu_roofline.bench.attached import AttachedGpu, gpus, local_cpus
from ncu_roofline.bench.nvml import NvmlError
from tests.bench.fakes import fake_nvml


def test_two_gpus_and_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(index: int) -> str:
        if index == 1:
            raise NvmlError("nvmlDeviceGetHandleByIndex: GPU is lost")
        return f"gpu {index}"

    answers = {
        "nvmlDeviceGetCount": 3,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetName": lambda gpu: f"NVIDIA {gpu}",
        "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu[-1]}",
        "nvmlDeviceGetPciInfo": lambda gpu: SimpleNamespace(busId=f"00000000:{gpu[-1]}B:00.0".encode()),
        "nvmlDeviceGetMigMode": lambda gpu: (int(gpu == "gpu 2"), 0),
        "nvmlDeviceGetComputeMode": 3,
        "nvmlDeviceGetComputeRunningProcesses": [1, 2],
    }
    monkeypatch.setattr(nvml, "load", lambda: fake_nvml(**answers))
    assert gpus() == [
        AttachedGpu(0, "NVIDIA gpu 0", "GPU-0", "00000000:0B:00.0", False, "exclusive process", 2),
        AttachedGpu(2, "NVIDIA gpu 2", "GPU-2", "00000000:2B:00.0", True, "exclusive process", 2),
    ]


def test_what_a_gpu_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = fake_nvml(nvmlDeviceGetCount=1, nvmlDeviceGetHandleByIndex=7)
    for name in ("MigMode", "ComputeMode", "ComputeRunningProcesses"):
        silent.answers[f"nvmlDeviceGet{name}"] = NvmlError("Not Supported")
    monkeypatch.setattr(nvml, "load", lambda: silent)
    assert gpus() == [AttachedGpu(0, None, None, None, None, None, None)]


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: fake_nvml(nvmlDeviceGetCount=NvmlError("nvmlInit: Driver Not Loaded")))
    with pytest.raises(NvmlError, match="Driver Not Loaded"):
        gpus()


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3\n", {0, 1, 2, 3}),
        ("0-1,16-17\n", {0, 1, 16, 17}),
        ("5,7\n", {5, 7}),
        ("\n", set()),
        ("0-3,?", set()),
        ("\u00b2", set()),
    ],
)
def test_local_cpus(tmp_path: Path, text: str, cpus: set[int]) -> None:
    folder = tmp_path / "0000:3b:00.0"
    folder.mkdir()
    (folder / "local_cpulist").write_text(text, encoding="utf-8")
    assert local_cpus("00000000:3B:00.0", tmp_path) == cpus
    assert local_cpus("0000:3b:00.0", tmp_path) == cpus
    assert local_cpus("0000:3C:00.0", tmp_path) == set()


def test_a_long_domain(tmp_path: Path) -> None:
    (tmp_path / "10000:e1:00.0").mkdir()
    (tmp_path / "10000:e1:00.0" / "local_cpulist").write_text("9")
    assert local_cpus("00010000:E1:00.0", tmp_path) == {9}


@pytest.mark.parametrize("bus_id", ["", "..", "/etc", "0000:3B:00", "0000:3B:00.0/../x"])
def test_what_is_no_bus_id(tmp_path: Path, bus_id: str) -> None:
    assert local_cpus(bus_id, tmp_path) == set()
