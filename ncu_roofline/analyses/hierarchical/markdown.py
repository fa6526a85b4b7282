"""The roofline as Markdown with GitHub tables; whatever comes from a report is escaped."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import ZERO
from ncu_roofline.analyses.hierarchical.summary import (
    Summary,
    intensity_text,
    intensity_unit,
    label_of,
    performance_text,
    share_text,
    summary,
    time_text,
)
from ncu_roofline.analyses.hierarchical.usage import (
    answers,
    busiest_text,
    level_text,
    levels_of,
    occupancy_text,
    percent,
    reasons,
    unit_label,
    waves_text,
)
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.table import escape, markdown_table


def render_md(roofline: Frames, *, title: str = "") -> bytes:
    """Tables of a Roofline: kernels, roofs, kernels without points, notes."""
    data = summary(roofline)
    blocks = [f"# {escape(title or captions.name_of(roofline))}", escape(data.heading)]
    if data.rows:
        blocks.append(_kernels(data))
    elif answers(roofline, data.absent):
        blocks += [escape(captions.how_to_add(roofline))]
    else:
        blocks += [escape(line) for line in captions.explanation(roofline).splitlines()]
    if data.absent:
        blocks += ["## Kernels without points", _absent(roofline, data)]
    if said := reasons(data.usages):
        blocks += ["## Verdicts", "\n".join(f"- {escape(name)}: {escape(why)}" for name, why in said)]
    if data.roofs:
        blocks += ["## Roofs", _roofs(data)]
    notes = [*data.notes, *captions.notes_of(roofline, 8)]
    if notes:
        blocks += ["## Notes", "\n".join(f"- {escape(note)}" for note in notes)]
    return ("\n\n".join(filter(None, blocks)) + "\n").encode("utf-8", "replace")


def _kernels(data: Summary) -> str:
    """One row per kernel and precision; what is said of a kernel stands on each of its rows."""
    launches = any(row.launches > 1 for row in data.rows)
    sweep = any(row.step_label for row in data.rows)
    kernels = [(row.kernel, row.step, row.step_label, row.precision) for row in data.rows]
    repeated = len(set(kernels)) < len(kernels)
    mix, lanes = (any(getattr(row, name) >= 0 for row in data.rows) for name in ("fma_share", "lanes"))
    headers = ["kernel", *(["step"] if sweep else []), captions.kind_of_work(row.unit for row in data.rows)]
    headers += ["launch"] if repeated else []
    headers += ["verdict", "gain"] if data.judged else ["bound by"]
    headers += [*(["launches"] if launches else []), "time", "share"]
    headers += [f"{escape(label)} [{intensity_unit(data)}]" for label in data.level_labels] + ["performance", "of roof"]
    headers += ["FMA", "of mix roof"] if mix else []
    headers += ["lanes"] if lanes else []
    rows = [
        [
            escape(row.kernel),
            *([escape(row.step_label)] if sweep else []),
            escape(label_of(row)),
            *([_launch(row.launch)] if repeated else []),
            *([escape(row.verdict), row.gain] if data.judged else [escape(row.binds)]),
            *([str(row.launches)] if launches else []),
            time_text(row.seconds),
            percent(row.share),
            *(intensity_text(row.intensity.get(level, float("nan"))) for level in data.levels),
            performance_text(row),
            percent(row.fraction),
            *([share_text(row.fma_share), share_text(row.mix_fraction)] if mix else []),
            *([share_text(row.lanes)] if lanes else []),
        ]
        for row in data.rows
    ]
    return markdown_table(headers, rows, left=3 + sweep + repeated)


def _launch(number: int) -> str:
    return str(number) if number >= 0 else ""


def _roofs(data: Summary) -> str:
    rows = [[escape(roof.device), escape(roof.label), roof.text("measured"), roof.text("theoretical")] for roof in data.roofs]
    return markdown_table(["GPU", "roof", "measured", "theoretical"], rows, left=2)


def _absent(roofline: Frames, data: Summary) -> str:
    """Kernels without points: why, and what of the GPU they kept busy; columns that nobody fills are left out."""
    absent, levels = data.absent, levels_of(data.absent)
    repeated = len({(one.kernel, one.step) for one in absent}) < len(absent)
    columns = [
        ("kernel", [escape(one.name) for one in absent]),
        ("launch", [_launch(one.launch) if repeated else "" for one in absent]),
        ("why", [escape(captions.why(roofline, one.status)) for one in absent]),
        ("verdict", [escape(one.verdict) for one in absent]),
        ("gain", [one.gain for one in absent]),
        ("launches", [str(one.launches) if any(other.launches > 1 for other in absent) else "" for one in absent]),
        ("time", [time_text(one.seconds) for one in absent]),
        ("share", [percent(one.share) for one in absent]),
        ("busiest", [escape(busiest_text(one)) for one in absent]),
        *((unit_label(level), [level_text(one, level) for one in absent]) for level in levels),
        ("occupancy", [occupancy_text(one) for one in absent]),
        ("waves", [waves_text(one) for one in absent]),
        ("missing", ["" if one.status in ZERO else escape(one.missing) for one in absent]),
    ]
    filled = [(header, texts) for header, texts in columns if any(texts)]
    left = 2 + sum(header in ("launch", "verdict") for header, _ in filled)
    return markdown_table([header for header, _ in filled], list(zip(*(texts for _, texts in filled), strict=True)), left=left)
