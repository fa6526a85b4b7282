"""A run as a chart: for each GPU the roofline of its operators, beside where its time goes and what of it could go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ncu_roofline.analyses.hierarchical.picture import axes_of, plain_roofs
from ncu_roofline.analyses.hierarchical.style import bounds, precision_label
from ncu_roofline.analyses.run.frames import Run
from ncu_roofline.analyses.run.text import Row, name_of, place_of, runs_of, sentences
from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import PLAIN, Color
from ncu_roofline.rendering import chart as marks
from ncu_roofline.rendering.chart import Block, Chart, Key, Listing, Panel, Point, Scale, Text
from ncu_roofline.rendering.frames import records
from ncu_roofline.rendering.picture import figure_of, pictures

MOST_GPUS, TOP = 3, 12  # in one picture; a page has them all
COULD_GO = Color("#E69F00", "#F0B840")
UNKNOWN = {"roof unknown": PLAIN, "need unknown": Color("#A3ABB4", "#77818C"), "no operator": Color("#C9CED4", "#525C66")}
_NAMED, _LONG, _BRIEF = 8, 30, 18  # operators named at their dots, and characters of such a name
_SMALLEST, _WHOLE = 3.2, 16.0  # points across the dot of no and of all the time, by area
_LEAST = 0.0005  # share of the time that is told
_MATTERS = 0.02  # share of the time from which on axes reach to a dot, and a roof is drawn for one


def size_of(share: float) -> float:
    """Points across a dot whose area is a share of the time."""
    return max(_SMALLEST, _WHOLE * math.sqrt(share) if share > 0 else 0.0)


def chart(frames: Run, *, top: int = TOP) -> Chart:
    """The ``top`` operators of each GPU by time under the roofs and as bars, and how busy the GPUs were."""
    made, listed = runs_of(frames), top or TOP
    shown = made[:MOST_GPUS]
    dotted = any(_drawable(row) for _, operators, _ in shown for row in operators)
    roofs, names, lone, blocks = records(frames.roof_columns), dict[str, str](), list[Block](), list[Sequence[Block]]()
    for number, (run, operators, _) in enumerate(shown):
        longest = sorted(operators, key=lambda row: -row["seconds"])
        keys = {id(row): f"{number}.{place}" for place, row in enumerate(longest[:listed]) if _drawable(row)}
        names |= dict.fromkeys(keys.values(), "")
        where = place_of(run, frames) if len(made) > 1 else ""
        mine = [roof for roof in roofs if (roof["run"], roof["gpu"]) == (run["run"], run["gpu"])]
        panel = [_roofline(operators, mine, keys, where)] if any(map(_drawable, operators)) else []
        times = [_times(longest, listed, keys, "" if panel else where)] if operators else []
        blocks += [[*panel, *times]] if panel else []
        lone += [] if panel else times
    timed = [(place_of(run, frames), run) for run, *_ in shown if run["wall"] > 0]
    late = any(run["late"] >= _LEAST * run["wall"] for _, run in timed)
    traces = len({run["run"] for run, *_ in made})
    rows = [row for _, operators, _ in shown for row in operators]
    notes = [f"{clean(note)}." for note in frames.notes]
    if left_out := len(made) - len(shown):
        notes.append(f"{plural(left_out, 'further GPU')} left out: the page and the tables have them.")
    if any(row["bytes"] >= 0 for row in rows):
        notes.append("Needs are those of the shapes: operations, and bytes in and out once each; kernels may do more.")
    if dotted and (away := sum(row["share"] for row in rows if row["flops"] == 0) / len(shown)):
        notes.append(f"Operators that need bytes but no FLOP have no dot: {percent(away)} of the kernels' time.")
    facts = [clean(made[0][0][name]) for name in ("device", "run", "format")] if len(made) == 1 else []
    told = [f"{place_of(run, frames)} {_title(run)}" for run, *_ in shown]
    return Chart(
        f"GPU {_title(made[0][0])}" if len(timed) == len(made) == 1 else f"Operators of {'runs' if traces > 1 else 'a run'}",
        [_answer(*made[0])] if len(made) == 1 else [f"{'; '.join(told)}."] if told else [],
        " \N{MIDDLE DOT} ".join(filter(None, facts)),
        [*([[_busy(timed)]] if timed else []), *blocks, *(lone[at : at + 2] for at in range(0, len(lone), 2))],
        [
            *([Key("idle: its host launched too late", "bar", _hue("overhead"))] if late else []),
            *_keys(rows),
        ],
        names,
        notes,
        "" if made else "The trace holds no work of a GPU.",
    )


def _drawable(row: Row) -> bool:
    return bool(0 < row["intensity"] < math.inf and 0 < row["performance"] < math.inf)


def _title(run: Row) -> str:
    """The answer in a few words."""
    busy = f"{percent(run['busy'] / run['wall'])} busy" if run["wall"] > 0 else "without timeline"
    return f"{busy}, {percent(run['recoverable'])} of kernels' time could be saved" if run["recoverable"] > 0 else busy


def _answer(run: Row, operators: Sequence[Row], chains: Sequence[Row]) -> str:
    """How busy the GPU was, and how much of the kernels' time could be saved."""
    first = next(sentences(run, operators, chains)).partition(", and what follows")[0].removesuffix(".")
    if not run["recoverable"] > 0:
        return f"{first}."
    most = max(operators, key=lambda row: row["recoverable"] if row["recoverable"] >= 0 else 0.0)
    name = f"{name_of(most)} {clean(most['shapes'])}".rstrip()
    told = f"At the roofs {percent(run['recoverable'])} of the kernels' time could be saved"
    return f"{first}. {told}, {percent(most['recoverable'])} in {shorten(name, _LONG)}."


