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

import ncu_roofline
from ncu_roofline import read_ceilings, read_report, render, roofline
from ncu_roofline.analyses import ANALYSES, OPTIONS
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.model import measurements_of
from tests.factory import V100, complete, kernel, report

DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
GPP = str(DEMO / "gpp-v100.ncu-rep")
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


@pytest.mark.parametrize("name", MADE)
def test_paths_and_open_reports_are_taken_alike(name: str, tmp_path: Path) -> None:
    other = report(tmp_path / "other-rank2.ncu-rep", kernel(complete()))
    own = report(tmp_path / "own-rank1.ncu-rep", kernel(complete(), name="axpy"))

    def result(given: Any) -> Any:
        made = MADE[name](given)
        return made if isinstance(made, bytes) else str(made)

    text = result(str(own))
    assert text
    with read_report(own) as opened:
        assert [result(own), result([own]), result(opened)] == [text] * 3
    assert result([own, other]) != text


def test_lines_of_paths_and_open_reports_are_alike() -> None:
    path = DEMO / "smooth-made-up.ncu-repz"
    lines = ncu_roofline.source_roofline(path).lines
    assert lines.loc[lines["share_samples"].idxmax(), "text"].strip() == "sum += weight(k) * in[row * width + k];"
    with read_report(path) as opened:
        for given in (str(path), [path], opened):
            assert ncu_roofline.source_roofline(given).lines.equals(lines)
    with pytest.raises(ncu_roofline.RooflineError, match="no counts by instruction"):
        ncu_roofline.source_roofline(GPP)


@pytest.mark.parametrize("wrong", [3, None, b"x.ncu-rep", [GPP, 7]])
@pytest.mark.parametrize("name", [*MADE, "portability", "source_roofline"])
def test_what_is_no_report_is_refused_by_type(name: str, wrong: Any) -> None:
    make = MADE.get(name) or getattr(ncu_roofline, name)
    odd = wrong[-1] if isinstance(wrong, list) else wrong
    with pytest.raises(TypeError, match=f"type {type(odd).__name__}"):
        make(wrong)


def test_portability_takes_paths_platforms_and_ceilings() -> None:
    table = ncu_roofline.portability(PLATFORMS)
    assert table.summary.equals(ncu_roofline.portability([Path(PLATFORMS)]).summary)
    named = ncu_roofline.portability({"one": GPP, "two": [GPP]}, ceilings={"one": CEILINGS})
    assert list(named.platforms["platform"]) == ["one", "two"]
    assert list(named.platforms["bandwidth_origin"]) == ["measured", "theoretical"]
    with pytest.raises(ValueError, match="ceilings and reading are about paths"):
        ncu_roofline.portability(table.platforms, ceilings=[CEILINGS])
    with pytest.raises(ncu_roofline.RooflineError, match="absent"):
        ncu_roofline.portability("absent.ncu-rep")


