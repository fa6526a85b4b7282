"""`ncu-roofline explain`: which charts a report has, what it lacks, and the command that collects that."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from tests.cli.command import Command
from tests.factory import A100, NO_WORK, Metrics, complete, kernel, timing, traffic


def without_work(device: Metrics = A100) -> Metrics:
    """What ``ncu --set basic`` collects: times and throughputs, no operations."""
    return {**device, **timing(), "dram__bytes.sum": 100}


def of(path: Path, *kernels: KernelData, version: str = "2024.1.0.0", application: str = "./app --n 3 'a  b'") -> Path:
    """A report with the command line that made it."""
    session = Session(ncu_version=version, command_line=f"ncu --set basic -o out {application}")
    write_report(path, ReportData(kernels, session), overwrite=True)
    return path


class TestExplain:
    def command(self, run: Command, *words: object) -> list[str]:
        """The ncu command line that ``explain`` proposes, in words."""
        outcome = run("explain", *words)
        assert (outcome.code, outcome.err) == (0, "")
        assert max(map(len, outcome.out.splitlines())) <= 120
        lines = [line.strip() for line in outcome.out.replace("\\\n", "").splitlines() if line.strip().startswith("ncu ")]
        assert len(lines) == 1, outcome.out
        return shlex.split(lines[0])

    def metrics(self, run: Command, *words: object) -> set[str]:
        command = self.command(run, *words)
        assert command[:2] == ["ncu", "--metrics"]
        return set(command[2].split(","))

    def test_basic_set(self, run: Command, tmp_path: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()))
        words = self.command(run, path)
        assert words[3:] == ["-o", "b-roofline", "./app", "--n", "3", "a  b"]
        metrics = set(words[2].split(","))
        assert set(NO_WORK) | set(traffic()) | {"gpu__time_duration.sum"} <= metrics
        assert not any("tensor" in name for name in metrics)
        out = run("explain", path).out
        assert "FP64         missing" in out
        assert "DRAM         1 of 1 launches (binding: dram__bytes.sum" in out

    def test_what_it_proposes_is_enough(self, run: Command, tmp_path: Path) -> None:
        names = self.metrics(run, of(tmp_path / "b.ncu-rep", kernel(without_work())))
        collected = kernel({**A100, **dict.fromkeys(names, 1e6)})
        outcome = run("explain", of(tmp_path / "c.ncu-rep", collected))
        assert "missing" not in outcome.out.replace("Nothing is missing", "")
        assert "Nothing is missing" in outcome.out

    def test_nothing_missing(self, run: Command, source: Path) -> None:
        outcome = run("explain", source)
        assert outcome.code == 0
        assert "Nothing is missing" in outcome.out
        assert "ncu --metrics" not in outcome.out

    def test_chip_without_dram_counters(self, run: Command, tmp_path: Path) -> None:
        orin = {**A100, "device__attribute_compute_capability_minor": 7, "device__attribute_display_name": "Orin"}
        path = of(tmp_path / "o.ncu-rep", kernel(without_work(orin)))
        names = self.metrics(run, path)
        assert not any("dram__" in name for name in names)
        assert "lts__d_sectors_fill_sysmem.sum" in names
        assert "DRAM         missing" in run("explain", path).out
        assert "compute capability 8.7 has no counters for System memory" in run("explain", path, "--level", "l2,system").out

    def test_tensor_counts_of_an_old_release(self, run: Command, tmp_path: Path) -> None:
        old = of(tmp_path / "o.ncu-rep", kernel(without_work()), version="2022.3.0.0")
        outcome = run("explain", old, "--precision", "fp64,tensor")
        assert "tensor operation counts need Nsight Compute 2023.3 or later" in outcome.out
        assert not any("ops_path" in name for name in self.metrics(run, old, "--precision", "fp64,tensor"))
        new = of(tmp_path / "n.ncu-rep", kernel(without_work()), version="2023.3.0.0")
        assert any("ops_path_tensor" in name for name in self.metrics(run, new, "--precision", "tensor.fp16"))

    @pytest.mark.parametrize("version", ["", "x", "2022", "\u00b2.1", "999999999999999999999.9"])
    def test_odd_releases(self, run: Command, tmp_path: Path, version: str) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()), version=version)
        assert self.metrics(run, path, "--precision", "tensor")

    def test_unknown_chip_and_unknown_application(self, run: Command, tmp_path: Path) -> None:
        future = {**A100, "device__attribute_compute_capability_major": 42}
        outcome = run("explain", of(tmp_path / "f.ncu-rep", kernel(without_work(future)), application=""))
        assert "compute capability 42.0 is not known" in outcome.out
        assert "Nothing is missing" not in outcome.out
        assert self.command(run, of(tmp_path / "a.ncu-rep", kernel(without_work()), application=""))[-1] == "./app"

    def test_filters_reach_the_command(self, run: Command, tmp_path: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work(), "void a b(int)"), kernel(complete()))
        words = self.command(run, path, "--kernel", "a b$|a b")
        assert words[3:5] == ["--kernel-name", "regex:a b$|a b"]
        assert "Nothing is missing" in run("explain", path, "--launch", "1").out

    def test_levels(self, run: Command, tmp_path: Path) -> None:
        names = self.metrics(run, of(tmp_path / "b.ncu-rep", kernel(complete())), "--level", "shared")
        assert any("mem_shared" in name for name in names)

    def test_json(self, run: Command, tmp_path: Path, source: Path) -> None:
        path = of(tmp_path / "b.ncu-rep", kernel(without_work()))
        document = json.loads(run("explain", "--json", path, source).out)
        assert [Path(one["report"]).name for one in document] == ["b.ncu-rep", "r.ncu-rep"]
        assert document[0]["command"].startswith("ncu --metrics ")
        assert document[0]["missing"] == ["fp64", "fp32", "fp16", "l1", "l2"]
        assert (document[1]["command"], document[1]["missing"]) == ("", [])

    def test_nothing_in_a_report_reaches_the_terminal_as_a_command(self, run: Command, tmp_path: Path) -> None:
        device = {**without_work(), "device__attribute_display_name": "\x1b[31mGPU\u202e"}
        path = of(tmp_path / "e.ncu-rep", kernel(device), version="\x1b[2J", application="./app \x1b]0;x\x07 '; rm -rf ~ #'")
        out = run("explain", path).out
        assert all(line.isprintable() for line in out.splitlines())
        line = next(line.strip() for line in out.replace("\\\n", "").splitlines() if line.strip().startswith("ncu "))
        assert shlex.split(line)[-1] == "; rm -rf ~ #"
