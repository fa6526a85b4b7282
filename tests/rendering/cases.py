"""Made-up results by name: cases.toml says how each is made, and in which forms golden/cases/NAME.txt shows it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from ncu_roofline import Roofline, instruction_roofline, roofline
from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.picture import comparison_chart
from ncu_roofline.analyses.compare.thresholds import evaluate
from ncu_roofline.analyses.hierarchical.picture import picture
from ncu_roofline.analyses.phases.frames import phase_roofline
from ncu_roofline.analyses.run.frames import run_of
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.picture import source_chart
from ncu_roofline.analyses.time.frames import TimeRoofline, time_roofline
from ncu_roofline.analyses.time.picture import chart as time_chart
from ncu_roofline.cli import parse
from ncu_roofline.cli.show import read_roofline
from ncu_roofline.formats.traces import read_trace
from ncu_roofline.rendering.chart import Chart, Panel
from ncu_roofline.rendering.paper import Pen
from ncu_roofline.rendering.plan import Plan
from ncu_roofline.version import __version__
from tests import factory
from tests.analyses import comparison_made, phases_made, test_run
from tests.analyses.source_frames import SOURCE, TEXTS, source_frames
from tests.analyses.time_frames import ordinary as time_frames
from tests.analyses.time_frames import point
from tests.instruction_factory import accesses, executed
from tests.rendering.frames import ODD, FakeRoofline, joined, make_roofline, many, sweep, tomllib
from tests.test_sessions import part

HOSTILE = "<img src=x onerror=alert(1)></script><!--\u2028{{7*7}}{% x %}<b>\"'&amp; \x00\x1b[31m\u202e\ud800"
_BLOCKS = {"p", "li", "tr", "h1", "h2", "h3", "div", "section", "details", "summary", "table", "ul", "header", "main", "title"}


class Markup(HTMLParser):
    """Elements with their attributes, the text of each script and of the rest; ``outline``: ids and texts, a line per block."""

    def __init__(self, source: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = self._open = self._outline = ""
        self._in_svg = 0  # charts, whose ids differ from one matplotlib to another
        self.feed(source.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")
        shown = [text for name, text in attrs if name == "title" and text]
        if tag == "svg" or self._in_svg:
            self._in_svg += tag == "svg"
            return
        self._outline += "\n" * (tag in _BLOCKS) + " | " * (tag in ("td", "th")) + "".join(f"[{text}]" for text in shown)
        self._outline += "".join(f"\n#{value} " for name, value in attrs if name == "id")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""
        self._in_svg -= tag == "svg"

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.text += data
            self._outline += "" if self._in_svg else " ".join(data.split()) + " "

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])

    @property
    def outline(self) -> str:
        lines = (" ".join(line.split()) for line in self._outline.splitlines())
        return "\n".join(line for line in lines if line)


HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
DEMO = HERE.parents[1] / "ncu_roofline" / "data" / "demo"
LATENCY = 4.2e-6
COUNTED = "line function loop instruction"
SOURCE_TABLES = f"{COUNTED} outer_line stall total finding"


def gpp() -> Roofline:
    """The published sweep under the published measured roofs."""
    return roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")


def timed(gpus: int = 2) -> TimeRoofline:
    """Kernels of all kinds on some GPUs: bound by memory, compute and launches, at the roofline, without work."""
    rows = []
    for device, scale in (("GPU one", 1.0), ("GPU two", 3.0))[:gpus]:
        machine = {"device": device, "compute_roof": 8e12 * scale, "bandwidth_roof": 1e12 * scale}
        kinds = {"stream": (1e8, 1e9, 3e-3 / scale), "matmul": (1e11, 1e9, 2e-2 / scale), "tiny": (1e4, 1e5, 3e-6)}
        for name, (work, traffic, seconds) in (kinds | {"ideal": (8e9, 1e9, 1e-3 / scale)}).items():
            launches = 3 if name == "stream" else 1
            rows.append(point(name, work=work, traffic=traffic, seconds=seconds, launches=launches, **machine))
        rows.append(point("single", work=8e9, traffic=1e8, **machine | {"precision": "fp32", "compute_roof": 16e12 * scale}))
    idle = {"kernel": "copy", "seconds": 1e-3, "status": "zero-flop", "device": "GPU one", "launches": 7}
    return time_roofline(time_frames(rows, [idle], dram=[row["traffic"] for row in rows] + [5e8]), launch_latency=LATENCY)


def timed_odd() -> TimeRoofline:
    rows = [point(short, seconds=10.0**-n, notes=full) for n, (full, short) in enumerate(ODD)]
    idle = {"kernel": ODD[1][0], "seconds": 1.0, "status": "zero-flop"}
    return time_roofline(time_frames(rows, [idle]), launch_latency=LATENCY)


def instructions(folder: Path, **kinds: tuple[int, int]) -> Any:
    """The instruction roofline of a kernel with these accesses, (instructions, transactions) each."""
    metrics = {**factory.complete(), **(executed(40_000_000) if kinds else {}), **accesses(**kinds)}  # type: ignore[arg-type]
    return instruction_roofline(factory.report(folder / "made.ncu-rep", factory.kernel(metrics)))


def phases(folder: Path) -> Any:
    """A kernel of two phases, and one of which less was sampled."""
    made, steps = phases_made, phases_made.steps
    bands = (made.Group({made.SM: steps(20, 60)}, until=0.6), made.Group({made.DRAM: steps(80, 20)}, until=0.6))
    other = made.Made(bands, name="k" + HOSTILE.replace("\ud800", ""), seconds=0.9e-3)
    return phase_roofline(factory.report(folder / "r.ncu-rep", made.Made(made.TWO_PHASES).kernel(), other.kernel()))


def run(folder: Path) -> Any:
    """Operators of a run on two GPUs, of which the second has no dots."""
    of, path = test_run, folder / "run.pt.trace.json"
    second = [{**one, "args": {**one["args"], "device": 1}} if one["cat"] == "kernel" else one for one in of.COPY]
    gpus = (of.H100, {**of.H100, "id": 1})
    path.write_text(json.dumps(of.document(of.MM, of.SOFTMAX, of.LATE, of.HOSTILE, second, gpus=gpus)))
    return run_of([read_trace(path)], full_paths=False)


def limited(folder: Path) -> Comparison:
    return evaluate(comparison_made.ordinary(folder), ["time > 1.05 * baseline", "fraction < 0.5"])


def changed(frames: SourceRoofline, tables: str, where: str = "index >= 0", **values: Any) -> SourceRoofline:
    """The frames with other values in some rows of tables: "=" begins a formula over their columns."""
    for table in tables.split():
        columns = dict(getattr(frames, f"{table}_columns"))
        whole = pd.DataFrame(columns)
        if where.split(" ")[0] not in ("index", *columns):
            continue
        rows = np.asarray(whole.eval(where), bool)
        for name, value in ((name, value) for name, value in values.items() if name in columns):
            computed = np.asarray(whole.eval(value[1:]))[rows] if isinstance(value, str) and value[:1] == "=" else value
            columns[name] = columns[name].astype(object if isinstance(computed, str) else columns[name].dtype)
            columns[name][rows] = computed
        frames = replace(frames, **{f"{table}_columns": columns})
    return frames


def longer(times: int) -> SourceRoofline:
    """With so many times its instructions, one behind the other."""
    frames = source_frames()
    made = {name: np.concatenate([values] * times) for name, values in frames.instruction_columns.items()}
    made["function"][:] = frames.instruction_columns["function"][0]
    made["offset"] = 16 * np.arange(len(made["offset"]))
    return replace(frames, instruction_columns=made)


def with_texts(text: str) -> SourceRoofline:
    """The frames with a text in every column of texts, and in the source."""
    frames = source_frames(texts={text: (text,) * 20})
    for table in SOURCE_TABLES.split():
        names = [name for name, of in getattr(frames, f"{table}_columns").items() if of.dtype == object]
        frames = changed(frames, table, **dict.fromkeys(names, text))
    return replace(frames, notes=(text,))


def mixed() -> SourceRoofline:
    """Points of three precisions, the sum over pipes among them, and loops that work in FP32 alone."""
    frames = source_frames()
    of = {name: frames.loop_columns[name][0] for name in ("report", "launch", "kernel", "device")}
    works = (("fp32", 2e9, 1e13), ("fp16", 1e9, 2e13), ("mixed", 3e9, 1.5e13))
    points = [point(**of, precision=one, level="l1", work=work, compute_roof=roof) for one, work, roof in works]
    return replace(frames, roofline=time_frames(points))


M = 10**6
BUILT: dict[str, Callable[[Path], Any]] = {
    "sweep": lambda _: sweep(4, 3), "gpp": lambda _: gpp(), "thousands": lambda _: many(30),
    "time": lambda _: timed(), "time-odd": lambda _: timed_odd(),
    "time-gpp": lambda _: time_roofline(gpp(), launch_latency=LATENCY),
    "time-no-latency": lambda _: time_roofline(time_frames([point()])),
    "time-no-roofs": lambda _: time_roofline(time_frames([point(compute_roof=np.nan, bandwidth_roof=np.nan)])),
    "instructions": lambda folder: instructions(folder, global_ld=(M, 4 * M), shared_ld=(M, 4 * M), shared_st=(M, 4 * M)),
    "instructions-none": instructions, "compared": limited, "compared-steps": comparison_made.steps,
    "compared-gpus": comparison_made.two_gpus, "compared-disjoint": comparison_made.disjoint,
    "compared-many": lambda folder: comparison_made.many(folder, 230),
    "source-two": lambda _: SourceRoofline.joined([source_frames(), source_frames(kernel="sharpen", launch=7)]),
    "source-advice-twice": lambda _: replace(
        source_frames(), finding_columns={name: np.repeat(of[:1], 2) for name, of in source_frames().finding_columns.items()}
    ),
    "source-markup": lambda _: source_frames(texts={"smooth.cu": ("<b>|`x`",) * 20}),
    "source-long-file": lambda _: changed(
        source_frames(texts={**TEXTS, "smooth.cu": (*SOURCE.splitlines(), *(f"// {line}" for line in range(3000)))}),
        "line instruction", "line == 15", line=2500,
    ),
    "source-mixed": lambda _: mixed(), "source-long": lambda _: longer(560),
    "source-hostile": lambda _: source_frames(
        texts={**TEXTS, "smooth.cu": tuple(f"{HOSTILE}{line}" for line in SOURCE.splitlines())}
    ),
    "source-all-hostile": lambda _: with_texts(HOSTILE),
    "phases": phases, "run": run,
    "strips": lambda folder: phases(folder) and read_roofline(parse(["render", f"{folder}/r.ncu-rep"]), advice=True).roofline,
    "phases-none": lambda folder: phase_roofline(factory.report(folder / "n.ncu-rep", phases_made.Made(()).kernel())),
}  # fmt: skip


def made(name: str, folder: Path) -> Any:
    """The result of a case."""
    case = CASES.get(name, {})
    if "make" not in case and "join" not in case:
        if name in BUILT:
            return BUILT[name](folder)
        frames = source_frames(**case.get("source", {}))
        for change in case.get("change", ()):
            frames = changed(frames, **change)
        return frames
    whole = joined(*(make_roofline(**options) for options in case.get("join", [case.get("make", {})])))
    for frame in vars(whole):
        table = getattr(whole, frame)
        for column, value in case.get(frame, {}).items():
            table[column] = table.eval(value[1:]) if isinstance(value, str) and value.startswith("=") else value
    for change in case.get("change", ()):
        table, rows = getattr(whole, change["in"]), getattr(whole, change["in"]).eval(change["where"])
        for column, value in (pair for pair in change.items() if pair[0] not in ("in", "where")):
            table.loc[rows, column] = table.eval(value[1:])[rows] if isinstance(value, str) and value[:1] == "=" else value
    kept = {frame: getattr(whole, frame).query(case.get("only", {}).get(frame, "index >= 0")) for frame in vars(whole)}
    return SimpleNamespace(**kept, **case["more"]) if "more" in case else FakeRoofline(**kept)


# What is shown


def chart_of(frames: Any) -> Chart:
    if isinstance(frames, Comparison):
        return comparison_chart(frames)
    if isinstance(frames, SourceRoofline):
        return source_chart(frames)
    return time_chart(frames) if isinstance(frames, TimeRoofline) else picture(frames)


def plan_of(frames: Any) -> Plan:
    """Where everything in the first panel of the chart goes, were all letters of one width."""
    chart = chart_of(frames)
    panel, pen = chart.rows[0][0], Pen()
    assert isinstance(panel, Panel)
    pen.measure = lambda text, size: (0.6 * size * len(text), 1.2 * size)
    return Plan(panel, 450, 270, pen, list(chart.names))


def told(one: Any) -> str:
    """A value of a mark: numbers with four digits, colours by their label."""
    if hasattr(one, "dark"):
        return str(getattr(one, "label", one.light))
    if isinstance(one, float):
        return f"{one:.4g}"
    if isinstance(one, (tuple, list)):
        return f"({', '.join(map(told, one))})"
    return f"{type(one).__name__}({about(one)})" if is_dataclass(one) else str(one)


def about(one: Any, *without: str) -> str:
    """The fields that are not as by default."""
    given = ((each.name, getattr(one, each.name), each.default) for each in fields(one) if each.name not in without)
    return " ".join(f"{name}={told(value)}" for name, value, default in given if told(value) != told(default) and value != ())


def lines_of(shown: Chart | Plan | None) -> Iterator[str]:
    """A chart with all its marks, or where those of a panel go."""
    if isinstance(shown, Chart):
        yield from (shown.title, *shown.sentences, shown.facts, *shown.notes, *shown.empty.splitlines())
        yield from (f"key {told(key)}" for key in shown.keys)
        yield from (f"name {name}: {text}" for name, text in shown.names.items())
        for block in (block for row in shown.rows for block in row):
            yield f"{type(block).__name__} {about(block, 'marks', 'rows')}"
            yield from (
                f"  {type(mark).__name__} {about(mark)}" for mark in getattr(block, "marks", getattr(block, "rows", ()))
            )
    elif shown:
        yield f"view {told(tuple(shown.view))}"
        yield from (f"line {about(line)}" for line in shown.lines)
        yield from (f"area {told(area)}" for area in shown.areas)
        for label in shown.labels:
            turned, led = f" turned by {label.box.angle:.0f}" * (label.box.angle != 0), " with leader" * bool(label.leader)
            yield f"{label.mark.role} {label.text} at {label.box.x:.0f}, {label.box.y:.0f}{turned}{led}"
        yield f"outside {shown.outside}, untold {shown.untold}, missing {sorted(shown.missing)}"


def rounded(value: Any) -> str:
    """JSON, its numbers with four digits."""
    return json.dumps(json.loads(json.dumps(value), parse_float=lambda text: float(told(float(text)))), ensure_ascii=False)


def lines_of_data(value: Any, path: str) -> Iterator[str]:
    """What a page's script has, in parts that are not too long."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if len(text := rounded(value)) > 700 and parts:
        for name, one in parts:
            yield from lines_of_data(one, f"{path}.{name}")
    else:
        yield f"{path}: {text}"


def options_of(given: Iterable[str]) -> dict[str, Any]:
    """Options by name: their values are JSON, or else texts."""
    found: dict[str, Any] = {}
    for name, _, value in (one.partition("=") for one in given):
        found[name] = json.loads(value) if re.match(r'[\[{"\d-]|true|false', value) and not value.endswith("in") else value
    return found


def shown(frames: Any, how: str) -> str:
    """A result in a form: "text width=72", "md", "csv table=roofs", "chart", "plan", "page"."""
    form, *given = shlex.split(how)
    options = options_of(given)
    if form == "text":
        return text_table(frames, **options)
    if form == "page":  # what explains all pages is in one of the texts
        whole = options.pop("whole", False)
        outline = Markup(render(frames, "html", **options)).outline.replace(__version__, "VERSION")
        return outline if whole else outline.partition("\n#reading")[0]
    if form == "data":
        data = Markup(render(frames, "html")).data
        return "\n".join(line for path in options["of"].split(",") for line in lines_of_data(part(data, path), path))
    if form in ("chart", "plan"):
        return "\n".join(lines_of(chart_of(frames, **options) if form == "chart" else plan_of(frames)))
    return render(frames, form, **options).decode()
