"""Colours that stand in one chart can be told apart, with any colour vision, and texts can be read on their ground."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations
from math import dist
from operator import attrgetter

import pytest

from ncu_roofline.analyses.hierarchical.style import bounds
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import GAIN, LOSS, PLAIN, TENSOR
from ncu_roofline.rendering.chart import THEMES

SPEC = load_spec()
CHAIN = [level for level in SPEC.levels if level.chain]
CLOSE = 14  # the two blues that people took for one were 8 apart
# What is left of linear RGB, by kind of colour blindness: Machado, Oliveira and Fernandes 2009, severity 1.
BLIND = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)


def linear(color: str) -> tuple[float, ...]:
    """Linear red, green and blue of a colour #RRGGBB."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def seen(color: str, vision: str) -> str:
    """The colour that looks like this one to the colour-blind."""
    parts = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear(color), strict=True)))) for row in BLIND[vision])
    return "#" + "".join(f"{round(255 * (12.92 * p if p <= 0.0031308 else 1.055 * p ** (1 / 2.4) - 0.055)):02X}" for p in parts)


def contrast(one: str, other: str) -> float:
    """Contrast of WCAG 2: (L1 + 0.05) / (L2 + 0.05)."""
    dark, light = sorted(sum(w * c for w, c in zip(XYZ[1], linear(x), strict=True)) for x in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(color: str) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour #RRGGBB (IEC 61966-2-1, D65)."""
    sums = [sum(a * b for a, b in zip(row, linear(color), strict=True)) / w for row, w in zip(XYZ, WHITE, strict=True)]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in sums)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def close(colors: dict[str, str], vision: str = "") -> list[tuple[str, str]]:
    """Pairs that look alike, by the distance of CIE 1976."""
    points = {name: lab(seen(color, vision) if vision else color) for name, color in colors.items()}
    return [(one, other) for one, other in combinations(points, 2) if dist(points[one], points[other]) < CLOSE]


def test_what_stands_in_one_chart() -> None:
    assert lab("#FF0000") == pytest.approx((53.24, 80.09, 67.20), abs=0.05)  # by the standard
    red, olive = {"red": "#FF0000"}, {"olive": "#A39000"}
    assert close({"red": seen("#FF0000", "deuteranopia"), **olive}) == [("red", "olive")]  # by the paper
    assert close(red | olive) == []
    both = {f"{level.id} {kind}": getattr(level.color, kind) for level in SPEC.levels for kind in ("light", "dark")}
    assert close({**both, "tensor": TENSOR.light, "tensor measured": TENSOR.dark, "without FMA": PLAIN.light}) == []
    types = [p for p in SPEC.precisions if p.kind == "tensor" and not p.part_of]
    assert len({p.color for p in types}) == len(types) > 8
    assert close({one.id: one.color.light for one in (*CHAIN, *types)}) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_theme(theme: str) -> None:
    """Colours to the colour-blind; contrast as WCAG 2.1 asks: 4.5 for texts, which labels of roofs are, 3 for graphics."""

    of = attrgetter(theme)
    own, bound = THEMES[theme], {name: of(style) for name, style in bounds().items()}
    changes = {"gain": of(GAIN), "loss": of(LOSS), "same": own.connector}  # as bars and as words
    chain = {level.id: of(level.color) for level in CHAIN}
    for vision in BLIND:
        assert close({level.id: of(level.color) for level in SPEC.levels}, vision) == []
        assert close(chain | {"sm": own.compute}, vision) == []  # the bars
        assert close({name: color for name, color in bound.items() if name}, vision) == []  # an unknown roof: open symbols
        assert close(changes, vision) == []
    css = files("ncu_roofline.rendering").joinpath("page.css").read_text(encoding="utf-8")
    found = re.findall(r"(:root\S*) \{(.*?)\}", css, re.S)
    blocks = {name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", text)) for name, text in found}
    page = blocks[":root"] | (blocks[':root[data-theme="dark"]'] if theme == "dark" else {})
    texts = [
        (page[text], page[ground])
        for text in ("text", "muted", "accent", "error")
        for ground in ("bg", "card", "hot", "warn-bg")
    ]
    texts += [(page["accent-text"], page["accent"]), (own.text, own.ground), (own.faint, own.ground)]
    named = [*(of(level.color) for level in SPEC.levels), own.compute, changes["gain"], changes["loss"]]
    texts += [(color, ground) for color in named for ground in (page["card"], own.ground)]
    assert [pair for pair in texts if contrast(*pair) < 4.5] == []
    graphics = {name: page[name] for name in ("edge", "warn-line", "neutral")} | bound
    assert [name for name, color in graphics.items() if contrast(color, page["card"]) < 3] == []
