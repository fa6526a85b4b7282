"""What a comparison says: its kernels as rows with what people see of them, the answer in sentences, and both as text.

Markdown is for a comment on a pull or merge request, never too long to post.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ncu_roofline.analyses.compare import frames
from ncu_roofline.analyses.compare.columns import SEEN
from ncu_roofline.analyses.compare.frames import ADDED, CLOSER, FASTER, FURTHER, NOT_JUDGED, REMOVED, SAME, SLOWER, SMALL_SHARE
from ncu_roofline.analyses.hierarchical.style import level_order
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, listed, plural, shorten
from ncu_roofline.base.units import percent, time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.rendering.document import Document, Note, Table
from ncu_roofline.rendering.frames import records
from ncu_roofline.rendering.table import Table as TextTable
from ncu_roofline.rendering.table import TextColumn, bullets, escape, markdown, markdown_document

MARKER = "<!-- ncu-roofline compare -->"
"""The first line of Markdown, the same in every release: by it a bot finds the comment that it made before."""
LONGEST = 65_536  # characters of a comment on GitHub; GitLab takes more.  Bytes are never fewer.
MOST, MOST_NOTES, NAMED = 10, 12, 3
"""Kernels that matter and notes at most: what a screen holds; kernels that are named in a sentence."""
_ARROW = " \N{RIGHTWARDS ARROW} "
_NAME = 100  # characters of a name in a comment
_STEP = 0.8  # of the rows that are folded away stay, time and again, until all is short enough
WORDS = {
    CLOSER: "closer to the roof",
    FURTHER: "further from the roof",
    frames.UNKNOWN: "not comparable",
    ADDED: "new",
    REMOVED: "gone",
}
_ORDER = (FASTER, SLOWER, SAME, CLOSER, FURTHER, ADDED, REMOVED, frames.UNKNOWN, NOT_JUDGED)
_COMMENTED = {"label": "", "time": "time", "change": "change", "share": "share of roof", "limits": "verdict"}
Row = dict[str, Any]


class Pair(NamedTuple):
    """A pair of reports: its row of the summary, which reports these are, and its kernels in the order of the frame.

    A kernel is its row of the frame and its ``number`` there, with what people see: ``label``; ``count`` of launches; times
    ``before`` and ``after`` [s] of as many launches as the baseline has, as text ``time``, that of a launch ``once``, of all
    ``total``; ``change`` in words, ``relative`` in percent; ``speedup``; ``share`` of its roof; ``limits``; ``ratios`` by name.
    """

    whole: Row
    title: str
    rows: list[Row]
    nouns: tuple[str, ...] = ("kernel", "launch", "launches")
    said: tuple[str, ...] = ()

    @property
    def same_gpu(self) -> bool:
        """Whether both reports are of one GPU model: times of two can't be compared."""
        return bool(self.whole["device_before"] == self.whole["device"])


def pairs(comparison: frames.Comparison) -> list[Pair]:
    """All pairs of reports."""
    names, levels = names_of(comparison), comparison.level_columns
    here = levels["level"] == level_of(comparison)
    moved = {(row["row"], row["precision"]): row for row in records({name: levels[name][here] for name in levels})}
    kernels: dict[tuple[int, str], list[Row]] = {}
    for number, row in enumerate(records(comparison.kernel_columns)):
        kernels.setdefault((row["step"], row["against"]), []).append({**row, "number": number})
    found = []
    for whole in records(comparison.summary_columns):
        rows = kernels.get((whole["step"], whole["against"]), [])
        several = Counter(row["kernel"] for row in rows)
        for row in rows:
            row |= _seen(row, several[row["kernel"]] > 1, moved)
        what = "baseline" if whole["against"] == "baseline" else "the step before"
        title = f"{names[whole['report']]} against {names[whole['baseline']]} ({what})"
        found.append(Pair(whole, title, rows, comparison.nouns, getattr(comparison, "notes", ())))
    return found


def main_pair(all_pairs: Sequence[Pair]) -> Pair | None:
    """What a picture shows: the last report against the baseline, else against the step before; None of nothing."""
    return max(all_pairs, key=lambda pair: (pair.whole["step"], pair.whole["against"] == "baseline"), default=None)


def names_of(comparison: frames.Comparison) -> dict[str, str]:
    """What reports are called: the ends of their paths, as long as tells them apart."""
    columns = comparison.summary_columns
    reports = dict.fromkeys(map(str, (*columns["baseline"], *columns["report"])))
    called = ReportNames.apart(reports)
    return {report: clean(called(report)) for report in reports}


