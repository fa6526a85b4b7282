"""The picture of a machine: its roofs as data, its texts, one of them drawn; `bench draw`; lines and tables for terminals."""

from __future__ import annotations

import json
import math
import subprocess
import sys
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
from ncu_roofline.formats.ceilings import ceilings_of
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import spread
from tests.bench.fakes import HERE, read_toml
from tests.bench.made import FILES, changed, content, document, entry
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.golden import assert_golden
from tests.rendering.test_picture import overlapping, undrawn_tick_labels

H100: dict[str, Any] = json.loads((HERE / "measured_h100" / "ceilings.json").read_text(encoding="utf-8"))
HOSTILE = ("\33[31mred\33[0m", "$\\frac{1}{0}$", "x_{3}^{$", "a" * 300, "\u202eevil", "<script>&amp;", "\u6f22", "two\nlines")


def hostile() -> dict[str, Any]:
    """Names that a terminal, a formula or a page would obey, or that are far too long; values that are none."""
    entries = [entry(f"fp64.{name}", 1e12 * (1 + index), "FLOP/s") for index, name in enumerate(HOSTILE)]
    entries += [entry(f"{name}.read", 1e11 * (3 + index), "B/s", verdict=name) for index, name in enumerate(HOSTILE)]
    entries.append(entry("fp16.fma", math.nan, "FLOP/s"))
    entries.append(entry("bf16.fma", 3e12, "FLOP/s", clock=[], theory="none", burst=7, power_w="much"))
    entries.append(entry("tensor.fp16.mma", 5e12, "FLOP/s", accepted=False, verdict=HOSTILE[0] * 20, reasons=[HOSTILE[3]]))
    made = document(entries=entries, name=" ".join(HOSTILE), driver=HOSTILE[1], sm_count=HOSTILE[0])
    return {**made, "status": HOSTILE[1], "warnings": [*HOSTILE]}


def many() -> dict[str, Any]:
    return document(entries=[entry(f"k{i}.fma", 1e12 + i, "FLOP/s") for i in range(90)] + [entry("dram.read", 1e12, "B/s")])


def texts_of(made: Figure) -> list[Text]:
    hidden = {id(label) for axes in made.axes for label in undrawn_tick_labels(axes)}
    return [one for one in made.findobj(Text) if one.get_text().strip() and one.get_visible() and id(one) not in hidden]


def test_roofs_of_machines() -> None:
    cases = {"an H100": H100, "hostile": hostile()}
    for name, rows in read_toml("roofs.toml").items():
        entries = [entry(key, None if value == "-" else value, unit) for key, (value, unit, *_) in rows.items()]
        changes = {key: more[0] for key, (_, _, *more) in rows.items() if more}
        cases[name] = changed(document(entries=entries), {"ceilings": changes})
    text = ""
    for name, told in cases.items():
        found = machine_roofs(told)
        text += f"# {name}\n"
        for roof in (*found.bandwidth, *found.compute):
            numbers = (roof.value, roof.peak, roof.at_clock, roof.burst, roof.energy * 1e12)
            cells = ("-" if math.isnan(value) else f"{value:.4g}" for value in numbers)
            told_of = f"{roof.label} ({roof.id[:40]!a}) {' '.join(cells)} {roof.unit}"
            text += f"{told_of}, {roof.flaw or 'accepted'}, {roof.hue is not None}\n"
        text += f"others: {', '.join(found.others)}\n\n"
    assert_golden(HERE / "roofs.txt", text)


def test_what_pictures_say() -> None:
    entries = [entry("dram.read", 2e12, "B/s"), entry("fp64.fma", 2e13, "FLOP/s"), entry("fp32.fma", 8e13, "FLOP/s")]
    sources = [File(name, told := content(name), ceilings_of(name, told)) for name in ("a.json", "b.json")]
    merged = changed(merge(sources), {"tool": {"version": "1.0.0"}})
    published = {**H100, "status": "published", "warnings": ["ECC changes at the next reboot"]}
    cases = {
        "an H100": published,
        "a CPU": content("epyc.json"),
        "two GPUs": merged,
        "ridges at 10 and 40": document(entries=entries),
    }
    text = ""
    for name, told in cases.items():
        made = figure(told)
        lines = {f"{one.get_gid()} {one.get_linestyle()} {one.get_alpha() or 1}" for one in made.axes[1].lines}
        said = " | ".join(" ".join(one.get_text().split()) for one in texts_of(made))
        text += f"# {name}\n{said}\nlines: {', '.join(sorted(lines))}\n\n"
    assert_golden(HERE / "pictures.txt", text)


DRAWN = {
    "hostile": hostile,
    "CPU": lambda: content("epyc.json"),
    "GPU": lambda: content("a.json"),
    "bandwidth": lambda: document(entries=[entry("dram.read", 1.4e12, "B/s")]),
    "compute": lambda: document(entries=[entry("fp64.fma", 9.4e12, "FLOP/s")]),
    "many": many,
}
ONES = [pytest.param(lambda: H100, "light", id="H100 light")]
ONES += [pytest.param(make, "dark", id=name, marks=pytest.mark.exhaustive) for name, make in DRAWN.items()]


