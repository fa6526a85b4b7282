"""`ncu-roofline explain`: what a report has and lacks, and the command that collects that with the user's own options."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.chips import Architecture, load_spec
from ncu_roofline.chips.fields import LAST_RELEASE
from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.formats.sectionfile.section import messages
from ncu_roofline.model.explanations import metrics_for, tensor_metrics
from ncu_roofline.model.work import THREADS, WARPS
from ncu_roofline.plugin.check.chips import OK, chip, libraries, passes
from tests.cli.command import Command
from tests.factory import A100, H100, NO_WORK, Metrics, complete, kernel, opcodes, timing, traffic

BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
TURING: Metrics = {
    **A100,
    "device__attribute_display_name": "NVIDIA GeForce GTX 1660 Ti",
    "device__attribute_compute_capability_major": 7,
    "device__attribute_compute_capability_minor": 5,
}
CHIPS = [(one, name) for one in load_spec().architectures for name in one.chips]


def made(path: Path, *kernels: KernelData, version: str = "2024.1.0.0", line: str = "ncu -o out ./app", **session: str) -> Path:
    write_report(path, ReportData(kernels, Session(ncu_version=version, command_line=line, **session)), overwrite=True)
    return path


def bare(device: Metrics = A100, **extra: Any) -> KernelData:
    """Times only."""
    return kernel({**device, **timing()}, **extra)


def explained(run: Command, path: Path, *words: str) -> dict[str, Any]:
    (document,) = json.loads(run("explain", path, "--json", *words).out)
    return dict(document)


def metrics_of(document: dict[str, Any]) -> set[str]:
    return set(shlex.split(document["command"])[2].split(","))


def section(identifier: str) -> bytes:
    return bytes(messages()["Section"](Identifier=identifier.encode(), DisplayName=b"x").SerializeToString())


def without_work(device: Metrics = A100) -> Metrics:
    """What ``ncu --set basic`` collects: times and throughputs, no operations."""
    return {**device, **timing(), "dram__bytes.sum": 100}


class TestWords:
    """What is printed, and that its command is the one of the document."""

    @pytest.fixture
    def basic(self, tmp_path: Path) -> Path:
        return made(tmp_path / "b.ncu-rep", kernel(without_work()), line="ncu --set basic -o out ./app --n 3 'a  b'")

    def command(self, run: Command, *words: object) -> list[str]:
        """The ncu command line that ``explain`` proposes, in words."""
        outcome = run("explain", *words)
        assert (outcome.code, outcome.err) == (0, "")
        assert max(map(len, outcome.out.splitlines())) <= 120
        (line,) = [line.strip() for line in outcome.out.replace("\\\n", "").splitlines() if line.strip().startswith("ncu ")]
        return shlex.split(line)

    def test_basic_set(self, run: Command, basic: Path) -> None:
        words = self.command(run, basic)
        assert words[:2] == ["ncu", "--metrics"]
        assert words[3:] == ["-o", "b-roofline", "./app", "--n", "3", "a  b"]
        metrics = set(words[2].split(","))
        assert set(NO_WORK) | set(traffic()) | {"gpu__time_duration.sum"} <= metrics
        assert not any("tensor" in name for name in metrics)
        out = run("explain", basic).out
        assert "FP64         missing" in out
        assert "DRAM         1 of 1 launches (binding: dram__bytes.sum" in out
        assert words == shlex.split(explained(run, basic)["command"])
        assert any("mem_shared" in name for name in metrics_of(explained(run, basic, "--level", "shared")))

    def test_what_it_proposes_is_enough(self, run: Command, basic: Path, source: Path, tmp_path: Path) -> None:
        collected = kernel({**A100, **dict.fromkeys(metrics_of(explained(run, basic)), 1e6)})
        for path in (made(tmp_path / "c.ncu-rep", collected), source):
            outcome = run("explain", path)
            assert "Nothing is missing" in outcome.out
            assert "missing" not in outcome.out.replace("Nothing is missing", "")
            assert "ncu --metrics" not in outcome.out
        document = json.loads(run("explain", "--json", basic, source).out)
        assert [Path(one["report"]).name for one in document] == ["b.ncu-rep", "r.ncu-rep"]
        assert document[0]["missing"] == ["fp64", "fp32", "fp16", "l1", "l2"]
        assert (document[1]["command"], document[1]["missing"], document[1]["sets"]["other"]) == ("", [], "")

    def test_filters_reach_the_command(self, run: Command, tmp_path: Path) -> None:
        path = made(tmp_path / "b.ncu-rep", kernel(without_work(), "void a b(int)"), kernel(complete()))
        assert self.command(run, path, "--kernel", "a b$|a b")[3:5] == ["--kernel-name", "regex:a b$|a b"]
        assert "Nothing is missing" in run("explain", path, "--launch", "1").out

    def test_odd_releases_and_unknown_chips(self, run: Command, tmp_path: Path) -> None:
        for version in ("", "x", "2022", "\u00b2.1", "999999999999999999999.9"):
            path = made(tmp_path / "b.ncu-rep", kernel(without_work()), version=version)
            assert metrics_of(explained(run, path, "--precision", "tensor"))
        future = {**A100, "device__attribute_compute_capability_major": 42}
        outcome = run("explain", made(tmp_path / "f.ncu-rep", kernel(without_work(future)), line="ncu -o out "))
        assert "compute capability 42.0 is not known" in outcome.out
        assert "Nothing is missing" not in outcome.out

    def test_nothing_in_a_report_reaches_the_terminal_as_a_command(self, run: Command, tmp_path: Path) -> None:
        device = {**without_work(), "device__attribute_display_name": "\x1b[31mGPU\u202e"}
        line = "ncu --set basic -o out ./app \x1b]0;x\x07 '; rm -rf ~ #'"
        path = made(tmp_path / "e.ncu-rep", kernel(device), version="\x1b[2J", line=line)
        assert all(line.isprintable() for line in run("explain", path).out.splitlines())
        assert self.command(run, path)[-1] == "; rm -rf ~ #"


def test_own_options(run: Command, tmp_path: Path) -> None:
    """They stay but for those that are replaced; ``name`` is what is behind the metrics and the file to export."""
    own = "--clock-control none -c 3 --target-processes all -k 'regex:a|b' --cache-control=none mpirun ./app"
    for line, words in (
        (f"ncu --set full -f -o mine {own}", own),
        (
            'ncu --set full -o x python t.py --cfg {"lr":0.1}',
            """python t.py --cfg '{"lr":0.1}'""",
        ),  # quotes the application got
        ("ncu --set full -- ./app -o result.txt -c 3", "./app -o result.txt -c 3"),
        ("ncu --mode attach --hostname 10.0.0.1 -o out", "--mode attach --hostname 10.0.0.1"),
        ("ncu -o out ", "./app"),
    ):
        command = explained(run, made(tmp_path / "r.ncu-rep", bare(), line=line.replace("'regex:a|b'", "regex:a|b")))["command"]
        assert command.endswith(f" -o r-roofline {words}"), line
    line = "ncu -k regex:x --kernel-name-base mangled -s 9 -c 3 --devices 0 -o out ./app"
    path = made(tmp_path / "r.ncu-rep", bare(name="void f(int)"), line=line)
    words = shlex.split(explained(run, path, "--kernel", "f")["command"])  # a filter takes the place of the own one
    assert words[3:] == ["--kernel-name", "regex:f", "-o", "r-roofline", "-c", "3", "--devices", "0", "./app"]
    path = made(tmp_path / "r.ncu-rep", bare(), line="", clock_control="None", replay="application")
    words = shlex.split(explained(run, path)["command"])
    assert words[5:] == ["--clock-control", "none", "--replay-mode", "application", "./app"]
    odd = made(tmp_path / "r.ncu-rep", bare(), line="", clock_control="; rm", replay="?")
    assert shlex.split(explained(run, odd)["command"])[5:] == ["./app"]
    for name, exported in (("a%p%q{X}", "a_p_q{X}-roofline"), ("--set", "set-roofline"), ("-", "roofline")):
        words = shlex.split(explained(run, made(tmp_path / f"{name}.ncu-rep", bare()))["command"])
        assert words[3:] == ["-o", exported, "./app"]  # ncu would read the name otherwise


class TestChips:
    def test_no_tensor_counters_where_there_are_no_tensor_cores(self, run: Command, tmp_path: Path) -> None:
        path = made(tmp_path / "r.ncu-rep", bare(TURING))
        one = explained(run, path, "--precision", "fp64,tensor")
        assert not any("tensor" in name for name in metrics_of(one))
        assert [p["id"] for p in one["precisions"]] == ["fp64"]
        assert "compute capability 7.5 has no counters for Tensor (TU116 and TU117 have no tensor cores)" in one["notes"]
        rtx = {**TURING, "device__attribute_display_name": "NVIDIA GeForce RTX 2060"}
        one = explained(run, made(tmp_path / "s.ncu-rep", bare(rtx)), "--precision", "fp64,tensor")
        assert any("ops_path_tensor" in name for name in metrics_of(one))

    @pytest.mark.parametrize(
        ("capability", "fill"), [((7, 2), "sysmem"), ((8, 7), "device"), ((11, 0), "sysmem"), ((12, 1), "device")]
    )
    def test_systems_on_a_chip_are_asked_for_what_stands_for_dram(
        self, run: Command, tmp_path: Path, capability: tuple[int, int], fill: str
    ) -> None:
        major, minor = capability
        device = {
            **A100,
            "device__attribute_compute_capability_major": major,
            "device__attribute_compute_capability_minor": minor,
        }
        path = made(tmp_path / "r.ncu-rep", bare(device))
        one = explained(run, path)
        names = metrics_of(one)
        said = run("explain", path, "--level", "l2,system").out
        assert f"compute capability {major}.{minor} has no counters for System memory" in said
        assert f"lts__d_sectors_fill_{fill}.sum" in names
        assert not any(name.startswith("dram__") for name in names)
        assert "dram" in one["missing"]
        # A lower bound is all that there is: with it nothing is left to ask for.
        whole = {**device, **dict.fromkeys(names, 1e6)}
        again = explained(run, made(tmp_path / "s.ncu-rep", kernel(whole)))
        assert (again["missing"], again["partial"], again["command"]) == ([], [], "")

    @pytest.mark.parametrize(
        ("architecture", "name"),
        [pytest.param(*one, marks=() if one[1] in ("GH100", "TU116") else pytest.mark.exhaustive, id=one[1]) for one in CHIPS],
    )
    def test_every_name_is_one_of_the_chip(self, architecture: Architecture, name: str) -> None:
        found = chip(name)
        if found is None:
            pytest.skip(f"no libnvperf_host here knows {name}")
        product = "NVIDIA GeForce GTX 1660 Ti" if name in ("TU116", "TU117") else ""
        spec = load_spec()
        own = [p for p in spec.precisions if spec.bindings(p, architecture.compute_capability)]
        if product:
            own = [p for p in own if not p.id.startswith("tensor")]
        levels = [level for level in spec.levels if spec.bindings(level, architecture.compute_capability)]
        gpus = ((architecture, product),)
        names = [*metrics_for(gpus, own, levels, LAST_RELEASE), *tensor_metrics(gpus, LAST_RELEASE)[0]]
        names = [name for name in names if name != WARPS]
        assert [one for one in names if found.verdict(one) != OK] == []


class TestTensor:
    @pytest.mark.parametrize("version", ["2020.3.0.0", "2022.3.0.0", "2024.1.0.0", ""])
    def test_counts_per_opcode_are_the_cheapest(self, run: Command, tmp_path: Path, version: str) -> None:
        busy = kernel(complete(**{BUSY: 40.0}))
        one = explained(run, made(tmp_path / "r.ncu-rep", busy, kernel(complete(**{BUSY: 0.4})), version=version))
        assert (one["missing"], one["added"]) == (["tensor"], ["tensor"])
        assert WARPS in metrics_of(one)
        assert not any("ops_path" in name for name in metrics_of(one))
        assert any("active in 1 of 2 launches, and its operations" in note for note in one["notes"])
        assert any("one or two passes more" in note for note in one["notes"])
        counted = kernel(complete(**{BUSY: 40.0}), instances={WARPS: [("HMMA.16816.F32", 100)]})
        assert explained(run, made(tmp_path / "s.ncu-rep", counted, version=version))["command"] == ""

    def test_where_opcodes_do_not_tell_counters_do(self, run: Command, tmp_path: Path) -> None:
        busy = {**complete(H100), BUSY: 40.0}
        one = explained(run, made(tmp_path / "r.ncu-rep", kernel(busy), version="2024.3.0.0"))
        names = metrics_of(one)
        assert "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum" in names
        assert WARPS not in names
        assert any("every tensor type (6 passes more" in note for note in one["notes"])
        old = explained(run, made(tmp_path / "r.ncu-rep", kernel(busy), version="2022.3.0.0"))
        assert WARPS in metrics_of(old)
        ancient = explained(run, made(tmp_path / "r.ncu-rep", kernel(busy), version="2019.5.1"))
        assert (ancient["missing"], ancient["added"], ancient["command"]) == (["tensor"], [], "")

    def test_opcodes_that_were_there_and_did_not_tell(self, run: Command, tmp_path: Path) -> None:
        unknown = kernel(complete(**{BUSY: 40.0}), instances={WARPS: [("HMMA.9.9.9", 100)]})
        one = explained(run, made(tmp_path / "r.ncu-rep", unknown))
        assert any("ops_path_tensor" in name for name in metrics_of(one))
        assert WARPS not in metrics_of(one)
        old = explained(run, made(tmp_path / "r.ncu-rep", unknown, version="2022.3.0.0"))
        assert old["command"] == ""
        assert any("counters that tell them need Nsight Compute 2023.3 or later" in note for note in old["notes"])

    def test_asked_for(self, run: Command, tmp_path: Path) -> None:
        path = made(tmp_path / "r.ncu-rep", bare(), version="2022.3.0.0")
        one = explained(run, path, "--precision", "tensor.fp16")
        assert WARPS in metrics_of(one)
        assert "tensor.fp16" in one["added"]
        assert not any("ops_path" in name for name in metrics_of(explained(run, path, "--precision", "fp64,tensor")))
        assert (
            "tensor operation counts need Nsight Compute 2023.3 or later" in run("explain", path, "--precision", "tensor").out
        )
        new = made(tmp_path / "n.ncu-rep", kernel(without_work()), version="2023.3.0.0")
        assert any("ops_path_tensor" in name for name in metrics_of(explained(run, new, "--precision", "tensor.fp16")))
        other = explained(run, made(tmp_path / "r.ncu-rep", kernel(complete(**{BUSY: 40.0}))), "--precision", "fp64")
        assert (other["missing"], other["command"]) == ([], "")

    @pytest.mark.parametrize("version", ["2020.3.0.0", "2022.3.0.0"])
    def test_precisions_without_counters(self, run: Command, tmp_path: Path, version: str) -> None:
        """2020.3 takes counts of threads for the name of a hardware counter: there the section has to bring them."""
        one = explained(run, made(tmp_path / "r.ncu-rep", bare(), version=version), "--precision", "bf16,int32")
        words = shlex.split(one["command"])
        assert {"bf16", "int32"} <= set(one["added"])
        assert (THREADS in words[2].split(",")) == (version == "2022.3.0.0")
        assert (words[3:5] == ["--section", "SourceCounters"]) == (version == "2020.3.0.0")

    @pytest.mark.parametrize(
        "architecture",
        [
            pytest.param(one, marks=() if "GH100" in one.chips else pytest.mark.exhaustive, id=one.name)
            for one in load_spec().architectures
            if one.tensor_passes
        ],
    )
    def test_passes_that_are_told(self, architecture: Architecture) -> None:
        if not libraries():
            pytest.skip("no libnvperf_host on this machine (pip install nvidia-cuda-cupti)")
        spec = load_spec()
        core = spec.collect(architecture.compute_capability, spec.core, spec.chain, lacking=True)
        everything = (*core, *tensor_metrics(((architecture, ""),), LAST_RELEASE)[0])
        name = architecture.chips[0]
        before, after = passes(name, core), passes(name, everything)
        if before is None or after is None:
            pytest.skip(f"no libnvperf_host here schedules {name}")
        assert after.total - before.total == architecture.tensor_passes


class TestSets:
    def test_made_with_and_better(self, run: Command, tmp_path: Path) -> None:
        basic = bare(sections=[section(name) for name in ("SpeedOfLight", "LaunchStats", "Occupancy")])
        path = made(tmp_path / "r.ncu-rep", basic, version="2022.3.0.0")
        sets = explained(run, path)["sets"]
        assert (sets["made_with"], sets["other"]) == ("basic", "roofline")
        assert "no operations and no bytes" in sets["gives"]
        assert "traffic of L1, L2 and DRAM" in sets["other_gives"]
        out = run("explain", path).out
        assert "set     the report was made with --set basic: run time" in out
        assert "a command with --set roofline would give FP64" in out
        old = explained(run, made(tmp_path / "r.ncu-rep", basic, version="2020.3.0.0"))["sets"]
        assert old["other"] == "full"

    def test_tensor_work_comes_with_opcodes(self, run: Command, tmp_path: Path) -> None:
        busy = kernel({**A100, **timing(), BUSY: 30.0}, sections=[section("SpeedOfLight")])
        sets = explained(run, made(tmp_path / "r.ncu-rep", busy, version="2022.3.0.0"))["sets"]
        assert (sets["made_with"], sets["other"]) == ("", "full")

    def test_unknown_release(self, run: Command, tmp_path: Path) -> None:
        for version in ("", "x.y"):
            path = made(tmp_path / "r.ncu-rep", bare(sections=[section("SpeedOfLight"), b"\xff"]), version=version)
            assert set(explained(run, path)["sets"].values()) == {""}
            assert "  set " not in run("explain", path).out

    def test_integer_work_that_nobody_asked_for(self, run: Command, tmp_path: Path) -> None:
        counted = kernel(complete(), instances=opcodes(IMAD=1e6))
        path = made(tmp_path / "r.ncu-rep", counted, kernel(complete()))
        document = explained(run, path)
        assert {one["id"]: one["launches"] for one in document["precisions"]}["int32"] == 1
        assert "int32" not in (*document["missing"], *document["added"])
        assert "work    INT32        1 of 2 launches" in run("explain", path).out
        assert "int32" not in {one["id"] for one in explained(run, path, "--precision", "fp64")["precisions"]}

    @pytest.mark.reports
    def test_real_reports(self, run: Command, real_reports: dict[str, Path]) -> None:
        """The set is part of the name under which each report was filed."""
        for name, path in real_reports.items():
            made_with = explained(run, path)["sets"]["made_with"]
            expected = name.split("-")[2]
            assert made_with == ("" if expected == "custom" else expected), name


@pytest.mark.reports
def test_own_options_of_real_reports(run: Command, real_reports: dict[str, Path]) -> None:
    wanted = {
        "gh200120gb-ncu2025.2-basic-1.ncu-rep": [
            "--kernel-name-base",
            "demangled",
            "-k",
            "regex:[Bb]enchmark",
            "./test_basisset",
        ],
        "a100-ncu2022.4-full-2.ncu-rep": ["-k", "nodeByPoint5", "-c", "10", "./build/main"],
        "a10g-ncu2023.1-basic-2.ncu-rep": ["--target-processes", "all", "./a.out"],
    }
    for name, words in wanted.items():
        if name in real_reports:
            assert shlex.split(explained(run, real_reports[name])["command"])[5:][: len(words)] == words


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_maximum_clock_of_zero_is_unknown(run: Command, tmp_path: Path) -> None:
    path = made(tmp_path / "r.ncu-rep", kernel(complete(device__attribute_max_gpu_frequency_khz=0)))
    done = run("explain", path)
    assert (done.code, done.err) == (0, "")
    assert not any("of its maximum" in note for note in explained(run, path)["notes"])