def level_of(comparison: frames.Comparison) -> str:
    """The level whose bytes and intensity are shown: DRAM, else the outermost that is known."""
    levels, memory = level_order({str(level) for level in set(comparison.level_columns["level"])} - {""}), load_spec().memory
    return memory if memory in levels or not levels else levels[-1]


def _seen(row: Row, several: bool, moved: dict[tuple[int, str], Row]) -> Row:
    """What people see of a kernel.

    ``several``: others have its name, too; ``moved``: traffic and intensities at the level shown, by kernel and precision.
    """
    grid, place = row["grid"] or row["grid_before"], f" #{row['occurrence'] + 1}" if row["occurrence"] >= 0 else ""
    before, after, comparable = row["total_seconds_before"], row["total_seconds"], row["device_before"] == row["device"]
    if row["matched"]:
        if row["launches"] != row["launches_before"] and row["name"] != "application":
            before = row["seconds_before"] * row["launches_before"]
        after = before - row["seconds_saved"]
    judged = row["matched"] and comparable and row["outcome"] != NOT_JUDGED and row["time_change"] > -1
    speedup = 1 / (1 + row["time_change"]) if judged else math.nan
    ratio = {FASTER: speedup, SLOWER: 1 + row["time_change"]}.get(row["outcome"], math.nan)
    star = "*" if row["time_basis"] == "normalised" else ""

    def known(value: float, text: Any = time_text) -> str:
        return str(text(value)) if math.isfinite(value) else ""

    def times(name: str) -> str:  # a change and the times beside it are on one basis
        if row["outcome"] in (ADDED, REMOVED):
            return time_text(row[name if row["outcome"] == ADDED else f"{name}_before"])
        return f"{time_text(row[f'{name}_before'])}{_ARROW}{time_text(row[f'{name}_normalised' if star else name])}{star}"

    shares = [known(row[name], percent) for name in ("fraction_before", "fraction")]
    if shares[0] != shares[1] and shares[1]:
        shares[0] = shares[0].removesuffix(" %")
    nothing = dict.fromkeys(("traffic_before", "traffic", "intensity_before", "intensity"), math.nan)
    traffic, old, new = (moved.get((row["number"], one), nothing) for one in ("", row["precision_before"], row["precision"]))
    ratios = {
        "FLOP": (row["work_before"], row["work"]),
        "bytes": (traffic["traffic_before"], traffic["traffic"]),
        "FLOP/B": (old["intensity_before"], new["intensity"]),
    }
    return {
        **{name: _relative(*values) for name, values in ratios.items()},
        "ratios": ratios,
        "label": clean(f"{row['kernel']}{f' [{grid}]' if grid and several else ''}{place if several else ''}"),
        "count": from_to(str(row["launches_before"] or ""), str(row["launches"] or "")),
        "before": before,
        "after": after,
        "time": from_to(known(before), known(after)),
        "once": times("seconds"),
        "total": times("total_seconds"),
        "relative": _relative(1.0, 1.0 + row["time_change"]) + star if comparable else "",
        "change": f"{ratio_text(ratio)} {row['outcome']}" if ratio < math.inf else WORDS.get(row["outcome"], row["outcome"]),
        "speedup": speedup,
        "share": from_to(*shares),
        "limits": from_to(clean(row["verdict_before"]), clean(row["verdict"])),
    }


def from_to(before: str, after: str) -> str:
    """Two texts with an arrow between them; one where they are equal, or only one is there."""
    return f"{before}{_ARROW}{after}" if before and after and before != after else before or after


def ratio_text(ratio: float) -> str:
    """How many times as fast or as slow: 1.38x, 12.3x; "" where unknown.  Near 1 two decimals show too little."""
    if not math.isfinite(ratio):
        return ""
    if ratio >= 10:
        return f"{ratio:.3g}x"
    return f"{ratio:.4g}x" if abs(ratio - 1) < 0.02 else f"{ratio:.2f}x"


def _relative(before: float, after: float) -> str:
    """A change as text: "+12.0 %", "=" where three digits show none, "x 12" for a large one, "n/a" where one is missing."""
    if not (math.isfinite(before) and math.isfinite(after)):
        return "n/a"
    if before == after or abs(after - before) < 0.0005 * abs(before):
        return "="
    if before == 0:
        return "from 0"
    ratio = after / before
    return f"x {ratio:.3g}" if ratio >= 10 else f"{100 * (ratio - 1):+.1f} %"


