"""The demo's gallery: complete, honest about what is made up, and never over anybody's files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.cli.demo import GALLERY
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.writer import encode_report
from tests import demo_reports, published_report
from tests.cli.command import Command, assert_no_leftovers, assert_refused

BUNDLED = Path(ncu_roofline.__file__).parent / "data" / "demo"
FILES = [name for one in GALLERY.values() for name in one.files]


def test_the_gallery(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is written and named, and what it tells to try works; `demo.session` has what is in its reports."""
    folder = tmp_path / "new" / "a demo"
    outcome = run("demo", "--out", folder)
    assert (outcome.code, outcome.err) == (0, "")
    assert_no_leftovers(folder, *FILES)
    for one in GALLERY.values():
        assert one.title in outcome.out
        assert all(str(folder / name) in outcome.out for name in one.drawn)
    monkeypatch.chdir(tmp_path)
    tried = re.findall(
        r"ncu-roofline ((?:show|portability|explain|render|compare|source) .*)", outcome.out.replace(" \\\n", "")
    )
    assert len(tried) == sum(len(one.next_steps) for one in GALLERY.values())
    for words in tried:
        assert run(*shlex.split(words)).code == 0, words


def test_files_are_overwritten_with_force_only(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where the last of them is in the way; those of an earlier run, or one that was ended, are replaced."""

    def ended(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    words, last = ("demo", "--only", "basic", "-o", tmp_path), GALLERY["basic"].files[-1]
    (tmp_path / last).write_text("precious")
    assert_refused(run(*words), tmp_path / last)
    assert_no_leftovers(tmp_path, last)
    for place in (tmp_path / last, tmp_path / last / "below"):  # no folder
        assert_refused(run("demo", "-o", place), place)
    (tmp_path / last).unlink()
    with monkeypatch.context() as patched:
        patched.setattr("ncu_roofline.analyses.render", ended)
        assert run(*words).code == 130
    assert_no_leftovers(tmp_path)
    first, second = run(*words), run(*words)
    assert (first.code, second.code, second.out) == (0, 0, first.out)
    assert second.err == f"Overwriting the files of an earlier run in {tmp_path}\n"
    (tmp_path / last).write_text("precious")
    assert_refused(run(*words), tmp_path / last)
    assert run(*words, "--force").code == 0
    assert (tmp_path / last).read_bytes() != b"precious"
    assert_refused(run("demo", "-o", "-"), "standard output", code=2)
    assert run("demo", "--only", "nothing").code == 2
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--only", "gemm").code == 0
    assert_no_leftovers(tmp_path / "ncu-roofline-demo", *GALLERY["gemm"].files)


def test_samples() -> None:
    """Those of the gallery, as they were made or measured; what is made up says so."""
    bundled = {path.name for path in BUNDLED.iterdir()}
    assert bundled == {name for one in GALLERY.values() for name in one.samples}
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 600_000
    published = {published_report.REPORT, published_report.CEILINGS, published_report.PLATFORMS}
    assert bundled == published | set(demo_reports.reports())
    for name, data in demo_reports.reports().items():
        with read_report(BUNDLED / name) as opened:  # byte by byte, once unpacked: releases of zstd pack differently
            assert opened._raw[:] == b"".join(encode_report(data)), name
    for one in GALLERY.values():
        names = [kernel.name for name in one.samples if name.endswith("repz") for kernel in read_report(BUNDLED / name).kernels]
        made_up = {"made_up" in name for name in names} or {False}
        assert made_up == {"made-up" in one.title} == {"made-up" in name for name in one.samples}, one.title
    for step in demo_reports.STEPS:
        with read_report(BUNDLED / f"gpp-h100-nw{step}.ncu-repz") as opened:
            assert (opened.ncu_version, f"--nw {step} " in opened.session.command_line) == ("2025.3.1.0", True)
            assert opened.device is not None
            assert opened.device.name == "NVIDIA H100 80GB HBM3"
