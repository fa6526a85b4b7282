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
STARTS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "parquet": b"PAR1", "html": b"<!DOCTYPE html>", "json": b"{\n"}
# The command that writes an analysis; a view of the rooflines otherwise.
COMMANDS = {
    "source": "source {coded}",
    "ranks": "ranks {before} {after} --ceilings {in}/c.json",
    "run": "render {in}/a.pt.trace.json",
    "portability": "portability A={before} B={after} --ceilings A={in}/c.json",
    "counted": "render {before} --run {in}/a.pt.trace.json --ceilings {in}/c.json",
    "run-comparison": "compare {in}/a.pt.trace.json {in}/b.pt.trace.json",
    "budget": "budget check {before} --budget {in}/budget.toml",
    "comparison": "compare {before} {after} --ceilings {in}/c.json --fail-if time>baseline",
}


def write(path: Path, *kernels: KernelData) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    session = Session(ncu_version="2024.1.0.0", command_line=LINE, process=Process(7, "/home/telltale-user/build/gpp", "node1"))
    write_report(path, ReportData(kernels, session), overwrite=True)
    return path


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    """Two reports; one whose line table and sources name folders, as long as those replaced; ceilings, traces and a budget."""
    old, new = b"/tmp/ncu-roofline-kernels", b"/tmp/telltale-ine/kernels"
    code, folder = code_of("80", STENCIL), tmp_path / "telltale-folder"
    assert (len(old), old in code.cubin) == (len(new), True)
    before = write(folder / "old" / "before.ncu-rep", kernel(complete(), "void solve()"), kernel({**A100, **timing()}))
    after = write(folder / "new" / "after.ncu-rep", kernel(complete(seconds=2e-3), "void solve()"))
    files = tuple(ImportedFile(file.name.replace(old.decode(), new.decode()), file.text) for file in code.files)
    replaced = Code(code.cubin.replace(old, new), files, code.functions)
    coded = made_report(folder / "coded.ncu-rep", "80", STENCIL, code=replaced)
    args = {"device": 0, "grid": [8, 1, 1], "block": [128, 1, 1]}
    event = {"ph": "X", "cat": "kernel", "name": "void solve()", "pid": 1, "tid": 7, "ts": 1.0, "dur": 2.0, "args": args}
    trace = json.dumps({"schemaVersion": 1, "traceEvents": [event]})
    budget = 'version = 1\nrows = "kernels"\n[[limits]]\nname = "none"\nfail_if = ["time > 1"]\n'
    texts = {"c.json": json.dumps(document(ceiling("dram.read", 1.25e12))), "budget.toml": budget}
    for name, text in (texts | dict.fromkeys(("a.pt.trace.json", "b.pt.trace.json"), trace)).items():
        (folder / name).write_text(text)
    return {"before": before, "after": after, "coded": coded, "in": folder}


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


@pytest.mark.parametrize("view", ANALYSES)
def test_no_format_of_any_analysis_names_a_folder(run: Command, tmp_path: Path, given: dict[str, Path], view: str) -> None:
    target = tmp_path / "out"
    line = COMMANDS.get(view, f"render {{before}} {{after}} --ceilings {{in}}/c.json --view {view}")
    for name, form in ANALYSES[view].formats.items():
        if form.needs:
            pytest.importorskip(form.needs)
        picture = name in ("png", "pdf")
        if picture and view != "roofline":  # svg is drawn from the same figure
            continue
        precision = ("--precision", "fp64") if name == "nersc" else ()
        several = name in ("csv", "parquet") and view != "portability"
        for table in ANALYSES[view].tables if several else ("",):
            chosen = ("--table", table) if table else ()
            run(*(word.format(**given) for word in line.split()), *precision, "-o", target, "--format", name, *chosen)
            data = target.read_bytes()
            target.unlink()
            assert data.startswith(STARTS.get(name, b""))
            found = read(data)
            assert TELLTALE not in found, (name, table)
            assert view != "source" or table in ("stalls", "totals", "findings", "loops") or picture or "stencil.cu" in found


def test_nothing_printed_names_a_folder(run: Command, given: dict[str, Path], tmp_path: Path) -> None:
    before, after = given["before"], given["after"]
    for words in ("show", "show --json", "ranks", "compare", "compare --json", "advise", "advise --json"):
        outcome = run(*words.split(), before, after, "--ceilings", given["in"] / "c.json")
        assert (outcome.code, TELLTALE in outcome.out.lower()) == (0, False), words
    outcome = run("annotate", before, "-o", tmp_path / "out.ncu-rep")
    assert (outcome.out.startswith("before.ncu-rep: 2 launches"), TELLTALE in outcome.out.lower()) == (True, False)
    for result in (roofline([before, after]), compare(before, after), portability([before, after])):  # of Python programs
        assert TELLTALE not in result._repr_html_() + repr(result)
        for name in {"svg", "md", "text"} & set(analysis_of(result).formats):
            assert TELLTALE not in read(render(result, name)), name


def test_a_page_says_that_folders_are_left_out_and_the_terminal_keeps_them(
    run: Command, tmp_path: Path, given: dict[str, Path]
) -> None:
    run("render", given["before"], "-o", tmp_path / "page.html")
    text = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "gpp 512 a.in --file=b.in -Ic.in x:y 1/2</code>" in text
    assert "Paths stand by their last part" in text
    words = shlex.split(json.loads(run("explain", given["before"], "--json").out)[0]["command"])
    assert words[-7:-5] == ["/home/telltale-user/build/gpp", "512"]
    for command, shared in (
        ("ncu -o r ./app 12 in/a.txt 1/2", "ncu -o r ./app 12 in/a.txt 1/2"),
        ("ncu -k 'regex:a|b' --nvtx-include A/B/ '/a b/app' / /data/", "ncu -k 'regex:a|b' --nvtx-include A/B/ app / data/"),
        (r"'C:\Users\me\app.exe' '\\\\server\share\a.in' D:/work/b.in", "app.exe a.in b.in"),
        ("~me/app -I/usr/include --file=~/a.in /a/x:/b/y -Wl,-rpath,/c/lib", "app -Iinclude --file=a.in x:y -Wl,-rpath,lib"),
        ("it's /home/me/app", "it's app"),
    ):
        assert without_folders(command) == shared
