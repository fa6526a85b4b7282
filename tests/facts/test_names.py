"""Every counter bound for a chip is a metric of that chip, by NVIDIA's own tools.

`ncu --query-metrics` knows the chips up to Ada and Hopper, the metric library (libnvperf_host) all of them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.chips import Architecture, load_spec
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import libraries

NO_TENSOR_CORES = {"TU116", "TU117"}
NEWER_THAN_THE_LIBRARY = {"lts__t_sectors_aperture_sysmem": (12, 0)}  # in libraries from CUDA 13.5 on
CHIPS = [(architecture, chip) for architecture in load_spec().architectures for chip in architecture.chips]
OLD = [
    pytest.param(one, chip, id=chip, marks=() if chip in ("GA100", "AD102") else pytest.mark.exhaustive)
    for one, chip in CHIPS
    if one.compute_capability <= (9, 0)
]


def bound(architecture: Architecture, chip: str) -> set[str]:
    """All counters, of work, traffic, peaks and clocks."""
    spec, capability = load_spec(), architecture.compute_capability
    names = set()
    for item in (*spec.precisions, *spec.levels):
        for binding in spec.bindings(item, capability):
            names.update(binding.counters.counters(), binding.peak.counters() if binding.peak else ())
            if binding.clock:
                names.add(f"{binding.clock}__cycles_elapsed")
    names = {name for name in names if NEWER_THAN_THE_LIBRARY.get(name) != capability}
    return {name for name in names if not (chip in NO_TENSOR_CORES and "ops_path_tensor" in name)}


@pytest.mark.ncu
@pytest.mark.parametrize(("architecture", "chip"), OLD)
def test_against_ncu(architecture: Architecture, chip: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    ncu = ncu_releases.get("2024.2")
    if ncu is None:
        pytest.skip("no Nsight Compute 2024.2 among the releases")
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [ncu, "--query-metrics", "--chips", chip.lower()]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    known = {line.split()[0] for line in run.stdout.splitlines() if "__" in line}
    if not known:
        pytest.skip(f"this Nsight Compute does not know {chip}")
    assert bound(architecture, chip) - known == set()


def test_against_the_metric_library() -> None:
    if not libraries():
        pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
    known = [(found, bound(architecture, chip)) for architecture, chip in CHIPS if (found := chips.chip(chip))]
    assert len(known) > 10
    for found, wanted in known:
        assert {name for name in wanted if found.verdict(f"{name}.sum") != chips.OK} == set(), found
