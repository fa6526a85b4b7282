"""A comparison as Markdown for a comment on a pull or merge request: short, complete where it folds, never too long to post."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ncu_roofline.analyses.compare import changes
from ncu_roofline.analyses.compare.changes import Numbered
from ncu_roofline.analyses.compare.text import (
    ComparisonFrames,
    Row,
    counted,
    names_of,
    notes_of,
    pairs,
    threshold_lines,
)
from ncu_roofline.base.texts import shorten
from ncu_roofline.rendering.table import Table, TextColumn, bullets, escape, markdown, markdown_document

MARKER = "<!-- ncu-roofline compare -->"
"""The first line, the same in every release: by it a bot finds the comment that it made before."""
LONGEST = 65_536  # characters of a comment on GitHub; GitLab takes more.  Bytes are never fewer.
_NAME = 100  # characters of a name
_STEP = 0.8  # of the rows that are folded away stay, time and again, until all is short enough


def render_md(comparison: ComparisonFrames, *, title: str = "") -> bytes:
    """The comparison as Markdown of GitHub and GitLab; whatever comes from a report is escaped.

    At most 65,536 bytes, which is what a comment may have: rows that are left out are counted.
    """
    most = max([len(threshold_lines(comparison)), *(len(kernels) for _, kernels in pairs(comparison))])
    while True:
        data = markdown_document(_blocks(comparison, title, most))
        if len(data) <= LONGEST or not most:
            return data if len(data) <= LONGEST else _cut(data)
        most = int(most * _STEP)


def _cut(data: bytes) -> bytes:
    """Where headings, notes or thresholds alone are too long, whole lines of them."""
    told = b"\n\nCut here: a comment holds 65,536 characters.\n"
    return data[: LONGEST - len(told)].rpartition(b"\n")[0] + told


def _blocks(comparison: ComparisonFrames, title: str, most: int) -> list[str]:
    names, lines = names_of(comparison), threshold_lines(comparison)
    tested = []
    if lines:
        tested += [f"**{escape(lines[-1])}**", bullets(lines[:-1][:most])]
        if len(lines) - 1 > most:
            tested.append(f"{len(lines) - 1 - most:,} more left out: a comment holds 65,536 characters.")
    blocks = [MARKER, f"## {escape(title)}" if title else ""]
    for place, (one, kernels) in enumerate(pairs(comparison)):
        blocks += [f"### {escape(changes.headline(one, kernels))}", escape(changes.about(one, names))]
        blocks += [] if place else tested
        blocks += _kernels(one, kernels, most)
    return blocks


def _kernels(one: Row, kernels: list[Numbered], most: int) -> list[str]:
    """The kernels that matter, and folded below them the others and the notes."""
    shown, rest = changes.matters(one, kernels)
    labels = changes.labels_of(kernels)
    blocks = [markdown(_table(shown, labels))] if shown else ["No kernel changed by more than its noise."] * bool(kernels)
    if rest:
        left_out = len(rest) - most
        told = f"{left_out:,} more left out: a comment holds 65,536 characters; csv and json have all."
        table = [markdown(_table(rest[:most], labels))] if rest[:most] else []
        what = f"The rest: {counted([row for _, row in rest])}"
        blocks.append(_folded(what, [*table, told if left_out > 0 else ""]))
    notes = [changes.details(one, kernels), *notes_of(one, kernels), changes.legend(one)]
    blocks.append(_folded("Notes", [bullets(notes)]))
    return blocks


def _folded(summary: str, blocks: Sequence[str]) -> str:
    """What is shown on a click; the empty lines make GitHub and GitLab read Markdown inside."""
    inside = "\n\n".join(filter(None, blocks))
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def _table(kernels: Sequence[Numbered], labels: dict[int, str]) -> Table:
    def column(header: str, text: Callable[[Row], str], left: bool = False) -> TextColumn:
        return TextColumn(header, [text(row) for _, row in kernels], left=left)

    return Table(
        (
            TextColumn("kernel", [shorten(labels[number], _NAME) for number, _ in kernels], left=True),
            column("time", changes.times),
            column("change", changes.said),
            column("share of roof", changes.shares),
            column("verdict", changes.verdicts, left=True),
        )
    )
