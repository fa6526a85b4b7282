"""ERT's roofline.json as measured ceilings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_ceilings, open_input
from tests import published, published_report

Pairs = list[list[Any]]


def document(gbytes: Pairs, gflops: Pairs, gpu: bool = False) -> dict[str, Any]:
    """The layout of ERT 1.1."""
    return {
        "empirical": {
            "gbytes": {"data": gbytes, "metadata": {"FLOPS": 1}},
            "gflops": {"data": gflops, "metadata": {"TIMESTAMP_DB": 1560425105.98, "FLOPS": 16}},
            "metadata": {"ERT_VERSION": "1.1.0", "HOSTNAME": ["n", [], ["127.0.1.1"]], "CONFIG": {"ERT_GPU": [gpu]}},
        },
        "spec": {"gbytes": {"data": [["DRAM", 102.4]]}, "gflops": {"data": []}},
    }


CPU: Pairs = [["L1", 1002.83], ["L2", 541.98], ["L3", 290.41], ["DRAM", 68.76]]


def write(folder: Path, content: object) -> Path:
    path = folder / "roofline.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=3), encoding="utf-8")
    return path


def test_ceilings_of_a_cpu(tmp_path: Path) -> None:
    ceilings = open_ceilings(write(tmp_path, document(CPU, [["GFLOPs", 288.33]])))
    assert {level: ceilings.bandwidth(level).value for level in ("l1", "l2", "l3", "dram")} == pytest.approx(  # type: ignore[union-attr]
        {"l1": 1002.83e9, "l2": 541.98e9, "l3": 290.41e9, "dram": 68.76e9}
    )
    peak = ceilings.compute("fp64.fma")
    assert peak is not None
    assert (peak.value, peak.unit) == (288.33e9, "FLOP/s")
    assert "double precision" in peak.source
    assert (ceilings.date, ceilings.device) == ("2019-06-13", "")


def test_precisions(tmp_path: Path) -> None:
    pairs = [["FP64 GFLOPs", 7068.86], ["FP32 GFLOPs", 14000.0], ["FP16 GFLOPs", 28000.0], ["FP64 GFLOPs", 6000.0]]
    ceilings = open_ceilings(write(tmp_path, document([["DRAM", 828.758]], pairs)))
    found = {name: ceilings.compute(f"{name}.fma").value for name in ("fp64", "fp32", "fp16")}  # type: ignore[union-attr]
    assert found == {"fp64": 7068.86e9, "fp32": 14000e9, "fp16": 28000e9}


def test_what_it_calls_l1_on_a_gpu(tmp_path: Path) -> None:
    pairs = [["L1", 2996.77], ["DRAM", 828.758]]
    ceilings = open_ceilings(write(tmp_path, document(pairs, [["GFLOPs", 7068.86]], gpu=True)))
    assert ceilings.bandwidth("l1") is None
    l2 = ceilings.bandwidth("l2")
    assert l2 is not None
    assert l2.value == pytest.approx(published.L2)
    assert "ERT calls it L1" in l2.source


def test_under_a_report(tmp_path: Path) -> None:
    published_report.write(tmp_path)
    path = write(tmp_path, document([["L1", 2996.77], ["DRAM", 828.758]], [["GFLOPs", 7068.86]], gpu=True))
    points = roofline(tmp_path / published_report.REPORT, path).points.query("level == 'dram'")
    assert list(100 * points["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)


def test_it_holds_no_kernels(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match=r"which holds ceilings and no kernels. Give it with --ceilings"):
        open_input(write(tmp_path, document(CPU, [["GFLOPs", 288.33]])))


BAD = {
    "cut off": (json.dumps(document(CPU, []))[:-20], "Unterminated string"),
    "no object": ('{"empirical": ["gflops", "gbytes", "data"]}', '"empirical"."gbytes"."data" is no list'),
    "no gbytes": ('{"empirical": {"gflops": {"data": []}, "gbytes": 3}}', '"empirical"."gbytes"."data" is no list'),
    "no list": ('{"empirical": {"gflops": {"data": []}, "gbytes": {"data": 3}}}', '"empirical"."gbytes"."data" is no list'),
    "no pair": (document([["DRAM"]], []), r"\[0\] is no pair of name and positive number"),
    "text": (document([["DRAM", "fast"]], []), r"\[0\] is no pair of name and positive number"),
    "negative": (document(CPU, [["GFLOPs", -1]]), r"\[0\] is no pair of name and positive number"),
    "true": (document(CPU, [["GFLOPs", True]]), "is no pair of name and positive number"),
    "empty": (document([], []), 'both "gflops" and "gbytes" are empty'),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(tmp_path: Path, name: str) -> None:
    content, reason = BAD[name]
    with pytest.raises(RooflineError, match=reason) as caught:
        open_ceilings(write(tmp_path, content))
    assert str(caught.value).startswith(f"Cannot read ceilings {tmp_path}")
