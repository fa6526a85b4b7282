"""Real Nsight Compute loads the committed sections without a word, and shows them in a report that carries them."""

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
from ncu_roofline.plugin.generate.lowering import dialect_of
from ncu_roofline.plugin.generate.sections import render_sections
from tests import factory
from tests.generate.made import collected, kernel_metrics, section, texts
from tests.generate.test_sections import IDENTIFIERS
from tests.sectionfile import reading
from tests.sectionfile.ncu_details import PrintedLine, print_details, read_details

pytestmark = [pytest.mark.ncu, pytest.mark.sampled("2024.2", "2024.2-committed")]
RELEASES = ("2020.3", "2022.3", "2024.1", "2024.2")


@pytest.fixture(params=RELEASES)
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


def _written(release: str, dialect: str, folder: Path) -> Path:
    """The committed sections, or those made for the release."""
    if dialect == "committed":
        return pack_folder("sections")
    for name, text in render_sections(dialect_of(release)).items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("dialect", ["committed", "own"])
def test_loads(release: str, dialect: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    binary, home = ncu_releases[release], tmp_path / "home"
    home.mkdir()
    made = tmp_path / "made"
    made.mkdir()
    folder = _written(release, dialect, made)
    listed = ncu(binary, home, "--section-folder", folder, "--list-sections")
    identifiers = texts("base" if dialect == "committed" else release)
    assert set(re.findall(r"^(\w+)\s.*section\s*$", listed, re.MULTILINE)) == set(identifiers)
    sets = ncu(binary, home, "--section-folder", folder, "--list-sets")
    assert set(re.findall(r"^([a-z_]+) ", sets, re.MULTILINE)) == {"ncu_roofline", "ncu_roofline_light"}
    for identifier in identifiers:
        metrics = ncu(binary, home, "--section-folder", folder, "--section", identifier, "--list-metrics")
        assert "sm__cycles_elapsed.avg.per_second" in metrics
        for name in collected(section("base" if dialect == "committed" else release, identifier), (8, 0)):
            assert name in metrics, name


@pytest.mark.exhaustive
def test_beside_the_stock_sections(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    binary = ncu_releases[release]
    stock = binary.parents[2] / "sections"
    alone = ncu(binary, tmp_path, "--section-folder", stock, "--list-sets")
    both = ncu(binary, tmp_path, "--section-folder", stock, "--section-folder", pack_folder("sections"), "--list-sets")
    theirs, all_sets = _sets(alone), _sets(both)
    assert {"full", "Identifier"} < set(theirs)
    assert {name: text for name, text in all_sets.items() if not name.startswith("ncu_roofline")} == theirs
    assert set(all_sets) - set(theirs) == {"ncu_roofline", "ncu_roofline_light"}


def _sets(listed: str) -> dict[str, str]:
    """Set -> its sections, whether it is enabled and how many metrics it has, without the wrapping of the columns."""
    rows = re.findall(r"^(\w+) +(.*(?:\n .*)*)", listed, re.MULTILINE)
    return {name: "".join(text.split()) for name, text in rows}


@pytest.mark.parametrize("version", ["2024.1", "2024.2"])
def test_shown_in_a_report(version: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    if version not in ncu_releases:
        pytest.skip(f"no Nsight Compute {version}")
    capability = (8, 0)
    metrics: factory.Metrics = {}
    for identifier in IDENTIFIERS:
        made = section("base", identifier)
        metrics |= kernel_metrics(collected(made, capability), capability)
    for identifier in IDENTIFIERS:  # ncu computes derived metrics while it profiles
        for name, expression in reading.definitions(section("base", identifier)).items():
            value = parse_expression(expression).evaluate(metrics.get)
            metrics |= {name: value} if value is not None else {}
    sections = [parse_document(text).data for text in texts("base").values()]
    report = factory.report(tmp_path / "made.ncu-rep", factory.kernel(metrics, sections=sections))
    (printed,) = read_details(print_details(ncu_releases[version], report, tmp_path))
    theirs = {chart.label: chart for chart in printed if chart.roofs}
    ours = [chart for name in IDENTIFIERS for chart in evaluate_charts(section("base", name), metrics, capability)]
    assert len(theirs) == len(ours) == 6
    for chart in ours:
        lines = [*theirs[chart.label].roofs, *theirs[chart.label].points]
        shown = {(line.label, _names(line)) for line in lines}
        for one in (*chart.roofs, *chart.points):
            assert (one.label, frozenset(one.metrics)) in shown, one


def test_traffic_in_headers_is_in_bytes(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """ncu reads units off the names of metrics, those of derived ones included."""
    capability = (8, 0)
    made = [section("base", identifier) for identifier in IDENTIFIERS]
    metrics = kernel_metrics({name for one in made for name in collected(one, capability)}, capability)
    metrics["device__attribute_architecture"] = 0x170  # without, ncu shows no units at all
    for name, expression in (pair for one in made for pair in reading.definitions(one).items()):
        value = parse_expression(expression).evaluate(metrics.get)
        metrics |= {name: value} if value is not None else {}
    sections = [parse_document(text).data for text in texts("base").values()]
    report = factory.report(tmp_path / "made.ncu-rep", factory.kernel(metrics, sections=sections))
    page = ncu(ncu_releases[release], tmp_path, "--import", report, "--page", "details", "--print-units", "base")
    shown = {
        label: name for one in made for label, name in reading.rows(one, arch_number(capability)) if label.endswith(" traffic")
    }
    assert len(shown) == 4
    for label, name in shown.items():
        rows = set(re.findall(rf"^ +{label} +(\S+) +([\d.,]+)", page, re.MULTILINE))
        assert {unit.replace("second", "s") for unit, _ in rows} == {"byte/s"}, label
        for _, value in rows:
            assert float(value.replace(",", "")) == pytest.approx(float(metrics[name]), rel=1e-3), label
    assert "byte/s]" not in page


def _names(line: PrintedLine) -> frozenset[str]:
    return frozenset(name for part in line.parts.values() for name, _ in part)
