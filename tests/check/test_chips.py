"""The metric library: names, and the replay passes that are known of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import BASE, FOREIGN, OK, SUFFIX, UNKNOWN, Passes, chip, passes, targets_of
from ncu_roofline.plugin.check.section_rules import Content, check_files, metrics_to_collect, section_passes

CHIPS = ["GV100", "TU102", "TU116", "GA100", "GA102", "GA10B", "AD102", "GH100", "GB100", "GB110", "GB10B", "GB202", "GB20B"]
SASS = [f"smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum" for kind in "dfh" for op in ("add", "mul", "fma")]
CORE = [
    *("gpu__time_duration.sum", "sm__cycles_elapsed.max", "dram__bytes.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"),
    "smsp__sass_data_bytes_mem_shared.sum",
    *SASS,
]
PEAKS = [f"sm__sass_thread_inst_executed_op_{kind}fma_pred_on.sum.peak_sustained" for kind in "dfh"]
PEAKS += ["dram__bytes.sum.peak_sustained", "lts__lts2xbar_cycles_active.sum.peak_sustained"]
CLOCKS = [f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "l1tex", "lts")]

# Hardware passes beside the one of patching, as the library scheduled them when the lists were made.
HARDWARE = {
    "core": (CORE, {}),
    "peaks": ([*CORE, *PEAKS], {}),
    "clocks": ([*CORE, *PEAKS, *CLOCKS], {}),
    "dram clock": ([*CORE, *CLOCKS, "dram__cycles_elapsed.avg.per_second"], {"GV100": 2, "TU102": 2, "TU116": 2}),
    "tensor": ([*CORE, "sm__inst_executed_pipe_tensor.sum"], {}),
    "shared": (
        [*CORE, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"],
        {"GV100": 2, "TU102": 2, "TU116": 2, "GA100": 2},
    ),
    "l1 fills": (
        [*CORE, "l1tex__m_xbar2l1tex_read_bytes.sum"],
        {"GV100": 5, **dict.fromkeys(("TU102", "TU116", "GA100", "GH100", "GB100", "GB110", "GB10B"), 2)},
    ),
}
# Stock hierarchical sections of 2024.2, chip: (FP64 = FP32 = FP16, tensor, all four together).
STOCK = {
    "TU102": ("3 (2+1)", "2 (2+0)", "3 (2+1)"),
    "GA100": ("3 (2+1)", "8 (8+0)", "9 (8+1)"),
    "GA102": ("2 (1+1)", "8 (8+0)", "9 (8+1)"),
    "GA10B": ("2 (1+1)", "8 (8+0)", "9 (8+1)"),
    "AD102": ("2 (1+1)", "9 (9+0)", "10 (9+1)"),
    "GH100": ("2 (1+1)", "7 (7+0)", "8 (7+1)"),
}


def _require(name: str) -> None:
    if chip(name) is None:
        pytest.skip(f"no metric library here knows {name}")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("case", HARDWARE)
def test_passes_of_lists(case: str, name: str) -> None:
    _require(name)
    metrics, exceptions = HARDWARE[case]
    assert passes(name, metrics) == Passes(exceptions.get(name, 1), 1)


@pytest.mark.usefixtures("library")
def test_passes_of_parts() -> None:
    _require("GH100")
    _require("GA100")
    assert passes("GH100", SASS) == Passes(0, 1)
    assert passes("GH100", ["gpu__time_duration.sum"]) == Passes(1, 0)
    # Peaks are constants: beside anything else they cost nothing (alone they cost a pass in some releases of the library).
    assert passes("GA100", [*PEAKS, "gpu__time_duration.sum"]) == Passes(1, 0)
    assert passes("GH100", []) == Passes(0, 0)
    assert passes("GH100", ["nonsense", "launch__grid_size", *SASS]) == Passes(0, 1)


@pytest.mark.sampled("GA102")
@pytest.mark.ncu
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", STOCK)
def test_passes_of_stock_sections(name: str, ncu_releases: dict[str, Path]) -> None:
    if "2024.2" not in ncu_releases:
        pytest.skip("no Nsight Compute 2024.2")
    _require(name)
    (target,) = targets_of([name])
    folder = ncu_releases["2024.2"].parents[2] / "sections"
    contents = [
        _content(folder / f"SpeedOfLight_Hierarchical{one}RooflineChart.section")
        for one in ("Double", "Single", "Half", "Tensor")
    ]
    core, tensor, together = STOCK[name]
    assert [str(section_passes([one], target)) for one in contents] == [core, core, core, tensor]
    assert str(section_passes(contents, target)) == together


def _content(path: Path) -> Content:
    content = check_files([path], (), None)[0].content
    assert content is not None
    return content


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("metric", "name", "verdict"),
    [
        ("dram__bytes.sum", "GA100", OK),
        ("dram__bytes.sum", "GA10B", UNKNOWN),
        ("dram__bytes.sum.peak_sustained", "GA100", OK),
        ("dram__bytes", "GA100", BASE),
        ("dram__bytes.sum.nonsense", "GA100", SUFFIX),
        ("nonsense__bytes.sum", "GA100", UNKNOWN),
        ("", "GA100", UNKNOWN),
        ("breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "GA100", OK),
        ("regex:^dram__bytes", "GA100", OK),
        ("regex:^dram__bytes", "GA10B", UNKNOWN),
        ("regex:(", "GA100", FOREIGN),
        ("group:memory__chart", "GA100", FOREIGN),
        ("launch__grid_size", "GA100", FOREIGN),
        ("derived__rl_x", "GA100", FOREIGN),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on", "GA100", FOREIGN),
        ("sm__ops_path_tensor_src_fp64.sum", "GA100", OK),
        ("sm__ops_path_tensor_src_fp64.sum", "TU102", UNKNOWN),
        ("sm__ops_path_tensor_op_hgmma_src_fp16.sum", "GH100", OK),
    ],
)
def test_verdict(metric: str, name: str, verdict: str) -> None:
    _require(name)
    found = chip(name)
    assert found is not None
    assert found.verdict(metric) == verdict


@pytest.mark.usefixtures("library")
def test_a_chip_that_no_library_schedules_has_unknown_passes() -> None:
    _require("GV11B")
    assert passes("GV11B", CORE) is None


@pytest.mark.usefixtures("no_library")
def test_without_library_nothing_is_known() -> None:
    assert chips.libraries() == ()
    assert chip("GH100") is None
    assert passes("GH100", CORE) is None


def test_files_that_are_no_library_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "libnvperf_host.so"
    text.write_text("no library")
    monkeypatch.setenv(chips.VARIABLE, os.pathsep.join((str(text), str(tmp_path / "absent"), "")))
    chips.libraries.cache_clear()
    assert chips.find_libraries() == [str(text), str(tmp_path / "absent")]
    assert chips.libraries() == ()
    chips.libraries.cache_clear()


def test_where_libraries_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = ["site/nvidia/cu13/lib", "site/nvidia/cuda_cupti/lib", "cuda[1]/extras/CUPTI/lib64", "nsight/target/linux-x64"]
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "libnvperf_host.so").touch()
    ncu = tmp_path / "nsight" / "ncu"
    ncu.touch(0o755)
    monkeypatch.delenv(chips.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(ncu.parent))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda[1]"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = [os.path.relpath(os.path.dirname(path), tmp_path) for path in chips.find_libraries() if str(tmp_path) in path]
    assert found == places


def test_libraries_that_schedule_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        def __init__(self, path: str) -> None:
            self.path = path

        def has(self, function: str) -> bool:
            return function == chips.SCHEDULING and self.path != "old"

    monkeypatch.setenv(chips.VARIABLE, os.pathsep.join(("old", "first", "second")))
    monkeypatch.setattr(chips, "Library", Fake)
    chips.libraries.cache_clear()
    assert [library.path for library in chips.libraries()] == ["first", "second", "old"]
    chips.libraries.cache_clear()
    chips.chip.cache_clear()


@pytest.mark.ncu
def test_libraries_of_old_releases(ncu_releases: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """2020.3 has other functions altogether; 2022.3 knows names, but does not schedule the way that is used here."""
    for release in ("2020.3", "2022.3"):
        path = ncu_releases.get(release, Path()).parent / "libnvperf_host.so"
        if not path.is_file():
            pytest.skip(f"no Nsight Compute {release}")
        monkeypatch.setenv(chips.VARIABLE, str(path))
        chips.libraries.cache_clear()
        chip.cache_clear()
        found = chip("GA100")
        assert (found is None) == (release == "2020.3")
        if found is not None:
            assert (found.verdict("dram__bytes.sum"), found.verdict("nonsense.sum")) == (OK, UNKNOWN)
            assert found.passes(CORE) is None
    chips.libraries.cache_clear()
    chip.cache_clear()


def test_metrics_of_a_broken_definition_are_left_out() -> None:
    text = 'Identifier: "A" DisplayName: "a" Metrics { Metrics { Name: "derived__rl_x" } Metrics { Name: "a.sum" } }'
    text += ' MetricDefinitions { MetricDefinitions { Name: "derived__rl_x" Expression: "b.sum *" } }'
    content = Content("", parse_document(text))
    assert metrics_to_collect(content, targets_of(["GH100"])[0]) == ("a.sum",)
    content = Content("", parse_document(text.replace("b.sum *", "b.sum * c.sum")))
    assert metrics_to_collect(content, targets_of(["GH100"])[0]) == ("b.sum", "c.sum", "a.sum")
