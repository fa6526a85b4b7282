"""`bench/validate-on-gpu` on the H100 that was recorded: it passes, each lie about it is told by name; folders and programs."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench import build
from ncu_roofline.bench.device import parse_device
from ncu_roofline.chips.spec import gpus
from ncu_roofline.formats.report import read_report
from tests.bench.fakes import H100_LIST, HERE, facts, read_toml, some
from tests.bench.made import changed
from tests.bench.scrubbing import MEASURED, PROMISES, rejudged
from tests.golden import assert_golden

SCRIPT = HERE.parents[1] / "bench" / "validate-on-gpu"
_LOADER = SourceFileLoader("validate_on_gpu", str(SCRIPT))
script = module_from_spec(spec_from_loader(_LOADER.name, _LOADER))  # type: ignore[arg-type]
sys.modules[_LOADER.name] = script
_LOADER.exec_module(script)
LEAST, PROFILED = script.LEAST, script.PROFILED
OPTIONS = {"device": "0", "ncu": "ncu", "nvcc": "", "quick": False, "budget": 0.0, "no_profiles": False, "limit": 600.0}
STARTS = {".html": b"<!DOCTYPE html", ".svg": b"<?xml", ".png": b"\x89PNG"}
KNOWN = {"ceilings dram.copy": "85.0 % of", "ceilings dram.triad": "86.7 % of", "ceilings tensor.fp16.mma.sparse": "missing"}
LIES: dict[str, dict[str, Any]] = read_toml("lies.toml")


class Machine:
    """The machine that was recorded: it answers where the script runs a program; ``lie`` is what it does not tell as it is."""

    def __init__(self, reports: Path) -> None:
        self.reports, self.asked = reports, list[str]()
        self.lie: dict[str, Any] = {}

    def run(self, *words: object, code: bool = True, feed: str = "", **_how: Any) -> Any:
        program, *rest = map(str, words)
        self.asked.append(" ".join(["python" if program == sys.executable else Path(program).name, *rest]))
        if program == "nvidia-smi":
            return script.Done(0, "    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode : N/A\n", "")
        answer = self.tool if program == sys.executable else self.ncu if program == "ncu" else self.runner
        told = [answer(["run", *job.split()]).out for job in feed.splitlines()]
        done = script.Done(0, "".join(told), "") if feed else answer(rest)
        if code and done.code:
            raise script.StepError(f"{program} ended with {done.code}")
        return done

    def runner(self, words: list[str]) -> Any:
        lines: list[dict[str, Any]] = [{"index": 0, **facts("H100", uuid="GPU-0")}]  # of "devices"
        if words[0] == "list":
            told = [(name, one["variant"], one["kernel"]) for name, one in PROMISES.items()]
            told += [(name, variants[0], "") for name, variants in H100_LIST.items() if name not in PROMISES]
            keys = ("ceiling", "variant", "kernel")
            lines = [dict(zip(keys, one, strict=True)) for one in told if one[0] not in self.lie.get("rows", ())]
            lines.append({"ceiling": "tensor.fp8.mma", "variant": "x", "reason": "emulated"})
        elif words[0] == "run":
            lie = self.lie if "fp64.fma" in words else {}
            promise = {**PROMISES[words[words.index("--ceiling") + 1]], **lie.get("promise", {})}
            lines = [{"trial": 0, "work": promise["work"], "checksum_ok": True, **lie.get("trial", {})}]
            lines += [] if "error" in lines[0] else [{"done": True, **promise}]
        return script.Done(0, "".join(f"{json.dumps(line)}\n" for line in lines), "")

    def ncu(self, words: list[str]) -> Any:
        if "-o" not in words:
            return script.Done(0, "Version 2025.3.1.0\n" if words == ["--version"] else "gpp (8, 1, 1)\n", "")
        report = Path(words[words.index("-o") + 1])
        lie = self.lie if report.name == "bench.fp64.fma" or self.lie.get("ncu", {}).get("always") else {}
        source = lie.get("report", {"preflight": "gsrb"}.get(report.name, report.name))
        if source and "ncu" not in lie:
            shutil.copy(HERE / source if source.endswith(".toml") else self.reports / f"{source}.ncu-rep", f"{report}.ncu-rep")
        return script.Done(lie.get("ncu", {}).get("code", 0), "", lie.get("ncu", {}).get("err", ""))

    def tool(self, words: list[str]) -> Any:
        """Our own command line, which is tested elsewhere."""
        said, words = f"{words[2]} was here", words[2:]
        if words[:2] == ["bench", "build"]:
            said = "/built/gpp\n/built/gsrb\n/built/lecture\n" if "--apps" in words else "compiling\n/built/runner\n"
        for option in {"-o", "--output"} & {*words}:
            out = Path(words[words.index(option) + 1])
            out.write_bytes(STARTS.get(out.suffix, b"").ljust(6000))
            if words[:2] == ["bench", "run"]:
                out.with_suffix(".svg").write_bytes(STARTS[".svg"].ljust(6000))
                out.write_text(json.dumps(self.ceilings()), encoding="utf-8")
        return script.Done(0, said, "")

    def ceilings(self) -> dict[str, Any]:
        content = rejudged({**MEASURED, "device": {**MEASURED["device"], "uuid": "GPU-0", **self.lie.get("device", {})}})
        entries = self.lie.get("entries", {})
        content["ceilings"] = [one for one in content["ceilings"] if entries.get(one["id"]) != "drop"]
        return changed(content, {"ceilings": {name: one for name, one in entries.items() if one != "drop"}})


@pytest.fixture
def recorded(h100_reports: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(h100_reports)
    monkeypatch.setattr(script.Programs, "run", lambda _programs, *words, **how: made.run(*words, **how))
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("/no/") else name)
    monkeypatch.setattr(build, "ask", lambda *_words, **_how: "Cuda compilation tools, release 13.0, V13.0.88")
    yield made
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])  # the script blocks the alarm between its steps


def validated(folder: Path, **options: Any) -> tuple[int, dict[str, dict[str, Any]]]:
    script.prepare(folder)
    steps = script.Validation(argparse.Namespace(**{**OPTIONS, "program_limit": 90.0, "folder": folder, **options}))
    steps.all_steps()
    code, content = steps.finish(), json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert content["finished"]
    return code, {f"{check['step']} {check['name']}": check for check in content["checks"]}


def test_the_recorded_machine_passes(recorded: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counters hold the promises, dots lie on the roofs that today's rules make of the trials, our rules spoke inside ncu."""
    code, found = validated(tmp_path)
    assert (code, {name for name, check in found.items() if check["state"] == "FAIL"}) == (1, KNOWN.keys())
    for name, target in PROFILED.items():  # what was seen is closer than what is asked for: arithmetic to a ten-thousandth
        exact = 0.02 if target.level else 2e-4
        assert found[f"profiles {name} counters / promise"]["value"] == pytest.approx(1, abs=exact)
        assert found[f"profiles {name} dot / measured roof"]["value"] == pytest.approx(1, abs=0.011)
    with tarfile.open(tmp_path / script.ARCHIVE) as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    assert kept >= {"ceilings.json", "ceilings.svg", "proxies.html", "summary.md", "reports/bench.fp64.fma.ncu-rep"}
    values = {name: "" if check["value"] is None else f"{check['value']:.4g}" for name, check in found.items()}
    lines = [f"{one['state']} {name} {values[name]} {one['target']}: {one['reason']}" for name, one in found.items()]
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    asked = [re.sub(r"/\S*/", "", line) for line in recorded.asked if "bench run" in line or "bench.bf16.fma" in line]
    seconds = r"(ok measuring bench run) \S+"
    assert_golden(HERE / "validated.txt", re.sub(seconds, r"\1", "\n".join([*lines, "", *left, "", *asked[:3], ""])))
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") in capsys.readouterr().out


