"""The command: what it prints, what it refuses, what it leaves alone."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.cli.test_bad_input import BAD
from tests.cli.test_odd_values import HOSTILE
from tests.factory import A100, complete, kernel, report
from tests.report.frames import packed, zstd


@pytest.fixture
def source(tmp_path: Path) -> Path:
    idle = {name: 0 if "op_d" in name else value for name, value in complete().items()}
    return report(tmp_path / "in.ncu-rep", kernel(complete()), kernel(idle))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def test_what_is_printed(run: Command, source: Path, folder: Path) -> None:
    before = source.read_bytes()
    outcome = run("annotate", source, "-o", folder / "out.ncu-rep", "--no-rules")
    assert (outcome.code, outcome.err) == (0, f"Wrote {folder / 'out.ncu-rep'}\n")
    lines = outcome.out.splitlines()
    assert lines[0] == f"{source.name}: 2 launches, NVIDIA A100-SXM4-40GB (8.0), Nsight Compute 2024.1.0.0"
    rows = dict(line.strip().split("  ", 1) for line in lines[1:] if line.startswith("  "))
    assert (
        rows["FP64"].strip().startswith("chart in 1 of 2 launches (binding: smsp__sass_thread_inst_executed_op_d{add,mul,fma}")
    )
    assert rows["FP32"].strip().startswith("no work (binding:")
    assert rows["DRAM"].strip() == "dots in 1 of 2 launches, counted in 2 (binding: dram__bytes.sum)"
    assert rows["Shared memory"].strip() == "not derived: the report has no counters for it"
    assert rows["advice"].strip() == "0 messages of 0 rules"
    assert "ncu-roofline explain" in lines[-1]
    assert source.read_bytes() == before


def test_dots_are_told_only_where_there_is_a_chart(run: Command, folder: Path, tmp_path: Path) -> None:
    idle = {name: 0 if "op_d" in name else value for name, value in complete().items()}
    source = report(tmp_path / "idle.ncu-rep", kernel(idle), kernel(idle))
    outcome = run("annotate", source, "-o", folder / "out.ncu-rep", "--no-rules")
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("  DRAM")]
    assert line.split(maxsplit=1)[1] == "dots in 0 of 2 launches, counted in 2 (binding: dram__bytes.sum)"


def test_compressed_in_and_out(run: Command, source: Path, folder: Path, tmp_path: Path) -> None:
    compressed = tmp_path / "in.ncu-repz"
    compressed.write_bytes(packed(source.read_bytes()))
    for target in ("plain.ncu-rep", "out.ncu-repz", "again.NCU-REPZ"):
        assert run("annotate", compressed, "-o", folder / target).code == 0
    plain, frame = (folder / "plain.ncu-rep").read_bytes(), (folder / "out.ncu-repz").read_bytes()
    assert zstd().decompress(frame) == plain
    assert frame == (folder / "again.NCU-REPZ").read_bytes()
    # What is annotated already is annotated anew, the same.
    assert run("annotate", folder / "out.ncu-repz", "-o", folder / "twice.ncu-rep").code == 0
    assert (folder / "twice.ncu-rep").read_bytes() == plain
    assert_refused(run("annotate", compressed, "-o", folder / "out.ncu-repz"), folder / "out.ncu-repz")
    assert run("annotate", compressed, "-o", folder / "plain.ncu-rep", "--force").code == 0
    assert_no_leftovers(folder, "again.NCU-REPZ", "out.ncu-repz", "plain.ncu-rep", "twice.ncu-rep")


def test_rules_speak(run: Command, source: Path, folder: Path) -> None:
    outcome = run("annotate", source, "-o", folder / "out.ncu-rep")
    assert outcome.code == 0
    (line,) = [line for line in outcome.out.splitlines() if line.startswith("  advice")]
    assert not line.endswith("0 messages of 0 rules")


def test_ceilings(run: Command, source: Path, folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "ceilings.json"
    bad.write_text("{}")
    assert_refused(run("annotate", source, "-o", folder / "out.ncu-rep", "--ceilings", bad), bad)
    assert_no_leftovers(folder)


@pytest.mark.parametrize("bad", BAD)
def test_damaged_files(run: Command, source: Path, folder: Path, tmp_path: Path, bad: str) -> None:
    path = tmp_path / "bad.ncu-rep"
    path.write_bytes(BAD[bad](source.read_bytes(), path))
    assert_refused(run("annotate", path, "-o", folder / "out.ncu-rep"), path)
    assert_no_leftovers(folder)


def test_missing_folder_and_empty_name(run: Command, folder: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "missing.ncu-rep", tmp_path / "a\nb.ncu-rep", folder, tmp_path / ("x" * 300)):
        assert_refused(run("annotate", path, "-o", folder / "out.ncu-rep"), path)
    assert_refused(run("annotate", "", "-o", folder / "out.ncu-rep"), "''")
    assert_no_leftovers(folder)


def test_no_kernels_and_no_metrics(run: Command, folder: Path, tmp_path: Path) -> None:
    for path in (report(tmp_path / "none.ncu-rep"), report(tmp_path / "bare.ncu-rep", kernel({}), kernel({}))):
        assert_refused(run("annotate", path, "-o", folder / "out.ncu-rep"), path)


def test_places_that_cannot_be_written(run: Command, source: Path, folder: Path, tmp_path: Path) -> None:
    for place in ("nowhere/out.ncu-rep", "in.ncu-rep/out.ncu-rep", "results", "x" * 300):
        assert_refused(run("annotate", source, "-o", tmp_path / place), tmp_path / place)
        assert_refused(run("annotate", source, "-o", tmp_path / place, "--force"), tmp_path / place)
    assert_no_leftovers(tmp_path, "in.ncu-rep", "results")
    assert_no_leftovers(folder)


def test_an_existing_file_needs_force(run: Command, source: Path, folder: Path) -> None:
    target = folder / "out.ncu-rep"
    target.write_text("precious")
    outcome = run("annotate", source, "-o", target)
    assert_refused(outcome, target)
    assert "--force" in outcome.err
    assert target.read_text() == "precious"
    assert run("annotate", source, "-o", target, "--force").code == 0
    assert target.read_bytes().startswith(b"NVR\0")


def test_the_report_itself_is_never_written(run: Command, source: Path, folder: Path) -> None:
    before = source.read_bytes()
    link = folder / "link.ncu-rep"
    link.symlink_to(source)
    for target in (source, link):
        outcome = run("annotate", source, "-o", target, "--force")
        assert_refused(outcome, target)
        assert "one of the files that the command reads" in outcome.err
    assert source.read_bytes() == before


@pytest.mark.parametrize("count", [10, pytest.param(60, marks=pytest.mark.exhaustive)])
def test_bit_flips(run: Command, source: Path, folder: Path, tmp_path: Path, count: int) -> None:
    """Of a report and of an annotated one, which is taken apart."""
    assert run("annotate", source, "-o", tmp_path / "once.ncu-rep", "--no-rules").code == 0
    target, path, generator, refused = folder / "out.ncu-rep", tmp_path / "flipped.ncu-rep", random.Random(7), 0
    for whole in (source.read_bytes(), (tmp_path / "once.ncu-rep").read_bytes()):
        for _ in range(count):
            data = bytearray(whole)
            for _ in range(generator.choice((1, 1, 8))):
                data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
            path.write_bytes(data)
            outcome = run("annotate", path, "-o", target, "--force", "--no-rules")
            if outcome.code:
                assert_refused(outcome, path)
            else:
                assert run("show", target).code == run("show", path).code
            refused += outcome.code
    assert count / 6 < refused < 1.8 * count


@pytest.mark.sampled("control characters", "not text", "4 kB of templates")
@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names(run: Command, folder: Path, tmp_path: Path, hostile: str) -> None:
    text = HOSTILE[hostile]
    launch = kernel(complete({**A100, "device__attribute_display_name": f"GPU {text}"}))
    path = report(tmp_path / "hostile.ncu-rep", launch.__class__(**{**vars(launch), "name": text, "function_name": text}))
    outcome = run("annotate", path, "-o", folder / "out.ncu-rep")
    assert outcome.code == 0, outcome
    assert all(line.isprintable() for line in (outcome.out + outcome.err).split("\n"))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are text there")
def test_file_names_that_are_no_text(run: Command, source: Path, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"r\xff\x1b[31m<b>\n.ncu-rep")
    source.rename(path)
    outcome = run("annotate", path, "-o", folder / "out.ncu-rep")
    assert outcome.code == 0, outcome
    assert all(line.isprintable() for line in (outcome.out + outcome.err).split("\n"))
