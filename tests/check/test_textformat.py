"""Section texts: the verdict of Nsight Compute's own parser, with line and column, and the bytes."""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.chips.fields import release_text
from ncu_roofline.formats.sectionfile.section import RELEASES, parse_section, release_of, schema
from ncu_roofline.formats.sectionfile.text import SectionSyntaxError, parse_document, read_bytes, section_text
from ncu_roofline.plugin.check.section_rules import ERROR, check_files
from tests.nvrules.running import toml

HEAD = 'Identifier: "A"\nDisplayName: "a"\n'
EVERY = ("2020.3", "2022.3", "2024.1", "2024.2")
MISTAKES, DATA = (toml(Path(__file__).with_name(f"{name}.toml")) for name in ("mistakes", "probes"))
PROBES = {
    name: (
        one["text"].encode(one.get("encoding", "utf-8")),
        [release for release in EVERY if one.get("from", "9") <= release <= one.get("to", "9")],
    )
    for name, one in DATA.items()
}


def loads(text: bytes, release: str) -> bool:
    """Whether a release does, as we see it."""
    try:
        return not parse_document(read_bytes(text)).unknown_to(release_of(release))
    except SectionSyntaxError:
        return False


def test_verdict_is_that_of_every_release() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in (one for one in PROBES if not DATA[one].get("corner")):
            assert [release for release in EVERY if loads(PROBES[name][0], release)] == PROBES[name][1], name


