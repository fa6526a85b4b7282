"""The page of a run: the answer, the roofline of its operators, where the time goes, and the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical.style import bounds, label_of
from ncu_roofline.analyses.run import text as words
from ncu_roofline.analyses.run.frames import CHAINS, OPERATORS, RUNS, Run
from ncu_roofline.analyses.run.picture import COULD_GO, UNKNOWN, kind_of
from ncu_roofline.base.texts import one_line
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.document import MISSING, Table
from ncu_roofline.rendering.frames import records
from ncu_roofline.rendering.page import number, packed, plain_columns, self_contained, shown_table

_SCRIPTS = ("page_labels.js", "page_plot.js", "page_chart.js", "page.js")
_CHAINS = 20  # in the table of a GPU


def render_html(frames: Run, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes, all GPUs of all traces in it.  Raises ValueError for an unknown theme."""
    made, texts, spec = words.runs_of(frames), dict[str, int](), load_spec()
    columns = plain_columns(frames, "operators", OPERATORS, {})
    place = {(run["run"], run["gpu"]): index for index, (run, *_) in enumerate(made)}
    every = records(frames.operator_columns)
    roofs = [
        {"place": place[row["run"], row["gpu"]], "id": row["roof"], "value": number(row["value"]), "unit": f"{row['unit']}/s"}
        | {"kind": "bandwidth" if row["roof"] == spec.memory else "compute", "label": label_of(row["roof"])}
        for row in records(frames.roof_columns)
    ]
    hues = {name: list(bounds()[name])[1:] for name in ("memory", "compute", "overhead")} | {"could save": list(COULD_GO)}
    payload: dict[str, Any] = {
        "columns": {one.name: [one.unit, one.meaning, one.label or one.name.replace("_", " ")] for one in OPERATORS},
        "operators": {
            **packed(columns, OPERATORS, texts),
            "place": [place[row["run"], row["gpu"]] for row in every],
            "name": [f"{words.name_of(row)} {one_line(row['shapes'])}".strip() for row in every],
            "kind": [kind_of(row) for row in every],
        },
        "runs": [
            {"name": words.place_of(run, frames), **{key: number(run[key]) for key in ("wall", "busy", "late")}}
            for run, *_ in made
        ],
        "roofs": roofs,
        "roof_labels": {
            name: label_of(name) for name in sorted({row[name] for row in every for name in ("roof", "precision")} - {""})
        },
        "hues": hues | {kind: list(hue) for kind, hue in UNKNOWN.items()},
        "texts": list(texts),
    }
    chains = [
        (words.place_of(run, frames), Table("chains", CHAINS, fused[:_CHAINS], words.CHAINS_SHOWN)) for run, _, fused in made
    ]
    notes = list(frames.notes)
    for run, operators, _ in made:
        notes += [*words.roofs_under(frames, run, operators), *words.how(operators)]
    called = [replace(one, label=one.name.replace("_", " "), omit=MISSING) for one in RUNS if one.unit or one.dtype != "float"]
    whole = {one_line(run[name]) for run, *_ in made for name in ("device", "format")} - {""}
    return self_contained(
        __package__,
        _SCRIPTS,
        payload,
        title=one_line(title) or f"Operators of {'runs' if len({run['run'] for run, *_ in made}) > 1 else 'a run'}",
        theme=theme,
        subtitle=", ".join(sorted(whole)),
        answers=[
            {"device": words.place_of(run, frames), "sentences": [one_line(text) for text in words.sentences(run, mine, fused)]}
            for run, mine, fused in made
        ],
        chains=[(name, shown_table(table)) for name, table in chains if table.rows],
        runs=shown_table(Table("runs", called, [run for run, *_ in made], [column.name for column in called])),
        notes=[one_line(note) for note in dict.fromkeys(notes)],
        reports=list(dict.fromkeys(one_line(run["run"]) for run, *_ in made)),
    )
