"""`bench/validate-on-gpu` on the H100 that was recorded: it passes, each lie about it is told by name; folders and programs."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench import build
from ncu_roofline.bench.device import parse_device
from tests.bench.fakes import H100_LIST, HERE, facts, read_toml
from tests.bench.made import changed
from tests.bench.replay import MEASURED, PROMISES, rejudged
from tests.cli.command import Command

SCRIPT = HERE.parents[1] / "bench" / "validate-on-gpu"
_LOADER = SourceFileLoader("validate_on_gpu", str(SCRIPT))
script = module_from_spec(spec_from_loader(_LOADER.name, _LOADER))  # type: ignore[arg-type]
sys.modules[_LOADER.name] = script
_LOADER.exec_module(script)
LEAST, PROFILED, Done = script.LEAST, script.PROFILED, script.Done
OPTIONS = {"device": "0", "ncu": "ncu", "nvcc": "", "quick": False, "budget": 0.0, "no_profiles": False}
OPTIONS |= {"limit": 600.0, "program_limit": 90.0}


@dataclass
class Machine:
    """The machine that was recorded: it answers where the script runs a program; ``lie`` is what it does not tell as it is."""

    reports: Path
    command: Command
    lie: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def ceilings(self) -> dict[str, Any]:
        """The file of the benchmark."""
        content = rejudged({**MEASURED, "device": {**MEASURED["device"], "uuid": "GPU-0"}})
        entries = self.lie.get("entries", {})
        content["ceilings"] = [one for one in content["ceilings"] if entries.get(one["id"]) != "drop"]
        for one in content["ceilings"]:
            changed(one, entries.get(one["id"], {}))
        content["device"].update(self.lie.get("device", {}))
        return json.loads(json.dumps(content))  # type: ignore[no-any-return]

    def rows(self) -> list[dict[str, Any]]:
        """The runner's list."""
        told = [(name, one["variant"], one["kernel"]) for name, one in PROMISES.items()]
        told += [(name, variants[0], "") for name, variants in H100_LIST.items() if name not in PROMISES]
        rows = [
            dict(zip(("ceiling", "variant", "kernel"), one, strict=True))
            for one in told
            if one[0] not in self.lie.get("rows", ())
        ]
        return [*rows, {"ceiling": "tensor.fp8.mma", "variant": "x", "reason": "emulated"}]

    def run(self, _programs: Any, *words: object, code: bool = True, **_how: Any) -> Any:
        """What a program of this machine says and leaves, by its words."""
        program, *rest = map(str, words)
        self.asked.append(" ".join([Path(program).name, *rest]))
        done = Done(0, *self.said(program, rest))
        if program == "ncu" and "-o" in rest:
            name = Path(rest[rest.index("-o") + 1])
            lie = self.lie.get("ncu", {}) if "fp64.fma" in name.name or self.lie.get("ncu", {}).get("always") else {}
            source = self.lie.get("report", name.name) if name.name == "bench.fp64.fma" else name.name
            if source and not lie:
                found = self.reports / f"{'gsrb' if source == 'preflight' else source}.ncu-rep"
                shutil.copy(found if found.exists() else HERE / "measured_h100" / "promises.json", f"{name}.ncu-rep")
            done = Done(lie.get("code", 0), "", lie.get("err", ""))
        if code and done.code:
            raise script.StepError(f"{program} ended with {done.code}")
        return done

    def said(self, program: str, words: list[str]) -> tuple[str, str]:
        """Standard output and error."""
        lines: list[dict[str, Any]] = []
        if program == sys.executable:
            return self.tool(words[2:])
        if program == "nvidia-smi":
            return "    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode : N/A\n", ""
        if program == "ncu":
            return ("Version 2025.3.1.0 (build 36398880)\n" if words == ["--version"] else "gpp (8, 1, 1)\n"), ""
        if words[0] == "devices":
            lines = [{"index": 0, **facts("H100", uuid="GPU-0")}]
        elif words[0] == "list":
            lines = self.rows()
        elif words[0] == "run":
            told = dict(PROMISES[words[words.index("--ceiling") + 1]])
            lie = self.lie if told["kernel"] == PROMISES["fp64.fma"]["kernel"] else {}
            told |= lie.get("promise", {})
            lines = [
                {"trial": 0, "work": told.pop("work"), "checksum_ok": True, **lie.get("trial", {})},
                {"done": True, **told},
            ]
        return "".join(f"{json.dumps(line)}\n" for line in lines), ""

    def tool(self, words: list[str]) -> tuple[str, str]:
        """Our own command line, of which only `bench verify` is run: all else is tested elsewhere."""
        if words[:2] == ["bench", "build"]:
            return ("/built/gpp\n/built/gsrb\n/built/lecture\n" if "--apps" in words else "compiling\n/built/runner\n"), ""
        if words[:2] == ["bench", "verify"]:
            outcome = self.command(*words)
            return f"{outcome.out}{outcome.code}", outcome.err
        for option in {"-o", "--output"} & {*words}:
            out = Path(words[words.index(option) + 1])
            starts = {".html": b"<!DOCTYPE html", ".svg": b"<?xml", ".png": b"\x89PNG"}
            out.write_bytes(starts.get(out.suffix, b"").ljust(6000))
            if words[:2] == ["bench", "run"]:
                out.with_suffix(".svg").write_bytes(starts[".svg"].ljust(6000))
                out.write_text(json.dumps(self.ceilings()), encoding="utf-8")
        return f"{words[0]} was here", ""


