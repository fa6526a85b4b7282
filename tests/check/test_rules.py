"""Every rule on a small file that breaks it, and on files that break none."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import ncu_roofline.plugin.check
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile.section import release_of
from ncu_roofline.plugin.check.chips import Target, all_targets, targets_of
from ncu_roofline.plugin.check.section_rules import Finding, check_files

FOLDER = Path(__file__).parent / "fixtures"


def check_section(source: Path | str, targets: Sequence[Target] | None = None, release: Release | None = None) -> list[Finding]:
    """The findings on one file, or on a text."""
    if isinstance(source, Path):
        return list(check_files([source], targets, release)[0].findings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.section"
        path.write_bytes(source.encode("utf-8", "surrogateescape"))
        return list(check_files([path], targets, release)[0].findings)


# code -> (severity, line, column, a part of the message, release to check for); the file has the code's name.
EXPECTED = {
    "syntax": ("error", 5, 11, "missing ending quote", ""),
    "encoding": ("error", 1, 1, "byte order mark", ""),
    "unknown-field": ("error", 6, 5, "Metrics.Metrics.Lable; Label is meant?", ""),
    "required-field": ("error", 5, 5, "Body.Items.Table lacks the required Columns", ""),
    "release": ("error", 4, 3, "2022.3 drops the whole file because of Body.SetDefault", "2022.3"),
    "no-release": ("error", 7, 7, "no release from 2020.3 to 2025.4", ""),
    "empty-identifier": ("error", 1, 1, "empty", ""),
    "stock-identifier": ("warning", 1, 1, "SpeedOfLight_Mine", ""),
    "expression": ("error", 9, 5, "operand missing", ""),
    "expression-release": ("warning", 9, 5, "no value before 2024.1", ""),
    "derived-of-derived": ("warning", 13, 5, "derived__rl_y is derived from derived__rl_x", ""),
    "uncollected-input": ("error", 9, 5, "needs lts__t_sectors.sum, which the section does not collect on every chip", ""),
    "undefined-derived": ("warning", 9, 56, "derived__rl_peak is not defined", ""),
    "unknown-metric": ("error", 4, 3, "no chip has a metric dram__byte.sum; dram__bytes.sum is meant?", ""),
    "metric-missing": ("warning", 6, 5, "dram__bytes does not exist on GA10B, GB10B, GB20B", ""),
    "metric-suffix": ("error", 4, 3, "dram__bytes lacks a rollup", ""),
    "no-chart": ("warning", 6, 5, "is shown on compute capability 8.6, 8.7, 8.9,", ""),
    "no-roof": ("warning", 5, 5, "no roof on compute capability 7.0, 7.2 and 7.5", ""),
    "no-dot": ("warning", 5, 5, "no dot on compute capability 7.0, 7.2 and 7.5", ""),
    "constant-roofs": ("warning", 5, 5, "on every chip checked", ""),
    "counter-family": ("warning", 13, 9, "lts__t_bytes against a roof of lts__lts2xbar_cycles_active", ""),
}
PAIRED = {"duplicate-identifier", "definition-conflict"}
NEEDS_LIBRARY = {"unknown-metric", "metric-missing", "metric-suffix"}
COMPANIONS = {"no-release": {"release"}}


@pytest.mark.parametrize("code", EXPECTED)
def test_rule_finds_its_place_and_nothing_else(code: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("fake_library" if code in NEEDS_LIBRARY else "no_library")
    severity, line, column, text, release = EXPECTED[code]
    path = FOLDER / f"{code}.section"
    findings = check_section(path, release=release_of(release) if release else None)
    (found,) = [one for one in findings if one.code == code]
    assert (found.severity, found.line, found.column, found.path) == (severity, line, column, str(path))
    assert text in found.message
    assert {one.code for one in findings} - COMPANIONS.get(code, set()) == {code}


def test_every_code_has_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.section")} == set(EXPECTED)
    sources = [*Path(ncu_roofline.plugin.check.__file__).parent.glob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert set(re.findall(r'"([a-z]+-[a-z-]+)"', text)) - {"text-format"} <= {*EXPECTED, *PAIRED}


PLAIN = 'Identifier: "{name}"\nDisplayName: "plain"\n'
DEFINED = (
    'Metrics {{ Metrics {{ Name: "a.sum" }} }}\nMetricDefinitions {{\n'
    '  MetricDefinitions {{ Name: "derived__rl_x" Expression: "{expression}" }}\n}}\n'
)


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _all(paths: list[Path]) -> list[Finding]:
    return [found for one in check_files(paths) for found in one.findings]


@pytest.mark.usefixtures("no_library")
def test_duplicate_identifier(tmp_path: Path) -> None:
    paths = [_write(tmp_path, name, "# comment\n" + PLAIN.format(name="Same")) for name in ("a.section", "b.section")]
    (found,) = _all(paths)
    assert (found.code, found.severity, found.path, found.line, found.column) == (
        *("duplicate-identifier", "error", str(paths[1]), 2, 1),
    )
    assert str(paths[0]) in found.message


@pytest.mark.usefixtures("no_library")
def test_definitions_that_differ(tmp_path: Path) -> None:
    texts = [
        PLAIN.format(name=name) + DEFINED.format(expression=text) for name, text in (("A", "a.sum * 2"), ("B", "a.sum * 4"))
    ]
    paths = [_write(tmp_path, f"{number}.section", text) for number, text in enumerate(texts)]
    (found,) = _all(paths)
    assert (found.code, found.severity, found.path, found.line, found.column) == (
        *("definition-conflict", "warning", str(paths[1]), 5, 3),
    )
    assert not _all([paths[0], _write(tmp_path, "c.section", texts[0].replace('"A"', '"C"'))])


@pytest.mark.usefixtures("no_library")
def test_metrics_are_not_judged_without_a_library() -> None:
    assert not check_section(FOLDER / "unknown-metric.section")


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(
    ("release", "severity"),
    [("2020.3", "error"), ("2023.3", "error"), ("2024.1", "warning"), ("2025.1", ""), ("2025.4", ""), ("", "warning")],
)
def test_expression_by_release(release: str, severity: str) -> None:
    findings = check_section(FOLDER / "expression-release.section", release=release_of(release) if release else None)
    assert [one.severity for one in findings] == ([severity] if severity else [])


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(
    ("expression", "codes"),
    [
        ("a.sum * 2", []),
        ("2.5 * a.sum", []),
        ("a.sum / a.sum", []),
        ("device__attribute_x * a.sum", []),
        ("a.sum", ["expression-release"]),
        ("a.sum*2", ["expression-release"]),
        ("a.sum * 1e3", ["expression-release"]),
        ("nan_as_zero(a.sum) + a.sum", ["expression-release"]),
        ("a.sum ** 2", ["expression"]),
        ("", ["expression"]),
        ("b.sum * 2", []),
    ],
)
def test_expressions(expression: str, codes: list[str]) -> None:
    findings = check_section(PLAIN.format(name="A") + DEFINED.format(expression=expression))
    assert [one.code for one in findings] == codes


@pytest.mark.usefixtures("fake_library")
def test_only_chips_asked_for_count() -> None:
    path = FOLDER / "metric-missing.section"
    assert not check_section(path, targets_of(["7.2", "H100"]))
    (found,) = check_section(path, targets_of(["9.0", "GA10B"]))
    assert "GA10B (compute capability 8.7)" in found.message


@pytest.mark.usefixtures("no_library")
def test_a_section_filter_takes_chips_out() -> None:
    text = (FOLDER / "no-roof.section").read_text(encoding="utf-8") + "Filter { MinArch: 80 }\n"
    assert {one.code for one in check_section(text)} == {"release"}


@pytest.mark.usefixtures("fake_library")
def test_a_missing_metric_takes_the_roof_with_it() -> None:
    text = (FOLDER / "no-roof.section").read_text(encoding="utf-8").replace(" Filter { MinArch: 80 }", "")
    codes = {one.code: one.message for one in check_section(text) if one.code != "metric-missing"}
    assert set(codes) == {"no-roof", "no-dot"}
    assert "7.2, 8.7, 11.0 and 12.1" in codes["no-roof"]


@pytest.mark.usefixtures("fake_library")
def test_a_counter_that_is_missing_is_named_once() -> None:
    metrics = "".join(f'  Metrics {{ Name: "dram__bytes{suffix}" }}\n' for suffix in (".sum", ".sum.per_second"))
    (found,) = check_section(PLAIN.format(name="A") + f"Metrics {{\n{metrics}}}\n")
    assert (found.code, found.line, found.column) == ("metric-missing", 4, 3)


@pytest.mark.usefixtures("no_library")
def test_an_input_that_is_missing_where_nothing_shows_the_metric() -> None:
    text = PLAIN.format(name="A") + (
        'Metrics {\n  Metrics { Name: "a.sum" Filter { MaxArch: 80 } }\n'
        '  Metrics { Name: "derived__rl_x" Filter { MaxArch: 80 } }\n}\n'
        'MetricDefinitions {\n  MetricDefinitions { Name: "derived__rl_x" Expression: "a.sum * 2" }\n}\n'
    )
    assert not check_section(text)
    findings = check_section(text.replace('x" Filter { MaxArch: 80 }', 'x"'))
    assert [(one.severity, one.code) for one in findings] == [("error", "uncollected-input")]


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(
    ("dot", "roof", "codes"),
    [
        ("lts__t_bytes", "lts__t_bytes", []),
        ("lts__t_sectors_srcunit_tex", "lts__t_sectors_srcunit_tex", []),
        ("lts__t_sectors_op_read", "lts__t_sectors", []),
        ("dram__bytes_read", "dram__bytes", []),
        ("l1tex__lsu_writeback_active_mem_lg", "l1tex__lsu_writeback_active_mem_lgds", []),
        ("l1tex__t_bytes", "l1tex__lsu_writeback_active_mem_lg", []),
        ("l1tex__t_bytes", "l1tex__t_bytes", []),
        ("l1tex__data_pipe_lsu_wavefronts", "l1tex__t_bytes", ["counter-family"]),
        ("lts__t_sectors_srcunit_tex", "lts__t_sectors", ["counter-family"]),
        ("lts__t_bytes", "l1tex__m_xbar2l1tex_read_bytes", ["counter-family"]),
        ("lts__t_bytes", "dram__bytes", []),
        ("lts__t_sectors_srcunit_tex_aperture_sysmem", "dram__bytes", []),
    ],
)
def test_counters_of_a_dot_and_its_roof(dot: str, roof: str, codes: list[str]) -> None:
    text = (FOLDER / "counter-family.section").read_text(encoding="utf-8")
    text = text.replace("lts__lts2xbar_cycles_active", roof).replace("lts__t_bytes.sum.per_second", f"{dot}.sum.per_second")
    assert [one.code for one in check_section(text)] == codes


@pytest.mark.usefixtures("fake_library")
def test_options_and_suffix_tables_are_collected() -> None:
    text = PLAIN.format(name="A") + (
        "Body { Items { SuffixTable {\n"
        '  Suffixes { Suffix { Name: ".sum" } Suffix { Name: ".nonsense" } }\n'
        '  BaseNames { BaseName { Name: "lts__t_bytes" } }\n'
        "} } }\n"
    )
    (found,) = [one for one in check_section(text, release=(2024, 2)) if one.severity == "error"]
    assert (found.code, found.line, found.column) == ("metric-suffix", 5, 15)
    assert "lts__t_bytes exists, but not with .nonsense" in found.message


@pytest.mark.usefixtures("fake_library")
def test_source_page_metrics_need_no_suffix() -> None:
    text = PLAIN.format(name="A") + 'SourceMetrics { Metrics { Name: "lts__t_bytes" } }\n'
    assert not check_section(text, release=(2024, 2))


@pytest.mark.usefixtures("no_library")
def test_containers_nested_beyond_reason() -> None:
    text = PLAIN.format(name="A") + "Body { " + "Items { HorizontalContainer { " * 25 + "} } " * 25 + "}\n"
    (found,) = check_section(text)
    assert (found.severity, found.code) == ("error", "syntax")
    assert "nested beyond reason" in found.message


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["gh100"], [("GH100", (9, 0))]),
        (["9.0"], [("GH100", (9, 0))]),
        (["sm_90a", "cc_90", "90"], [("GH100", (9, 0))]),
        (["12.1"], [("GB20B", (12, 1))]),
        (["H100", "rtx 4090"], [("GH100", (9, 0)), ("AD102", (8, 9))]),
        (["TU116"], [("TU116", (7, 5))]),
    ],
)
def test_chips_by_name(names: list[str], expected: list[tuple[str, tuple[int, int]]]) -> None:
    assert [(one.chip, one.capability) for one in targets_of(names)] == expected


def test_all_chips() -> None:
    assert targets_of(["all"]) == all_targets()
    assert set(targets_of([])) < set(all_targets())
    assert len({one.capability for one in all_targets()}) == len(targets_of([]))
    with pytest.raises(RooflineError, match="neither a chip"):
        targets_of(["9"])
