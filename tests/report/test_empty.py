"""Records of results that say nothing, and names that never end: refused or left out in one sentence, and no real one lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report.framing import file_start, pack_block
from ncu_roofline.formats.report.schema import KINDS, message
from ncu_roofline.plugin.annotate.annotation import annotate
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report

IDS_ONLY = message("KernelHead")(thread_id=5, context=1, stream=7, created=1_700_000_000).SerializeToString()
COMMANDS = (("show",), ("explain",), ("advise",), ("ranks",), ("render", "-o", "{out}"), ("annotate", "-o", "{out}.ncu-rep"))


def with_records(path: Path, records: Sequence[bytes], *, behind: Path | None = None, counter: str = "kernels") -> Path:
    """A report with a block of these records, behind the blocks of another one."""
    header = message("BlockHeader")(**{counter: len(records)})
    path.write_bytes((behind.read_bytes() if behind else file_start()) + pack_block(header, list(records)))
    return path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("records", [[b""], [IDS_ONLY], [b"", IDS_ONLY]], ids=["nothing", "ids", "both"])
def test_alone_it_is_an_error(tmp_path: Path, run: Command, words: tuple[str, ...], records: list[bytes]) -> None:
    file = with_records(tmp_path / "r.ncu-rep", records)
    outcome = run(*(word.format(out=tmp_path / "out.json") for word in words), file)
    assert_refused(outcome, file)
    assert f"all of its {len(records)} records of kernels are empty (no name, no launch and no metrics)" in outcome.err
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_is_so_for_every_kind_of_result(tmp_path: Path, kind: object) -> None:
    file = with_records(tmp_path / "r.ncu-rep", [b""], counter=kind.counter)  # type: ignore[attr-defined]
    with read_report(file) as opened:
        assert (len(opened), opened.empty) == (0, 1)


def test_a_million_of_them_are_refused(tmp_path: Path, run: Command) -> None:
    file = with_records(tmp_path / "r.ncu-rep", [b""] * 1_000_000)
    outcome = run("show", file)
    assert_refused(outcome, file)
    assert "all of its 1,000,000 records" in outcome.err


def test_more_records_that_say_next_to_nothing_than_anybody_writes_are_refused(tmp_path: Path, run: Command) -> None:
    named = message("KernelHead")(function=b"k").SerializeToString()
    good = report(tmp_path / "good.ncu-rep", kernel(complete()))
    path = with_records(tmp_path / "x.ncu-rep", [named] * 100_001, behind=good)
    outcome = run("show", path)
    assert_refused(outcome, path)
    assert "have no more than 1,024 bytes" in outcome.err


@pytest.mark.parametrize(
    "words", [("show",), ("show", "--json"), ("explain",), ("ranks",), ("advise",), ("portability",)], ids=" ".join
)
def test_among_good_ones_it_is_told_and_left_out(tmp_path: Path, run: Command, words: tuple[str, ...]) -> None:
    good = report(tmp_path / "good.ncu-rep", kernel(complete()), kernel(complete(), name="other()"))
    mixed = with_records(tmp_path / "mixed.ncu-rep", [b"", IDS_ONLY, b""], behind=good)
    outcome = run(*words, mixed)
    assert outcome.code == 0, outcome.err
    told = " ".join(f"{outcome.err} {outcome.out}".split())
    assert "3 of 5 records of kernels are empty (no name, no launch and no metrics) and are left out" in told


def test_the_good_ones_are_as_without_it(tmp_path: Path) -> None:
    good = report(tmp_path / "good.ncu-rep", kernel(complete()), kernel(complete(), name="other()"))
    alone, mixed = roofline(good), roofline(with_records(tmp_path / "mixed.ncu-rep", [b"", IDS_ONLY], behind=good))
    for name in ("points", "roofs", "kernels"):
        before, after = (getattr(one, name).drop(columns="report") for one in (alone, mixed))
        assert after.equals(before)


def test_an_annotated_copy_keeps_them_where_they_are(tmp_path: Path) -> None:
    last = report(tmp_path / "last.ncu-rep", kernel(complete()), kernel(complete(), name="other()"))
    blocks = last.read_bytes()[len(file_start()) :]
    header = message("BlockHeader")(kernels=2)
    file = tmp_path / "r.ncu-rep"
    file.write_bytes(file_start() + pack_block(header, [b"", IDS_ONLY]) + blocks)
    copy = tmp_path / "copy.ncu-rep"
    account = annotate(file, lambda chunks: copy.write_bytes(b"".join(chunks)) and None)
    with read_report(copy) as annotated:
        assert annotated.empty == 2
        assert [one.name for one in annotated.kernels] == ["void kernel<int>(int *)", "other()"]
        assert all(len(one.sections) > 0 for one in annotated.kernels)
    assert pack_block(header, [b"", IDS_ONLY]) in copy.read_bytes()
    assert any("2 of 4 records" in note for note in account.explanation.notes)


@pytest.mark.parametrize("told", ["name", "launch", "metrics", "sections"])
def test_a_record_that_says_anything_stays(tmp_path: Path, told: str) -> None:
    """Nsight Compute writes a kernel that it could not profile with its name, and without metrics."""
    result = message("KernelResult")(thread_id=5)
    if told == "name":
        result.function = b"k"
    if told == "launch":
        result.grid.x = 1
    if told == "metrics":
        result.metrics.add(name_id=0)
    if told == "sections":
        result.sections.append(b"")
    header = message("BlockHeader")(kernels=1)
    header.strings.strings.append(b"one__metric.sum")
    file = tmp_path / "r.ncu-rep"
    file.write_bytes(file_start() + pack_block(header, [result.SerializeToString()]))
    with read_report(file) as opened:
        assert (len(opened), opened.empty, opened.warnings) == (1, 0, ())


@pytest.mark.parametrize("place", ["function", "demangled", "mangled"])
def test_a_name_without_end_is_refused(tmp_path: Path, run: Command, place: str) -> None:
    head = message("KernelHead")(**{place: b"a" * 1_000_001})
    file = with_records(
        tmp_path / "r.ncu-rep", [head.SerializeToString()], behind=report(tmp_path / "g.ncu-rep", kernel(complete()))
    )
    outcome = run("show", file)
    assert_refused(outcome, file)
    assert "a kernel's name of 1,000,001 bytes, which no compiler makes" in outcome.err
    with read_report(file) as opened, pytest.raises(RooflineError):
        opened.launches()


def test_long_names_of_templates_are_read(tmp_path: Path) -> None:
    name = "void k<" + "cutlass::Shape<1, 2>, " * 9_000 + "int>(int *)"
    with read_report(report(tmp_path / "r.ncu-rep", kernel(complete(), name=name))) as opened:
        assert opened.kernels[0].name == name


@pytest.mark.reports
def test_no_real_record_is_empty(real_reports: Mapping[str, Path]) -> None:
    for path in real_reports.values():
        with read_report(path) as opened:
            assert (opened.empty, opened.warnings) == (0, ())
            assert len(opened) > 0