@pytest.mark.ncu
@pytest.mark.parametrize("release", [*(pytest.param(one, marks=pytest.mark.exhaustive) for one in EVERY[:3]), EVERY[3]])
def test_releases_do_what_is_said_of_them(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """Which probes the real parser accepts; labels, names and numbers of fields and values in its .proto files."""
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    folder = tmp_path / "probes"
    folder.mkdir()
    for name, (content, _) in PROBES.items():
        (folder / f"{name}.section").write_bytes(content)
    command = [str(ncu_releases[release]), "--section-folder", ".", "--list-sections"]
    output = subprocess.run(command, cwd=folder, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True).stdout
    listed = {words[0] for line in output.decode("utf-8", "replace").splitlines() if (words := line.split())}
    assert PROBES.keys() & listed == {name for name, (_, releases) in PROBES.items() if release in releases}
    root = next(parent for parent in ncu_releases[release].parents if parent.name == "usr")
    if (formats := next(root.glob("**/extras/FileFormat"), None)) is None:
        return
    text = "".join((formats / f"{name}.proto").read_text() for name in ("ProfilerMetricOptions", "ProfilerSection"))
    text = re.sub(r"//[^\n]*|/\*.*?\*/|option [^;]*;", "", text, flags=re.DOTALL)
    fields, values = known_to(release_of(release))
    real = set(re.findall(r"(required|optional|repeated|\n)\s+[\w.]+\s+(\w+)\s*=\s*(\d+)\s*(?:\[[^]]*\])?;", text))
    assert fields == {(label.strip(), *rest) for label, *rest in real} - {("repeated", "Sections", "1")}
    aliases = {"MinArch", "MaxArch"}  # ends of the range, which move from release to release
    in_use = re.findall(r"(\w+)\s*=\s*(-?\d+)\s*;", "".join(re.findall(r"enum \w+\s*\{([^}]*)\}", text)))
    assert {one for one in values if one[0] not in aliases} == {one for one in in_use if one[0] not in aliases}


def known_to(release: tuple[int, int]) -> tuple[set[tuple[str, str, str]], set[tuple[str, str]]]:
    """(label, name, number) of the fields, (name, number) of the values that a section of a release can contain."""
    fields, values, seen, pending = set(), set(), set(), ["Section"]
    while pending:
        kind = pending.pop()
        seen.add(kind)
        for one in schema().messages.get(kind, {}).values():
            if one.history.known_to(release):
                label = "repeated" if one.repeated else "required" if one.required else "" if one.oneof else "optional"
                fields.add((label, one.name, str(one.number)))
                pending += [] if one.kind in seen else [one.kind]
        values |= {(one.name, str(one.number)) for one in schema().enums.get(kind, ()) if one.history.known_to(release)}
    return fields, values


@pytest.mark.ncu
def test_stock_sections_parse_in_their_release_and_have_no_errors(ncu_releases: dict[str, Path]) -> None:
    for release, binary in ncu_releases.items():
        files = sorted((binary.parents[2] / "sections").glob("*.section"))
        assert files
        for path in files:
            document = parse_document(read_bytes(path.read_bytes()))
            assert not document.unknown_to(release_of(release))
            assert document.section.identifier == document.root.text("Identifier")
            assert parse_document(section_text(document.root.message, cc_names=release != "2020.3")).data == document.data
        found = [one for file in check_files(files, release=release_of(release)) for one in file.findings]
        errors = [one for one in found if one.severity == ERROR]
        # NVIDIA's own mistake: this name is in no metric list of any chip, that of 2024.2 itself included.
        wrong = "mcc__dram_data_bytes" if release == "2024.2" else "\0"
        assert [one for one in errors if wrong not in one.message] == []


def test_place_and_kind_of_mistakes() -> None:
    deep = [f"HEAD Body {{ Items {{ {'HorizontalContainer { Items { ' * 5000}", 1, 1, "syntax"]
    for text, line, column, code in [*MISTAKES["mistakes"], deep]:
        with pytest.raises(SectionSyntaxError) as caught:
            parse_document(text.replace("HEAD ", HEAD))
        assert (caught.value.line, caught.value.column, caught.value.code) == (line, column, code), text
        assert f"line {line}, column {column}: " in str(caught.value)


_WORDS = ["Identifier", "Metrics", "Name", "Filter", "MinArch", "CC_80", "Sets", "Order", "true", "80", "-", "1.5", "0x", '"a"']
_MARKS = ["'", "\\", *':{}<>[],; \n#"', "\N{MICRO SIGN}", "\0"]


@given(st.lists(st.sampled_from(_WORDS + _MARKS), max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_is_parsed_or_refused_with_a_place(text: str) -> None:
    place = (1, 1)
    try:
        parse_document(HEAD + text)
    except SectionSyntaxError as error:
        place = (error.line, error.column)
    assert min(place) >= 1


def test_bytes_are_those_of_the_binary_schema() -> None:
    text = """Order: 7 Sets { Identifier: "s" } Extends: 'x' "y"
        Description: "caf\\303\\251 \\x41\\n"
        Body { DisplayName: "b" Items { RooflineChart { Label: "l"
            AxisWork { Min: 1e3 Max: 1.5e12f }
            Rooflines { PeakWork { Constant: -2.5 } PeakTraffic { Metric { Name: "m" Filter { MinArch: 0x50 } } }
            Options { Color { ColorType: ChartColorTypeArgb ColorValue: 0xFFFF0000 } } } } } }"""
    message = parse_section(parse_document(HEAD + text).data).message
    assert (message.Identifier, message.Order, message.Sets[0].Identifier, message.Extends) == (b"A", 7, b"s", b"xy")
    assert message.Description.decode() == "caf\N{LATIN SMALL LETTER E WITH ACUTE} A\n"
    chart = message.Body[0].Items[0].RooflineChart
    assert (chart.AxisWork.Min, chart.AxisWork.Max) == (1000.0, 1.5e12)
    (roof,) = chart.Rooflines
    assert (roof.PeakWork.Constant, roof.PeakTraffic.Metric.Filter.MinArch) == (-2.5, 80)
    assert roof.Options.Color.ColorValue == 0xFFFF0000


def test_fields_without_published_number_are_accepted_and_left_out() -> None:
    fields = ((owner, one) for owner, inside in schema().messages.items() for one in inside.values())
    entries = [(owner, one.name, one.history) for owner, one in fields if not one.number]
    assert len(entries) == 24
    for owner, name, history in entries:
        document = parse_document(HEAD + MISTAKES["around"][owner].format(f'{name} {{ Anything: "goes" Even {{ This: 1 }} }}'))
        assert document.data == parse_document(HEAD + MISTAKES["around"][owner].format("")).data
        (use,) = [use for use in document.uses if use.name == f"{owner}.{name}"]
        assert (use.line, use.column, use.history) == (4, 2, history)


def test_releases_are_read_and_written() -> None:
    assert [release_of(release_text(one)) for one in RELEASES] == list(RELEASES)
    assert release_of("2024.2.1.0") == (2024, 2)
    for text in ("", "2024", "24.2", "2024.x", "2024.22", "\N{ARABIC-INDIC DIGIT TWO}024.1"):
        with pytest.raises(ValueError, match="no release"):
            release_of(text)