def headline(pair: Pair) -> str:
    """The answer in a line: ``1.13x faster: 15.5 ms -> 13.7 ms (12 % less time); 2 kernels slower``, with an arrow for ->."""
    whole, outcome = pair.whole, pair.whole["outcome"]
    spent = time_text(whole["seconds_before"]) + _ARROW + time_text(whole["seconds_before"] - whole["seconds_saved"])
    if whole["time_basis"] == "normalised":
        spent += " at the clock of the baseline"
    if outcome == frames.NOTHING:
        answer = "Nothing in common"
    elif not pair.same_gpu:
        answer = "Another GPU: shares of the roof are compared, times are not"
    elif math.isnan(whole["seconds_saved"]):
        answer = "No run times to compare"
    elif outcome in (NOT_JUDGED, SAME):
        same = f"The same within {percent(whole['noise'])}"
        answer = f"{same if outcome == SAME else 'Too short to judge'}: {spent}"
    else:
        ratio = ratio_text(whole["speedup"] if outcome == FASTER else 1 + whole["time_change"])
        less = f"{percent(abs(whole['time_change']))} {'less' if outcome == FASTER else 'more'} time"
        answer = f"{'Kernels ' if 'wall' in whole else ''}{ratio} {outcome}: {spent} ({less})"
    told = outcome if pair.same_gpu else ""
    alone = len(pair.rows) == 1 and pair.rows[0]["outcome"] == told
    words = [word for word in (FASTER, SLOWER, CLOSER, FURTHER, ADDED, REMOVED) if word != told and not alone]
    counts = {word: len({row["name"] for row in pair.rows if row["outcome"] == word}) for word in words}
    return "; ".join(
        [answer, *(f"{plural(count, pair.nouns[0])} {WORDS.get(word, word)}" for word, count in counts.items() if count)]
    )


def about(pair: Pair, titled: bool = True) -> str:
    """Which reports (if ``titled``), and on which GPUs."""
    devices = from_to(clean(pair.whole["device_before"]), clean(pair.whole["device"]))
    return ", ".join(filter(None, (pair.title if titled else "", devices, _of_run(pair.whole))))


def _of_run(whole: Row) -> str:
    """Times of a run before and after: of the wall, how busy its GPUs were in it, of all kernels."""
    if "wall" not in whole:
        return ""
    told = {"wall time": ("wall", time_text), "GPU busy": ("busy", percent), "kernels": ("total_seconds", time_text)}
    texts = []
    for word, (name, text) in told.items():
        values = [whole[f"{name}_before"], whole[name]]
        if not all(map(math.isnan, values)):
            texts.append(f"{word} {from_to(*('unknown' if math.isnan(value) else text(value) for value in values))}")
    return ", ".join(texts)


def legend(pair: Pair) -> str:
    """What times and words mean."""
    clock = ", at the clock of the baseline where clocks differ" if pair.whole["time_basis"] == "normalised" else ""
    launches = " (as many as the baseline has)" if pair.whole["relaunched"] else ""
    noise = f"same: within the noise of the {pair.nouns[0]}, {percent(pair.whole['noise'])} for the application"
    return f"time: of all {pair.nouns[2]}{launches}{clock}; {noise}" if pair.same_gpu else noise


