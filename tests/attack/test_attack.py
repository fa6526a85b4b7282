"""Reports that nobody should have made end right or explained, in every command, view, format and option."""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import FORMATS, views
from ncu_roofline.cli import declare
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.framing import message, messages
from tests.attack import judging, meaning, raw, wire
from tests.attack.bases import made, real
from tests.attack.bombs import BOMBS
from tests.attack.campaign import FAMILIES, Campaign, attack, lines
from tests.attack.commands import LEFT_OUT, QUICK_LINES, SLOW_LINES, TABLE_LINES, Line
from tests.attack.document import Document
from tests.attack.fields import encode, sites, tree

SEED = 1
_EACH = 10
READING = ("show", "source", "render", "explain", "advise", "annotate", "compare", "ranks", "portability")


def found_by(campaign: Campaign, numbers: Sequence[int]) -> list[str]:
    """What was found, a line each."""
    found = [(number, *one) for number in numbers for one in campaign.attack(number)]
    return [f"--replay {campaign.seed}:{n} {one.what[:99]}: {line.text}: {f.kind}: {f.why[-800:]}" for n, one, line, f in found]


@pytest.mark.sampled("0")
@pytest.mark.parametrize("first", range(0, 20, _EACH))
def test_attacked_reports_end_right_or_explained(tmp_path: Path, first: int) -> None:
    """Of the 500 that are made before a release (`python -m tests.attack`) the first; continuous integration makes 200."""
    assert found_by(Campaign(SEED, tmp_path, made()), range(first, first + _EACH)) == []


@pytest.mark.sampled("bytes", "containers", "size", "names")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_family(tmp_path: Path, family: str) -> None:
    assert found_by(Campaign(SEED + 1, tmp_path, made(), (family,)), range(1)) == []


