"""Outputs name files, never the folders that they lie in: results are passed on, and folders say who made them where."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import shlex
import zlib
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import ANALYSES, analysis_of, render
from ncu_roofline.analyses.compare.frames import compare
from ncu_roofline.analyses.portability import portability
from ncu_roofline.base.texts import without_folders
from ncu_roofline.formats.report import KernelData, ReportData, Session, write_report
from ncu_roofline.formats.report.metrics import Code, ImportedFile
from ncu_roofline.formats.report.session import Process
from tests.analyses.source_made import code_of, made_report
from tests.cli.command import Command
from tests.cli.test_ceilings import ceiling, document
from tests.factory import A100, complete, kernel, timing

TELLTALE = "telltale"
LINE = (
    "/opt/telltale-tools/ncu --set basic --injection-path-64 /opt/telltale-injection/lib "
    "--source-folders=/telltale-sources/src -k regex:solve -f -o /scratch/telltale-out/r "
    "/home/telltale-user/build/gpp 512 /data/telltale-input/a.in --file=/data/telltale-more/b.in -I~/telltale-home/c.in "
    "/data/telltale-one/x:/data/telltale-two/y 1/2"
)
STENCIL = "_Z7stencilPKfPfi"
NO_FILES = ("stalls", "totals", "findings", "loops")
PICTURES = ("png", "pdf")


def write(path: Path, *kernels: KernelData) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    process = Process(7, "/home/telltale-user/build/gpp", "node1")
    write_report(
        path, ReportData(kernels, Session(ncu_version="2024.1.0.0", command_line=LINE, process=process)), overwrite=True
    )
    return path


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return write(tmp_path / "telltale-old" / "before.ncu-rep", kernel(complete(), "void solve()"), kernel({**A100, **timing()}))


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return write(tmp_path / "telltale-new" / "after.ncu-rep", kernel(complete(seconds=2e-3), "void solve()"))


@pytest.fixture
def coded(tmp_path: Path) -> Path:
    """A report whose line table and sources name folders: a part of the paths, and as long as the one that it replaces."""
    code = code_of("80", STENCIL)
    old, new = b"/tmp/ncu-roofline-kernels", b"/tmp/telltale-ine/kernels"
    assert len(old) == len(new)
    assert old in code.cubin
    files = tuple(ImportedFile(file.name.replace(old.decode(), new.decode()), file.text) for file in code.files)
    path = tmp_path / "telltale-code" / "coded.ncu-rep"
    path.parent.mkdir()
    return made_report(path, "80", STENCIL, code=Code(code.cubin.replace(old, new), files, code.functions))


@pytest.fixture
def ceilings(tmp_path: Path) -> Path:
    path = tmp_path / "telltale-roofs" / "mine.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document(ceiling("dram.read", 1.25e12))))
    return path


def read(data: bytes) -> str:
    """What a reader can find in a file: parts of pdf and parquet files are compressed."""
    inside = [data]
    if data.startswith(b"PAR1"):
        parquet = pytest.importorskip("pyarrow.parquet")
        inside.append(json.dumps(parquet.read_table(io.BytesIO(data)).to_pylist(), default=str).encode())
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL):
        with contextlib.suppress(zlib.error):  # a stream of another kind
            inside.append(zlib.decompress(stream))
    return b"\n".join(inside).decode("utf-8", "replace").lower()


def trace(path: Path, name: str = "solve", **sizes: list[int]) -> Path:
    """A run of one kernel."""
    args = {"device": 0, **sizes}
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 1, "tid": 7, "ts": 1.0, "dur": 2.0, "args": args}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    return path


def words_of(view: str, name: str, before: Path, after: Path, ceilings: Path) -> tuple[object, ...]:
    """The command line that makes a format, but for the name of the file."""
    measured = ("--ceilings", ceilings)
    if view == "ranks":
        return ("ranks", before, after, *measured)
    if view == "run":
        return ("render", trace(before.parent / "a.pt.trace.json"))
    if view == "portability":
        return ("portability", f"A={before}", f"B={after}", "--ceilings", f"A={ceilings}")
    if view == "counted":
        run = trace(before.parent / "a.pt.trace.json", "void solve()", grid=[8, 1, 1], block=[128, 1, 1])
        return ("render", before, "--run", run, *measured)
    if view == "run-comparison":
        return ("compare", trace(before.parent / "a.pt.trace.json"), trace(after.parent / "b.pt.trace.json"))
    if view == "budget":
        limits = before.parent / "budget.toml"
        limits.write_text('version = 1\nrows = "kernels"\n[[limits]]\nname = "none"\nfail_if = ["time > 1"]\n')
        return ("budget", "check", before, "--budget", limits)
    if view == "comparison":
        return ("compare", before, after, *measured, "--fail-if", "time > baseline")
    return ("render", before, after, *measured, "--view", view, *(("--precision", "fp64") if name == "nersc" else ()))


@pytest.mark.parametrize("view", ANALYSES)
def test_no_format_of_any_analysis_names_a_folder(
    run: Command, tmp_path: Path, before: Path, after: Path, coded: Path, ceilings: Path, view: str
) -> None:
    target = tmp_path / "out"
    for name, form in ANALYSES[view].formats.items():
        if form.needs:
            pytest.importorskip(form.needs)
        if name in PICTURES and view != "roofline":  # svg is drawn from the same figure
            continue
        words = ("source", coded) if view == "source" else words_of(view, name, before, after, ceilings)
        several = name in ("csv", "parquet") and view != "portability"
        for table in ANALYSES[view].tables if several else ("",):
            chosen = ("--table", table) if table else ()
            run(*words, "-o", target, "--format", name, *chosen)
            found = read(target.read_bytes())
            target.unlink()
            assert TELLTALE not in found, (name, table)
            assert view != "source" or table in NO_FILES or name in PICTURES or "stencil.cu" in found


def test_nothing_printed_names_a_folder(run: Command, before: Path, after: Path, ceilings: Path, tmp_path: Path) -> None:
    for words in ("show", "show --json", "ranks", "compare", "compare --json", "advise", "advise --json"):
        outcome = run(*words.split(), before, after, "--ceilings", ceilings)
        assert (outcome.code, TELLTALE in outcome.out.lower()) == (0, False), words
    outcome = run("annotate", before, "-o", tmp_path / "out.ncu-rep")
    assert (outcome.code, TELLTALE in outcome.out.lower()) == (0, False)
    assert outcome.out.startswith("before.ncu-rep: 2 launches")


def test_results_of_python_that_people_look_at_name_no_folder(before: Path, after: Path) -> None:
    results = (roofline([before, after]), compare(before, after), portability([before, after]))
    for result in results:
        assert TELLTALE not in result._repr_html_() + repr(result)
        for name in {"html", "svg", "md", "text"} & set(analysis_of(result).formats):
            assert TELLTALE not in read(render(result, name)), name


def test_a_page_says_that_folders_are_left_out_and_the_terminal_keeps_them(run: Command, tmp_path: Path, before: Path) -> None:
    page = tmp_path / "page.html"
    run("render", before, "-o", page)
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert "gpp 512 a.in --file=b.in -Ic.in x:y 1/2</code>" in text
    assert "Paths stand by their last part" in text
    words = shlex.split(json.loads(run("explain", before, "--json").out)[0]["command"])
    assert words[-7:-5] == ["/home/telltale-user/build/gpp", "512"]


def test_paths_in_commands() -> None:
    for command, shared in (
        ("ncu -o r ./app 12 in/a.txt 1/2", "ncu -o r ./app 12 in/a.txt 1/2"),
        ("ncu -k 'regex:a|b' --nvtx-include A/B/ '/a b/app' / /data/", "ncu -k 'regex:a|b' --nvtx-include A/B/ app / data/"),
        (r"'C:\Users\me\app.exe' '\\\\server\share\a.in' D:/work/b.in", "app.exe a.in b.in"),
        ("~me/app -I/usr/include --file=~/a.in /a/x:/b/y -Wl,-rpath,/c/lib", "app -Iinclude --file=a.in x:y -Wl,-rpath,lib"),
        ("it's /home/me/app", "it's app"),
    ):
        assert without_folders(command) == shared