@pytest.mark.parametrize(("make", "theme"), ONES)
def test_no_two_texts_overlap_and_all_are_on_the_sheet(make: Any, theme: str) -> None:
    with settings():
        made = figure(make(), theme)
        made.canvas.draw()
    texts, (width, height) = texts_of(made), made.canvas.get_width_height()
    assert overlapping(texts) == []
    for one in texts:
        extent = one.get_window_extent()
        assert min(extent.x0, extent.y0) >= 0, one.get_text()
        assert (extent.x1 <= width, extent.y1 <= height) == (True, True), one.get_text()


def test_names_are_text() -> None:
    texts = texts_of(figure(hostile()))
    assert not [one.get_text() for one in texts if is_math_text(one.get_text())]
    assert not any(char in one.get_text() for one in texts for char in "\33\u202e")
    for text in HOSTILE:  # of `bench run`, whose content comes from the program and the driver, not from a file
        row = entry("dram.read", 1e12, "B/s", reasons=[text], verdict=text, variant={"kernel": text})
        whole = document(entries=[row], name=text, uuid=text)
        lines = measured({**whole, "warnings": [text], "host": {"name": text}}).split("\n")
        assert all(line.isprintable() and not line.startswith("lines") for line in lines)
        line = live_line(entry(text, 3e305, "FLOP/s", verdict=text, reasons=[text, text * 3]))
        assert (line.isprintable(), len(line) <= 100) == (True, True)


def test_live_lines_stand_below_their_header() -> None:
    good = live_line(entry("dram.read", 3.32e12, "B/s", theory={"fraction": 0.9904}, cv=0.0021, power_w=412.3))
    assert good == "dram.read                     3.32 TB/s     99.0%   0.21%   1980   412 ok"
    ends = [live_header().index(word) + len(word) for word in ("value", "of theory", "spread", "MHz", "W")]
    assert ends == [good.index(word) + len(word) for word in ("3.32 TB/s", "99.0%", "0.21%", "1980", "412")]


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", FORMATS)
def test_bytes_are_the_same_every_time(suffix: str) -> None:
    assert render(H100, suffix) == render(H100, suffix)
    extremes = {"burst": {"value": 1e-12}, "power_w": 1e-30, "clock": {"sm_mhz_mean": 1.0}, "theory": {"value": 1e21}}
    for value in (1.0, 1e21):  # whatever a machine may have
        entries = [entry("dram.read", value, "B/s", **extremes), entry("fp64.fma", 1e12, "FLOP/s", **extremes)]
        assert render(document(entries=entries), suffix)


def test_bench_draw(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILES["epyc.json"](Path("epyc.json"))
    outcome = run("bench", "draw", "epyc.json", "-o", "roof.SVG", "--theme", "dark")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "Wrote roof.SVG\n")
    assert Path("roof.SVG").read_bytes() == render(content("epyc.json"), "svg", "dark")
    assert b"<svg" in Path("roof.SVG").read_bytes()
    assert_refused(run("bench", "draw", "epyc.json", "-o", "roof.SVG"), "roof.SVG")
    assert_refused(run("bench", "draw", "epyc.json", "-o", "roof.html"), "roof.html", 2)
    with pytest.raises(RooflineError, match="exists"):
        draw(content("a.json"), "roof.SVG")
    assert run("bench", "draw", "epyc.json", "-o", "roof.SVG", "--force").code == 0
    assert Path("roof.SVG").read_bytes() == render(content("epyc.json"), "svg")
    for suffix, theme in (("gif", "light"), ("png", "pink")):
        with pytest.raises(ValueError, match="is not one of"):
            render(H100, suffix, theme)


def test_nothing_to_draw_and_nothing_to_draw_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
    nothing = document(entries=[entry("dram.read", 4e12, "B/s", accepted=False, verdict="wrong"), entry("a", 1e-6, "s")])
    with pytest.raises(RooflineError, match="no ceiling of a memory level or of arithmetic was accepted"):
        render(nothing, "svg")
    assert draw(nothing, tmp_path / "roof.svg").startswith("Cannot draw the roofline of NVIDIA H200: ")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = draw(H100, tmp_path / "roof.png")
    assert said.startswith("Cannot draw the roofline of NVIDIA H100 80GB HBM3: the packages that draw can't be imported")
    assert said.endswith("then draw with `ncu-roofline bench draw`.")
    assert_no_leftovers(tmp_path)
    FILES["a.json"](tmp_path / "a.json")
    assert_refused(run("bench", "draw", tmp_path / "a.json", "-o", tmp_path / "roof.png"), "the roofline of NVIDIA H200")
    heavy = "{'numpy', 'pandas', 'matplotlib'}"  # `bench run` works with the standard library alone
    code = f"import sys, ncu_roofline.bench.picture; print(*{heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"\n"


def test_rows_keep_their_order_and_distance() -> None:
    assert spread([90.0, 50.0], 10, 0, 100) == [90.0, 50.0]
    assert spread([50.0, 50.0, 50.0], 10, 0, 100) == [60.0, 50.0, 40.0]
    assert spread([99.0, 98.0, 1.0], 10, 0, 100) == [100.0, 90.0, 1.0]
    assert spread([3.0, 2.0], 200, 0, 100) == [100.0, 0.0]
    chain = spread([60.0, 59.0, 51.0, 50.0], 10, 0, 100)
    assert all(a - b == pytest.approx(10) for a, b in pairwise(chain))
    assert spread([], 10, 0, 100) == []
