"""The demo's gallery: complete, honest about what is made up, and never over anybody's files."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.cli.demo import GALLERY, Exhibit
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.writer import encode_report
from tests import demo_reports, published_report
from tests.cli.command import Command, Outcome, assert_no_leftovers, assert_refused

BUNDLED = Path(ncu_roofline.__file__).parent / "data" / "demo"
FILES = [name for one in GALLERY.values() for name in one.files]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """A folder where the demo has run, and what it said."""
    folder = tmp_path_factory.mktemp("gallery") / "new" / "a demo"
    command = [sys.executable, "-m", "ncu_roofline", "demo", "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return folder, Outcome(done.returncode, done.stdout, done.stderr)


class TestGallery:
    def test_everything_is_written_and_named(self, made: tuple[Path, Outcome]) -> None:
        folder, outcome = made
        assert (outcome.code, outcome.err) == (0, "")
        assert_no_leftovers(folder, *FILES)
        assert "sigma_gpp_gpu" in outcome.out
        for one in GALLERY.values():
            assert one.title in outcome.out
            assert all(str(folder / name) in outcome.out for name in one.drawn)

    def test_what_to_see_is_there(self, made: tuple[Path, Outcome]) -> None:
        """The sentences of the gallery against what the program says of its reports."""
        folder, _ = made
        places = GALLERY["source"].frames(folder)
        drawn = {name: exhibit.frames(folder) for name, exhibit in GALLERY.items() if name != "source"}
        texts = {name: str(frames.kernels[["kernel", "verdict"]].values) for name, frames in drawn.items()}
        assert re.search(r"sigma_gpp_gpu<1>' 'memory: DRAM'.*sigma_gpp_gpu<6>' 'compute: FP64 FMA'", texts["gpp"], re.DOTALL)
        assert "'square_made_up_gemm' 'compute: Tensor FP16'" in texts["gemm"]
        assert "'skinny_made_up_gemm' 'memory: DRAM'" in texts["gemm"]
        assert GALLERY["basic"].frames(folder).points.empty
        assert all(verdict in texts["basic"] for verdict in ("memory: DRAM", "compute: ALU pipe", "latency"))
        sweep = GALLERY["sweep"].frames(folder).kernels
        assert list(sweep["label"]) == [f"nw{step}" for step in range(1, 7)]
        assert sweep["verdict"].iloc[-1] == "compute: FP64 FMA"
        changed = GALLERY["compare"].frames(folder).kernels.set_index("kernel")
        assert changed.loc["stencil", ["outcome", "verdict_before", "verdict"]].tolist() == [
            "faster",
            "memory: DRAM",
            "compute: FP64 FMA",
        ]
        assert set(changed["outcome"]) == {"faster", "slower", "same", "added", "removed"}
        said = set(zip(places.findings["finding"], places.findings["line"], strict=True))
        assert said >= {("excess", 16), ("fp64-by-accident", 4)}

    def test_what_it_tells_to_try_works(
        self, run: Command, made: tuple[Path, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        text = made[1].out.replace(" \\\n", "")
        found = re.findall(r"ncu-roofline ((?:show|portability|explain|render|compare|source) .*)", text)
        assert len(found) == sum(len(one.next_steps) for one in GALLERY.values())
        for one in found:
            assert run(*shlex.split(one)).code == 0, one


class TestFiles:
    def test_are_overwritten_with_force_only(self, run: Command, tmp_path: Path) -> None:
        words = ("demo", "--only", "gpp", "-o", tmp_path)
        assert run(*words).code == 0
        (tmp_path / "roofline.txt").write_text("precious")
        (tmp_path / "roofline.html").unlink()
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert_refused(run(*words), tmp_path / "roofline.txt")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert run(*words, "--force").code == 0
        assert "precious" not in (tmp_path / "roofline.txt").read_text(encoding="utf-8")

    def test_of_an_earlier_run_are_replaced(self, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def ended(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        words = ("demo", "--only", "basic", "-o", tmp_path)
        with monkeypatch.context() as patched:
            patched.setattr("ncu_roofline.analyses.render", ended)
            assert run(*words).code == 130
        assert_no_leftovers(tmp_path)
        (tmp_path / GALLERY["basic"].samples[0]).write_bytes((BUNDLED / GALLERY["basic"].samples[0]).read_bytes())
        first, second = run(*words), run(*words)
        assert (first.code, second.code, second.out) == (0, 0, first.out)
        assert second.err == f"Overwriting the files of an earlier run in {tmp_path}\n"

    @pytest.mark.exhaustive
    def test_nothing_is_written_where_the_last_of_them_is_in_the_way(self, run: Command, tmp_path: Path) -> None:
        last = FILES[-1]
        (tmp_path / last).write_text("precious")
        assert_refused(run("demo", "-o", tmp_path), tmp_path / last)
        assert_no_leftovers(tmp_path, last)
        for place in (tmp_path / last, tmp_path / last / "below"):  # no folder
            assert_refused(run("demo", "-o", place), place)

    def test_go_into_a_folder_of_their_own(self, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert_refused(run("demo", "-o", "-"), "standard output", code=2)
        assert run("demo", "--only", "nothing").code == 2
        assert_no_leftovers(tmp_path)
        assert run("demo", "--only", "gemm").code == 0
        assert_no_leftovers(tmp_path / "ncu-roofline-demo", *GALLERY["gemm"].files)


class TestSamples:
    def test_are_those_of_the_gallery(self) -> None:
        bundled = {path.name for path in BUNDLED.iterdir()}
        assert bundled == {name for one in GALLERY.values() for name in one.samples}
        assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 600_000
        published = {published_report.REPORT, published_report.CEILINGS, published_report.PLATFORMS}
        assert bundled - published == set(demo_reports.reports())

    def test_are_as_they_were_made(self) -> None:
        """Byte by byte, once unpacked: releases of zstd pack differently."""
        for name, data in demo_reports.reports().items():
            with read_report(BUNDLED / name) as opened:
                assert opened._raw.data[:] == b"".join(encode_report(data)), name

    def test_what_is_made_up_says_so(self) -> None:
        def made_up(one: Exhibit) -> Iterator[bool]:
            for name in one.samples:
                if name.endswith("repz"):
                    with read_report(BUNDLED / name) as opened:
                        yield all("made_up" in kernel.name for kernel in opened.kernels)

        for one in GALLERY.values():
            invented = set(made_up(one))
            assert len(invented) <= 1, one.title
            assert ("made-up" in one.title) == (invented == {True}), one.title
            assert all("made-up" in name for name in one.samples) == (invented == {True}), one.title

    def test_measured_ones_are_what_was_measured(self) -> None:
        for step in demo_reports.STEPS:
            with read_report(BUNDLED / f"gpp-h100-nw{step}.ncu-repz") as opened:
                assert opened.ncu_version == "2025.3.1.0"
                assert f"--nw {step} " in opened.session.command_line
                assert opened.device is not None
                assert opened.device.name == "NVIDIA H100 80GB HBM3"
