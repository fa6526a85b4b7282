"""Where there is no folder for temporary files, or no room in it: a sentence from every command that needs one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Command, assert_no_leftovers
from tests.factory import complete, kernel, report
from tests.machine.fakes import fake_ncu
from tests.report.frames import packed

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
NEEDING = {
    "advise": "advise {demo} --ceilings {ceilings}",
    "compressed": "show {compressed}",
    "annotate again": "annotate {annotated} -o {out}/a.ncu-rep",
    "profile": "profile --ncu {ncu} -o {out}/p -- ./app",
}
# What needs none: reports as they are.
OTHERS = ("show {report}", "render {report} -o {out}/r.csv", "annotate {report} -o {out}/a.ncu-rep")


@pytest.fixture
def given(tmp_path: Path, run: Command) -> dict[str, Path]:
    (tmp_path / "out").mkdir()
    sample = report(tmp_path / "r.ncu-rep", kernel(complete()))
    (tmp_path / "r.ncu-repz").write_bytes(packed(sample.read_bytes()))
    assert run("annotate", sample, "-o", tmp_path / "annotated.ncu-rep").code == 0
    return {
        "report": sample,
        "demo": DEMO / "gpp-v100.ncu-rep",
        "compressed": tmp_path / "r.ncu-repz",
        "annotated": tmp_path / "annotated.ncu-rep",
        "ceilings": DEMO / "gpp-v100-ceilings.json",
        "ncu": fake_ncu(tmp_path),
        "out": tmp_path / "out",
    }


def _missing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "nowhere"))


def _none(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As where neither /tmp nor any other place can be written to."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(folder / "nowhere")])


@pytest.mark.parametrize("lacking", [_missing, _none])
def test_a_sentence_where_one_is_needed(
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: dict[str, Path],
    lacking: Callable[[pytest.MonkeyPatch, Path], None],
) -> None:
    lacking(monkeypatch, tmp_path)
    for words in NEEDING.values():
        outcome = run(*(word.format(**given) for word in words.split()))
        assert outcome.code == 1, outcome
        assert outcome.err.splitlines()[-1].endswith("Set TMPDIR to a folder with space that you may write to.")
        assert "Traceback" not in outcome.err
        assert_no_leftovers(given["out"])
    for words in OTHERS:
        assert run(*(word.format(**given) for word in words.split())).code == 0


def test_no_place_for_matplotlib_either(given: dict[str, Path]) -> None:
    """It is imported anew, with a home that can't be written to."""
    code = (
        "import sys, tempfile\ntempfile._candidate_tempdir_list = lambda: ['/dev/null/tmp']\n"
        "from ncu_roofline.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    nowhere = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"), "/dev/null/home")
    words = [sys.executable, "-c", code, "render", str(given["report"]), "-o", str(given["out"] / "r.png")]
    done = subprocess.run(words, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ncu-roofline: Cannot draw with matplotlib: it finds no folder that it may write to. "
        "Set MPLCONFIGDIR or TMPDIR to a folder with space that you may write to."
    )
    assert_no_leftovers(given["out"])
