"""Measured ceilings: what a file may hold, which of it are roofs, and for which GPU; `--ceilings auto` chooses for each GPU."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import reading
from ncu_roofline.formats.ceilings import NOT_COMPARABLE, Ceilings, read_ceilings, registry
from ncu_roofline.formats.inputs import open_ceilings
from ncu_roofline.plugin.machine.install import keep
from ncu_roofline.plugin.machine.machine import this_machine
from tests.cli.command import Command
from tests.factory import A100, H100, complete, kernel, report
from tests.golden import assert_golden
from tests.machine.fakes import bare_machine
from tests.published_report import gpp_ceilings

Own = Callable[..., Ceilings]
A100_NAME = A100["device__attribute_display_name"]
WRONG = Path(__file__).with_name("wrong_ceilings.txt")
COMMANDS = ("bench merge {0}", "bench compare {0} {0}", "bench draw {0} -o {1}/c.svg")


def ceiling(name: str, value: float | None = 1e12, unit: str = "", **more: Any) -> dict[str, Any]:
    unit = unit or ("FLOP/s" if name.startswith(("fp", "bf", "tensor")) else "B/s")
    return {"id": name, "value": value, "unit": unit, "accepted": True, "reasons": [], **more}


def document(*entries: Any, **changes: Any) -> dict[str, Any]:
    """A whole file; ``changes`` are its keys, None removes one."""
    whole = {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "tool": {"version": "1"},
        "host": {"name": "node", "time_utc": "2025-03-04T05:06:07Z"},
        "device": {"name": A100_NAME, "uuid": "GPU-1", "cc": "8.0"},
        "ceilings": list(entries) or [ceiling("dram.read")],
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not None}


def write(folder: Path, content: Any) -> Path:
    path = folder / "ceilings.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def read(folder: Path, *entries: Any, **changes: Any) -> Ceilings:
    return read_ceilings(write(folder, document(*entries, **changes)))


def test_what_is_read(tmp_path: Path) -> None:
    clock, variant = {"sm_mhz_mean": 1410, "method": "x"}, {"kernel": "ert_dram_read", "width": 16}
    found = read(tmp_path, ceiling("dram.read", 1.4e12, clock=clock, variant=variant, cv=0.1), derived={}, warnings=[])
    assert (found.device, found.uuid, found.compute_capability) == (A100_NAME, "GPU-1", (8, 0))
    assert (found.date, found.provenance) == ("2025-03-04", f"ceilings.json, {A100_NAME}, 2025-03-04")
    one = found.by_id["dram.read"]
    assert (one.value, one.unit, one.clock, one.variant) == (1.4e12, "B/s", 1.41e9, "ert_dram_read")
    bare = read(tmp_path, {"id": "l2.read", "value": 1, "unit": "B/s"}, host=None, device={"cc": "9.0"}, tool=None)
    said = (bare.device, bare.uuid, bare.date, bare.provenance, bare.by_id["l2.read"].variant)
    assert said == ("", "", "", "ceilings.json", "")
    for odd in (None, {}, {"sm_mhz_mean": None}, {"sm_mhz_mean": 0}):
        assert math.isnan(read(tmp_path, ceiling("l2.read", clock=odd)).by_id["l2.read"].clock)
    assert read(tmp_path, ceiling("l2.read", reasons=["thermal slowdown seen"])).by_id
    (tmp_path / "c.json").write_text(json.dumps(document()), encoding="utf-8-sig")  # a byte-order mark
    assert read_ceilings(tmp_path / "c.json").by_id
    published = read_ceilings(write(tmp_path, gpp_ceilings()))
    assert set(published.by_id) == {"fp64.fma", "fp64.nofma", "dram.read", "l2.read", "launch.stream"}


def test_what_is_no_roof(tmp_path: Path) -> None:
    for changes in ({"value": None}, {"accepted": False}, {"accepted": False, "reasons": ["x"]}, {"reasons": ["emulated"]}):
        entry = {**ceiling("l2.read"), **changes}
        found = read(tmp_path, entry, ceiling("dram.read"))
        assert (set(found.by_id), found.bandwidth("l2")) == ({"dram.read"}, None)
        with pytest.raises(RooflineError, match=r"none of its ceilings was accepted\. Measure again where nothing else uses"):
            read(tmp_path, entry)


def test_best_of_the_roofs(tmp_path: Path) -> None:
    for line in Path(__file__).with_name("best_ceilings.txt").read_text(encoding="utf-8").splitlines()[2:]:
        roof, values, best = line.split(": ")
        words = values.split()
        found = read(tmp_path, *(ceiling(name, float(value)) for name, value in zip(words[::2], words[1::2], strict=True)))
        one = found.compute(roof) if roof.startswith(("fp", "tensor")) else found.bandwidth(roof)
        assert (one.id if one else "none") == best, line


def changed(line: str) -> Any:
    """The whole document with the changes of a line: key.0.key -> value, or (gone)."""
    changes = json.loads(line.replace("1HUGE", str(10**400)))
    content = document(ceiling("dram.read"), ceiling("fp64.fma"))
    for path, value in changes.items() if isinstance(changes, dict) else ():
        *before, last = (int(key) if key.isdecimal() else key for key in path.split("."))
        place: Any = content
        for key in before:
            place = place[key] if isinstance(place, list) else place.setdefault(key, {})
        if value == "(gone)":
            del place[last]
        else:
            place[last] = value
    return content if isinstance(changes, dict) else changes


def test_validation(run: Command, tmp_path: Path) -> None:
    """What is wrong is named, in a sentence; all commands share the reader.  A field that is null is one that is not told."""
    found = ""
    for line in WRONG.read_text(encoding="utf-8").splitlines():
        if line.startswith(("{", "[")):
            path, reason = write(tmp_path, changed(line)), "fine"
            try:
                read_ceilings(path)
            except RooflineError as error:
                reason = str(error)
            assert reason.isprintable()
            found += f"{line}\n    {reason.removeprefix(f'Cannot read ceilings {path}: ')}\n"
            for words in COMMANDS if reason == "fine" or line == '{"warnings": [3]}' else ():
                outcome = run(*(word.format(path, tmp_path) for word in words.split()))
                assert (outcome.code, outcome.err.count("Cannot")) == ((0, 0) if reason == "fine" else (1, 1))
    assert_golden(WRONG, found)


def test_which_gpu(tmp_path: Path) -> None:
    """By its whole name as the driver gives it; only files that name no GPU at all fit any."""
    found = read(tmp_path)
    names = (A100_NAME, A100_NAME.removeprefix("NVIDIA "), "nvidia  a100-sxm4-40gb", "NVIDIA A100-SXM4-80GB", "")
    assert [found.applies_to(name, (8, 0)) for name in names] == [True, True, False, False, False]
    assert not found.applies_to(A100_NAME, (8, 6))
    nameless = read(tmp_path, {"id": "l2.read", "value": 1, "unit": "B/s"}, device={"cc": "9.0"})
    assert not nameless.applies_to(A100_NAME, (8, 0))
    foreign = tmp_path / "gpp.txt"
    foreign.write_text("memroofs 829\nmem_roof_names 'HBM'\ncomproofs 7068\ncomp_roof_names 'FMA'\n")
    assert open_ceilings(foreign).applies_to(A100_NAME, (8, 0))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    for name in ("DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))

    def make(value: float, date: str = "2026-01-01", uuid: str = "GPU-1", name: str = A100_NAME, **more: Any) -> Ceilings:
        device = {"name": name, "uuid": uuid, "cc": "8.0"}
        content = document(ceiling("dram.read", value), host={"time_utc": date}, device=device, **more)
        return keep(this_machine(), write(tmp_path, content))

    return make


def chosen(run: Command, *words: object) -> tuple[dict[str, float], list[str]]:
    """The measured roof of DRAM by GPU, and what is said of ceilings."""
    outcome = run("show", *words, "--ceilings", "auto", "--json")
    rows = [row for row in json.loads(outcome.out)["roofs"] if row["origin"] == "measured" and row["level"] == "dram"]
    return {row["device"]: row["value"] for row in rows}, outcome.err.splitlines()


def test_which_file_comes_first(run: Command, source: Path, tmp_path: Path, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named one; the user's own, the newest of them; what was left in the cache; measured before published."""
    cache = tmp_path / "CACHE" / "ncu-roofline" / "ceilings" / "x.json"
    cache.parent.mkdir(parents=True)
    write(cache.parent, document(ceiling("dram.read", 1.4e12))).rename(cache)
    assert chosen(run, source)[0] == {A100_NAME: 1.4e12}
    own(1.1e12, "2026-03-01", "GPU-1")
    newest = own(1.2e12, "2026-03-02", "GPU-2")
    own(1.3e12, "2026-02-01", "GPU-3")
    folder = Path(newest.path).parent
    told = [f"ncu-roofline: ceilings of {A100_NAME}: {folder}: {newest.provenance}"]
    assert chosen(run, source) == ({A100_NAME: 1.2e12}, told)
    named = write(tmp_path, document(ceiling("dram.read", 1.25e12)))
    assert chosen(run, source, "--ceilings", named) == ({A100_NAME: 1.25e12}, [])
    for path in (*folder.iterdir(), cache):
        path.unlink()
    published = own(2e12, status="published", ceilings=[ceiling("dram.read", 1.5e12, source="A paper")])
    package = next(one for one in registry() if one.device == A100_NAME)
    assert [one.path for one in reading.Shelf().others if one.device == A100_NAME] == [published.path, package.path]
    made = Ceilings("a100.json", A100_NAME, "", (8, 0), "2026-01-01", package.by_id)
    monkeypatch.setattr(reading, "registry", lambda: (package, made))
    assert chosen(run, source)[1] == [f"ncu-roofline: ceilings of {A100_NAME}: {made.provenance}"]
    Path(published.path).write_text("{")
    broken, _ = chosen(run, source)[1]
    assert broken.startswith(f"ncu-roofline: left out: Cannot read ceilings {published.path}: ")


