"""`--ceilings auto`: the user's own, else the package's, for each GPU by its name as the driver gives it; always told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.cli import reading as chosen_module
from ncu_roofline.formats.ceilings import NOT_COMPARABLE, Ceilings, registry
from ncu_roofline.plugin.machine.install import keep
from ncu_roofline.plugin.machine.machine import Machine, this_machine
from tests.cli.command import Command, assert_refused
from tests.cli.test_ceilings import ceiling, document
from tests.factory import A100, H100, complete, kernel, report
from tests.machine.fakes import bare_machine

A100_NAME = A100["device__attribute_display_name"]
PCIE = {**A100, "device__attribute_display_name": "NVIDIA A100-PCIE-40GB"}


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders of the user."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def own(user: Path) -> Callable[..., Ceilings]:
    """Keeps ceilings of the user's own GPU."""

    def make(
        value: float = 1.23e12, date: str = "2026-01-01", name: str = A100_NAME, uuid: str = "GPU-1", **more: Any
    ) -> Ceilings:
        content = document(
            ceiling("dram.read", value), host={"time_utc": date}, device={"name": name, "uuid": uuid, "cc": "8.0"}, **more
        )
        (user / "own.json").write_text(json.dumps(content))
        return keep(this_machine(), user / "own.json")

    return make


@pytest.fixture
def source(user: Path) -> Path:
    return report(user / "r.ncu-rep", kernel(complete()))


