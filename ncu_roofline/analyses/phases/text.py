"""The view of phases in words: launches with their bands over time and their paths under the roofs, notes, and its page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.captions import report_names, roof_note, source_note, subtitle
from ncu_roofline.analyses.hierarchical.kernels import kernel_labels
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.phases.frames import PhaseRoofline, absent_notes, phase_roofline
from ncu_roofline.base.groups import grouped
from ncu_roofline.base.texts import clean, listed, one_line, plural
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.tables import load_phases
from ncu_roofline.model import Measurements
from ncu_roofline.rendering.document import Column, Document, Note, Section, Table
from ncu_roofline.rendering.frames import records, rows, table

_WHY_NO_DOTS = {
    "incomplete": "not all of it was sampled, so its counted work can't be shared out over time",
    "no-traffic": "no memory level has both sampled and counted bytes",
    "no-work": "no pipe was sampled whose operations are counted",
    "gaps": "samples are missing in between",
}
_CAVEAT_OF_BANDS = "Each pass group was sampled in a run of its own, and all runs are stretched to the kernel's time."
_CAVEAT = (
    f"{_CAVEAT_OF_BANDS} A slice's work is the kernel's counted work by the slice's share of its pipe's activity, its traffic "
    "the counted bytes by its share of the sampled percent: exact in sum, a model in each slice."
)
_BANDS = (
    Column("band", "str", "", "what is busy"),
    Column("mean", "float", "ratio", "mean share of its peak"),
    Column("least", "float", "ratio", "lowest share of a slice", priority=1),
    Column("most", "float", "ratio", "highest share of a slice", priority=2),
    Column("values", "str", "", "share of each slice", "over its time, of its peak", form="sparkline"),
)


class Band(NamedTuple):
    """Share of its peak per slice (NaN where unknown), and of its known slices; ``level`` is that of a memory, or ""."""

    label: str
    level: str
    values: tuple[float, ...]
    mean: float
    least: float
    most: float


class Path(NamedTuple):
    """The slices of a launch under a compute roof (op/s) and a bandwidth roof (byte/s).

    ``dots`` are (intensity, performance) of the ``slices`` that have both; ``above`` of these are higher than a roof.
    """

    name: str
    level: str
    unit: str
    compute_roof: float
    bandwidth_roof: float
    slices: tuple[int, ...]
    dots: tuple[tuple[float, float], ...]
    above: int

    def __str__(self) -> str:
        """Where it leads, in a sentence without its end."""
        across, heights = zip(*self.dots, strict=True)
        low, high = (format_value(end(heights), f"{self.unit}/s", 3) for end in (min, max))
        left, right = (format_value(end(across), f"{self.unit}/byte", 3) for end in (min, max))
        return f"{self.name} at {level_style(self.level).label}: {low} to {high}, at {left} to {right}"


class Launch(NamedTuple):
    """One launch that has slices: ``edges`` (s), bands, and paths, the one that is nearest to its roof first.

    ``notes``: what a reader must know of it; ``cut``: whether its end was not sampled.
    """

    kernel: str
    launch: int
    seconds: float
    edges: tuple[float, ...]
    bands: tuple[Band, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...]
    cut: bool
    key: tuple[str, str, str]  # report, GPU and kernel as in the tables

    def heading(self, among: Sequence[Launch] = ()) -> str:
        """A launch with its time and its slices; with its position, where several of ``among`` are of its kernel."""
        several = sum(other.kernel == self.kernel for other in among) > 1
        return f"{self.kernel}{f', launch {self.launch}' if several else ''}: {self.about}"

    @property
    def about(self) -> str:
        """Its time and its slices."""
        cut = f", the first {format_value(self.edges[-1], 'second', 3)}" if self.cut else ""
        return f"{format_value(self.seconds, 'second', 3)}{cut} in {plural(len(self.edges) - 1, 'slice')}"


def launches(frames: PhaseRoofline) -> list[Launch]:
    """The launches that have slices, the longest first; of each the path that is nearest to its roof on the whole first."""
    levels, bands = {band.id: band.level for band in load_phases().bands}, dict[Any, tuple[tuple[float, ...], list[Band]]]()
    for (*key, band, name), of_band in groupby(records(table(frames, "bands")), itemgetter("report", "launch", "band", "name")):
        slices = list(of_band)
        values = tuple(row["utilisation"] for row in slices)
        known = [value for value in values if math.isfinite(value)] or [math.nan]
        made = Band(clean(name), levels.get(band, ""), values, sum(known) / len(known), min(known), max(known))
        edges = (*(row["begin"] for row in slices), slices[-1]["end"])
        bands.setdefault(tuple(key), (edges, []))[1].append(made)
    paths: dict[Any, list[tuple[float, Path]]] = {}
    names = ("report", "launch", "precision", "level", "unit", "compute_roof", "bandwidth_roof")
    for (report, launch, precision, level, unit, roof, bandwidth), of_path in groupby(
        records(table(frames, "points")), itemgetter(*names)
    ):
        dots = [row for row in of_path if all(0 < row[name] < math.inf for name in ("intensity", "performance"))]
        if dots:
            above = sum(row["performance"] > row["attainable"] for row in dots)
            places, at = tuple(row["slice"] for row in dots), tuple((row["intensity"], row["performance"]) for row in dots)
            height = sum(row["performance"] for row in dots) / len(dots) / roof if roof > 0 else 0.0
            path = Path(precision_label(precision), level, unit, roof, bandwidth, places, at, above)
            paths.setdefault((report, launch), []).append((height, path))
    labels, several = kernel_labels(frames), len({device for (device,) in rows(frames, "sampled", "device")}) > 1
    found = []
    about = ("report", "launch", "kernel", "device", "seconds", "status", "dots", "notes")
    for report, launch, kernel, device, seconds, status, why, notes in rows(frames, "sampled", *about):
        key = (report, launch)
        if status == "ok" and key in bands:
            name = f"{labels.get((report, kernel), clean(kernel))}{f' on {clean(device)}' if several else ''}"
            mine = tuple(path for _, path in sorted(paths.get(key, ()), key=lambda pair: -pair[0]))
            told = [f"{note[0].upper()}{note[1:]}." for note in filter(None, clean(notes).split("; "))]
            told += [f"No dots: {_WHY_NO_DOTS.get(why, clean(why))}."] if why else []
            if above := sum(path.above for path in mine):
                reason = "work is shared out by its pipe's activity, which is not only operations"
                told.append(f"{plural(above, 'dot')} above a roof: {reason}.")
            edges, drawn = bands[key]
            cut, where = edges[-1] < 0.999 * seconds, (report, device, kernel)
            found.append(Launch(name, launch, seconds, edges, tuple(drawn), mine, tuple(told), cut, where))
    return sorted(found, key=lambda launch: -launch.seconds)


def notes_of(frames: PhaseRoofline, shown: Sequence[Launch]) -> list[str]:
    """What a reader must know of the launches shown, and of those that are not."""
    kernels = grouped((note, launch.kernel) for launch in shown for note in launch.notes)
    caveats = [_CAVEAT if any(launch.paths for launch in shown) else _CAVEAT_OF_BANDS] if shown else []
    told = [f"{f'{listed(names, 3)}: ' if len(shown) > 1 else ''}{note}" for note, names in kernels.items()]
    return [*caveats, *told, *absent_notes(frames)]


def explanation(frames: PhaseRoofline) -> str:
    if not list(rows(frames, "sampled", "kernel")):
        return "No kernels are left to draw."
    return "\n".join(["No kernel can be drawn over its time.", *absent_notes(frames)])


def document(frames: PhaseRoofline, *, title: str = "", notes: bool = True, top: int = 0) -> Document:
    """Each launch that has slices, ``top`` at most (0: all); without ``notes`` only what concerns these is told."""
    found = launches(frames)
    shown = found[: top or None]
    rest = [f"and {len(found) - len(shown):,} more; --all shows them"] if len(shown) < len(found) else []
    blocks: list[Table | Section] = []
    for launch in shown:  # mean, lowest and highest of each band, and how it goes
        of_bands = [{**band._asdict(), "band": band.label} for band in launch.bands]
        heading, legend = launch.heading(found), tuple(f"{path}." for path in launch.paths)
        names = [column.name for column in _BANDS]
        blocks.append(Table("bands", _BANDS, of_bands, names, heading, about=heading, legend=legend))
    blocks.append(Section(rest if found else explanation(frames).splitlines(), hanging=False))
    told = notes_of(frames, shown) if shown else []
    facts = f"Over time: {subtitle(frames)}"
    return Document(title or "Roofline over time", facts, (), blocks, [Note(text, "launch") for text in told[not notes :]])


def render_html(
    frames: PhaseRoofline, *, title: str = "", theme: str = "auto", explanations: Iterable[Mapping[str, str]] = ()
) -> bytes:
    """The page as UTF-8 bytes; ``explanations`` as of the ordinary page.

    Raises ValueError for an unknown theme.
    """
    from ncu_roofline.rendering.page import self_contained

    found = launches(frames)
    return self_contained(
        __package__,
        ("page_labels.js", "page_plot.js", "page_charts.js", "page.js"),
        {"launches": list(map(_payload, found))},
        title=one_line(title) or "Roofline over time",
        theme=theme,
        subtitle=subtitle(frames),
        found=bool(found),
        explanation=explanation(frames),
        absent=[one_line(note) for note in absent_notes(frames)] if found else [],
        notes=[roof_note(frames), source_note(frames)],
        reports=report_names(frames).values(),
        explanations=explanations,
    )


def strips(m: Measurements) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What a page draws of the longest launch of each kernel that was sampled over its time; ``m`` has the samples."""
    sampled = [row for row, one in enumerate(m.samples) if one is not None and one.groups]
    found = launches(phase_roofline(m.take(np.array(sampled)))) if sampled else []
    return {one.key: {name: _payload(one)[name] for name in ("launch", "seconds", "edges", "bands")} for one in found}


def _payload(launch: Launch) -> dict[str, Any]:
    from ncu_roofline.rendering.page import number

    def numbers(values: Iterable[float]) -> list[float | int | None]:
        return list(map(number, values))

    def colours(level: str) -> tuple[str, str] | None:
        return level_style(level)[1:] if level else None

    return {
        "name": one_line(launch.kernel),
        "launch": launch.launch,
        "cut": launch.cut,
        "seconds": number(launch.seconds),
        "edges": numbers(launch.edges),
        "bands": [
            {"label": one_line(band.label), "colours": colours(band.level), "values": numbers(band.values)}
            for band in launch.bands
        ],
        "paths": [
            {"name": one_line(path.name), "level": one_line(level_style(path.level).label), "colours": colours(path.level)}
            | {"unit": path.unit, "compute_roof": number(path.compute_roof), "bandwidth_roof": number(path.bandwidth_roof)}
            | {"slices": path.slices, "intensity": numbers(at for at, _ in path.dots)}
            | {"performance": numbers(height for _, height in path.dots)}
            for path in launch.paths
        ],
        "notes": [one_line(note) for note in (_CAVEAT if launch.paths else _CAVEAT_OF_BANDS, *launch.notes)],
    }
