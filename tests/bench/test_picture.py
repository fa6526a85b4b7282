"""The picture of a machine: its roofs and texts as data, one of them drawn; `bench draw`; names that nothing obeys."""

from __future__ import annotations

import math
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.files import File, live_line, measured, merge
from ncu_roofline.bench.picture import FORMATS, draw, figure, machine_roofs, render
from ncu_roofline.formats.ceilings import ceilings_of
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import spread
from tests.bench.fakes import HERE, read_toml, some
from tests.bench.made import FILES, changed, content, document, entry
from tests.bench.scrubbing import MEASURED
from tests.cli.command import Command, assert_no_leftovers, assert_refused
from tests.golden import assert_golden
from tests.rendering.test_picture import overlapping, undrawn_tick_labels

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


def machines() -> dict[str, dict[str, Any]]:
    sources = [File(name, told := content(name), ceilings_of(name, told)) for name in ("a.json", "b.json")]
    many = [entry(f"k{i}.fma", 1e12 + i, "FLOP/s") for i in range(90)] + [entry("dram.read", 1e12, "B/s")]
    found = {"H100": {**MEASURED, "status": "published", "warnings": ["ECC changes at the next reboot"]}, "hostile": hostile()}
    found |= {"a CPU": content("epyc.json"), "two GPUs": merge(sources), "many": document(entries=many)}
    for name, rows in read_toml("roofs.toml").items():
        entries = [entry(key, None if value == "-" else value, unit) for key, (value, unit, *_) in rows.items()]
        changes = {key: more[0] for key, (_, _, *more) in rows.items() if more}
        found[name] = changed(document(entries=entries), {"ceilings": changes})
    return {name: changed(deepcopy(told), {"tool": {"version": "1.0.0"}}) for name, told in found.items()}


MACHINES = machines()


def texts_of(made: Figure) -> list[Text]:
    hidden = {id(label) for axes in made.axes for label in undrawn_tick_labels(axes)}
    return [one for one in made.findobj(Text) if one.get_text().strip() and one.get_visible() and id(one) not in hidden]


def test_roofs_of_machines_and_what_pictures_say() -> None:
    text = ""
    for name, told in MACHINES.items():
        found = machine_roofs(told)
        text += f"# {name}\n"
        for roof in (*found.bandwidth, *found.compute[:20]):
            numbers = (roof.value, roof.peak, roof.at_clock, roof.burst, roof.energy * 1e12)
            cells = ("-" if math.isnan(value) else f"{value:.4g}" for value in numbers)
            of = f"{roof.label} ({roof.id[:40]!a}) {' '.join(cells)} {roof.unit}"
            text += f"{of}, {roof.flaw or 'accepted'}, {roof.hue is not None}\n"
        text += f"others: {', '.join(found.others[:21])}\n"
        if name in ("H100", "a CPU", "two GPUs", "ridges at 10 and 40"):
            made = figure(told)
            lines = {f"{one.get_gid()} {one.get_linestyle()} {one.get_alpha() or 1}" for one in made.axes[1].lines}
            text += (
                f"lines: {', '.join(sorted(lines))}\n{' | '.join(' '.join(one.get_text().split()) for one in texts_of(made))}\n"
            )
    assert_golden(HERE / "pictures.txt", text)


@pytest.mark.parametrize("name", some(MACHINES, ("H100",)))
def test_no_two_texts_overlap_and_all_are_on_the_sheet(name: str) -> None:
    with settings():
        made = figure(MACHINES[name], "light" if name == "H100" else "dark")
        made.canvas.draw()
    texts, (width, height) = texts_of(made), made.canvas.get_width_height()
    assert overlapping(texts) == []
    for one in texts:
        extent = one.get_window_extent()
        assert min(extent.x0, extent.y0, width - extent.x1, height - extent.y1) >= 0, one.get_text()


def test_names_are_text() -> None:
    texts = [one.get_text() for one in texts_of(figure(hostile()))]
    assert not [text for text in texts if is_math_text(text) or {"\33", "\u202e"} & {*text}]
    for text in HOSTILE:  # of `bench run`, whose content comes from the program and the driver, not from a file
        row = entry("dram.read", 1e12, "B/s", reasons=[text], verdict=text, variant={"kernel": text})
        whole = {**document(entries=[row], name=text, uuid=text), "warnings": [text], "host": {"name": text}}
        assert all(line.isprintable() and not line.startswith("lines") for line in measured(whole).split("\n"))
        line = live_line(entry(text, 3e305, "FLOP/s", verdict=text, reasons=[text, text * 3]))
        assert (line.isprintable(), len(line) <= 100) == (True, True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", FORMATS)
def test_bytes_are_the_same_every_time(suffix: str) -> None:
    assert render(MACHINES["H100"], suffix) == render(MACHINES["H100"], suffix)


def test_draw_says_what_it_did(tmp_path: Path) -> None:
    """`bench draw` itself is in draw.session."""
    path = tmp_path / "roof.SVG"
    assert draw(content("epyc.json"), path, "dark") == f"Wrote {path}"
    assert path.read_bytes() == render(content("epyc.json"), "svg", "dark")
    with pytest.raises(RooflineError, match="exists"):
        draw(content("a.json"), path)
    for suffix, theme in (("gif", "light"), ("png", "pink")):
        with pytest.raises(ValueError, match="is not one of"):
            render(content("a.json"), suffix, theme)


def test_nothing_to_draw_and_nothing_to_draw_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
    nothing = document(entries=[entry("dram.read", 4e12, "B/s", accepted=False, verdict="wrong"), entry("a", 1e-6, "s")])
    with pytest.raises(RooflineError, match="no ceiling of a memory level or of arithmetic was accepted"):
        render(nothing, "svg")
    assert draw(nothing, tmp_path / "roof.svg").startswith("Cannot draw the roofline of NVIDIA H200: ")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = draw(content("a.json"), tmp_path / "roof.png")
    assert said.startswith("Cannot draw the roofline of NVIDIA H200: the packages that draw can't be imported")
    assert said.endswith("then draw with `ncu-roofline bench draw`.")
    assert_no_leftovers(tmp_path)
    FILES["a.json"](tmp_path / "a.json")
    assert_refused(run("bench", "draw", tmp_path / "a.json", "-o", tmp_path / "roof.png"), "the roofline of NVIDIA H200")
    heavy = "{'numpy', 'pandas', 'matplotlib'}"  # `bench run` works with the standard library alone
    code = f"import sys, ncu_roofline.bench.picture; print(*{heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"\n"


def test_rows_keep_their_order_and_distance() -> None:
    close = [spread([50.0, 50.0, 50.0], 10, 0, 100), spread([99.0, 98.0, 1.0], 10, 0, 100), spread([3.0, 2.0], 200, 0, 100)]
    assert close == [[60.0, 50.0, 40.0], [100.0, 90.0, 1.0], [100.0, 0.0]]
    assert spread([60.0, 59.0, 51.0, 50.0], 10, 0, 100) == pytest.approx([70.0, 60.0, 50.0, 40.0])
    assert [spread([90.0, 50.0], 10, 0, 100), spread([], 10, 0, 100)] == [[90.0, 50.0], []]