def measured(outcome: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(outcome)["roofs"]
    return [row for row in rows if row["origin"] == "measured"]


def test_the_users_own_come_first_and_the_newest_of_them(run: Command, source: Path, own: Callable[..., Ceilings]) -> None:
    own(1.1e12, "2026-03-01", uuid="GPU-1")
    newest = own(1.2e12, "2026-03-02", uuid="GPU-2")
    own(1.3e12, "2026-02-01", uuid="GPU-3")
    outcome = run("show", source, "--ceilings", "auto", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.err.splitlines() == [
        f"ncu-roofline: ceilings of {A100_NAME}: {Path(newest.path).parent}: {newest.provenance}"
    ]
    (row,) = measured(outcome.out)
    assert (row["value"], row["source"]) == (1.2e12, "ceilings")
    assert newest.provenance in row["metrics"]


def test_measured_before_published_whoever_has_them(
    run: Command, source: Path, own: Callable[..., Ceilings], monkeypatch: pytest.MonkeyPatch
) -> None:
    published = own(2e12, status="published", ceilings=[ceiling("dram.read", 1.5e12, source="A paper")])
    package = next(one for one in registry() if one.device == A100_NAME)
    assert [one.path for one in chosen_module.Shelf().others if one.device == A100_NAME] == [published.path, package.path]
    made = Ceilings("a100.json", A100_NAME, "", (8, 0), "2026-01-01", package.by_id)
    monkeypatch.setattr(chosen_module, "registry", lambda: (package, made))
    outcome = run("show", source, "--ceilings", "auto")
    assert outcome.err == f"ncu-roofline: ceilings of {A100_NAME}: {made.provenance}\n"
    assert "published" not in outcome.out


def test_what_measure_left_in_the_cache_counts(run: Command, source: Path, user: Path) -> None:
    folder = user / "cache" / "ncu-roofline" / "ceilings"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text(json.dumps(document(ceiling("dram.read", 1.4e12))))
    assert measured(run("show", source, "--ceilings", "auto", "--json").out)[0]["value"] == 1.4e12


def test_a_broken_file_is_told_and_left_out(run: Command, source: Path, own: Callable[..., Ceilings]) -> None:
    path = Path(own().path)
    path.write_text("{")
    outcome = run("show", source, "--ceilings", "auto")
    assert outcome.code == 0
    assert outcome.err.startswith(f"ncu-roofline: left out: Cannot read ceilings {path}: ")
    assert NOT_COMPARABLE in outcome.err


def test_published_ones_are_told_and_drawn_as_such(run: Command, source: Path, user: Path) -> None:
    for view in ("roofline", "time"):
        outcome = run("show", source, "--ceilings", "auto", "--view", view)
        assert outcome.code == 0, outcome.err
        assert f"a100-sxm4-40gb.json, {A100_NAME}, {NOT_COMPARABLE}" in outcome.err
        assert NOT_COMPARABLE in outcome.out
        assert ("published" in outcome.out, "measured" in outcome.out) == (True, False)
        whole = run("show", source, "--ceilings", "auto", "--view", view, "--notes").out
        assert "GPUInspector.jl docs/src/devices/a100_sxm2.md" in whole
    for suffix, told in (("svg", "published roof"), ("html", "<td>published</td>"), ("md", "| published |")):
        out = user / f"r.{suffix}"
        assert run("render", source, "--ceilings", "auto", "-o", out).code == 0
        text = out.read_text(encoding="utf-8")
        assert NOT_COMPARABLE in text
        assert told in text
        assert not [word for word in ("measured roof<", "<td>measured</td>", "| measured |") if word in text]


def test_variants_of_a_model_are_not_mixed_up(run: Command, user: Path, own: Callable[..., Ceilings]) -> None:
    """The same chip, other memory or another board: only the name of the driver tells."""
    own(9e12, name="NVIDIA A100-SXM4-80GB")
    names = {**A100, "device__attribute_display_name": "NVIDIA A100-PCIE-80GB"}
    source = report(user / "r.ncu-rep", kernel(complete(PCIE)), kernel(complete(names)))
    outcome = run("show", source, "--ceilings", "auto", "--json")
    assert outcome.code == 0
    assert {row["device"] for row in measured(outcome.out)} == {"NVIDIA A100-PCIE-40GB"}
    first, second = outcome.err.splitlines()
    assert first.startswith("ncu-roofline: ceilings of NVIDIA A100-PCIE-40GB: a100-pcie-40gb.json")
    assert second.startswith("ncu-roofline: no ceilings of NVIDIA A100-PCIE-80GB (8.0): none was measured here and none comes")


def test_each_gpu_gets_its_own(run: Command, user: Path, own: Callable[..., Ceilings]) -> None:
    own(1.3e12)
    fast = {**complete(H100, clock=1.98e9), "device__attribute_max_mem_frequency_khz": 2_619_000}
    source = report(user / "r.ncu-rep", kernel(complete()), kernel(complete(PCIE)), kernel(fast))
    outcome = run("show", source, "--ceilings", "auto", "--json")
    found = {(row["device"], row["level"]): row["value"] for row in measured(outcome.out) if row["level"] == "dram"}
    h100 = next(one for one in registry() if one.device == "NVIDIA H100 80GB HBM3")
    best = h100.bandwidth("dram")
    assert best is not None
    wanted = {A100_NAME: 1.3e12, "NVIDIA A100-PCIE-40GB": 1503.39e9, "NVIDIA H100 80GB HBM3": best.value}
    assert found == {(name, "dram"): value for name, value in wanted.items()}
    assert len(outcome.err.splitlines()) == 3


def test_a_named_file_goes_before(run: Command, source: Path, user: Path) -> None:
    path = user / "mine.json"
    path.write_text(json.dumps(document(ceiling("dram.read", 1.25e12))))
    outcome = run("show", source, "--ceilings", path, "--ceilings", "auto", "--json")
    assert [row["value"] for row in measured(outcome.out)] == [1.25e12]
    assert outcome.err == ""


def test_none_fits(run: Command, user: Path) -> None:
    other = {**H100, "device__attribute_display_name": "NVIDIA H100 NVL"}
    source = report(user / "r.ncu-rep", kernel(complete(other, clock=1.98e9)))
    outcome, without = run("show", source, "--ceilings", "auto"), run("show", source)
    assert (outcome.code, outcome.out) == (0, without.out)
    assert outcome.err.count("\n") == 1
    assert "so its roofs are theoretical" in outcome.err


def test_every_command_that_draws_takes_it(run: Command, source: Path, user: Path) -> None:
    for words in (
        ("ranks", source),
        ("compare", source, report(user / "after.ncu-rep", kernel(complete()))),
        ("advise", source),
        ("portability", source),
        ("annotate", source, "-o", user / "out.ncu-rep"),
    ):
        outcome = run(*words, "--ceilings", "auto")
        assert outcome.code == 0, outcome.err
        assert f"ncu-roofline: ceilings of {A100_NAME}: a100-sxm4-40gb.json" in outcome.err, words
    said = " ".join(run("portability", source, "--ceilings", "auto").out.split())
    assert "compute ceiling published, bandwidth of DRAM published" in said
    assert f"({NOT_COMPARABLE})" in " ".join(run("advise", source, "--ceilings", "auto", "--all-findings").out.split())


def test_portability_of_a_table_goes_by_the_device_it_names(run: Command, user: Path) -> None:
    table = user / "t.csv"
    table.write_text(
        "platform,device,application,gflop/s,ai_dram\nalpha,NVIDIA A40,x,100,0.5\nbeta,NVIDIA A100-PCIE-40GB,x,100,0.5\n"
    )
    outcome = run("portability", table, "--ceilings", "auto", "--precision", "fp64", "--json")
    assert "ceilings of NVIDIA A40: a40.json" in outcome.err
    assert "ceilings of NVIDIA A100-PCIE-40GB: a100-pcie-40gb.json" in outcome.err


def test_generate_has_no_gpu_to_go_by(run: Command, user: Path) -> None:
    assert_refused(run("generate", "-o", user / "g", "--ceilings", "auto"), "auto", 2)
    assert not (user / "g").exists()


def test_the_machine_says_where_the_users_files_are(user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine: Machine = bare_machine(user)
    path = user / "own.json"
    path.write_text(json.dumps(document(ceiling("dram.read", 1.1e12))))
    kept = keep(machine, path)
    assert chosen_module.Shelf(machine).find(A100_NAME) == kept
    assert chosen_module.Shelf(machine).find(A100_NAME, (8, 6)) is None
    assert chosen_module.Shelf(machine).find("") is None
    assert capsys.readouterr().err.splitlines()[2].startswith("ncu-roofline: no ceilings of a report that names no GPU: ")


@pytest.mark.exhaustive
@pytest.mark.reports
def test_every_real_report_gets_what_its_gpu_is(run: Command, real_reports: dict[str, Path]) -> None:
    known = {one.device for one in registry()}
    for name, path in real_reports.items():
        outcome = run("show", path, "--ceilings", "auto", "--json", "--top", "1")
        assert outcome.code == 0, (name, outcome.err)
        said = [line for line in outcome.err.splitlines() if "ceilings of" in line]
        roofs = json.loads(outcome.out)["roofs"]
        drawn = {row["device"] for row in roofs if row["source"] == "published"}
        assert len(said) == 1, name
        assert drawn <= known
        assert ("no ceilings of" in said[0]) == (not any(f"ceilings of {device}:" in said[0] for device in known))
