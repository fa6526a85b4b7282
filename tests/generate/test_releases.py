"""What may be written for which release: fields, filters, metrics that each chip has then; and its replay passes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.chips.fields import LAST, parse_release
from ncu_roofline.chips.ncu import OPS_PATH_SINCE
from ncu_roofline.chips.tables import counter_of
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.check.chips import Passes, all_targets, targets_of
from ncu_roofline.plugin.check.section_rules import Content, check_files, section_passes
from ncu_roofline.plugin.generate.lowering import BASE, EVERYWHERE, dialect_of
from ncu_roofline.plugin.generate.sections import LIGHT_SET, SET
from tests.generate.made import CAPABILITIES, IDENTIFIERS, architectures, asked, dialect, sampled, section, texts
from tests.nvrules.running import toml
from tests.sectionfile import reading

DATA = toml(Path(__file__).with_name("releases.toml"))
LATER = [(tuple(since), chips, names) for since, chips, names in DATA["later"]]
RELEASES = ["2021.3", "2023.1", "2023.2", "2023.3", "2024.1", "2024.3", "2025.1", "2025.2", "2025.3", "2026.1"]
CORE = tuple(f"Hierarchical{name}RooflineChart" for name in ("Double", "Single", "Half"))
TENSOR, LIGHT = "HierarchicalTensorRooflineChart", "HierarchicalTensorLightRooflineChart"


@pytest.mark.parametrize(
    "version",
    ["2020.3", "2022.3", "2022.4", "2024.2", "2025.4", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in RELEASES)],
)
def test_no_name_is_later_than_the_release(version: str) -> None:
    """But asked for once it is there."""
    release, gmma = parse_release(version), "sm__inst_executed_pipe_tensor_op_gmma"
    assert release
    for architecture in architectures(version):
        names = asked(version)[architecture.compute_capability]
        assert len(names) > 10
        assert (gmma in names) == (architecture.compute_capability == (9, 0) and release >= (2022, 4)), version
        for chip in architecture.chips:
            late = [name for since, chips, name in LATER if release < since and fnmatchcase(chip, chips)]
            assert sorted(name for name in names if any(fnmatchcase(name, one) for one in late)) == [], chip
    assert min(since for since, _, names in LATER if names.startswith("sm__ops_path")) <= OPS_PATH_SINCE


def test_ranges_and_features_of_dialects() -> None:
    all_chips = (*CAPABILITIES, LAST)
    dram = "7.0 7.5 8.0 8.6 8.9 9.0 10.0 10.3 12.0"
    named = {f"{major}.{minor}": (major, minor) for major, minor in CAPABILITIES} | {"LAST": LAST}
    for version, words, expected in DATA["ranges"]:
        chips = words.replace("all", " ".join(named)).replace("dram", dram).split()
        found = dialect(version).ranges(frozenset(named[chip] for chip in chips), all_chips)
        ends = [tuple("" if end is None else str(end) for end in one) for one in found]
        assert " ".join("-".join(pair) for pair in ends) == expected, (version, words)
    # What a release profiles entirely needs no filter.
    assert dialect_of("2022.3").ranges(frozenset(c for c in CAPABILITIES if c <= (9, 0)), all_chips) == EVERYWHERE
    for feature, (before, since) in DATA["features"].items():
        assert [getattr(dialect_of(f"{one}.0.0"), feature) for one in (before, since, "2025.4")] == [False, True, True]
        assert getattr(BASE, feature) is (feature == "ops_path")
    # The committed files write what the oldest loads, and collect what the newest knows.
    assert BASE.numbers == dialect_of("2020.3").numbers
    assert max(BASE.numbers.values()) == 86


def test_no_version() -> None:
    for match, versions in DATA["refused"].items():
        for version in versions:
            with pytest.raises(RooflineError, match=match):
                dialect_of(version)


# Replay passes, as NVIDIA's metric library schedules them.

CHIPS = [pytest.param(one, marks=() if one in ("GA100", "GH100") else pytest.mark.exhaustive) for one in DATA["passes"]]


def passes(sections: list[Content], chip: str) -> Passes:
    """Of sections together."""
    found = section_passes(sections, targets_of([chip])[0])
    return found or pytest.skip("no metric library knows this chip (install nvidia-cuda-cupti, or set NVPERF_HOST_LIB)")


@pytest.mark.parametrize("chip", CHIPS)
def test_passes(chip: str) -> None:
    """The core sections cost one and one of patching, those of tensor cores no more than NVIDIA's own."""
    stock, *sets = DATA["passes"][chip]
    for version in ("base", "2022.3", "2024.2", "2025.4"):
        if dialect(version).exact and not dialect(version).number(targets_of([chip])[0].capability):
            continue
        contents = {name: Content("", parse_document(text)) for name, text in texts(version).items()}
        for names in (CORE, ("InstructionRooflineChart",), ("RooflineOverview",)):
            assert passes([contents[name] for name in names], chip) == Passes(1, 1)
        for name, most in ((TENSOR, stock), (LIGHT, 2)):
            found = passes([contents[name]], chip)
            assert found == Passes(found.hardware, 0)
            assert found.hardware <= most
    for name, expected in zip((SET, LIGHT_SET), sets, strict=True):
        members = [text for one, text in texts("base").items() if name in reading.sets(section("base", one))]
        assert str(passes([Content("", parse_document(text)) for text in members], chip)) == expected