@pytest.mark.exhaustive
@pytest.mark.reports
@pytest.mark.parametrize("first", range(0, 30, _EACH))
def test_attacked_real_reports(tmp_path: Path, real_reports: dict[str, Path], first: int) -> None:
    assert real_reports
    assert found_by(Campaign(SEED, tmp_path, real()), range(first, first + _EACH)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_read_in_time_or_refused(tmp_path: Path, name: str) -> None:
    campaign = Campaign(SEED, tmp_path, made())
    one = attack(SEED, 0, made())
    large = type(one)("several", "size", name, BOMBS[name](10))
    for line in map(
        Line, ("show {r}", "show --json {r}", "show --source embedded {r}", "explain {r}", "render {r} -o {o}.html")
    ):
        finding = campaign.meet(large, made()["several"], line)
        assert finding.kind not in judging.FINDINGS, finding


# What is attacked, and with what.
def test_bases_hold_what_the_reader_knows(tmp_path: Path) -> None:
    kinds, charts, said, points = set(), 0, 0, 0
    for data in made().values():
        path = tmp_path / "x.ncu-rep"
        path.write_bytes(data)
        with read_report(path) as report:
            kinds |= {one.kind for one in report.kernels}
            said += sum(len(one.rule_results) for one in report.kernels)
            points += len(roofline(report).points)
            charts += len(roofline(report, source="embedded").points)
    assert kinds == {"kernel", "range", "graph", "cmdlist"}
    assert min(points, charts, said) > 0


def test_every_field_of_the_schema_is_met() -> None:
    met = {(site.message, site.field.number) for data in made().values() for site in _sites(data)}
    views = {
        "FileHeader",
        "Source",
        "SourceId",
        "KernelSource",
        "MetricScalar",
        "MetricInstances",
        "InstanceBytes",
        "MergedInstances",
        "Column",
        "ColumnValues",
        "NameIds",
    }
    for name in messages():
        if name in views or name.endswith(("Head", "Body", "NameIds", "Metrics")):
            continue  # parts of messages, and other views of them
        fields = {(name, field.number) for field in message(name).DESCRIPTOR.fields}
        counters = {("BlockHeader", number) for number in (1, 2, 5, 7, 8, 9, 10)}  # which are written anew
        assert fields <= met | counters, name
    assert "Section" in {name for name, _ in met}


def _sites(data: bytes) -> list[wire.Site]:
    document = Document.of(data)
    messages = [part.header for part in document.parts] + document.results
    messages += [record for part in document.parts for kind, record in part.records if kind == "sources"]
    return [site for one in messages for site in sites(one.DESCRIPTOR.name, tree(one))]


def test_reports_and_messages_come_back_as_they_were() -> None:
    for data in made().values():
        again = Document.of(data).encode()
        assert Document.of(again) == Document.of(data)
        assert again == data or data == made()["annotated"]  # which has later fields behind earlier ones
        for result in Document.of(data).results:
            assert encode(tree(result)) == result.SerializeToString()


def test_attacks_are_reproducible_and_differ() -> None:
    ones = [attack(5, number, made()) for number in range(60)]
    assert ones == [attack(5, number, made()) for number in range(60)]
    assert len({one.data for one in ones}) > 50
    assert {one.family for one in ones} >= {name for name, (weight, *_) in FAMILIES.items() if weight > 6}


@pytest.mark.parametrize("change", [*wire.CHANGES, *raw.BYTES])
def test_damage_changes_something(change: Callable[..., object]) -> None:
    data = made()["several"]
    changed = 0
    for seed in range(20):
        rng = random.Random(seed)
        if change in raw.BYTES:
            changed += change(data, rng) != data
            continue
        fields = tree(Document.of(data).results[0])
        before = encode(fields)
        change(wire.choose(rng, list(sites("kernels", fields))), rng)
        changed += encode(fields) != before
    assert changed >= 12


@pytest.mark.parametrize("rewriting", wire.REWRITINGS)
def test_rewriting_changes_bytes_but_no_value(rewriting: str) -> None:
    changed = 0
    for result in Document.of(made()["several"]).results:
        fields = tree(result)
        wire.REWRITINGS[rewriting](fields, random.Random(3))
        again = type(result).FromString(encode(fields))
        changed += encode(fields) != result.SerializeToString()
        again.DiscardUnknownFields()
        assert again == result
    assert changed >= 3


@pytest.mark.parametrize("change", meaning.UNCHANGED)
def test_layouts_change_bytes(change: Callable[[Document, random.Random], None]) -> None:
    document = Document.of(made()["several"])
    change(document, random.Random(2))
    assert document.encode() != made()["several"]


# Every command, view, format and option is met.
def test_every_option_of_the_commands_is_met() -> None:
    met = {command: {word for line in _all() if line.command == command for word in line.text.split()} for command in READING}
    for command in READING:
        parser = argparse.ArgumentParser(add_help=False)
        declare(parser, command)
        for action in parser._actions:
            names = set(action.option_strings)
            refused = action.help == argparse.SUPPRESS  # with advice, whatever the reports
            if names and not refused and not names & set(LEFT_OUT):
                assert names & met[command], f"{command} {names}"
            for choice in action.choices or ():
                if names & {"--view", "--table", "--by", "--source", "--match", "--against"}:
                    default = choice == action.default
                    assert default or choice in met[command] or _optional(command, choice), f"{command} {names} {choice}"


def _optional(command: str, choice: str) -> bool:
    """Choices that are what happens without them, and tables of traces, which are no reports."""
    return (
        choice in ("operators", "chains", "runs", "needs", "coverage")
        or (command, choice) in {("compare", "both"), ("compare", "baseline"), ("compare", "kernels")}
        or choice in (*("launch", "roofline", "points", "auto", "aggregate", "kernel", "application"),)
    )


def test_every_view_and_format_is_met() -> None:
    written = {line.result for line in _all()}
    for name, row in FORMATS.items():
        named = any(re.search(f"--(format )?{name}( |$)", line.text) for line in _all())
        assert named or set(row.suffixes) & written, name
    assert {view for view in views("render") if not any(f"--view {view}" in line.text for line in _all())} == {
        "roofline"
    }  # the default


def _all() -> tuple[Line, ...]:
    return (*QUICK_LINES, *SLOW_LINES, *TABLE_LINES)


def test_every_command_line_comes_up_within_the_500_reports() -> None:
    met = [line for number in range(500) for line in lines(SEED, number)]
    assert min(met.count(line) for line in (*QUICK_LINES, *SLOW_LINES)) >= 5
