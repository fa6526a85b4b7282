"""`bench run --device cpu` from end to end: built, measured on this machine, written, verified, merged and installed."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from ncu_roofline.bench.build import build_host
from ncu_roofline.cli import main
from ncu_roofline.formats.ceilings import CPU, SCHEMA
from tests.bench.test_host import skip_without_compiler
from tests.sharing import made_once

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark of the CPU is for Linux")
QUICK = ("--only", "l1,fp64", "--trials", "3", "--sessions", "1", "--budget", "60", "--quick")


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The program, built once, and a cache folder of the test's own."""
    skip_without_compiler()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the lock is: other tests measure this CPU, too
    return build_host(cache=made_once(tmp_path_factory, "host-bench", lambda out: build_host(cache=out))).path


def run(*words: str) -> int:
    """The exit code of a command."""
    return main(["bench", *words])


@pytest.mark.exhaustive
def test_a_cpu_is_measured(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cpu.json"
    code = run("run", "--device", "cpu", *QUICK, "--runner", str(program), "-o", str(file))
    told = capsys.readouterr()
    assert "l1.read" in told.out
    assert "unproven" not in told.err
    content = json.loads(file.read_text(encoding="utf-8"))
    assert code == (0 if any(entry["accepted"] for entry in content["ceilings"]) else 1)  # where others disturb, none may stand
    assert (content["schema"], content["device"]["kind"]) == (SCHEMA, CPU)
    assert [entry["id"] for entry in content["ceilings"]] == ["l1.read", "fp64.fma", "fp64.nofma"]
    for entry in content["ceilings"]:
        if entry["verdict"] not in ("unsupported", "not measured"):  # a quick run leaves one out
            assert entry["value"] > 1e9
            assert entry["verified"]["checksum"] is True
    assert not list(tmp_path.glob("*.journal"))


@pytest.mark.exhaustive
def test_a_ceiling_that_cpus_lack_is_a_usage_error(program: Path, tmp_path: Path) -> None:
    assert run("run", "--device", "cpu", "--only", "smem", "--runner", str(program), "-o", str(tmp_path / "x.json")) == 2


def test_without_a_compiler_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert run("run", "--device", "cpu", "-o", str(tmp_path / "x.json")) == 1
    assert "Cannot find a C++ compiler" in capsys.readouterr().err