def test_time_roofline_of_paths_is_by_kernel_under_its_ceilings(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", *[kernel(complete(V100))] * 3)
    found = ncu_roofline.time_roofline(path, ceilings=CEILINGS)
    assert list(found.points["invocations"]) == [3]
    assert found.points["bandwidth_roof"][0] == read_ceilings(CEILINGS).by_id["dram.read"].value


class TestRender:
    def test_a_path(self) -> None:
        assert b"<html" in render(GPP, "html")[:200]
        assert render(GPP, "json") == render(roofline(GPP), "json").replace(GPP.encode(), b"gpp-v100.ncu-rep")

    def test_only_names_of_reports_are_passed_on(self, tmp_path: Path) -> None:
        (tmp_path / "secret").mkdir()
        path = report(tmp_path / "secret" / "r.ncu-rep", kernel(complete()))
        for output_format in ("html", "svg", "csv", "json", "md", "text"):
            data = render(path, output_format)
            assert b"r.ncu-rep" in data or output_format == "svg"
            assert b"secret" not in data

    def test_unknown_formats_and_options_are_told(self) -> None:
        with pytest.raises(ValueError, match=r"format must be one of html.*not 'docx'"):
            render(GPP, "docx")
        with pytest.raises(TypeError, match=r"no option titel: it has title"):
            render(GPP, "json", titel="x")

    def test_every_option_of_a_format_is_known(self) -> None:
        known = {*OPTIONS, "tables"}
        for analysis in ANALYSES.values():
            for name in analysis.formats:
                first, *options = inspect.signature(analysis.maker(name)).parameters
                assert set(options) <= known, (analysis.view, name, first)


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


class TestRepresentations:
    def test_at_most_twenty_lines(self, tmp_path: Path) -> None:
        launches = [kernel(complete(), name=f"kernel_{number}") for number in range(40)]
        for name, result in results(report(tmp_path / "r.ncu-rep", *launches)).items():
            text = repr(result)
            assert len(text.splitlines()) <= 20, name
            assert max(map(len, text.splitlines())) <= 300, name

    def test_counts_devices_and_first_rows(self, tmp_path: Path) -> None:
        launches = [kernel(complete(), name=f"kernel_{number}") for number in range(40)]
        found = results(report(tmp_path / "r.ncu-rep", *launches))
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

    def test_begin_with_the_sentences_of_the_command_line(self, tmp_path: Path) -> None:
        """By kernel, those that could save most first; so do notebooks."""
        many = [kernel(complete(seconds=1e-3), name="short"), *[kernel(complete(seconds=5e-3), name="long")] * 3]
        found = roofline(report(tmp_path / "r.ncu-rep", *many))
        done = subprocess.run(
            [sys.executable, "-m", "ncu_roofline", "show", tmp_path / "r.ncu-rep"],
            capture_output=True, text=True, encoding="utf-8", check=True, env={**os.environ, "COLUMNS": "100"},
        )  # fmt: skip
        sentences = done.stdout.partition("\n\n")[0]
        assert sentences.startswith("2 kernels, 4 launches, 16 ms")
        for one in (found, pickle.loads(pickle.dumps(found))):
            head, text = repr(one).split("\n", 1)
            assert "4 launches" in head
            assert text.startswith(sentences)
            assert re.findall(r"^(\w+) +(\d)  ", text, re.MULTILINE) == [("long", "3"), ("short", "1")]
            said = re.findall("<p>(.*?)</p>", one._repr_html_())
            assert " ".join(said) == " ".join(sentences.split())
        assert len(found.kernels) == 4

    def test_do_not_tell_of_rows_that_were_taken_out(self, tmp_path: Path) -> None:
        found = roofline(report(tmp_path / "r.ncu-rep", kernel(complete(), name="kept"), kernel(complete(), name="gone")))
        kept = replace(found, kernel_columns={name: column[:1] for name, column in found.kernel_columns.items()})
        assert "gone" in repr(found)
        assert "gone" not in repr(kept)

    def test_report_by_its_name(self) -> None:
        with read_report(GPP) as opened:
            assert repr(opened).startswith("<Report gpp-v100.ncu-rep: ")

    def test_changes_have_their_sign(self, tmp_path: Path) -> None:
        states = [
            report(tmp_path / f"{time}.ncu-rep", kernel(complete(seconds=time), name="k")) for time in (1e-3, 1.5e-3, 1e-3)
        ]
        up, down = repr(ncu_roofline.compare(*states[:2])), repr(ncu_roofline.compare(*states[1:]))
        assert re.search(r"^k +slower +1 ms +1.5 ms +\+50.0 % ", up, re.MULTILINE)
        assert re.search(r"^k +faster +1.5 ms +1 ms +-33.3 % ", down, re.MULTILINE)

    def test_nothing_of_a_report_is_obeyed_by_a_terminal(self, tmp_path: Path) -> None:
        for name, result in results(
            report(tmp_path / "r.ncu-rep", kernel(complete(), name="\x1b[31mred\u202e" + "x" * 9999))
        ).items():
            assert repr(result).replace("\n", "").isprintable(), name
            assert len(repr(result)) < 3000 or name == "launch", name

    def test_of_a_closed_report(self) -> None:
        with read_report(GPP) as opened:
            first, metrics = opened.kernels[0], opened.kernels[0].metrics
        assert "6 kernels" in repr(opened)
        assert repr(first) == "<Kernel 0: can't be read>"
        assert repr(metrics).startswith("<Metrics: 23 names>")


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


class TestTypes:
    """A user's program under mypy --strict, which sees the package as any other that says it is typed."""

    @staticmethod
    def check(folder: Path, text: str) -> tuple[int, str]:
        pytest.importorskip("mypy", reason="no mypy (pip install 'ncu-roofline[lint]'): types of a user's program unchecked")
        (folder / "program.py").write_text(text)
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "program.py"]
        path = {"MYPYPATH": str(Path(ncu_roofline.__file__).parents[1])}
        done = subprocess.run(command, cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_program_that_uses_everything(self, tmp_path: Path) -> None:
        assert self.check(tmp_path, PROGRAM) == (0, "")

    def test_wrong_ones_are_found(self, tmp_path: Path) -> None:
        wrong = "from ncu_roofline import compare, rooflines\ncompare(3, 4)\nx: int = compare('a', 'b')\n"
        code, said = self.check(tmp_path, wrong)
        assert code == 1
        assert '"ncu_roofline" has no attribute "rooflines"' in said
        assert said.count("[arg-type]") == 2
        assert said.count("[assignment]") == 1

    def test_the_package_says_that_it_is_typed(self) -> None:
        assert (Path(ncu_roofline.__file__).parent / "py.typed").is_file()


def test_the_package_alone_loads_nothing_heavy() -> None:
    heavy = {"numpy", "pandas", "matplotlib", "google.protobuf"}
    code = f"import sys, ncu_roofline; dir(ncu_roofline); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