def details(pair: Pair) -> str:
    """What `headline` does not say: where the change comes from, what was measured, what is new or gone, in how many rows."""
    whole, told = pair.whole, []
    if pair.same_gpu and whole["outcome"] in (FASTER, SLOWER):
        least = SMALL_SHARE * whole["seconds_before"]
        changed = [row for row in pair.rows if row["outcome"] in (FASTER, SLOWER) and abs(row["seconds_saved"]) >= least]
        by = [
            f"{clean(row['kernel'])} {'-' if row['seconds_saved'] > 0 else '+'}{time_text(abs(row['seconds_saved']))}"
            for row in changed[:NAMED]
        ]
        saved = f"{time_text(abs(whole['seconds_saved']))} {'saved' if whole['outcome'] == FASTER else 'lost'}"
        told.append(f"{saved}{', most by ' if by else ''}{', '.join(by)}.")
    if pair.same_gpu and whole["time_basis"] == "normalised":
        told.append(f"As measured: {time_text(whole['seconds_before'])}{_ARROW}{time_text(whole['seconds'])}.")
    for word, outcome, seconds in (("New", ADDED, "seconds_added"), ("Gone", REMOVED, "seconds_removed")):
        if whole[outcome]:
            names = listed((clean(row["kernel"]) for row in pair.rows if row["outcome"] == outcome), NAMED)
            told.append(f"{word}: {time_text(whole[seconds])}{names and f' ({names})'}.")
    if whole["added"] or whole["removed"] or whole["relaunched"]:
        before, after = (
            f"{plural(whole[f'launches{suffix}'], pair.nouns[1])}, {time_text(whole[f'total_seconds{suffix}'])}"
            for suffix in ("_before", "")
        )
        told.append(f"In all: {before}{_ARROW}{after}.")
    counts = Counter(row["outcome"] for row in pair.rows)
    outcomes = ", ".join(f"{counts[word]} {WORDS.get(word, word)}" for word in _ORDER if counts[word])
    return " ".join([*told, f"{_counted(pair)}: {outcomes or 'none'}."])


def _counted(pair: Pair, some: Sequence[Row] | None = None) -> str:
    """``2 kernels``, or ``4 kernels in 32 configurations``, of ``some`` rows or all."""
    rows = pair.rows if some is None else some
    count = len({row["name"] for row in rows})
    return plural(count, pair.nouns[0]) + (f" in {len(rows):,} configurations" if count < len(rows) else "")


def matters(pair: Pair) -> tuple[list[Row], list[Row]]:
    """The kernels that changed and matter, MOST at most, and the rest; each in the order of the frame.

    What got worse matters whatever its time; what got better, came, went or has another verdict from 1 % of the time on.
    """
    whole = pair.whole["seconds_before"]
    whole = whole if whole > 0 else max(pair.whole["total_seconds_before"], pair.whole["total_seconds"], 0.0)
    weights: dict[int, float] = {}  # the time that each saved or lost, between GPUs that it takes
    for row in pair.rows:
        changed = row["outcome"] == CLOSER or row["verdict_before"] != row["verdict"]
        moved = row["outcome"] in (SLOWER, FURTHER) or (changed and not row["time_share"] < SMALL_SHARE)
        if row["outcome"] in (FASTER, ADDED, REMOVED):
            moved = not abs(row["seconds_saved"]) < SMALL_SHARE * whole  # of what nobody timed that is not known
        if moved:
            alike = row["device"] == row["device_before"] or not row["matched"]
            saved = abs(row["seconds_saved"]) if alike else row["total_seconds"]
            weights[row["number"]] = saved if math.isfinite(saved) else 0.0
    shown = set(sorted(weights, key=lambda number: -weights[number])[:MOST])
    return [row for row in pair.rows if row["number"] in shown], [row for row in pair.rows if row["number"] not in shown]


def notes_of(pair: Pair) -> list[str]:
    """Notes on the application, then those on kernels, each with the kernels that it is about."""
    of: dict[str, list[str]] = {}
    for row in pair.rows:
        for note in filter(None, row["notes"].split("; ")):
            of.setdefault(note, []).append(clean(row["kernel"]))
    notes = [*pair.said, *filter(None, pair.whole["notes"].split("; "))]
    notes += [f"{listed(names, NAMED)}: {note}" for note, names in list(of.items())[:MOST_NOTES]]
    return notes + ([f"and {len(of) - MOST_NOTES} more notes, see csv or json"] if len(of) > MOST_NOTES else [])


def threshold_lines(comparison: frames.Comparison) -> list[str]:
    """What tripped, what was not judged or evaluated and why, and how many passed."""
    rows, names = records(comparison.threshold_columns), names_of(comparison)
    lines = []
    undecided: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        kernel, threshold = clean(row["kernel"]), clean(row["threshold"])
        if row["result"] == "tripped":
            where = f" ({clean(row['configuration'])})" if row["configuration"] else ""
            lines.append(f"tripped: {threshold}: {kernel}{where} in {names[row['report']]}: {row['reason']}")
        elif row["result"] != "passed":
            undecided.setdefault((row["result"], threshold, row["reason"]), []).append(kernel)
    lines += [f"{what}: {threshold}: {listed(kernels, NAMED)}: {why}" for (what, threshold, why), kernels in undecided.items()]
    counts = Counter(row["result"] for row in rows)
    told = (f"{counts[word]} {word}" for word in ("tripped", "passed", "not judged", "not evaluated") if counts[word])
    return [*lines, f"Thresholds: {', '.join(told)}."] if rows else lines


