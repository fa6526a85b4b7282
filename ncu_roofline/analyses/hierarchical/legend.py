"""What the symbols and lines of a chart stand for: a block inside its axes, or lines below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ncu_roofline.analyses.hierarchical.chart import RooflineChart
from ncu_roofline.analyses.hierarchical.looks import BAND, THEORY, face, level_colour
from ncu_roofline.analyses.hierarchical.plan import marker_size, numbered
from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.base.texts import shorten
from ncu_roofline.rendering.layout import Measure
from ncu_roofline.rendering.lettering import put_text
from ncu_roofline.rendering.paper import Paper
from ncu_roofline.rendering.style import MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SYMBOL, _LINE = 12.0, 22.0  # points that a symbol and a piece of line take, on the default paper
_GAP = 12.0  # between entries
_MOST_COLUMNS = 4
_LONGEST = 40  # characters of a kernel's name
_EXAMPLES = (0.5, 0.05)  # shares of the time whose dots explain the sizes


@dataclass(frozen=True)
class Key:
    """One entry: its text, and its symbol as matplotlib takes it; a line or band where ``line`` is not empty."""

    text: str
    look: dict[str, Any] = field(default_factory=dict)
    line: str = ""

    def width(self, measure: Measure, paper: Paper) -> float:
        """Points that symbol and text take."""
        symbol = (_LINE if self.line else _SYMBOL) * paper.scale if self.look else 0.0
        return symbol + measure(self.text, paper.key)[0]


def keys_of(data: RooflineChart, colours: Theme, paper: Paper, by_time: bool) -> list[Key]:
    """Levels, precisions, lines and sizes, as far as the chart has them."""
    size = 4.8 * paper.scale
    found = [
        Key(data.level_labels.get(level) or level_style(level).label, {"marker": "o", "ms": size, "mew": 0, "color": colour})
        for level in data.levels
        for colour in [level_colour(level, colours)]
    ]
    fills: dict[str, list[str]] = {}
    for precision in data.precisions():
        fills.setdefault(data.fills[precision], []).append(precision_label(precision))
    for fill, names in fills.items():  # panels have their fills in common
        found.append(Key(" or ".join(names), {"marker": "o", "ms": size, **face(fill, colours.faint, colours)}))
    for name, dashes, thickness in _line_keys(data):
        found.append(Key(name, {"ls": dashes, "lw": thickness * paper.scale, "color": colours.compute}, "line"))
    if any(roof.bands for panel in data.panels for roof in panel.roofs):
        found.append(Key("range over launches", {"color": colours.compute, "alpha": BAND}, "band"))
    if by_time:
        found += [
            Key(
                f"{percent(share)} of the time",
                {"marker": "o", "ms": marker_size(share, paper, by_time), "mew": 0, "color": colours.faint},
            )
            for share in _EXAMPLES
        ]
    return found


def kernel_keys(data: RooflineChart, listed: Sequence[str], colours: Theme, paper: Paper) -> list[Key]:
    """The kernels that are not named at their dots, with their share of the time."""
    found = []
    for index, kernel in enumerate(data.kernels):
        if kernel.label in listed:
            number = f"{index + 1} " if numbered(data) else ""
            share = f"  {percent(kernel.share)}" if kernel.share > 0 else ""
            look = {"marker": MARKERS[index % len(MARKERS)], "ms": 4.8 * paper.scale, "mew": 0, "color": colours.faint}
            found.append(Key(f"{number}{shorten(kernel.marked, _LONGEST)}{share}", look))
    return found


def _line_keys(data: RooflineChart) -> list[tuple[str, Any, float]]:
    origins = {
        name for panel in data.panels for roof in panel.roofs for name in ("measured", "theoretical") if getattr(roof, name) > 0
    }
    said = {"measured": data.empirical}
    if data.several_origins:
        return [(f"{data.empirical} roof", "-", 1.3), ("theoretical roof", THEORY, 0.8)]
    return [(f"{said.get(name, name)} roof", "-", 1.3) for name in sorted(origins)]


@dataclass(frozen=True)
class Block:
    """Keys with the place of each: left edge and middle in points, from the lower left corner of the block."""

    keys: tuple[tuple[Key, float, float], ...] = ()
    width: float = 0.0
    height: float = 0.0


def columns(keys: Sequence[Key], number: int, measure: Measure, paper: Paper) -> Block:
    """The keys in so many columns, one below the other."""
    if not keys:
        return Block()
    down = -(-len(keys) // number)
    placed, x = [], 4.0
    for start in range(0, len(keys), down):
        part = keys[start : start + down]
        placed += [(key, x, paper.row * (down - row - 0.5) + 2) for row, key in enumerate(part)]
        x += max(key.width(measure, paper) for key in part) + _GAP * paper.scale
    return Block(tuple(placed), x - _GAP * paper.scale + 4, paper.row * down + 4)


def lines(keys: Sequence[Key], width: float, measure: Measure, paper: Paper) -> Block:
    """The keys one behind the other, in as many lines as they need."""
    rows: list[list[tuple[Key, float]]] = []
    x = width
    for key in keys:
        needed = key.width(measure, paper)
        if x + needed > width and not (rows and x == 4.0):
            rows.append([])
            x = 4.0
        rows[-1].append((key, x))
        x += needed + _GAP * paper.scale
    placed = tuple((key, x, paper.row * (len(rows) - row - 0.5)) for row, part in enumerate(rows) for key, x in part)
    return Block(placed, width, paper.row * len(rows))


def below(keys: Sequence[Key], kernels: Sequence[Key], width: float, measure: Measure, paper: Paper) -> Block:
    """The keys in lines, and below them the kernels in as many columns as fit."""
    head = lines(keys, width, measure, paper)
    for number in range(min(_MOST_COLUMNS, len(kernels)), 0, -1):
        foot = columns(kernels, number, measure, paper)
        if foot.width <= width:
            break
    else:
        foot = Block()
    raised = tuple((key, x, y + foot.height) for key, x, y in head.keys)
    return Block((*raised, *foot.keys), width, head.height + foot.height)


def draw_block(sheet: Axes, left: float, bottom: float, block: Block, colours: Theme, paper: Paper) -> None:
    """Draws a block into axes in points, its lower left corner at a place."""
    for key, x, y in block.keys:
        at, middle = left + x, bottom + y
        end = at + (_LINE - 6) * paper.scale
        if key.line == "line":
            sheet.plot([at, end], [middle, middle], **key.look)
        elif key.line == "band":
            half = 2.4 * paper.scale
            sheet.fill_between([at, end], middle - half, middle + half, lw=0, **key.look)
        elif key.look:
            sheet.plot([at + 3 * paper.scale], [middle], ls="none", **key.look)
        symbol = (_LINE if key.line else _SYMBOL) * paper.scale if key.look else 0.0
        put_text(sheet, at + symbol, middle, key.text, paper.key, colours.text, va="center_baseline", gid="key")