def test_the_plan_fits_and_goes_by_the_recorded_run(h100_reports: Path) -> None:
    simulated = (HERE / "simulations.txt").read_text(encoding="utf-8")
    assert all(f"sessions\n{seconds} s, gone: none" in simulated for seconds in script.ACCEPTANCE["sessions"]["seconds"])
    # Then the runner was asked for each promise by itself, which took a second.
    for step, names, asked in (("profiles", [f"bench.{one}" for one in PROFILED], 1.0), ("proxies", script.PROXIES, 0.0)):
        times = []
        for name in names:
            with read_report(h100_reports / f"{name}.ncu-rep") as opened:
                times.append(opened.session.created)
        assert (max(times) - min(times)) / (len(times) - 1) - asked == pytest.approx(script.PLAN[step], rel=0.06)


def test_what_single_gpus_are_asked_for_is_data() -> None:
    told, known = script.ACCEPTANCE["gpus"].items(), {gpu.id for gpu in gpus()}
    assert all(gpu in known and one["reason"] and one["least"] <= LEAST[name] for gpu, own in told for name, one in own.items())
    for row in (asked := read_toml("asked.toml"))["rows"]:
        own, name = parse_device({"index": 0, **facts(row["of"], **row["changes"])}), row["ceiling"]
        one = {**asked["entry"], "id": name, "value": row["share"] * row["rate"], "clock": row["clock"]}
        content, listed = {"device": {"uuid": own.uuid}, "ceilings": [one]}, [script.Listed(name, "best", "", "")]
        checks = [check for check in script.judge_ceilings(content, own, listed, quick=False) if check.name == name]
        assert [(check.state, check.reason) for check in checks] == [tuple(row["judged"])]