def document(comparison: frames.Comparison) -> Document:
    """Each pair of reports: what changed in a sentence, kernel by kernel, and what must be known of it; then the thresholds."""
    parts = []
    for pair in pairs(comparison):
        several = any(row["launches_before"] > 1 or row["launches"] > 1 for row in pair.rows)
        row, once, all_of_them = pair.nouns
        hidden: tuple[str, ...] = () if several else ("count", "total")
        hidden += ("limits", "FLOP", "bytes", "FLOP/B") if comparison.of_run else ()  # an operator of a name needs the same
        words = {"time": f"time/{once}" if several else "time", "level": level_of(comparison).upper(), "row": row}
        words |= {"counted": all_of_them}
        star = "*: at the clock of the baseline. " if pair.whole["time_basis"] == "normalised" else ""
        noise = f"{star}same: within the noise of the {row}, {percent(pair.whole['noise'])} for the application; =: no change."
        show = tuple(column.name for column in SEEN if column.name not in hidden)
        every = not comparison.of_run  # of a run hundreds of operators, most of them small and alike
        rows = [one for one in pair.rows if every or one["outcome"] != SAME or not one["time_share"] < SMALL_SHARE]
        if left := len(pair.rows) - len(rows):
            noise += f" {plural(left, row)} with less than {percent(SMALL_SHARE)} of the time left out: same."
        table = Table("kernels", SEEN, rows, show, words=words, legend=noise)
        notes = [Note(note, "kernel") for note in notes_of(pair)]
        parts.append(Document(pair.title, blocks=[(about(pair), f"{headline(pair)}.", details(pair)), table], notes=notes))
    return Document("Comparison", blocks=[*parts, tuple(threshold_lines(comparison))])


def render_md(comparison: frames.Comparison, *, title: str = "") -> bytes:
    """The comparison as Markdown of GitHub and GitLab; whatever comes from a report is escaped.

    At most 65,536 bytes, which is what a comment may have: rows that are left out are counted.
    """

    heads = {**_COMMENTED, "label": comparison.nouns[0]}
    if comparison.of_run:
        del heads["limits"]

    def table(rows: Sequence[Row]) -> str:
        texts = {name: [shorten(row[name], _NAME) if name == "label" else row[name] for row in rows] for name in heads}
        shown = (TextColumn(head, texts[name], left=name in ("label", "limits")) for name, head in heads.items())
        return markdown(TextTable(tuple(shown)))

    def folded(summary: str, *blocks: str) -> str:  # the empty lines make GitHub and GitLab read Markdown inside
        inside = "\n\n".join(filter(None, blocks))
        return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"

    parts, lines = pairs(comparison), threshold_lines(comparison)
    most = max([len(lines), *(len(pair.rows) for pair in parts)])
    while True:
        tested = [f"**{escape(lines[-1])}**", bullets(lines[:-1][:most])] if lines else []
        if len(lines) - 1 > most:
            tested.append(f"{len(lines) - 1 - most:,} more left out: a comment holds 65,536 characters.")
        blocks = [MARKER, f"## {escape(title)}" if title else ""]
        for pair in parts:
            shown, rest = matters(pair)
            blocks += [f"### {escape(headline(pair))}", escape(about(pair)), *tested]
            if pair.rows:
                blocks.append(table(shown) if shown else f"No {pair.nouns[0]} changed by more than its noise.")
            if rest:
                told = f"{len(rest) - most:,} more left out: a comment holds 65,536 characters; csv and json have all."
                kept = (table(rest[:most]) if most else "", told if len(rest) > most else "")
                blocks.append(folded(f"The rest: {_counted(pair, rest)}", *kept))
            blocks.append(folded("Notes", bullets([details(pair), *notes_of(pair), legend(pair)])))
            tested = []
        data = markdown_document(blocks)
        if len(data) <= LONGEST:
            return data
        if not most:  # headings, notes or thresholds alone are too long: whole lines of them
            told = "\n\nCut here: a comment holds 65,536 characters.\n"
            return data[: LONGEST - len(told)].rpartition(b"\n")[0] + told.encode()
        most = int(most * _STEP)
