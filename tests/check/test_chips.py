"""The metric library: names, and the replay passes that are known of it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.check import chips
from ncu_roofline.plugin.check.chips import OK, UNKNOWN, Chip, Passes, chip, passes, targets_of
from ncu_roofline.plugin.check.section_rules import Content, check_files, metrics_to_collect, section_passes
from tests.nvrules.running import toml

SASS = [f"smsp__sass_thread_inst_executed_op_{kind}{op}_pred_on.sum" for kind in "dfh" for op in ("add", "mul", "fma")]
CORE = [*SASS, "gpu__time_duration.sum", "sm__cycles_elapsed.max", "smsp__sass_data_bytes_mem_shared.sum"]
CORE += ["dram__bytes.sum", "lts__t_bytes.sum", "l1tex__t_bytes.sum"]
PEAKS = [f"sm__sass_thread_inst_executed_op_{kind}fma_pred_on.sum.peak_sustained" for kind in "dfh"]
PEAKS += ["dram__bytes.sum.peak_sustained", "lts__lts2xbar_cycles_active.sum.peak_sustained"]
CLOCKS = [f"{unit}__cycles_elapsed.avg.per_second" for unit in ("sm", "l1tex", "lts")]
NAMES = {"{peaks}": PEAKS, "{clocks}": CLOCKS, "{sass}": SASS}
DATA = toml(Path(__file__).with_name("chips.toml"))


def _known(name: str) -> Chip:
    return chip(name) or pytest.skip(f"no metric library here knows {name}: {chips.HOW_TO_GET} (or set {chips.VARIABLE})")


def _in_full(words: list[str]) -> list[str]:
    return [metric for word in words for metric in NAMES.get(word, [word])]


@pytest.mark.parametrize("name", DATA["chips"])
def test_passes_of_lists(name: str) -> None:
    _known(name)
    for case, (beside, exceptions) in DATA["lists"].items():
        assert passes(name, [*CORE, *_in_full(beside)]) == Passes(exceptions.get(name, 1), 1), case
    for other, words, hardware, sass in DATA["parts"]:
        assert other != name or passes(name, _in_full(words)) == Passes(hardware, sass), words


@pytest.mark.ncu
@pytest.mark.parametrize(
    "name", ["GA102", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in DATA["stock"] if one != "GA102")]
)
def test_passes_of_stock_sections(name: str, ncu_releases: dict[str, Path]) -> None:
    if "2024.2" not in ncu_releases:
        pytest.skip("no Nsight Compute 2024.2")
    _known(name)
    (target,) = targets_of([name])
    folder = ncu_releases["2024.2"].parents[2] / "sections"
    names = [f"SpeedOfLight_Hierarchical{one}RooflineChart" for one in ("Double", "Single", "Half", "Tensor")]
    files = check_files([folder / f"{one}.section" for one in names], (), None)
    contents = [one.content for one in files if one.content is not None]
    core, tensor, together = DATA["stock"][name]
    assert [str(section_passes([one], target)) for one in contents] == [core, core, core, tensor]
    assert str(section_passes(contents, target)) == together


def test_verdict() -> None:
    for name, known in DATA["verdicts"].items():
        found = _known(name)
        assert {metric: found.verdict(metric) for metric in known} == {one: getattr(chips, word) for one, word in known.items()}
    _known("GV11B")
    assert passes("GV11B", CORE) is None  # which no library schedules


@pytest.mark.usefixtures("no_library")
def test_without_library_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor with a file that is none."""
    assert (chips.libraries(), chip("GH100"), passes("GH100", CORE)) == ((), None, None)
    text = tmp_path / "libnvperf_host.so"
    text.write_text("no library")
    monkeypatch.setenv(chips.VARIABLE, os.pathsep.join((str(text), str(tmp_path / "absent"), "")))
    chips.libraries.cache_clear()
    assert chips.find_libraries() == [str(text), str(tmp_path / "absent")]
    assert chips.libraries() == ()


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


@pytest.mark.usefixtures("no_library")
def test_libraries_that_schedule_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def library(path: str) -> SimpleNamespace:
        return SimpleNamespace(path=path, has=lambda function: function == chips.SCHEDULING and path != "old")

    monkeypatch.setenv(chips.VARIABLE, os.pathsep.join(("old", "first", "second")))
    monkeypatch.setattr(chips, "Library", library)
    assert [one.path for one in chips.libraries()] == ["first", "second", "old"]


@pytest.mark.ncu
@pytest.mark.usefixtures("no_library")
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


def content_of(text: str) -> Content:
    return Content("", parse_document('Identifier: "A" DisplayName: "a"\n' + text))


def test_metrics_of_a_broken_definition_are_left_out() -> None:
    text = 'Metrics { Metrics { Name: "derived__rl_x" } Metrics { Name: "a.sum" } }'
    text += ' MetricDefinitions { MetricDefinitions { Name: "derived__rl_x" Expression: "b.sum *" } }'
    (target,) = targets_of(["GH100"])
    assert metrics_to_collect(content_of(text), target) == ("a.sum",)
    assert metrics_to_collect(content_of(text.replace("b.sum *", "b.sum * c.sum")), target) == ("b.sum", "c.sum", "a.sum")


def test_what_a_section_collects_on_which_chip() -> None:
    """Hidden items collect nothing; a metric inherits what it leaves open; of definitions the first that holds counts."""
    hidden = 'Body {{ Items {{ Filter {{ MaxArch: 75 }} Table {{ Columns: 1 Metrics {{ Name: "m" Filter {} }} }} }} }}'
    content = content_of(hidden.format("{ MinArch: 70 MaxArch: 90 }"))
    assert [arch for arch in (62, 70, 75, 80, 90, 100) if content.collected_on(arch)] == [70, 75]
    options = 'Options { Name: "old" Filter { MaxArch: 75 } } Options { Name: "new" Filter { MinArch: 89 } }'
    table = f'Table {{ Columns: 1 Metrics {{ Name: "m" {options} }} }}'
    content = content_of(f"Filter {{ MinArch: 72 }} Body {{ Items {{ Filter {{ MaxArch: 90 }} {table} }} }}")
    expected = {70: "", 72: "old", 75: "old", 80: "m", 89: "new", 90: "new", 100: ""}
    assert {arch: "".join(content.collected_on(arch)) for arch in expected} == expected
    first = 'MetricDefinitions { Name: "x" Expression: "a * 1" Filter { MinArch: 80 } }'
    rest = "".join(f'MetricDefinitions {{ Name: "x" Expression: "a * {number}" }}' for number in (2, 3))
    content = content_of(f"MetricDefinitions {{ {first} {rest} }}")
    assert [content.defined_on(arch)["x"].expression for arch in (75, 80)] == ["a * 2", "a * 1"]


def test_charts_in_containers_keep_their_places() -> None:
    dot = "AchievedValues {{ AchievedWork {{ Constant: 1 }} AchievedTraffic {{ Constant: 1 }} }}"
    one, two, three = (f'RooflineChart {{{{ Label: "{{}}" {dot} }}}}'.format(name) for name in ("one", "two", "three"))
    container = f"HorizontalContainer {{ Items {{\n{two} }} Items {{ Filter {{ MinArch: 80 }}\n{three} }} }}"
    content = content_of(f"Body {{ Items {{ {container}\n{one} }} }}")
    places = [(chart.text("Label"), chart.line) for chart, _, _ in content.charts_on(80)]
    assert places == [("one", 5), ("two", 3), ("three", 4)]
    assert [chart.text("Label") for chart, _, _ in content.charts_on(75)] == ["one", "two"]