@pytest.mark.parametrize("name", some(LIES, ("above theory", "5 % more counted", "ncu fails")))
def test_a_lie_is_told_by_name(name: str, recorded: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.lie, told = LIES[name], LIES[name]["told"]
    few = ("fp64.fma", "fp64.nofma", "fp32.fma", "dram.read", "l2.read")
    monkeypatch.setattr(script, "PROFILED", {one: PROFILED[one] for one in few})
    monkeypatch.setattr(script, "PROXIES", {"gpp-nw6": script.PROXIES["gpp-nw6"]})
    code, checks = validated(tmp_path)
    failed = {one: check["reason"] for one, check in checks.items() if check["state"] == "FAIL"}
    assert (code, failed.keys()) == (1, {**KNOWN, **told}.keys())
    assert all(reason in failed[check] for check, reason in {**KNOWN, **told}.items()), failed


def test_runs_that_prove_less(recorded: Machine, tmp_path: Path) -> None:
    left_out: dict[str, Any] = {"value": None, "accepted": False, "reasons": ["not measured: left out of a quick run"]}
    once: dict[str, Any] = {"sessions": 1, "between_session_cv": None, "between_session_cv_per_cycle": None}
    runs: dict[str, dict[str, Any]] = {"late": {"limit": 0.0}, "without": {"ncu": "/no/ncu"}, "unbuilt": {"nvcc": "/no/nvcc"}}
    lie, text = {"entries": {one["id"]: once for one in MEASURED["ceilings"]} | {"dram.triad": left_out}}, ""
    for name, options in {**runs, "quick": {"quick": True, "no_profiles": True}}.items():
        recorded.lie = lie if name == "quick" else {}
        code, found = validated(tmp_path / name, **options)
        said = [f"{one['state']} {which}: {one['reason']}\n" for which, one in found.items() if one["state"] != "ok"]
        text += f"# {name}: {code}\n{''.join(said)}"
    listed = [script.Listed("tensor.fp8.mma", "best", "bench_tensor_fp8_mma", "emulated")]
    for cc, name in (("9.0", "tensor.fp8.mma"), ("8.0", "tensor.fp16.wgmma"), ("10.0", "tensor.fp4.mma"), ("9.0", "fp64.fma")):
        found = script.absent(name, listed, parse_device(facts("H200", name="a GPU", cc=cc)))
        text += f"# {name} on {cc}: {found.state}, {found.reason}\n"
    assert_golden(HERE / "unproven.txt", f"{text}# --plan\n{script.plan(300.0)}\n# --plan --limit 200\n{script.plan(200.0)}\n")
    assert "it proves less" in (tmp_path / "quick" / "summary.md").read_text(encoding="utf-8")


def test_what_somebody_else_put_into_a_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    assert script.prepare(tmp_path) == "it is not empty"
    for place in (tmp_path / "mine", Path("/dev/full"), Path("/proc/x"), tmp_path / "mine" / "below"):
        assert script.prepare(place)
    assert script.prepare(tmp_path / "new" / "own") == ""


def test_programs_and_a_disk_that_is_full(tmp_path: Path) -> None:
    """A program ends in time with all that it started; a limit on the size of files is met as a full disk is."""
    programs, began = script.Programs(tmp_path / "log.txt", time.monotonic() + 60, 90.0), time.monotonic()
    done = programs.run("sh", "-c", "echo out; echo err >&2; exit 3", code=False)
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")
    for words, told in (
        (["sh", "-c", "echo a; echo b; echo c; exit 4"], "ended with exit code 4: b / c"),
        (["sh", "-c", "sleep 50 & sleep 50"], r"sleep 50 & sleep 50 did not end within 0 s and was killed"),
        ([tmp_path / "none"], "can't be started: No such file or directory"),
    ):
        with pytest.raises(script.StepError, match=told):
            programs.run(*words, limit=0.3)
    assert time.monotonic() - began < 30
    endings = ["exit code 3", "exit code 4", "killed", "not started: [Errno 2] No such file or directory: "]
    log = (tmp_path / "log.txt").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition(",")[0][1:].partition("'")[0] for line in log if line.startswith("[")] == endings
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)"
    limited += "; os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    for room, folder, said in ((200, tmp_path / "out", "Cannot "), (10**9, tmp_path, "Cannot use ")):
        words = [sys.executable, "-c", limited, str(room), str(SCRIPT), str(folder), "--no-profiles", "--limit", "0.1"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert (done.stderr.splitlines()[-1].startswith(said), "Traceback" in done.stderr) == (True, False)
    assert {path.name for path in (tmp_path / "out").iterdir()} - {"log.txt"} == {"reports"}