def kind_of(row: Row) -> str:
    """What the time of an operator is shown as, but for what of it could go: at which roof, or what is unknown."""
    if row["recoverable"] >= 0:
        return "memory" if row["roof"] == load_spec().memory else "compute"
    return "roof unknown" if row["bytes"] >= 0 else "need unknown" if row["operator"] else "no operator"


def _hue(kind: str) -> Color:
    return {"could save": COULD_GO, **UNKNOWN}.get(kind) or Color(*bounds()[kind][1:])


def _busy(runs: Iterable[tuple[str, Row]]) -> Listing:
    """How much of each run its GPU did something."""
    rows = []
    for name, run in runs:
        share = run["busy"] / run["wall"]
        bars = [(share, None), (run["late"] / run["wall"], _hue("overhead"))]
        told = {"kernels": run["kernel_seconds"], "copies": run["copy_seconds"]}
        parts = [f"{kind} {format_value(seconds, 'second', 3)}" for kind, seconds in told.items() if seconds > 0]
        wall = f"of {format_value(run['wall'], 'second', 3)}"
        rows.append(marks.Row(f"{name} busy", [Scale(bars, True, text=percent(share))], ", ".join(parts), wall))
    return Listing("", (), rows)


def _roofline(operators: Sequence[Row], roofs: Sequence[Row], keys: dict[int, str], title: str) -> Panel:
    """Operators under the roof of memory and those that their operations are of; the names of those that could save most."""
    dots, spec = [row for row in operators if _drawable(row)], load_spec()
    main = [row for row in dots if row["share"] >= _MATTERS] or dots
    wanted, seen = {row["precision"] for row in main} | {spec.memory}, set(map(id, main))
    rows = [
        ("bandwidth", spec.memory, roof["value"], "DRAM", format_value(roof["value"], "byte/s", 3))
        if roof["roof"] == spec.memory
        else ("compute", "", roof["value"], precision_label(roof["roof"]), format_value(roof["value"], f"{roof['unit']}/s", 3))
        for roof in roofs
        if roof["roof"] in wanted
    ]
    drawn: list[marks.Mark] = [*plain_roofs(rows)]
    for row in dots:
        extent = marks.SEEN if id(row) in seen else marks.FOLLOWED if id(row) in keys else marks.ASIDE
        place, name = (row["intensity"], row["performance"]), keys.get(id(row), "")
        size = size_of(row["share"])
        drawn.append(Point(role="dot", hue=_hue(kind_of(row)), x=place[0], y=place[1], name=name, size=size, extent=extent))
    saving = sorted(dots, key=lambda row: (-row["recoverable"] if row["recoverable"] > 0 else 0.0, -row["share"]))
    for row in saving[:_NAMED]:
        texts = f"{shorten(name_of(row), _LONG)} {percent(row['share'])}", shorten(name_of(row), _BRIEF)
        drawn.append(
            Text(
                role="name",
                labels=texts,
                places=((row["intensity"], row["performance"]),),
                key=keys.get(id(row), str(id(row))),
                weight=row["share"],
            )
        )
    across, up = axes_of("flop")
    return Panel(title or "Under the roofs", across, up, drawn, "roofline")


def _times(operators: Sequence[Row], listed: int, keys: dict[int, str], title: str) -> Listing:
    """Where the kernels' time goes, the longest first, each in what it takes at its roof and what could go; the rest as one."""
    longest = max((row["share"] for row in operators), default=1.0)
    groups = [[row] for row in operators[:listed]] + ([list(operators[listed:])] if operators[listed:] else [])
    longest = max(longest, sum(row["share"] for row in groups[-1])) if groups else longest
    rows = []
    for group in groups:
        row, share = group[0], sum(one["share"] for one in group)
        bars = [(part / longest, _hue(kind)) for kind, part in _parts(group).items() if part > 0]
        gone = sum(one["recoverable"] for one in group if one["recoverable"] >= 0)
        reasons = {one["why"] for one in group}
        end = f"{percent(gone)} could be saved" if gone >= _LEAST else clean(reasons.pop()) if len(reasons) == 1 else ""
        name, more = name_of(row), clean(row["shapes"])
        if len(group) > 1:
            name, more = f"and {len(group)} more", ""
        rows.append(
            marks.Row(
                name,
                [Scale(bars, True, text=percent(share))],
                more,
                end,
                shape=keys.get(id(row), "") if len(group) == 1 else "",
            )
        )
    return Listing(title or "Where the kernels' time goes", ("share of the kernels' time", ""), rows)


def _parts(rows: Iterable[Row]) -> dict[str, float]:
    """Shares of the time: at the roofs of memory and of computing, what could go, what nobody knows."""
    found = dict.fromkeys(("memory", "compute", "could save", *UNKNOWN), 0.0)
    for row in rows:
        gone = row["recoverable"] if row["recoverable"] >= 0 else 0.0
        found[kind_of(row)] += row["share"] - gone
        found["could save"] += gone
    return found


def _keys(rows: Sequence[Row]) -> Iterator[Key]:
    told = {"memory": "time at the DRAM roof", "compute": "time at a compute roof"}
    for kind, share in _parts(rows).items():
        if share >= _LEAST:
            yield Key(told.get(kind, kind), "bar", _hue(kind))
    if any(map(_drawable, rows)):
        yield from (Key(f"{percent(share)} of the time", "dot", size=size_of(share)) for share in (0.5, 0.05))


figure = figure_of(chart)
render_png, render_svg, render_pdf = pictures(figure)
