"""Real Nsight Compute loads the sections without a word, knows their metrics, and shows them in a report that carries them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.base.files import pack_folder
from ncu_roofline.formats.sectionfile.charts import evaluate_charts, parse_expression
from ncu_roofline.formats.sectionfile.section import arch_number
from ncu_roofline.formats.sectionfile.text import parse_document
from tests import factory
from tests.generate.made import IDENTIFIERS, architectures, asked, collected, kernel_metrics, sampled, section, texts
from tests.sectionfile import reading
from tests.sectionfile.ncu_details import print_details, read_details

pytestmark = pytest.mark.ncu
A100 = (8, 0)
SAMPLED_CHIPS = {"ga100": (8, 0), "tu102": (7, 5), "ga102": (8, 6), "ad102": (8, 9), "gh100": (9, 0)}


@pytest.fixture(params=["2024.2", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("2020.3", "2022.3", "2024.1"))])
def release(request: pytest.FixtureRequest, ncu_releases: dict[str, Path]) -> str:
    if request.param not in ncu_releases:
        pytest.skip(f"no Nsight Compute {request.param}")
    return str(request.param)


def ncu(binary: Path, home: Path, *words: str | Path) -> str:
    done = subprocess.run([binary, *words], capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, output
    assert not [word for word in ("==ERROR==", "==WARNING==", "libprotobuf") if word in output], output
    return output


@pytest.mark.parametrize("dialect", ["base", pytest.param("own", marks=pytest.mark.exhaustive)])
def test_loads(release: str, dialect: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    binary, version, folder = ncu_releases[release], "base", pack_folder("sections")
    if dialect == "own":
        version, folder = release, tmp_path / "made"
        folder.mkdir()
        for name, text in texts(release).items():
            (folder / f"{name}.section").write_text(text)
    listed = ncu(binary, tmp_path, "--section-folder", folder, "--list-sections")
    assert set(re.findall(r"^(\w+)\s.*section\s*$", listed, re.MULTILINE)) == set(texts(version))
    sets = ncu(binary, tmp_path, "--section-folder", folder, "--list-sets")
    assert set(re.findall(r"^([a-z_]+) ", sets, re.MULTILINE)) == {"ncu_roofline", "ncu_roofline_light"}
    for identifier in texts(version):
        metrics = ncu(binary, tmp_path, "--section-folder", folder, "--section", identifier, "--list-metrics")
        wanted = {"sm__cycles_elapsed.avg.per_second", *collected(section(version, identifier), A100)}
        assert [name for name in wanted if name not in metrics] == []


def test_a_report_that_carries_them(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """With all that they collect and derive, as ncu does while it profiles: charts, and traffic in headers in bytes."""
    made = [section("base", identifier) for identifier in IDENTIFIERS]
    metrics = kernel_metrics({name for one in made for name in collected(one, A100)}, A100)
    metrics["device__attribute_architecture"] = 0x170  # without, ncu shows no units at all
    for name, expression in (pair for one in made for pair in reading.definitions(one).items()):
        value = parse_expression(expression).evaluate(metrics.get)
        metrics |= {name: value} if value is not None else {}
    data = factory.kernel(metrics, sections=[parse_document(text).data for text in texts("base").values()])
    path = factory.report(tmp_path / "made.ncu-rep", data)
    # ncu reads units off the names of metrics, those of derived ones included.
    page = ncu(ncu_releases[release], tmp_path, "--import", path, "--page", "details", "--print-units", "base")
    traffic = {
        label: name for one in made for label, name in reading.rows(one, arch_number(A100)) if label.endswith(" traffic")
    }
    assert len(traffic) == 4
    for label, name in traffic.items():
        printed = set(re.findall(rf"^ +{label} +(\S+) +([\d.,]+)", page, re.MULTILINE))
        assert {unit.replace("second", "s") for unit, _ in printed} == {"byte/s"}, label
        for _, value in printed:
            assert float(value.replace(",", "")) == pytest.approx(float(metrics[name]), rel=1e-3), label
    assert "byte/s]" not in page
    if release < "2024":
        return  # prints no tables of charts
    (launch,) = read_details(print_details(ncu_releases[release], path, tmp_path))
    theirs = {chart.label: chart for chart in launch if chart.roofs}
    ours = [chart for one in made for chart in evaluate_charts(one, metrics, A100)]
    assert len(theirs) == len(ours) == 7
    for chart in ours:
        lines = [*theirs[chart.label].roofs, *theirs[chart.label].points]
        names = {(line.label, frozenset(name for part in line.parts.values() for name, _ in part)) for line in lines}
        assert {(line.label, frozenset(line.metrics)) for line in (*chart.roofs, *chart.points)} <= names


@pytest.mark.exhaustive
def test_names_are_known(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """All chips that the release knows; a filter tells compute capabilities, not chips of one (TU116 has no tensor cores)."""
    binary, checked = ncu_releases[release], 0
    listed = ncu(binary, tmp_path, "--list-chips").upper().replace(",", " ").split()
    queried = {chip: ncu(binary, tmp_path, "--query-metrics", "--chips", chip.lower()) for chip in listed}
    known = {chip: set(re.findall(r"^([a-z]\w*__\w+)\s", output, re.MULTILINE)) for chip, output in queried.items()}
    for architecture in architectures(release):
        names = asked(release)[architecture.compute_capability]
        here = [known[chip] for chip in architecture.chips if chip in known]
        assert sorted(names - set().union(*here)) == [], architecture.chips
        checked += len(here)
        for chip in architecture.chips if release < "2023.3" else ():  # from then on what a chip lacks is optional
            assert sorted(names - known.get(chip, names)) == [], chip
    assert checked == len(listed) > 10


@pytest.mark.parametrize(
    "chip", ["ga100", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in SAMPLED_CHIPS if one != "ga100")]
)
def test_samples_are_known(chip: str, release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    if release < "2024":
        pytest.skip("does not sample")
    words = ("--query-metrics-collection", "pmsampling", "--query-metrics", "--query-metrics-mode", "base", "--chips", chip)
    listed = ncu(ncu_releases[release], tmp_path, *words)
    known = {line.split()[0] for line in listed.splitlines() if "__" in line.partition(" ")[0]}
    assert len(known) > 500
    wanted = [name for names in sampled(section(release, "RooflinePhases"), SAMPLED_CHIPS[chip]).values() for name in names]
    counters = [re.sub(r"\.(avg|sum)(\..*)?$", "", name.removeprefix("pmsampling:")) for name in wanted]
    assert [name for name in counters if name not in known] == []
