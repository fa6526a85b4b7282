"""A comparison as text for a terminal, and as Markdown for a comment on a pull or merge request, never too long to post."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered, Row
from ncu_roofline.analyses.compare.frames import Comparison
from ncu_roofline.analyses.compare.kernels import ADDED, FASTER, NOT_JUDGED, REMOVED, SAME, SLOWER
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import percent, time_text
from ncu_roofline.rendering.document import Column, Document, Note, Table, terminal
from ncu_roofline.rendering.table import Table as TextTable
from ncu_roofline.rendering.table import TextColumn, bullets, escape, markdown, markdown_document

ARROW = " -> "
MARKER = "<!-- ncu-roofline compare -->"
"""The first line of Markdown, the same in every release: by it a bot finds the comment that it made before."""
LONGEST = 65_536  # characters of a comment on GitHub; GitLab takes more.  Bytes are never fewer.
_NAME = 100  # characters of a name in a comment
_STEP = 0.8  # of the rows that are folded away stay, time and again, until all is short enough
_COLUMNS = (
    Column("kernel", "str", "", ""),
    Column("grid", "str", "", "", priority=5),
    Column("launches", "text", "", "", priority=3),
    Column("total time", "text", "", "", priority=8),
    Column("time", "text", "", "", "{time}"),
    Column("change", "text", "", ""),
    Column("FLOP", "text", "", "", priority=7),
    Column("bytes", "text", "", "", "{level} B", 6),
    Column("FLOP/B", "text", "", "", priority=9),
    Column("of roof", "text", "", ""),
    Column("verdict", "str", "", "", priority=4),
    Column("outcome", "str", "", ""),
)


def render_text(comparison: Comparison, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The text of `ncu-roofline compare` as UTF-8, for ``width`` characters (60 at least)."""
    return (terminal(document(comparison), width=width, ascii_only=ascii_only) + "\n").encode("utf-8", "replace")


def document(comparison: Comparison) -> Document:
    """Each pair of reports: what changed in a sentence, kernel by kernel, and what must be known of it; then the thresholds."""
    names, parts = changes.names_of(comparison), []
    for one, kernels in changes.pairs(comparison):
        title, rows = changes.pair_title(one, names), [row for _, row in kernels]
        told = (_common(one, rows), changes.apart(one, rows, ARROW), changes.outcomes(rows, changes.PLAIN))
        notes = [Note(note, "kernel") for note in changes.notes_of(one, kernels)]
        parts.append(
            Document(title, blocks=[(title, " ".join(filter(None, told))), _table(comparison, one, kernels)], notes=notes)
        )
    return Document("Comparison", blocks=[*parts, tuple(changes.threshold_lines(comparison))])


def _common(one: Row, rows: Sequence[Row]) -> str:
    """How the kernels changed that both reports have."""
    if not one["matched"]:
        return "nothing in common: no kernel of one report is in the other."
    spent = time_text(one["seconds_before"]) + ARROW + time_text(one["seconds"])
    if one["time_basis"] == "normalised" and math.isfinite(one["seconds_normalised"]):
        at_clock = time_text(one["seconds_before"] - one["seconds_saved"])
        spent += f" as measured, {at_clock} at the clock of the baseline"
    if one["relaunched"]:
        spent += ", per launch (medians where their number differs) and weighted by the launches of the baseline"
    saved, by = time_text(abs(one["seconds_saved"])), changes.causes(one, rows)
    text = {
        FASTER: f"{changes.ratio_text(one['speedup'])} faster, {saved} saved",
        SLOWER: f"{changes.ratio_text(1 + one['time_change'])} slower, {saved} lost",
        SAME: f"the same within {percent(one['noise'])}",
        NOT_JUDGED: "too short to judge",
    }.get(one["outcome"], "times not compared")
    return f"{text}: {spent}{by and f' ({by})'}."