def test_variants_of_a_model_are_not_mixed_up(run: Command, tmp_path: Path, own: Own) -> None:
    own(9e12, name="NVIDIA A100-SXM4-80GB")
    own(1.3e12)
    fast = {**complete(H100, clock=1.98e9), "device__attribute_max_mem_frequency_khz": 2_619_000}
    pcie = {**complete(), "device__attribute_display_name": "NVIDIA A100-PCIE-40GB"}
    source = report(tmp_path / "r.ncu-rep", *map(kernel, (complete(), pcie, fast)))
    best = next(one for one in registry() if one.device == "NVIDIA H100 80GB HBM3").bandwidth("dram")
    assert best is not None
    wanted = {A100_NAME: 1.3e12, "NVIDIA A100-PCIE-40GB": 1503.39e9, "NVIDIA H100 80GB HBM3": best.value}
    found, told = chosen(run, source)
    assert (found, len(told)) == (wanted, 3)
    assert told[1].startswith("ncu-roofline: ceilings of NVIDIA A100-PCIE-40GB: a100-pcie-40gb.json")
    machine = bare_machine(tmp_path)  # the machine says where the user's files are
    kept = keep(machine, write(tmp_path, document(ceiling("dram.read", 1.1e12))))
    shelf = reading.Shelf(machine)
    assert [shelf.find(A100_NAME), shelf.find(A100_NAME, (8, 6)), shelf.find("")] == [kept, None, None]


def test_published_ones_are_drawn_as_such(run: Command, source: Path, tmp_path: Path) -> None:
    for suffix, told, other in (("svg", "published roof<", "measured roof<"), ("html", "<td>published<", "<td>measured<")):
        assert run("render", source, "--ceilings", "auto", "-o", tmp_path / f"r.{suffix}").code == 0
        text = (tmp_path / f"r.{suffix}").read_text(encoding="utf-8")
        assert (NOT_COMPARABLE in text, told in text, other in text) == (True, True, False)