@pytest.mark.ncu
@pytest.mark.parametrize("chip", CHIPS)
def test_stock_sets_cost_what_they_cost(chip: str, ncu_releases: dict[str, Path]) -> None:
    """With our sections beside the stock ones, as `install` puts them."""
    if "2024.2" not in ncu_releases:
        pytest.skip("no Nsight Compute 2024.2")
    stock, ours = ncu_releases["2024.2"].parents[2] / "sections", pack_folder("sections")
    files = [path for folder in (stock, ours) for path in sorted(folder.glob("*.section"))]
    checked = [one.content for one in check_files(files, targets_of([chip])) if one.content]
    chosen = [one for one in checked if "roofline" in reading.sets(one.document.section)]
    alone = passes([one for one in chosen if Path(one.path).parent == stock], chip)
    assert alone.hardware > 1
    assert passes(chosen, chip) == alone


@pytest.mark.parametrize(
    "version", ["2025.4", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("2022.3", "2024.2"))]
)
def test_metrics_exist_where_they_are_asked_for(version: str, tmp_path: Path) -> None:
    made = dialect(version)
    targets = [target for target in all_targets() if made.number(target.capability)]
    for identifier in IDENTIFIERS:
        (tmp_path / f"{identifier}.section").write_text(texts(version)[identifier])
    for checked in check_files(sorted(tmp_path.iterdir()), targets, made.release):
        missing = [found.message for found in checked.findings if found.code == "metric-missing"]
        # TU116 and TU117 have Turing's compute capability without its tensor cores.
        assert [text for text in missing if "TU11" not in text] == []


def test_what_is_sampled_together_fits_into_one_pass() -> None:
    """Pipes and DRAM, by the schedules of the profiler's library, as far as it knows the names."""
    seen = 0
    for version, capability in (("2024.2", (8, 0)), ("2024.2", (9, 0)), ("2025.4", (12, 0))):
        names = sampled(section(version, "RooflinePhases"), capability)["Pipes and DRAM"]
        lines = "".join(f'Metrics {{ Name: "{counter_of(name)}" }}\n' for name in names)
        content = Content("", parse_document(f'Identifier: "One" DisplayName: "One" Metrics {{ {lines} }}'))
        found = section_passes([content], targets_of(["{}.{}".format(*capability)])[0])
        if found is not None:
            seen += 1
            assert found.hardware <= 1, (capability, names)
    if not seen:
        pytest.skip("no metric library (install nvidia-cuda-cupti, or set NVPERF_HOST_LIB)")
