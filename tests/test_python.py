"""What Python programs get: paths in every function, a glance at every result, examples that run, complete types."""

from __future__ import annotations

import doctest
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import ncu_roofline
from ncu_roofline import read_ceilings, read_report, render, roofline
from ncu_roofline.analyses import ANALYSES, OPTIONS
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.model import measurements_of
from ncu_roofline.model.roofline import Displayed, _alone
from tests.cli.command import Command
from tests.factory import V100, complete, kernel, report

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
GPP = str(DEMO / "gpp-v100.ncu-rep")
SMOOTH = str(DEMO / "smooth-made-up.ncu-repz")
PLATFORMS = str(DEMO / "gpp-platforms.csv")
CEILINGS = str(DEMO / "gpp-v100-ceilings.json")
FUNCTIONS = [
    name
    for name in ncu_roofline.__all__
    if callable(getattr(ncu_roofline, name)) and not isinstance(getattr(ncu_roofline, name), type)
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_of_the_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(shutil.copytree(DEMO, tmp_path / "demo"))
    found = getattr(ncu_roofline, name)
    examples = doctest.DocTestFinder(recurse=False).find(found, name, globs={name: found})
    assert [len(one.examples) > 0 for one in examples] == [True]
    said: list[str] = []
    assert doctest.DocTestRunner().run(examples[0], out=said.append).failed == 0, "".join(said)


# Each takes what `roofline` takes.
MADE: dict[str, Callable[[Any], Any]] = {
    "roofline": ncu_roofline.roofline,
    "compare": lambda one: ncu_roofline.compare(one, one),
    "ranks": ncu_roofline.ranks,
    "time_roofline": ncu_roofline.time_roofline,
    "instruction_roofline": ncu_roofline.instruction_roofline,
    "phase_roofline": ncu_roofline.phase_roofline,
    "fma_mix": ncu_roofline.fma_mix,
    "render": lambda one: ncu_roofline.render(one, "json"),
}


def test_lines_of_paths_and_open_reports_are_alike() -> None:
    path = DEMO / "smooth-made-up.ncu-repz"
    lines = ncu_roofline.source_roofline(path).lines
    assert lines.loc[lines["share_samples"].idxmax(), "text"].strip() == "sum += weight(k) * in[row * width + k];"
    with read_report(path) as opened:
        for given in (str(path), [path], opened):
            assert ncu_roofline.source_roofline(given).lines.equals(lines)
    with pytest.raises(ncu_roofline.RooflineError, match="no counts by instruction"):
        ncu_roofline.source_roofline(GPP)


def test_portability_and_time_take_paths_and_ceilings(tmp_path: Path) -> None:
    table = ncu_roofline.portability(PLATFORMS)
    assert table.summary.equals(ncu_roofline.portability([Path(PLATFORMS)]).summary)
    named = ncu_roofline.portability({"one": GPP, "two": [GPP]}, ceilings={"one": CEILINGS})
    assert list(named.platforms["platform"]) == ["one", "two"]
    assert list(named.platforms["bandwidth_origin"]) == ["measured", "theoretical"]
    with pytest.raises(ValueError, match="ceilings and reading are about paths"):
        ncu_roofline.portability(table.platforms, ceilings=[CEILINGS])
    with pytest.raises(ncu_roofline.RooflineError, match="absent"):
        ncu_roofline.portability("absent.ncu-rep")
    path = report(tmp_path / "r.ncu-rep", *[kernel(complete(V100))] * 3)
    times = ncu_roofline.time_roofline(path, ceilings=CEILINGS)
    assert list(times.points["invocations"]) == [3]
    assert times.points["bandwidth_roof"][0] == read_ceilings(CEILINGS).by_id["dram.read"].value


def test_paths_and_open_reports_are_taken_alike(tmp_path: Path) -> None:
    other = report(tmp_path / "other-rank2.ncu-rep", kernel(complete()))
    own = report(tmp_path / "own-rank1.ncu-rep", kernel(complete(), name="axpy"))
    for name, make in MADE.items():

        def result(given: Any, make: Callable[[Any], Any] = make) -> Any:
            made = make(given)
            return made if isinstance(made, bytes) else str(made)

        text = result(str(own))
        assert text, name
        with read_report(own) as opened:
            assert [result(own), result([own]), result(opened)] == [text] * 3, name
        assert result([own, other]) != text, name
    for name in (*MADE, "portability", "source_roofline"):
        make = MADE.get(name) or getattr(ncu_roofline, name)
        for wrong, odd in ((None, None), (b"x.ncu-rep", b""), ([GPP, 7], 7)):
            with pytest.raises(TypeError, match=f"type {type(odd).__name__}"):
                make(wrong)


def test_render(tmp_path: Path) -> None:
    assert b"<html" in render(GPP, "html")[:200]
    assert render(GPP, "json") == render(roofline(GPP), "json").replace(GPP.encode(), b"gpp-v100.ncu-rep")
    (tmp_path / "secret").mkdir()
    path = report(tmp_path / "secret" / "r.ncu-rep", kernel(complete()))
    for output_format in ("html", "svg", "csv", "json", "md", "text"):
        data = render(path, output_format)
        assert b"r.ncu-rep" in data or output_format == "svg"
        assert b"secret" not in data
    with pytest.raises(ValueError, match=r"format must be one of html.*not 'docx'"):
        render(GPP, "docx")
    with pytest.raises(TypeError, match=r"no option titel: it has title"):
        render(GPP, "json", titel="x")
    for analysis in ANALYSES.values():
        for name in analysis.formats:
            first, *options = inspect.signature(analysis.maker(name)).parameters
            assert set(options) <= {*OPTIONS, "tables"}, (analysis.view, name, first)


def test_labels_cover_no_dots_on_axes_of_ones_own(tmp_path: Path) -> None:
    """With few dots per inch letters are wider than where a picture is saved by us."""
    launches = [kernel(complete(seconds=1e-3 * 5**n), name=f"semi_discrete_step_{n + 1}_gpu") for n in range(3)]
    axes = Figure(figsize=(9, 6), dpi=100).subplots()
    roofline(report(tmp_path / "r.ncu-rep", *launches)).plot(axes)
    FigureCanvasAgg(axes.get_figure()).draw()
    dots = [dot for one in axes.lines if one.get_marker() in "os^" for dot in axes.transData.transform(one.get_xydata())]
    assert len(dots) == 12
    assert [one.get_text() for one in axes.texts for dot in dots if one.get_window_extent().contains(*dot)] == []


def test_pictures_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure as `render` draws it, and a chart on axes of one's own, which has its roofs, dots and labels."""
    found = roofline(GPP, by="kernel")
    made = found.figure(preset="column", bare=True, title="unseen")
    assert made.get_figwidth() == pytest.approx(3.3)
    assert [one.get_text() for one in made.findobj(Text) if "unseen" in one.get_text() or "headroom" in one.get_text()] == []
    assert "GPP" in {one.get_text() for one in found.figure(title="GPP").findobj(Text)}
    axes = Figure(figsize=(6, 4)).subplots()
    assert found.plot(axes) is axes
    assert axes.get_xlabel() == "Arithmetic intensity [FLOP/B]"
    texts = {one.get_text() for one in axes.findobj(Text)}
    assert {"DRAM 898 GB/s", "FP64 FMA 7.83 TFLOP/s", "sigma_gpp_gpu<1> 10.9 %"} <= texts
    for wrong, reason in ((ncu_roofline.ranks(GPP), "no picture"), (ncu_roofline.source_roofline(SMOOTH), "more than one")):
        with pytest.raises(TypeError, match=reason):
            wrong.plot(axes)
    monkeypatch.setattr(Displayed, "shown_by", _alone)  # as where nobody asked the package for anything
    with pytest.raises(TypeError, match="with a function of ncu_roofline itself"):
        found.figure()
    assert all(found.points[a].equals(found.points[b]) for a, b in (("arithmetic_intensity", "intensity"), ("flops", "work")))
    assert b"arithmetic_intensity" not in render(found, "csv")
    assert {"points", "roofs", "kernels", "figure", "plot"} <= {*dir(found)}
    assert not {"asked", "glance", "shown_by", "point_columns"} & {*dir(found)}
    assert dir(ncu_roofline) == sorted(ncu_roofline.__all__)


def results(path: Path) -> dict[str, Any]:
    """Everything that a program gets of a report."""
    opened = read_report(path)
    first = opened.kernels[0]
    table = path.with_suffix(".csv")
    table.write_text("kernel,seconds,flops,bytes_dram\naxpy,1,2,3\n")
    found = {name: make(path) for name, make in MADE.items() if name not in ("render", "fma_mix")}
    return {
        **found,
        "report": opened,
        "kernels": opened.kernels,
        "kernel": first,
        "metrics": first.metrics,
        "launch": first.launch,
        "session": opened.session,
        "measurements": measurements_of(path),
        "portability": ncu_roofline.portability(PLATFORMS),
        "ceilings": read_ceilings(CEILINGS),
        "point table": open_input(table),
    }


def test_representations_are_short_and_tell_counts_devices_and_first_rows(tmp_path: Path) -> None:
    found = results(report(tmp_path / "r.ncu-rep", *[kernel(complete(), name=f"kernel_{number}") for number in range(40)]))
    for name, result in found.items():
        lines = repr(result).splitlines()
        assert len(lines) <= 20, name
        assert max(map(len, lines)) <= 300, name
    for name in ("roofline", "compare", "ranks", "time_roofline", "instruction_roofline"):
        head, *rows = repr(found[name]).splitlines()
        assert "40 kernels" in head or "40 points" in head, name
        assert "NVIDIA A100-SXM4-40GB" in head, name
        told = [row for row in rows if row.startswith("kernel_")]
        assert len(told) >= 5, name
        assert rows[-1] == f"... and {40 - len(told)} more", name
    assert "Report" in repr(found["report"])
    assert repr(found["report"]).splitlines()[-1] == "  ... and 28 more"
    assert repr(found["kernel"]) == "<Kernel 0: kernel_0, grid 8x1x1, block 128x1x1, 1 ms, 24 metrics>"
    assert repr(found["metrics"]).splitlines()[1] == "  device__attribute_display_name: NVIDIA A100-SXM4-40GB"


def test_representations_begin_with_the_sentences_of_the_command_line(tmp_path: Path, run: Command) -> None:
    """By kernel, those that could save most first; so do notebooks."""
    many = [kernel(complete(seconds=1e-3), name="short"), *[kernel(complete(seconds=5e-3), name="long")] * 3]
    path = report(tmp_path / "r.ncu-rep", *many)
    found = roofline(path)
    sentences = " ".join(run("show", path).out.partition("\n\n")[0].split())
    assert sentences.startswith("2 kernels, 4 launches, 16 ms")
    for one in (found, pickle.loads(pickle.dumps(found))):
        head, text = repr(one).split("\n", 1)
        assert "4 launches" in head
        assert " ".join(text.split()).startswith(sentences)
        assert re.findall(r"^(\w+) +(\d)  ", text, re.MULTILINE) == [("long", "3"), ("short", "1")]
        assert " ".join(re.findall("<p>(.*?)</p>", one._repr_html_())) == sentences
    assert len(found.kernels) == 4
    kept = replace(found, kernel_columns={name: column[:1] for name, column in found.kernel_columns.items()})
    assert "long" in repr(found)
    assert "long" not in repr(kept)  # a row that was taken out


def test_representations_of_changes_and_of_reports(tmp_path: Path) -> None:
    slow, fast = (report(tmp_path / f"{time}.ncu-rep", kernel(complete(seconds=time), name="k")) for time in (1e-3, 1.5e-3))
    up, down = repr(ncu_roofline.compare(slow, fast)), repr(ncu_roofline.compare(fast, slow))
    assert re.search(r"^k +slower +1 ms +1.5 ms +\+50.0 % ", up, re.MULTILINE)
    assert re.search(r"^k +faster +1.5 ms +1 ms +-33.3 % ", down, re.MULTILINE)
    with read_report(GPP) as opened:
        assert repr(opened).startswith("<Report gpp-v100.ncu-rep: ")
        first, metrics = opened.kernels[0], opened.kernels[0].metrics
    assert "6 kernels" in repr(opened)  # closed
    assert repr(first) == "<Kernel 0: can't be read>"
    assert repr(metrics).startswith("<Metrics: 23 names>")


def test_nothing_of_a_report_is_obeyed_by_a_terminal(tmp_path: Path) -> None:
    odd = kernel(complete(), name="\x1b[31mred\u202e" + "x" * 9999)
    for name, result in results(report(tmp_path / "r.ncu-rep", odd)).items():
        assert repr(result).replace("\n", "").isprintable(), name
        assert len(repr(result)) < 3000 or name == "launch", name


PROGRAM = """
from pathlib import Path
import ncu_roofline
from ncu_roofline import (
    Ceilings, Comparison, InstructionRoofline, Kernel, Portability, Ranks, Report, Roofline, RooflineError, Selection,
    TimeRoofline, compare, fma_mix, instruction_roofline, portability, ranks, read_ceilings, read_report, render, roofline,
    time_roofline,
)

path = Path("gpp.ncu-rep")
measured: Ceilings = read_ceilings("ceilings.json")
found: Roofline = roofline([path, "other.ncu-rep"], measured, by="kernel", select=Selection(kernel="gpp"))
changed: Comparison = compare("before.ncu-rep", path, found)
merged: Ranks = ranks(path)
times: TimeRoofline = time_roofline(path, ceilings=measured)
counted: InstructionRoofline = instruction_roofline([path])
portable: Portability = portability({"A100": path, "V100": ["a", "b"]}, ceilings=["ceilings.json"])
pages: list[bytes] = [render(one, "html", title="GPP") for one in (path, found, times, counted, changed, merged, portable)]
rows = found.kernels["verdict"].tolist(), fma_mix(path)["alpha"].tolist()
version: str = ncu_roofline.__version__
with read_report(path) as report:
    opened: Report = report
    first: Kernel = report.kernels[0]
    seconds = first.metrics.get("gpu__time_duration.sum")
try:
    roofline(path)
except RooflineError as error:
    print(error, seconds)
"""
WRONG_PROGRAM = "from ncu_roofline import compare, rooflines\ncompare(3, 4)\nx: int = compare('a', 'b')\n"


def test_types_of_a_users_program(tmp_path: Path) -> None:
    """Under mypy --strict, which sees the package as any other that says it is typed."""
    pytest.importorskip("mypy", reason="no mypy (pip install 'ncu-roofline[lint]'): types of a user's program unchecked")
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG_PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    path = {"MYPYPATH": str(Path(ncu_roofline.__file__).parents[1])}
    words = [*command, "right.py", "wrong.py"]
    done = subprocess.run(words, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "right.py" not in said
    assert '"ncu_roofline" has no attribute "rooflines"' in said
    assert said.count("[arg-type]") == 2
    assert said.count("[assignment]") == 1
    assert (Path(ncu_roofline.__file__).parent / "py.typed").is_file()


def test_the_package_alone_loads_nothing_heavy() -> None:
    heavy = {"numpy", "pandas", "matplotlib", "google.protobuf"}
    code = f"import sys, ncu_roofline; dir(ncu_roofline); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