@pytest.fixture
def recorded(h100_reports: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The honest machine in place of all programs."""
    made = Machine(h100_reports, run)
    monkeypatch.setattr(script.Programs, "run", lambda *words, **how: made.run(*words, **how))
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("/no/") else name)
    monkeypatch.setattr(build, "ask", lambda *_words, **_how: "Cuda compilation tools, release 13.0, V13.0.88")
    yield made
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])  # the script blocks the alarm between its steps


def validated(folder: Path, **options: Any) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code and the checks by step and name."""
    script.prepare(folder)
    steps = script.Validation(argparse.Namespace(**{**OPTIONS, "folder": folder, **options}))
    steps.all_steps()
    code, content = steps.finish(), json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert content["finished"]
    return code, {f"{check['step']} {check['name']}": check for check in content["checks"]}


def failed(checks: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The reasons of what failed, by step and name."""
    return {name: check["reason"] for name, check in checks.items() if check["state"] == "FAIL"}


def test_the_recorded_machine_passes(recorded: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counters hold the promises, dots lie on the roofs that today's rules make of the trials, our rules spoke inside ncu."""
    code, found = validated(tmp_path / "out")
    assert (code, failed(found)) == (0, {})
    for name, target in PROFILED.items():  # what was seen is closer than what is asked for: arithmetic to a ten-thousandth
        exact = 0.02 if target.level else 2e-4
        assert found[f"profiles {name} counters / promise"]["value"] == pytest.approx(1, abs=exact)
        assert found[f"profiles {name} dot / measured roof"]["value"] == pytest.approx(1, abs=0.011)
    assert {name for name in LEAST if found[f"ceilings {name}"]["state"] == "ok"} == LEAST.keys()
    assert sum(check["state"] == "ok" for name, check in found.items() if name.startswith("ceilings ")) >= 41
    assert found["ceilings l2.read / theory"]["reason"] == "no theory is known of NVIDIA H100 80GB HBM3"
    assert found["ceilings tensor.fp8.mma"]["state"] == "skip"
    left = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {"ceilings.json", "results.json", "summary.md", "proxies.html", "proxies.png", "bench.html"} <= left
    assert sum(path.startswith("reports/bench.") for path in left) == len(PROFILED)
    assert (tmp_path / "out" / "summary.md").read_text(encoding="utf-8") in capsys.readouterr().out
    ran = next(line for line in recorded.asked if "bench run" in line)
    assert ran.endswith(f"--runner /built/runner --device 0 --force --output {tmp_path}/out/ceilings.json")
    ncu = next(line for line in recorded.asked if "bench.bf16.fma" in line)
    assert (
        "--section HierarchicalHalfRooflineChart --clock-control none --kernel-name regex:^bench_bf16_fma_xxb$ --metrics" in ncu
    )
    assert ncu.endswith(f"--min-time-ms 5 --seed 1 --trips {PROMISES['bf16.fma']['trips']}")


LIES = read_toml("lies.toml")
FIRST = ("above theory", "5 % more counted", "ncu fails")


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in FIRST else pytest.mark.exhaustive) for one in LIES])
def test_a_lie_is_told_by_name(name: str, recorded: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.lie = {**LIES[name]}
    told = recorded.lie.pop("told")
    few = ("fp64.fma", "fp64.nofma", "fp32.fma", "dram.read", "l2.read")
    monkeypatch.setattr(script, "PROFILED", {one: PROFILED[one] for one in few})
    monkeypatch.setattr(script, "PROXIES", {"gpp-nw6": script.PROXIES["gpp-nw6"]})
    code, checks = validated(tmp_path / "out")
    found = failed(checks)
    assert (code, found.keys()) == (1, told.keys())
    assert all(reason in found[check] for check, reason in told.items()), found


def test_runs_that_prove_less(recorded: Machine, tmp_path: Path) -> None:
    code, found = validated(tmp_path / "late", limit=0.0)
    assert (code, failed(found)["tools annotate"]) == (1, "out of time: the run may take 0 s")
    assert failed(found).keys() >= {"ceilings anything", "profiles anything"}
    left_out = {
        "value": None,
        "accepted": False,
        "verdict": "not measured",
        "reasons": ["not measured: left out of a quick run"],
    }
    once = {"sessions": 1, "between_session_cv": None, "between_session_cv_per_cycle": None}
    recorded.lie = {"entries": {**dict.fromkeys(LEAST, once), "dram.triad": left_out}}
    code, found = validated(tmp_path / "quick", quick=True, no_profiles=True)
    assert (code, failed(found)) == (0, {})
    assert {found[f"ceilings {name}"]["state"] for name in ("fp64.fma sessions", "dram.triad")} == {"skip"}
    assert found["profiles fp64.fma"]["reason"] == "--no-profiles was given"
    assert "it proves less" in (tmp_path / "quick" / "summary.md").read_text(encoding="utf-8")
    code, found = validated(tmp_path / "without", ncu="/no/ncu")
    assert failed(found)["preflight ncu"] == "there is no /no/ncu"
    code, found = validated(tmp_path / "unbuilt", nvcc="/no/nvcc")
    assert failed(found)["machine nvcc"].startswith("RooflineError: Cannot find /no/nvcc")
    assert failed(found)["build runner"] == "there is no compiler: see above"
    assert failed(found)["ceilings ceilings.json"] == "ceilings.json was not written"


@pytest.mark.parametrize(
    ("capability", "name", "state", "reason"),
    [
        ("9.0", "tensor.fp8.mma", "skip", "the runner lists it as emulated on this GPU"),
        ("8.0", "tensor.fp16.wgmma", "skip", "no kernel and no known peak on compute capability 8.0"),
        ("9.0", "fp64.fma", "FAIL", "missing: the runner lists no kernel of it, and this GPU has a peak for it"),
    ],
)
def test_what_a_gpu_lacks_is_told(capability: str, name: str, state: str, reason: str) -> None:
    listed = [script.Listed("tensor.fp8.mma", "best", "bench_tensor_fp8_mma", "emulated")]
    found = script.absent(name, listed, parse_device(facts("H200", name="a GPU", cc=capability)))
    assert (found.state, found.reason) == (state, reason)


# Its folder and its programs


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, files with their bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def made(folder: Path, *names: str) -> dict[str, bytes | None]:
    """What somebody put there."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine", encoding="utf-8")
    return contents(folder)


def test_what_somebody_else_put_into_a_folder_is_kept(tmp_path: Path) -> None:
    strangers = [
        ("ceilings.json", "log.txt", "reports/mine.ncu-rep"),
        ("reports/gpp-nw1.ncu-rep",),
        (".validate-on-gpu", "log.txt"),
    ]
    for number, names in enumerate([*strangers, ("mine.txt",)]):
        before = made(tmp_path / str(number), *names)
        reason = "it is not empty, and no earlier run wrote it: it has no .validate-on-gpu"
        assert (script.prepare(tmp_path / str(number)), contents(tmp_path / str(number))) == (reason, before)
    for name, told in (
        ("mine.txt", "mine.txt"),
        ("reports/mine.ncu-rep", "reports/mine.ncu-rep"),
        ("reports/x/a.ncu-rep", "reports/x"),
    ):
        folder = tmp_path / f"run {told.replace('/', ' ')}"
        assert script.prepare(folder) == ""
        before = made(folder, name, "ceilings.json")
        assert script.prepare(folder).startswith(f"it holds what this program did not write: {told}")
        assert contents(folder) == before
    own = tmp_path / "own"
    assert script.prepare(own) == ""
    before = contents(own)
    made(own, "ceilings.json", "reports/gpp-nw1.ncu-rep")
    assert (script.prepare(own), contents(own)) == ("", before)  # what a run wrote is removed
    (own / "reports").rmdir()
    (own / "reports").symlink_to(tmp_path)
    assert script.prepare(own).endswith("did not write: reports")
    for place in (tmp_path / "0" / "log.txt", Path("/dev/full"), Path("/proc/x"), tmp_path / "0" / "log.txt" / "below"):
        assert script.prepare(place)


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def test_a_full_disk_and_a_folder_that_is_refused(tmp_path: Path) -> None:
    """A limit on the size of files is met as a full disk is: a write fails in the middle."""
    for room, folder, said, left in (
        (200, "out", "Cannot ", {".validate-on-gpu", "reports"}),
        (10**9, "", "Cannot use ", None),
    ):
        words = [
            sys.executable,
            "-c",
            LIMITED,
            str(room),
            str(SCRIPT),
            str(tmp_path / folder),
            "--no-profiles",
            "--limit",
            "0.1",
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1].startswith(said)
        assert "Traceback" not in done.stderr
        assert left is None or contents(tmp_path / folder).keys() - {"log.txt"} == left


def test_a_program_ends_in_time_with_all_that_it_started(tmp_path: Path) -> None:
    programs = script.Programs(tmp_path / "log.txt", time.monotonic() + 60, 90.0)
    done = programs.run("sh", "-c", "echo out; echo err >&2; exit 3", code=False)
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")
    began = time.monotonic()
    for words, told in (
        (["sh", "-c", "echo a; echo b; echo c; exit 4"], "ended with exit code 4: b / c"),
        (["sh", "-c", "sleep 50 & sleep 50"], r"sleep 50 & sleep 50 did not end within 0 s and was killed"),
        ([tmp_path / "none"], "can't be started: No such file or directory"),
    ):
        with pytest.raises(script.StepError, match=told):
            programs.run(*words, limit=0.3)
    assert time.monotonic() - began < 30
    log = (tmp_path / "log.txt").read_text(encoding="utf-8")
    endings = ["exit code 3", "exit code 4", "killed", "not started: [Errno 2] No such file or directory: "]
    assert [line.rpartition(",")[0][1:].partition("'")[0] for line in log.splitlines() if line.startswith("[")] == endings
