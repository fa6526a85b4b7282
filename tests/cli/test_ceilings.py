"""Measured ceilings: what a file may hold, which of it are roofs, and for which GPU."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.formats.inputs import open_ceilings
from tests.cli.command import Command, assert_refused
from tests.factory import A100, H100, complete, kernel, report
from tests.published_report import gpp_ceilings


def ceiling(name: str, value: float | None = 1e12, unit: str = "", **more: Any) -> dict[str, Any]:
    """One entry as the micro-benchmarks write it."""
    unit = unit or ("FLOP/s" if name.startswith(("fp", "bf", "tensor")) else "B/s")
    return {"id": name, "value": value, "unit": unit, "accepted": True, "reasons": [], **more}


def document(*entries: Any, **changes: Any) -> dict[str, Any]:
    """A whole file; ``changes`` are its keys, None removes one."""
    whole = {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "tool": {"version": "1"},
        "host": {"name": "node", "time_utc": "2025-03-04T05:06:07Z"},
        "device": {"name": A100["device__attribute_display_name"], "uuid": "GPU-1", "cc": "8.0"},
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
    assert (found.device, found.uuid, found.compute_capability, found.date) == (
        "NVIDIA A100-SXM4-40GB",
        "GPU-1",
        (8, 0),
        "2025-03-04",
    )
    assert found.provenance == "ceilings.json, NVIDIA A100-SXM4-40GB, 2025-03-04"
    one = found.by_id["dram.read"]
    assert (one.value, one.unit, one.clock, one.variant) == (1.4e12, "B/s", 1.41e9, "ert_dram_read")


def test_what_may_be_absent_or_odd(tmp_path: Path) -> None:
    found = read(tmp_path, {"id": "l2.read", "value": 1, "unit": "B/s"}, host=None, device={"cc": "9.0"}, tool=None)
    assert (found.device, found.uuid, found.date, found.provenance) == ("", "", "", "ceilings.json")
    assert math.isnan(found.by_id["l2.read"].clock)
    assert found.by_id["l2.read"].variant == ""
    for clock in (None, {}, {"sm_mhz_mean": None}, {"sm_mhz_mean": 0}):
        assert math.isnan(read(tmp_path, ceiling("l2.read", clock=clock)).by_id["l2.read"].clock)
    for reasons in (None, [], ["thermal slowdown seen"]):
        assert read(tmp_path, ceiling("l2.read", reasons=reasons)).by_id
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document()), encoding="utf-8-sig")  # a byte-order mark
    assert read_ceilings(path).by_id


def test_what_is_no_roof(tmp_path: Path) -> None:
    for entry in (
        ceiling("l2.read", None),
        ceiling("l2.read", None, reasons=["unsupported"]),
        ceiling("l2.read", accepted=False),
        ceiling("l2.read", accepted=False, reasons=["unstable"]),
        ceiling("l2.read", reasons=["emulated"]),
    ):
        found = read(tmp_path, entry, ceiling("dram.read"))
        assert set(found.by_id) == {"dram.read"}
        assert found.bandwidth("l2") is None
        with pytest.raises(RooflineError, match=r"none of its ceilings was accepted\. Measure again where nothing else uses"):
            read(tmp_path, entry)


WRONG: dict[str, tuple[Any, str]] = {
    "a list": ([], "it is no ceilings file"),
    "another schema": (document(schema="roofs"), "it is no ceilings file"),
    "a later version": (document(schema_version=2), "it is no ceilings file"),
    "no version": (document(schema_version=None), "it is no ceilings file"),
    "no device": (document(device=None), "it is no ceilings file"),
    "a device by name": (document(device="A100"), "it is no ceilings file"),
    "no ceilings": (document(ceilings=None), "it is no ceilings file"),
    "ceilings by id": (document(ceilings={}), "it is no ceilings file"),
    "empty": (document(ceilings=[]), "it holds no ceiling"),
    "another kind of device": (document(device={"cc": "9.0", "kind": "tpu"}), "\"device.kind\" must be gpu or cpu, not 'tpu'"),
    "another status": (document(status="guessed"), '"status" must be measured or published'),
    "published by nobody": (document(status="published"), 'dram.read has no "source"'),
    "value beyond machines": (document(ceiling("l2.read", 1e308)), "value must lie between 1 and 1e[+]21 B/s, not 1e[+]308"),
    "value of no machine": (document(ceiling("l2.read", 5e-324)), "value must lie between 1 and 1e[+]21 B/s, not 5e-324"),
    "a latency of the wrong unit": (document(ceiling("launch.sync", 3.9, "s")), "value must lie between 1e-12 and 0.01 s"),
    "a latency of nothing": (document(ceiling("launch.sync", 1e-13, "s")), "value must lie between 1e-12 and 0.01 s"),
    "unit of what was refused": (document(ceiling("l2.read", unit="GB/s", accepted=False)), "unit must be B/s, not 'GB/s'"),
    "no capability": (document(device={"name": "x"}), '"device.cc" must read like "9.0", not None'),
    "another capability": (document(device={"cc": "sm_90"}), "must read like"),
    "capability in other digits": (document(device={"cc": "\u00b2.0"}), "must read like"),
    "entry without id": (document(ceiling("l2.read"), {"value": 1}), r'"ceilings"\[1\] must be an object with an "id"'),
    "entry that is a number": (document(3), r'"ceilings"\[0\] must be an object'),
    "value as text": (document(ceiling("l2.read", "1")), r"\(l2.read\): value must be a positive number or null, not '1'"),  # type: ignore[arg-type]
    "value true": (document(ceiling("l2.read", True)), "value must be a positive number"),
    "value zero": (document(ceiling("l2.read", 0)), "value must be a positive number"),
    "value negative": (document(ceiling("l2.read", -1e12)), "value must be a positive number"),
    "value NaN": (document(ceiling("l2.read", math.nan)), "value must be a positive number"),
    "value infinite": (document(ceiling("l2.read", math.inf)), "value must be a positive number"),
    "value beyond floats": (
        document(ceiling("l2.read", 10**400)),
        r"value must be a positive number or null, not 1000.*\N{HORIZONTAL ELLIPSIS}",
    ),
    "unknown unit": (document(ceiling("l2.read", unit="GB/s")), "unit must be B/s, not 'GB/s'"),
    "no unit": (document({"id": "x.y", "value": 1}), "unit must be B/s or FLOP/s or OP/s or s, not None"),
    "unit as list": (document(ceiling("l2.read", unit=["B/s"])), "unit must be"),  # type: ignore[arg-type]
    "bandwidth in FLOP/s": (document(ceiling("dram.read", unit="FLOP/s")), "unit must be B/s"),
    "work in B/s": (document(ceiling("fp64.fma", unit="B/s")), "unit must be FLOP/s"),
    "tensor work in B/s": (document(ceiling("tensor.fp16.mma", unit="B/s")), "unit must be FLOP/s or OP/s"),
    "reasons as text": (document(ceiling("l2.read", reasons="not emulated")), r"\(l2.read\): reasons must be a list, not 'not"),
    "reasons as number": (document(ceiling("l2.read", reasons=5)), "reasons must be a list"),
    "a reason as number": (document(ceiling("l2.read", reasons=["x", 5])), r"reasons\[1\] must be a text, not 5"),
    "a negative clock": (
        document(ceiling("fp64.fma", clock={"sm_mhz_mean": -1410})),
        r"\(fp64.fma\): clock.sm_mhz_mean must be .*-1410",
    ),
    "a negative variation": (document(ceiling("l2.read", cv=-0.01)), r"\(l2.read\): cv must be a number, 0 or .*, not -0.01"),
    "a negative interval": (document(ceiling("l2.read", ci95=[-1e12, 2e12])), r"\(l2.read\): ci95\[0\] must be a number, 0 or"),
    "an interval upside down": (
        document(ceiling("l2.read", ci95=[2e12, 1e12])),
        r"\(l2.read\): ci95 must be from its lower to",
    ),
    "one id twice": (document(ceiling("l2.read"), ceiling("l2.read", 2e12)), "two accepted ceilings of one id"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_validation(tmp_path: Path, wrong: str) -> None:
    content, reason = WRONG[wrong]
    path = write(tmp_path, content)
    with pytest.raises(RooflineError, match=reason) as caught:
        read_ceilings(path)
    assert str(caught.value).startswith(f"Cannot read ceilings {path}: ")
    assert str(caught.value).isprintable()


COMMANDS = ("bench verify {0}", "bench merge {0}", "bench compare {0} {0}", "bench draw {0} -o {1}/c.svg")
_HUGE = 10**400
FIELDS: dict[str, list[Any]] = {
    "host.name": [7, []],
    "host.time_utc": [7, {}],
    "tool.build": ["nvcc"],
    "settings.data": [{}],
    "warnings": ["hot", [3], [None]],
    "device.name": [["x"]],
    "device.driver": [580.65],
    "device.power_limit_w": [[700], {}, "700", _HUGE, math.nan],
    "device.ecc": ["on", {"current": []}],
    "device.gpus": [3, [3], [None]],
    "device.sm_count": ["many", _HUGE, 1e300],
    "device.threads": ["8", _HUGE],
    "device.mem_clock_max_mhz": ["2619", _HUGE, 5e-324],
}
ENTRY_FIELDS: dict[str, list[Any]] = {
    "accepted": ["yes"],
    "clock": [3, {"sm_mhz_mean": "x"}, {"sm_mhz_mean": True}, {"sm_mhz_mean": _HUGE}, {"sm_mhz_mean": 5e-324}, {"mem_mhz": []}],
    "reasons": [[None]],
    "throttle": [3, {"reasons": 3}, {"reasons": [3]}, {"reasons": [[]]}],
    "ci95": [7, [1, _HUGE], ["a", None]],
    "cv": ["0.1", math.inf],
    "between_session_cv": [[]],
    "power_w": ["much", 5e-324],
    "per_sm_and_cycle": [True, _HUGE],
    "variant": ["fma", {"kernel": 3}],
    "theory": [3, {"at_measured_clock": _HUGE}],
    "burst": [7, {"value": 1e300}],
    "verified": [True, {"checksum": "ok"}],
    "values": [7, [1], [None], [{"value": "x"}]],
}


@pytest.mark.parametrize(
    ("field", "values"), [*FIELDS.items(), *((f"ceilings[1].{name}", values) for name, values in ENTRY_FIELDS.items())]
)
def test_no_command_meets_a_field_of_another_type(field: str, values: list[Any], tmp_path: Path, run: Command) -> None:
    """All four commands for the first value, one for the others: they share the reader."""
    place, _, key = field.rpartition(".")
    for number, value in enumerate(values):
        content = document(ceiling("dram.read"), ceiling("fp64.fma"))
        (content["ceilings"][1] if place == "ceilings[1]" else content if not place else content.setdefault(place, {}))[key] = (
            value
        )
        path = write(tmp_path, content)
        told = key if place == "ceilings[1]" else field
        for words in COMMANDS if not number else COMMANDS[:1]:
            outcome = run(*(word.format(path, tmp_path) for word in words.split()))
            assert_refused(outcome, path)
            assert told in outcome.err


def test_null_is_a_field_that_is_not_told(tmp_path: Path, run: Command) -> None:
    content = document(ceiling("dram.read", **dict.fromkeys(ENTRY_FIELDS)))
    content.update(dict.fromkeys(("host", "tool", "settings", "warnings", "status")))
    content["device"].update(dict.fromkeys(name.partition(".")[2] for name in FIELDS if name.startswith("device.")))
    content["device"]["name"] = "NVIDIA A100-SXM4-40GB"
    path = write(tmp_path, content)
    for words in COMMANDS:
        assert run(*(word.format(path, tmp_path) for word in words.split())).code == 0


EVIL = "\33[31mred\33]0;x\7 \u202e\nsecond line"


def test_what_a_terminal_obeys_is_taken_out(tmp_path: Path, run: Command) -> None:
    bad = ceiling(f"fp64.{EVIL}", 1e12, "FLOP/s", accepted=False, reasons=[EVIL], verdict=EVIL, variant={"kernel": EVIL})
    content = document(ceiling("dram.read"), bad, warnings=[EVIL], host={"name": EVIL, "time_utc": EVIL})
    content["device"].update(name=EVIL, driver=EVIL, uuid=EVIL)
    path = write(tmp_path, content)
    content["device"]["driver"] = f"{EVIL} later"
    (other := tmp_path / "other.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    for words in (("verify", path), ("merge", path), ("compare", path, other)):
        outcome = run("bench", *words)
        assert outcome.code == 0
        assert "red" in outcome.out
        assert all(line.isprintable() for line in outcome.out.split("\n"))
        assert not any(line.startswith("second line") for line in outcome.out.splitlines())


@pytest.mark.parametrize(
    ("level", "values", "best"),
    [
        ("dram", {"dram.read": 2.0, "dram.copy": 3.0, "dram.write": 1.0}, "dram.copy"),
        ("dram", {"dram.read": 3.0, "dram.copy": 2.0}, "dram.read"),
        ("l1", {"l1.read": 1.0}, "l1.read"),
        ("shared", {"smem.read": 1.0, "smem.write": 9.0}, "smem.read"),
        ("l2", {"l2.read": 1.0, "l2.write": 9.0, "l2.read_far": 9.0}, "l2.read"),
        ("system", {"host.h2d": 1.0, "host.d2h": 2.0, "host.bidir": 3.0}, "host.bidir"),
    ],
)
def test_bandwidth_roofs(tmp_path: Path, level: str, values: dict[str, float], best: str) -> None:
    found = read(tmp_path, *(ceiling(name, value) for name, value in values.items())).bandwidth(level)
    assert found
    assert found.id == best


def test_compute_roofs(tmp_path: Path) -> None:
    values = {"fp64.fma": 9.0, "tensor.fp16.mma": 600.0, "tensor.fp16.wgmma": 900.0, "tensor.fp16_acc16.mma": 2000.0}
    found = read(tmp_path, *(ceiling(name, value) for name, value in values.items()))
    for roof, best in (
        ("fp64.fma", "fp64.fma"),
        ("tensor.fp16.mma", "tensor.fp16.mma"),
        ("tensor.fp16", "tensor.fp16.wgmma"),  # without a family: the best of them
        ("tensor.fp16_acc16", "tensor.fp16_acc16.mma"),
    ):
        one = found.compute(roof)
        assert one
        assert one.id == best
    assert [found.bandwidth(level) for level in ("l1", "shared", "l2", "dram", "system", "moon")] == [None] * 6
    assert [found.compute(roof) for roof in ("fp64.nofma", "fp64", "tensor.bf16", "tensor", "tensor.fp16.tcgen05")] == [
        None
    ] * 5


@pytest.mark.parametrize(
    ("name", "capability", "fits"),
    [
        ("NVIDIA A100-SXM4-40GB", (8, 0), True),
        ("A100-SXM4-40GB", (8, 0), True),
        ("nvidia  a100-sxm4-40gb", (8, 0), False),
        ("NVIDIA A100-SXM4-80GB", (8, 0), False),
        ("NVIDIA A100-SXM4-40GB", (8, 6), False),
        ("", (8, 0), False),
    ],
)
def test_which_gpu(tmp_path: Path, name: str, capability: tuple[int, int], fits: bool) -> None:
    assert read(tmp_path).applies_to(name, capability) is fits


def test_ceilings_of_another_gpu_are_refused(tmp_path: Path) -> None:
    ceilings = write(tmp_path, document())
    source = report(tmp_path / "r.ncu-rep", kernel(complete(H100, clock=1.98e9)))
    with pytest.raises(RooflineError, match=r"measured on NVIDIA A100.* the reports are from NVIDIA H100.*Give ceilings"):
        roofline(source, ceilings)


def test_each_gpu_gets_its_own(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete()), kernel(complete(H100, clock=1.98e9)))
    result = roofline(source, write(tmp_path, document(ceiling("dram.read", 1.4e12))))
    measured = result.roofs[result.roofs["origin"] == "measured"]
    assert measured["device"].tolist() == ["NVIDIA A100-SXM4-40GB"]
    assert measured["value"].tolist() == [1.4e12]
    dram = result.points[result.points["level"] == "dram"].set_index("launch")
    assert dram["attainable"].tolist() == pytest.approx([4 * 1.4e12, 4 * 1555.2e9])


def test_the_published_ceilings_are_valid(tmp_path: Path) -> None:
    found = read_ceilings(write(tmp_path, gpp_ceilings()))
    assert set(found.by_id) == {"fp64.fma", "fp64.nofma", "dram.read", "l2.read", "launch.stream"}


def test_only_files_that_name_no_gpu_at_all_fit_any(tmp_path: Path) -> None:
    nameless = read(tmp_path, {"id": "l2.read", "value": 1, "unit": "B/s"}, device={"cc": "9.0"})
    assert not nameless.applies_to("NVIDIA A100-SXM4-40GB", (8, 0))
    foreign = tmp_path / "gpp.txt"
    foreign.write_text("memroofs 829\nmem_roof_names 'HBM'\ncomproofs 7068\ncomp_roof_names 'FMA'\n")
    assert open_ceilings(foreign).applies_to("NVIDIA A100-SXM4-40GB", (8, 0))


def test_sections_need_ceilings_of_a_gpu(tmp_path: Path, run: Command) -> None:
    foreign = tmp_path / "gpp.txt"
    foreign.write_text("memroofs 829\nmem_roof_names 'HBM'\ncomproofs 7068\ncomp_roof_names 'FMA'\n")
    for more in ((), ("--clock-consistent",)):
        assert_refused(run("generate", "-o", tmp_path / "out", *more, "--ceilings", foreign), foreign)
