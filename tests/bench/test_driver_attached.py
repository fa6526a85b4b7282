"""The GPUs of a machine as NVML lists them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ncu_roofline.bench import nvml
from ncu_roofline.bench.nvml import AttachedGpu, NvmlError, gpus
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
    ("gpu", "text"),
    [
        (
            AttachedGpu(0, "NVIDIA H200", "GPU-0", "", True, "exclusive process", 1),
            "GPU 0 NVIDIA H200 (MIG enabled, compute mode exclusive process, 1 other process)",
        ),
        (AttachedGpu(2, "T4", "GPU-0", "", False, "default", 0), "GPU 2 T4 (compute mode default, 0 other processes)"),
        (AttachedGpu(1, None, None, None, None, None, None), "GPU 1"),
    ],
)
def test_what_people_are_told(gpu: AttachedGpu, text: str) -> None:
    assert str(gpu) == text
