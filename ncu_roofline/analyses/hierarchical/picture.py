"""The roofline chart as png, svg or pdf, as one would put it in a paper; drawn by matplotlib without any window.

Output is deterministic: the same frames and matplotlib give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.answer import answers_of
from ncu_roofline.analyses.hierarchical.bars import BarPlan, draw_bars
from ncu_roofline.analyses.hierarchical.chart import MAX_KERNELS, RooflineChart, chart, of_largest, without_last
from ncu_roofline.analyses.hierarchical.drawing import draw_panel, explain
from ncu_roofline.analyses.hierarchical.edges import view_of
from ncu_roofline.analyses.hierarchical.legend import Block, Key, below, columns, draw_block, kernel_keys, keys_of
from ncu_roofline.analyses.hierarchical.plan import Asked, PanelPlan, plan_panel
from ncu_roofline.analyses.hierarchical.series import by_verdict
from ncu_roofline.analyses.hierarchical.sweeps import step_keys
from ncu_roofline.analyses.hierarchical.usage import BESIDE, MARK, bar_notes, bars, usages
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import measurer, put_text, wrapped
from ncu_roofline.rendering.paper import SIZES, Paper, PaperError, paper_of
from ncu_roofline.rendering.picture import header_height, pictures, put_header, sheet_over
from ncu_roofline.rendering.style import THEMES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 9.0, 15.0, 28.0  # around each panel on the default paper
_SHAPES = {1: 0.6, 2: 0.95}  # height over width of axes, by panels side by side
_LOWEST, _HIGHEST = 18.0, 38.0  # of axes, in fonts; lower ones only where a height is asked for
_LEAST = 9.0  # fonts: lower axes show nothing
_SIDE_BY_SIDE = 26.0  # fonts that a panel needs
_DIRECT = 8  # kernels that are named at their dots, those that could save most
_NOTE_LINES = 6


def figure(
    roofline: Frames,
    *,
    title: str = "",
    theme: str = "light",
    top: int = MAX_KERNELS,
    width: str | float | None = None,
    height: str | float | None = None,
    font: float | None = None,
    dpi: float | None = None,
    preset: str | None = None,
    size: str = "equal",
) -> Figure:
    """The chart as a matplotlib figure of its own, outside pyplot.

    ``width`` and ``height`` are lengths ("3.3in", "84mm") or inches, ``font`` is in points; ``preset``: column, page or slide,
    ``size`` "time" where the areas of dots are to be shares of the time.  Raises ValueError for an unknown theme, preset or
    size, and PaperError, which is one, for a paper that nothing can be drawn or read on.
    """
    for name, value, known in (("theme", theme, tuple(THEMES)), ("size", size, SIZES)):
        if value not in known:
            raise ValueError(f"{name} {value!r} is not one of {', '.join(known)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    paper = paper_of(width, height, font, dpi, preset)
    colours, marks = THEMES[theme], {usage.kernel: MARK for usage in usages(roofline).values() if usage.tensor_unknown}
    data = chart(roofline, top, marks)
    beside = any(panel.series for panel in data.panels)
    shown = bars(roofline, min(top, BESIDE) if beside else top)
    if shown.rows and not beside:
        data = replace(data, panels=())
    made = Figure(figsize=(paper.width / 72, 5), dpi=paper.dpi, facecolor=colours.ground)
    FigureCanvasAgg(made)  # so that it can be drawn outside pyplot
    measure = measurer()
    page = _page(roofline, data, BarPlan(shown, paper), colours, measure, size == "time")
    data, beneath = page.data, page.beneath
    made.set_size_inches(paper.width / 72, page.height / 72)
    sheet = sheet_over(made, paper.width, page.height)
    name = captions.name_of(roofline) if data.panels else "Utilisation"
    put_header(sheet, _default_title(data, title, name), page.lines, colours, measure, paper)
    axes = _draw_panels(made, page, colours, measure)
    if data.panels and not beside:
        explain(axes[-1], captions.explanation(roofline), colours, measure, paper)
    if beneath.data.rows:
        into = made.add_axes(_parts(beneath.place(page.foot), page), facecolor="none")
        heading = "Kernels without dots" if beside else "Kernels by time"
        draw_bars(sheet, into, page.foot, beneath, heading, colours, measure)
    draw_block(sheet, 4, page.foot + beneath.height, page.key, colours, paper)
    for index, line in enumerate(page.notes):
        y = paper.edge - 2 + paper.note_row * (len(page.notes) - 1 - index)
        put_text(sheet, paper.edge, y, line, paper.small, colours.faint, va="bottom", gid="note")
    return made


render_png, render_svg, render_pdf = pictures(figure)


@dataclass(frozen=True)
class _Page:
    """What is on the paper: lines of the header, panels, the key below them or in one of them, bars, notes; points."""

    beneath: BarPlan
    data: RooflineChart
    lines: tuple[str, ...]
    plans: tuple[PanelPlan, ...]
    inside: Block
    key: Block
    notes: tuple[str, ...]
    needed: float
    foot: float

    @property
    def paper(self) -> Paper:
        """What it is drawn on."""
        return self.beneath.paper

    @property
    def height(self) -> float:
        """As asked for, else as high as needed."""
        return self.paper.height or self.needed

    @property
    def fits(self) -> bool:
        """Whether all of it has room."""
        return self.needed <= self.height + 0.01

    @property
    def head(self) -> float:
        """Height of the header."""
        return header_height(len(self.lines), self.paper)


def header(frames: Frames, measure: Measure, paper: Paper) -> tuple[str, ...]:
    """The lines below the title of a picture: the headroom in all, of one GPU, and where it comes from."""
    answers = answers_of(frames)
    said = answers[0].sentences[:1] if len(answers) == 1 else ()
    return (*wrapped(said, paper.key, paper.width - 2 * paper.edge, 2, measure), captions.subtitle(frames))


def _page(roofline: Frames, data: RooflineChart, beneath: BarPlan, colours: Theme, measure: Measure, by_time: bool) -> _Page:
    """The page with all that has room; of a height that is asked for first notes, then bars, then panels, then
    kernels give way.

    Raises PaperError where even so nothing would be seen.
    """
    paper = beneath.paper
    lines = header(roofline, measure, paper)
    if not paper.height:
        return _filled(roofline, data, lines, beneath, colours, measure, _NOTE_LINES, by_time)
    while True:
        for notes, kept in ((2, lines), (0, ())):
            made = _filled(roofline, data, kept, beneath, colours, measure, notes, by_time)
            if made.fits:
                return made
        shown = beneath.data
        if len(shown.rows) > (0 if data.panels else 1):
            beneath = replace(beneath, data=replace(shown, rows=shown.rows[: len(shown.rows) * 3 // 4]))
        elif len(data.panels) > 1:
            data = without_last(data)
        elif len(data.kernels) > 1:
            data = of_largest(data, len(data.kernels) // 2)
        else:
            raise PaperError(f"height {paper.height / 72:.3g}in has no room for the picture; leave it out, or ask for more")


def _filled(
    roofline: Frames,
    data: RooflineChart,
    lines: tuple[str, ...],
    beneath: BarPlan,
    colours: Theme,
    measure: Measure,
    most: int,
    by_time: bool,
) -> _Page:
    """A page with ``most`` lines of notes at most."""
    paper = beneath.paper
    across = _across(data, paper)
    down = -(-len(data.panels) // across)  # rounded up
    width = paper.width / across - (_LEFT + _RIGHT) * paper.scale
    tall = min(max(_SHAPES[across] * width, _LOWEST * paper.font), _HIGHEST * paper.font)
    keys = keys_of(data, colours, paper, by_time) if data.panels else []
    fixed = header_height(len(lines), paper) + down * _margins(data) * paper.scale + beneath.height
    reserved = 0.0
    while True:  # what the axes leave to the key depends on what they hold of it
        if paper.height and down:
            tall = max((paper.height - fixed - reserved) / down, _LEAST * paper.font)
        plans, inside, key = _plans(data, (width, tall), keys, colours, measure, paper, by_time)
        said = _notes(roofline, data, plans, beneath) if most else []
        notes = wrapped(said, paper.small, paper.width - 2 * paper.edge, most, measure)
        foot = paper.note_row * len(notes) + paper.edge
        needed = foot + key.height + (6 if key.keys else 0)
        if not paper.height or needed <= reserved or tall == _LEAST * paper.font:
            break
        reserved = needed
    height = fixed + down * tall + max(needed, reserved)
    return _Page(beneath, data, lines, tuple(plans), inside, key, tuple(notes), height, foot)


def _notes(roofline: Frames, data: RooflineChart, plans: Sequence[PanelPlan], beneath: BarPlan) -> list[str]:
    untold = sum(plan.untold for plan in plans)
    return [*_unlabelled(plans), *captions.footnotes(roofline, data, untold), *bar_notes(beneath.data)]


def _draw_panels(made: Figure, page: _Page, colours: Theme, measure: Measure) -> list[Axes]:
    """The panels row by row, the key in the one that has room for it."""
    paper, across, found = page.paper, _across(page.data, page.paper), []
    for index, plan in enumerate(page.plans):
        row, column = divmod(index, across)
        left = _LEFT * paper.scale + column * paper.width / across
        cell = plan.view.height + _margins(page.data) * paper.scale
        bottom = page.height - page.head - (row + 1) * cell + _BOTTOM * paper.scale
        place = (left, bottom, plan.view.width, plan.view.height)
        found.append(made.add_axes(_parts(place, page), facecolor=colours.ground))
        draw_panel(found[-1], plan, page.data, colours, measure, paper)
        if plan.legend:
            box = plan.legend
            corner = (left + box.x - box.width / 2, bottom + box.y - box.height / 2)
            frame = made.add_axes(_parts((*corner, box.width, box.height), page), facecolor=colours.ground, zorder=3)
            frame.set(xlim=(0, box.width), ylim=(0, box.height), xticks=(), yticks=())
            for spine in frame.spines.values():
                spine.set(color=colours.grid, linewidth=0.6)
            draw_block(frame, 0, 0, page.inside, colours, paper)
    return found


def _parts(place: tuple[float, float, float, float], page: _Page) -> tuple[float, float, float, float]:
    """Left, bottom, width and height in points as parts of the figure."""
    left, bottom, width, tall = place
    return left / page.paper.width, bottom / page.height, width / page.paper.width, tall / page.height


def _margins(data: RooflineChart) -> float:
    """Above and below axes, on the default paper."""
    return _BOTTOM + (_TOP if len(data.panels) > 1 else 3.0)


def _across(data: RooflineChart, paper: Paper) -> int:
    """Panels side by side."""
    return 2 if len(data.panels) > 1 and paper.width >= 2 * _SIDE_BY_SIDE * paper.font else 1


def _default_title(data: RooflineChart, title: str, name: str) -> str:
    if title:
        return clean(title)
    panels = {panel.title for panel in data.panels if panel.title}
    if name != "Roofline":
        return name
    return f"{name}, {next(iter(panels))}" if len(data.panels) == 1 and panels else name


def _plans(
    data: RooflineChart,
    extent: tuple[float, float],
    keys: Sequence[Key],
    colours: Theme,
    measure: Measure,
    paper: Paper,
    by_time: bool,
) -> tuple[list[PanelPlan], Block, Block]:
    """Plans of all panels, the legend inside one of them, and what stands below them instead.

    Kernels that find no room for their name at a dot are in the legend, which takes room from names in turn.
    """
    matter = {kernel.label for kernel in data.kernels if kernel.matters}
    views = [view_of(panel, *extent, matter) for panel in data.panels]
    main = _main_panels(data)
    listed = [kernel.label for kernel in data.kernels if kernel.label not in main]
    steps: list[Key] = []
    while True:
        legend = [*keys, *steps, *kernel_keys(data, listed, colours, paper)]
        blocks = [columns(legend, number, measure, paper) for number in (1, 2, 3)] if legend else []
        extents = tuple((block.width, block.height) for block in blocks)
        plans: list[PanelPlan] = []
        inside = Block()
        for index, (panel, view) in enumerate(zip(data.panels, views, strict=True)):
            names = frozenset(label for label, at in main.items() if at == index and label not in listed)
            asked = Asked(names, () if inside.keys else extents, by_time, not steps)
            plan = plan_panel(panel, view, data, measure, paper, asked)
            if plan.legend:
                inside = next(block for block in blocks if (block.width, block.height) == plan.legend.extent)
            plans.append(plan)
        named = {label for plan in plans for label in plan.named}
        missing = [kernel.label for kernel in data.kernels if kernel.label not in named and kernel.label not in listed]
        lacking = [] if steps or all(plan.told for plan in plans) else [Key(text) for text in step_keys(data.panels)]
        if not missing and not lacking:
            break
        steps, listed = [*steps, *lacking], [*listed, *missing]
    key = Block()
    if not inside.keys and legend:
        key = below([*keys, *steps], kernel_keys(data, listed, colours, paper), paper.width - 8, measure, paper)
    return plans, inside, key


def _main_panels(data: RooflineChart) -> dict[str, int]:
    """The panel that a kernel is named in, the one of most of its work by share of a roof; of those that could save most."""
    ranked = sorted(data.kernels, key=lambda one: -one.recoverable if one.recoverable > 0 else 0.0)
    found = {}
    for kernel in ranked[:_DIRECT]:
        drawn = [
            (*by_verdict(one), index)
            for index, panel in enumerate(data.panels)
            for one in panel.series
            if one.kernel == kernel.label
        ]
        if drawn:
            found[kernel.label] = min(drawn)[-1]
    return found


def _unlabelled(plans: Sequence[PanelPlan]) -> list[str]:
    texts = [text for plan in plans for text in plan.unlabelled]
    return [f"Roofs without room for their value: {', '.join(dict.fromkeys(texts))}."] if texts else []
