"""Records of results that say nothing, and names that never end: refused in one sentence, or a kernel without metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ncu_roofline import read_report, roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report.framing import file_start, message, pack_block
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
    assert "its kernels carry no metrics" in outcome.err
    assert not list(tmp_path.glob("out*"))


@pytest.mark.exhaustive
def test_a_million_of_them_are_refused(tmp_path: Path, run: Command) -> None:
    file = with_records(tmp_path / "r.ncu-rep", [b""] * 1_000_000)
    outcome = run("show", file)
    assert_refused(outcome, file)
    assert "have no more than 1,024 bytes" in outcome.err


def test_more_records_that_say_next_to_nothing_than_anybody_writes_are_refused(tmp_path: Path, run: Command) -> None:
    named = message("KernelHead")(function=b"k").SerializeToString()
    good = report(tmp_path / "good.ncu-rep", kernel(complete()))
    path = with_records(tmp_path / "x.ncu-rep", [named] * 100_001, behind=good)
    outcome = run("show", path)
    assert_refused(outcome, path)
    assert "have no more than 1,024 bytes" in outcome.err


def test_among_good_ones_it_is_a_kernel_without_metrics(tmp_path: Path) -> None:
    good = report(tmp_path / "good.ncu-rep", kernel(complete()), kernel(complete(), name="other()"))
    mixed = roofline(with_records(tmp_path / "mixed.ncu-rep", [b"", IDS_ONLY], behind=good))
    assert list(mixed.kernels.status) == ["ok", "ok", "unknown-chip", "unknown-chip"]
    before, after = (one.points.drop(columns="report") for one in (roofline(good), mixed))
    assert after.equals(before)


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