def _table(frames: Comparison, one: Row, kernels: Sequence[Numbered]) -> Table:
    """What changed in each of these kernels; of launches that are one of several, for each."""
    alike = len({row["name"] for _, row in kernels}) < len(kernels)
    several = any(row["launches_before"] > 1 or row["launches"] > 1 for _, row in kernels)
    ratios = changes.ratios_of(frames, kernels)
    rows = []
    for place, (_, row) in enumerate(kernels):
        star = "*" if row["time_basis"] == "normalised" else ""
        grid = changes.from_to(clean(row["grid_before"]), clean(row["grid"]), ARROW)
        found = {
            "kernel": row["kernel"],
            "grid": grid if alike else "",
            "launches": changes.launches(row, ARROW) if several else "",
            "total time": _times(row, "total_seconds", star) if several else "",
            "time": _times(row, "seconds", star),
            "change": changes.change(1.0, 1.0 + row["time_change"]) + star if changes.same_gpu(row) else "",
            "of roof": changes.shares(row, ARROW),
            "verdict": changes.verdicts(row, ARROW),
            "outcome": row["outcome"],
        }
        rows.append({**found, **{name: changes.change(*values[place]) for name, values in ratios.items()}})
    words = {"time": "time/launch" if several else "time", "level": changes.level_of(frames).upper()}
    star = "*: at the clock of the baseline. " if one["time_basis"] == "normalised" else ""
    legend = f"{star}same: within the noise of the kernel, {percent(one['noise'])} for the application; =: no change."
    return Table("kernels", _COLUMNS, rows, tuple(column.name for column in _COLUMNS), words=words, legend=legend)


def _times(row: Row, name: str, star: str) -> str:
    """Times that are compared: a change and the times beside it are on one basis."""
    if row["outcome"] in (ADDED, REMOVED):
        return time_text(row[name if row["outcome"] == ADDED else f"{name}_before"])
    return time_text(row[f"{name}_before"]) + ARROW + time_text(row[f"{name}_normalised" if star else name]) + star


def render_md(comparison: Comparison, *, title: str = "") -> bytes:
    """The comparison as Markdown of GitHub and GitLab; whatever comes from a report is escaped.

    At most 65,536 bytes, which is what a comment may have: rows that are left out are counted.
    """
    pairs, lines = list(changes.pairs(comparison)), changes.threshold_lines(comparison)
    names = changes.names_of(comparison)
    most = max([len(lines), *(len(kernels) for _, kernels in pairs)])
    while True:
        tested, more = [], len(lines) - 1 - most
        if lines:
            tested = [f"**{escape(lines[-1])}**", bullets(lines[:-1][:most])]
            tested += [f"{more:,} more left out: a comment holds 65,536 characters."] * (more > 0)
        blocks = [MARKER, f"## {escape(title)}" if title else ""]
        for one, kernels in pairs:
            blocks += [f"### {escape(changes.headline(one, kernels))}", escape(changes.about(one, names))]
            blocks += [*tested, *_kernels(one, kernels, most)]
            tested = []
        data = markdown_document(blocks)
        if len(data) <= LONGEST:
            return data
        if not most:  # headings, notes or thresholds alone are too long: whole lines of them
            told = b"\n\nCut here: a comment holds 65,536 characters.\n"
            return data[: LONGEST - len(told)].rpartition(b"\n")[0] + told
        most = int(most * _STEP)


def _kernels(one: Row, kernels: Sequence[Numbered], most: int) -> list[str]:
    """The kernels that matter, and folded below them the others and the notes."""
    shown, rest = changes.matters(one, kernels)
    labels = changes.labels_of(kernels)
    blocks = [_cells(shown, labels)] if shown else ["No kernel changed by more than its noise."] * bool(kernels)
    if rest:
        left_out = len(rest) - most
        told = f"{left_out:,} more left out: a comment holds 65,536 characters; csv and json have all."
        what = f"The rest: {changes.counted([row for _, row in rest])}"
        blocks.append(_folded(what, [_cells(rest[:most], labels) if most else "", told if left_out > 0 else ""]))
    notes = [changes.details(one, kernels), *changes.notes_of(one, kernels), changes.legend(one)]
    return [*blocks, _folded("Notes", [bullets(notes)])]


def _folded(summary: str, blocks: Sequence[str]) -> str:
    """What is shown on a click; the empty lines make GitHub and GitLab read Markdown inside."""
    inside = "\n\n".join(filter(None, blocks))
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _cells(kernels: Sequence[Numbered], labels: dict[int, str]) -> str:
    names = [shorten(labels[number], _NAME) for number, _ in kernels]
    columns = [TextColumn("kernel", names, left=True)]
    for header, text in (("time", changes.times), ("change", changes.said), ("share of roof", changes.shares)):
        columns.append(TextColumn(header, [text(row) for _, row in kernels]))
    columns.append(TextColumn("verdict", [changes.verdicts(row) for _, row in kernels], left=True))
    return markdown(TextTable(tuple(columns)))
