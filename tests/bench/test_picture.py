"""The picture of a machine: its roofs as data, then what is drawn; that no two texts overlap; `bench draw`; the live line."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.files import File, live_header, live_line, measured, merge
from ncu_roofline.bench.picture import FORMATS, draw, figure, machine_roofs, render
from ncu_roofline.cli import outputs
from ncu_roofline.cli.outputs import Bar
from ncu_roofline.formats.ceilings import ceilings_of
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import spread
from tests.bench.machines import HOSTILE, cpu_file, document, entry, gpu_file, hostile_file
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.rendering.test_picture import overlapping, undrawn_tick_labels


def mixed_file() -> dict[str, Any]:
    """An H100 with bursts, ceilings that were not accepted, and some without a value."""
    made = gpu_file("H100 SXM")
    for one in made["ceilings"]:
        if one["id"].startswith(("tensor", "fp32")):
            one["burst"] = {"value": one["value"] * 1.06}
            one["value"] *= 0.85
        if one["id"] in ("l2.read", "dram.write"):
            one.update(accepted=False, verdict="unstable")
        if one["id"] == "fp16.fma":
            one.update(accepted=False, verdict="impossible")
    made["ceilings"] += [
        entry("tensor.fp16.tcgen05", None, "FLOP/s"),
        entry("l2.copy", None, "B/s", verdict="failed"),
    ]
    return {**made, "status": "published", "warnings": ["ECC changes at the next reboot: measure again then"]}


FILES = {
    "h100": gpu_file("H100 SXM"),
    "v100": gpu_file("V100"),
    "cpu": cpu_file(),
    "mixed": mixed_file(),
    "hostile": hostile_file(),
    "one-bandwidth": document("A", [entry("dram.read", 1.4e12, "B/s")]),
    "one-compute": document("B", [entry("fp64.fma", 9.4e12, "FLOP/s")]),
    "many": document("C", [entry(f"k{i}.fma", 1e12 + i, "FLOP/s") for i in range(90)] + [entry("dram.read", 1e12, "B/s")]),
}


def drawn(content: dict[str, Any], theme: str = "light") -> tuple[Figure, list[Text]]:
    """The figure and its visible texts."""
    with settings():
        made = figure(content, theme)
        made.canvas.draw()
    hidden = {id(label) for axes in made.axes for label in undrawn_tick_labels(axes)}
    return made, [one for one in made.findobj(Text) if one.get_text().strip() and one.get_visible() and id(one) not in hidden]


def texts_of(content: dict[str, Any]) -> str:
    return " ".join(one.get_text() for one in drawn(content)[1])


def test_a_level_has_its_best_ceiling_as_the_model_takes_it() -> None:
    entries = [entry("dram.read", 3e12, "B/s"), entry("dram.copy", 3.1e12, "B/s"), entry("host.h2d", 5e10, "B/s")]
    entries += [entry("l2.read", 5e12, "B/s"), entry("l2.copy", 6e12, "B/s"), entry("smem.read", 3e13, "B/s")]
    found = machine_roofs(document("A", entries))
    assert [(roof.label, roof.id) for roof in found.bandwidth] == [
        ("Shared", "smem.read"), ("L2", "l2.read"), ("DRAM", "dram.copy"),
    ]  # fmt: skip
    assert found.others == ("dram.read 3 TB/s", "host.h2d 50 GB/s", "l2.copy 6 TB/s")


def test_a_tensor_type_has_its_best_instructions() -> None:
    found = machine_roofs(gpu_file("H100 SXM"))
    labels = [roof.label for roof in found.compute]
    assert "Tensor FP16 wgmma" in labels
    assert "Tensor FP64 mma.sync" in labels
    assert not {"Tensor FP16 mma.sync", "Tensor FP8 mma.sync"} & set(labels)
    assert {"FP64 FMA", "FP64 no FMA", "FP32 FMA", "FP32 no FMA", "FP16 FMA", "BF16 FMA", "INT32 MAD"} <= set(labels)
    assert [roof.value for roof in found.compute] == sorted((roof.value for roof in found.compute), reverse=True)
    assert any(text.startswith("fp64.div 9 TFLOP/s") for text in found.others)


def test_an_accepted_ceiling_goes_before_a_higher_one() -> None:
    entries = [entry("dram.read", 3e12, "B/s"), entry("dram.copy", 9e12, "B/s", accepted=False, verdict="impossible")]
    found = machine_roofs(document("A", [*entries, entry("l2.read", 5e12, "B/s", accepted=False, verdict="unstable")]))
    assert [(roof.id, roof.flaw) for roof in found.bandwidth] == [("l2.read", "unstable"), ("dram.read", "")]
    assert found.others == ("dram.copy 9 TB/s (impossible)",)


def test_what_a_chip_lacks_is_not_called_unmeasured() -> None:
    entries = [entry(f"l2.{name}", None, "B/s", verdict=name) for name in ("failed", "unsupported", "emulated", "not measured")]
    assert machine_roofs(document("A", entries)).others == ("l2.failed (failed)", "l2.not measured (not measured)")


def test_energy_is_power_over_rate() -> None:
    (roof,) = machine_roofs(document("A", [entry("fp64.fma", 1e12, "FLOP/s", power_w=400.0)])).compute
    assert roof.energy == pytest.approx(400e-12)
    (unknown,) = machine_roofs(document("A", [entry("fp64.fma", 1e12, "FLOP/s", power_w=None)])).compute
    assert math.isnan(unknown.energy)


@pytest.mark.sampled
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FILES)
def test_no_two_texts_overlap_and_all_are_on_the_sheet(name: str, theme: str) -> None:
    made, texts = drawn(FILES[name], theme)
    assert overlapping(texts) == []
    width, height = made.canvas.get_width_height()
    for one in texts:
        extent = one.get_window_extent()
        assert extent.x0 >= 0, one.get_text()
        assert extent.y0 >= 0, one.get_text()
        assert extent.x1 <= width, one.get_text()
        assert extent.y1 <= height, one.get_text()


def test_the_picture_says_what_it_is_of() -> None:
    said = texts_of(mixed_file())
    for text in (
        "Published roofline: H100 80GB HBM3",
        "Status: published; of peak",
        "compute capability 9.0, 132 SMs, SM clock 1695 to 1710 MHz, power limit 700 W",
        "driver 580.65.06, 2026-11-22, random data",
        "ncu-roofline 1.0.0",
        "DRAM 3.32 TB/s, dram.read, 99.0 % of peak",
        "L2 5.5 TB/s, not accepted (unstable), l2.read",
        "FP16 FMA, impossible",
        "Not drawn: ",
        "dram.write",
        "l2.copy (failed).",
        "Warnings: ECC changes at the next reboot",
        "pJ/OP",
        "pJ/B",
    ):
        assert text in said, text
    assert "tcgen05" not in said


def test_every_line_is_told_apart() -> None:
    made, _ = drawn(mixed_file())
    lines = {role: [one for one in made.axes[1].lines if one.get_gid() == role] for role in ("peak", "burst")}
    roofs = machine_roofs(mixed_file())
    lines["roof"] = [one for one in made.axes[1].lines if one.get_gid() in ("roof", "roof-upon", "plain", "flawed")]
    assert len(lines["roof"]) == len(roofs.bandwidth) + len(roofs.compute)
    assert len(lines["burst"]) == sum(roof.burst > 0 for roof in roofs.compute)
    assert all(one.get_alpha() < 0.5 for one in lines["burst"])
    assert all(one.get_linestyle() == "--" for one in lines["peak"])
    at = {round(float(one.get_ydata()[-1])): one for one in lines["roof"] if one.get_ydata()[0] == one.get_ydata()[-1]}
    by_id = {roof.id: at[round(roof.value)] for roof in roofs.compute}
    assert by_id["fp64.nofma"].get_linewidth() < by_id["fp64.fma"].get_linewidth()
    assert by_id["fp16.fma"].get_linestyle() != "-"
    assert by_id["tensor.fp16.wgmma"].get_color() != by_id["fp32.fma"].get_color()


def test_ridge_points_can_be_read() -> None:
    entries = [entry("dram.read", 2e12, "B/s"), entry("fp64.fma", 20e12, "FLOP/s"), entry("fp32.fma", 80e12, "FLOP/s")]
    made, texts = drawn(document("A", entries))
    labels = [one.get_text() for one in texts if one.get_gid() == "label-ridge"]
    assert labels == ["40.0", "10.0"]
    rings = sorted(float(x) for one in made.axes[1].lines if one.get_gid() == "point-ridge" for x in one.get_xdata())
    assert rings == pytest.approx([10.0, 40.0])


def test_a_cpu_has_its_own_words() -> None:
    said = texts_of(cpu_file())
    for text in ("L3 900 GB/s, l3.read", "core clock", "MHz", "AMD EPYC 7763"):
        assert text in said
    for text in ("SM", "compute capability", "pJ", "of peak"):
        assert text not in said


def test_a_merged_file_says_of_how_many() -> None:
    content = gpu_file("H100 SXM")
    made = [{**content, "device": {**content["device"], "uuid": name}} for name in ("one", "two")]
    sources = [File(one["device"]["uuid"], one, ceilings_of("x", one)) for one in made]
    said = texts_of(merge(sources))
    assert "medians of 2 GPUs" in said
    assert "SM clock 1710 MHz" in said


def test_names_are_text() -> None:
    _, texts = drawn(hostile_file())
    assert not [one.get_text() for one in texts if is_math_text(one.get_text())]
    assert not any(char in one.get_text() for one in texts for char in "\33\u202e")
    assert "<script>" not in render(hostile_file(), "svg").decode()


@pytest.mark.sampled("svg")
@pytest.mark.parametrize("suffix", FORMATS)
def test_bytes_are_the_same_every_time(suffix: str) -> None:
    first, second = render(FILES["h100"], suffix), render(FILES["h100"], suffix)
    assert first == second
    if suffix == "svg":
        assert ET.parse(io.BytesIO(first)).getroot().tag.endswith("svg")


def test_other_formats_and_themes() -> None:
    for suffix, theme in (("gif", "light"), ("png", "pink")):
        with pytest.raises(ValueError, match="is not one of"):
            render(FILES["h100"], suffix, theme)


NOTHING = document("NVIDIA H200", [entry("dram.read", 4e12, "B/s", accepted=False, verdict="wrong"), entry("a", 1e-6, "s")])


def test_nothing_accepted_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="no ceiling of a memory level or of arithmetic was accepted"):
        render(NOTHING, "svg")
    said = draw(NOTHING, tmp_path / "roof.svg")
    assert said.startswith("Cannot draw the roofline of NVIDIA H200: ")
    assert_no_leftovers(tmp_path)


def test_draw_writes_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "roof.SVG"
    assert draw(FILES["cpu"], path) == f"Wrote {path}"
    assert path.read_bytes() == render(FILES["cpu"], "svg")
    with pytest.raises(RooflineError, match="exists"):
        draw(FILES["cpu"], path)
    draw(FILES["v100"], path, overwrite=True)
    assert path.read_bytes() == render(FILES["v100"], "svg")


def test_without_matplotlib_it_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = draw(FILES["h100"], tmp_path / "roof.png")
    assert said.startswith("Cannot draw the roofline of H100 80GB HBM3: the packages that draw can't be imported")
    assert said.endswith("then draw with `ncu-roofline bench draw`.")
    assert_no_leftovers(tmp_path)
    path = tmp_path / "h100.json"
    path.write_text(json.dumps(FILES["h100"]))
    assert_refused(run("bench", "draw", path, "-o", tmp_path / "roof.png"), "the roofline of H100 80GB HBM3")


def test_nothing_heavy_is_imported_with_the_module() -> None:
    """`bench run` works with the standard library alone."""
    heavy = "{'numpy', 'pandas', 'matplotlib'}"
    code = f"import sys, ncu_roofline.bench.picture; print(*{heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"\n"


def test_bench_draw(run: Command, tmp_path: Path) -> None:
    path, out = tmp_path / "cpu.json", tmp_path / "roof.pdf"
    path.write_text(json.dumps(FILES["cpu"]))
    outcome = run("bench", "draw", path, "-o", out, "--theme", "dark")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {out}\n")
    assert out.read_bytes() == render(FILES["cpu"], "pdf", "dark")
    assert_refused(run("bench", "draw", path, "-o", out), out)
    assert run("bench", "draw", path, "-o", out, "--force").code == 0
    assert out.read_bytes() == render(FILES["cpu"], "pdf")
    assert_refused(run("bench", "draw", path, "-o", tmp_path / "roof.html"), tmp_path / "roof.html", 2)


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "ert-ceilings", "schema_version": 1, "device": {}, "ceilings": [1]}'])
def test_bench_draw_refuses_other_files(run: Command, tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    assert_refused(run("bench", "draw", path, "-o", tmp_path / "roof.svg"), path)
    assert_no_leftovers(tmp_path, "other.json")


def test_rows_keep_their_order_and_distance() -> None:
    assert spread([90.0, 50.0], 10, 0, 100) == [90.0, 50.0]
    assert spread([50.0, 50.0, 50.0], 10, 0, 100) == [60.0, 50.0, 40.0]
    assert spread([99.0, 98.0, 1.0], 10, 0, 100) == [100.0, 90.0, 1.0]
    assert spread([3.0, 2.0], 200, 0, 100) == [100.0, 0.0]
    chain = spread([60.0, 59.0, 51.0, 50.0], 10, 0, 100)
    assert all(a - b == pytest.approx(10) for a, b in pairwise(chain))
    assert spread([], 10, 0, 100) == []


def test_live_lines_stand_below_their_header() -> None:
    good = entry("dram.read", 3.32e12, "B/s", theory={"fraction": 0.9904}, cv=0.0021, power_w=412.3)
    assert live_line(good) == "dram.read                     3.32 TB/s     99.0%   0.21%   1710   412 ok"
    assert [live_header().index(word) + len(word) for word in ("value", "of theory", "spread", "MHz", "W")] == [
        live_line(good).index(word) + len(word) for word in ("3.32 TB/s", "99.0%", "0.21%", "1710", "412")
    ]  # fmt: skip
    bare = {"id": "tensor.fp8.mma", "unit": "FLOP/s", "value": None, "verdict": "emulated", "reasons": ["emulated"]}
    assert live_line(bare).split() == ["tensor.fp8.mma", "-", "-", "-", "-", "-", "emulated"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not a number": (document("A", [entry("dram.read", math.nan, "B/s")]), "value must be a positive number"),
    "beyond machines": (document("A", [entry("dram.read", 1e308, "B/s")]), "must lie between 1 and 1e+21 B/s"),
    "of no machine": (document("A", [entry("fp64.fma", 5e-324, "FLOP/s")]), "must lie between 1 and 1e+21 FLOP/s"),
    "a burst beyond machines": (document("A", [entry("fp64.fma", 1e12, "FLOP/s", burst={"value": 1e308})]), "burst.value must"),
    "one id twice": (document("A", [entry("dram.read", 1e12, "B/s")] * 2), "two accepted ceilings of one id"),
    "published by nobody": ({**document("A", [entry("dram.read", 1e12, "B/s")]), "status": "published"}, 'has no "source"'),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bench_draw_refuses_what_other_commands_refuse(run: Command, tmp_path: Path, name: str) -> None:
    content, reason = REFUSED[name]
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    for words in (("draw", path, "-o", tmp_path / "roof.svg"), ("verify", path), ("merge", path), ("compare", path, path)):
        outcome = run("bench", *words)
        assert_refused(outcome, path)
        assert reason in outcome.err


@pytest.mark.parametrize("value", [1.0, 1e21])
def test_whatever_a_machine_may_have_is_drawn(run: Command, tmp_path: Path, value: float) -> None:
    extremes = {"burst": {"value": 1e-12}, "power_w": 1e-30, "clock": {"sm_mhz_mean": 1.0}, "theory": {"value": 1e21}}
    entries = [entry("dram.read", value, "B/s", **extremes), entry("fp64.fma", 1e12, "FLOP/s", **extremes)]
    path = tmp_path / "ceilings.json"
    path.write_text(json.dumps(document("A", entries)), encoding="utf-8")
    for suffix in FORMATS:
        outcome = run("bench", "draw", path, "-o", tmp_path / f"roof.{suffix}")
        assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("text", [*HOSTILE, "two\nlines"])
def test_a_table_says_nothing_that_a_terminal_obeys(text: str) -> None:
    """Of `bench run`, whose content comes from the program and the driver, not from a file that was read."""
    content = document(
        text, [entry("dram.read", 1e12, "B/s", reasons=[text], verdict=text, variant={"kernel": text})], uuid=text
    )
    shown = measured({**content, "warnings": [text], "host": {"name": text}})
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith("lines") for line in shown.split("\n"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_live_line_is_one_line_of_100_columns(text: str) -> None:
    line = live_line(entry(text, 3e305, "FLOP/s", verdict=text, reasons=[text, text * 3]))
    assert line.isprintable()
    assert len(line) <= 100


def test_lines_go_above_the_bar_and_without_one_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Bar("H100", shown=False) as bar:
        bar.start(2)
        bar.line("dram.read 3 TB/s")
    assert capsys.readouterr().err == "dram.read 3 TB/s\n"
    stream = io.StringIO()
    monkeypatch.setattr(outputs.sys, "stderr", stream)
    with Bar("H100", shown=True) as bar:
        bar.start(2)
        bar.line("dram.read\33[31m 3 TB/s")
    assert "\ufffd[31m 3 TB/s\n" in stream.getvalue()
