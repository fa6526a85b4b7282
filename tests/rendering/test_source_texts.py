"""The source view as text: what it prints of a made-up launch, as files under golden/source (UPDATE_GOLDEN=1 rewrites them)."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.analyses import render, text_table
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.text import BY, MEASURES, RANKED, hottest, launches
from ncu_roofline.rendering.document import bars
from ncu_roofline.rendering.table import columns_wide, escape
from tests.analyses.source_frames import TEXTS, rows_of, source_frames

GOLDEN = Path(__file__).parent / "golden" / "source"
WIDTHS = (60, 80, 120, 200)
FRAMES: dict[str, SourceRoofline] = {
    "whole": source_frames(),
    "no-text": source_frames(texts={}),
    "no-lines": source_frames(lines=False),
    "no-samples": source_frames(sampled=False),
    "no-code": source_frames(code=False),
}
SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name}-120": (name, {}) for name in FRAMES},
    **{f"whole-{width}": ("whole", {"width": width}) for width in WIDTHS},
    **{f"by-{by}": ("whole", {"by": by}) for by in BY},
    "ascii": ("whole", {"ascii_only": True}),
    "rows": ("whole", {"rows": 3, "by": "instruction"}),
    "sort-excess": ("whole", {"sort": "excess", "by": "line"}),
}
COLOUR = re.compile("\33\\[[0-9]*m")
# Escape sequences, changes of direction, tabs and much of them; what is in tables has letters of two columns, too.
PROSE = "\t\33[31msum\33]0;title\7 += \u202etxet\u2066 * x;\r\n" * 40
HOSTILE = PROSE.replace("*", "\u4e16\u754c *")


@pytest.mark.parametrize("name", SHOWN)
def test_texts(name: str) -> None:
    frames, options = SHOWN[name]
    found = render(FRAMES[frames], "text", **options).decode()
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
        return
    assert found == path.read_text(encoding="utf-8")


def hostile_frames() -> SourceRoofline:
    """Every text that a report can choose is hostile."""
    frames = source_frames(texts={"smooth.cu": (HOSTILE,) * 20}, kernel=PROSE, report=PROSE)
    changed: dict[str, Any] = {}
    for name in ("line_columns", "instruction_columns", "function_columns", "total_columns", "finding_columns"):
        columns = dict(getattr(frames, name))
        for one in ("sass", "opcode", "inlined", "stall", "name", "notes", "message", "advice"):
            if one in columns:
                hostile = PROSE if name in ("function_columns", "total_columns", "finding_columns") else HOSTILE
                columns[one] = np.array([hostile] * len(columns[one]), dtype=object)
        changed[name] = columns
    return replace(frames, **changed, notes=(PROSE,))


@pytest.mark.parametrize("by", ["", *BY])
def test_texts_fit_and_hold_nothing_that_a_terminal_obeys(by: str) -> None:
    wild = hostile_frames()
    for width in WIDTHS:
        for frames in (FRAMES["whole"], wild):
            lines = text_table(frames, width=width, by=by).splitlines()
            assert [line for line in lines if columns_wide(line) > width or not line.isprintable()] == []
    for name, frames in FRAMES.items():
        assert text_table(frames, by=by, ascii_only=True).isascii()
        painted = text_table(frames, by=by, color=True)
        assert COLOUR.sub("", painted) == text_table(frames, by=by)
        assert COLOUR.search(painted) or name == "no-code"


@pytest.mark.parametrize("sort", RANKED)
def test_lines_are_in_the_order_asked_for(sort: str) -> None:
    shown = text_table(FRAMES["whole"], by="line", sort=sort, width=200)
    named = re.findall(r"^(\S+\.cuh?:\d+|outside)  ", shown, flags=re.MULTILINE)
    totals = {row["quantity"]: row["sum"] for row in rows_of(FRAMES["whole"].total_columns)}
    counted = {"executed": "executed", "traffic": "requested"}  # it asks nothing of local memory
    values = {
        f"{row['file']}:{row['line']}" if row["line"] > 0 else "outside": row[counted[sort]] / totals[counted[sort]]
        if sort in counted
        else row[MEASURES[sort].share]
        for row in rows_of(FRAMES["whole"].line_columns)
    }
    assert [values[name] for name in named] == sorted((values[name] for name in named), reverse=True)
    assert len(named) == len([row for row in rows_of(FRAMES["whole"].line_columns) if row["executed"]])


def spilling() -> SourceRoofline:
    """The line with fewest bytes of global memory has most of those of local memory, which are nine tenths of all."""
    frames = source_frames()
    changed: dict[str, Any] = {}
    whole = next(row["sum"] for row in rows_of(frames.total_columns) if row["quantity"] == "requested")
    for name in ("line_columns", "function_columns", "loop_columns", "instruction_columns"):
        columns = {one: values.copy() for one, values in getattr(frames, name).items()}
        here = columns["line"] == 10 if name == "line_columns" else np.arange(len(columns["local"])) == 0
        columns["local"] = np.where(here, 9 * whole, 0.0)
        changed[name] = columns
    return replace(frames, **changed)


def test_bytes_of_local_memory_are_bytes_asked_of_l1() -> None:
    shown = text_table(spilling(), by="line", sort="traffic", width=200)
    head, _, first = shown[shown.index("Lines with") :].splitlines()[1:4]
    assert "local bytes" in head
    assert re.match(r"smooth\.cu:10 +█+ +90\.0 % +0 % +90\.0 %", first)
    assert "local bytes" not in text_table(FRAMES["whole"], width=200)


def columns_of(shown: str) -> list[str]:
    """The columns of the only table of a text."""
    lines = shown.splitlines()
    head = lines[next(number for number, line in enumerate(lines) if set(line) == {"-"}) - 1]
    return re.split(r" {2,}", head.strip())


@pytest.mark.parametrize("frames", [FRAMES["whole"], spilling()], ids=["whole", "spilling"])
@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_that_had_no_room_are_named_with_the_width_that_shows_them(frames: SourceRoofline, by: str, width: int) -> None:
    shown = text_table(frames, by=by, width=width)
    every = columns_of(text_table(frames, by=by, width=400))
    gone = [name for name in every if name not in columns_of(shown)]
    told = re.search(r"Left out for width: (.*): --width (\d+) shows them\.", " ".join(shown.split()))
    assert (told[1].split(", ") if told else []) == gone
    if told:
        assert set(columns_of(text_table(frames, by=by, width=int(told[2])))) >= set(every)
        assert "Left out for width" not in text_table(frames, by=by, width=int(told[2]))


def test_what_a_launch_has_none_of_ranks_nothing() -> None:
    frames = source_frames()
    columns = {name: values.copy() for name, values in frames.function_columns.items()}
    columns["share_excess"][:] = 0.0
    shown = text_table(replace(frames, function_columns=columns), sort="excess")
    said = "no bytes that contiguous addresses would save, as far as they were counted: rows are ranked by samples."
    assert said in " ".join(shown.split())


def test_executed_is_a_count_wherever_it_stands() -> None:
    sampled, counted = (text_table(FRAMES[name], by="instruction", width=200) for name in ("whole", "no-samples"))
    assert "executed" in columns_of(sampled)
    assert {"executed", "of executed"} <= set(columns_of(counted))


def test_what_nobody_sampled_is_not_ranked_by_samples() -> None:
    shown = text_table(FRAMES["no-samples"], sort="samples")
    assert "Lines with most executed instructions:" in shown
    assert "This launch has no samples, as far as they were counted: rows are ranked by executed instructions." in " ".join(
        shown.split()
    )


def test_too_few_samples_are_told() -> None:
    frames = source_frames()
    columns = {name: values.copy() for name, values in frames.function_columns.items()}
    columns["samples"] *= 0.03
    shown = " ".join(text_table(replace(frames, function_columns=columns)).split())
    assert " 85 samples (under 200: too few to tell where warps wait)." in shown
    assert "2,840 samples." in " ".join(text_table(frames).split())


def test_loops_never_executed_are_told_not_shown() -> None:
    frames = source_frames()
    loops = {name: values.copy() for name, values in frames.loop_columns.items()}
    loops["executed"][1] = 0.0
    shown = text_table(replace(frames, loop_columns=loops), by="loop")
    assert "smooth.cu:12-13" not in shown
    assert "1 loop never executed is not shown." in shown


def test_inner_loops_stand_below_those_around_them() -> None:
    frames = source_frames()
    order = [1, 3, 0, 2]
    shuffled = {name: values[order] for name, values in frames.loop_columns.items()}
    assert text_table(replace(frames, loop_columns=shuffled), by="loop") == text_table(frames, by="loop")


def test_sums_that_do_not_fit_are_told_with_the_reason() -> None:
    frames = source_frames()
    totals = {name: values.copy() for name, values in frames.total_columns.items()}
    totals["ratio"][0], totals["notes"][0] = 1.25, "counted in two passes"
    shown = text_table(replace(frames, total_columns=totals))
    assert "They differ in warp instructions 1.250 (smsp__inst_executed.sum): counted in two passes." in shown
    assert "warp instructions 1.000" not in shown


def test_advice_that_was_given_is_not_repeated() -> None:
    frames = source_frames()
    findings = {name: np.repeat(values[:1], 2) for name, values in frames.finding_columns.items()}
    shown = " ".join(text_table(replace(frames, finding_columns=findings)).split())
    assert shown.count("4.0 of 32 B") == 2
    assert shown.count("Let neighbouring threads") == 1


def without_fit(*fitting: str) -> str:
    """The text where the sums of the ``fitting`` quantities alone are what the counters say."""
    frames = source_frames()
    totals = {name: values.copy() for name, values in frames.total_columns.items()}
    known = np.isfinite(totals["ratio"])
    totals["ratio"] = np.where(np.isin(totals["quantity"], fitting), 1.0, np.where(known, 0.5, np.nan))
    return " ".join(text_table(replace(frames, total_columns=totals)).split())


def test_counters_that_no_sum_fits_are_not_called_missing() -> None:
    shown = without_fit()
    assert "No counter of the kernel tells" not in shown
    assert "Sums over instructions do not fit the kernel's counters. They differ in warp instructions 0.500" in shown


def test_a_sum_of_some_operations_may_be_all_that_fits() -> None:
    assert "fit the kernel's counters (sum / counter: FP32 operations 1.000)." in without_fit("work_fp32")


def test_two_launches_are_told_apart() -> None:
    joined = SourceRoofline.joined([source_frames(), source_frames(kernel="other", launch=7)])
    assert [(one.kernel, one.key[1]) for one in launches(joined)] == [("smooth", 3), ("other", 7)]
    shown = text_table(joined)
    assert shown.index("smooth, 2 ms, launch 3") < shown.index("other, 2 ms, launch 7")
    assert shown.count("Loops of smooth.cu, with all") == 2


def test_markdown_holds_the_tables_and_no_markup_of_texts() -> None:
    made = render(source_frames(texts={"smooth.cu": ("<b>|`x`",) * 20}), "md", title="A | B").decode()
    assert made.startswith("# A")
    assert "| loop |" in made
    assert "<b>" not in made
    assert "&#124;" in made


@pytest.mark.parametrize("file", ["<img src=x onerror=alert(1)>.cu", "*bold*_x_.cu"])
def test_headings_of_markdown_hold_no_markup_of_file_names(file: str) -> None:
    frames = source_frames()
    changed = {
        name: {**getattr(frames, name), "file": np.where(getattr(frames, name)["file"] == "", "", file)}
        for name in ("line_columns", "loop_columns")
    }
    made = render(replace(frames, **changed), "md").decode()
    assert re.findall("^### (.*)", made, flags=re.MULTILINE)[1:3] == [f"{one} of {escape(file)}" for one in ("Loops", "Lines")]
    assert file not in made


def test_what_the_hottest_stretch_would_save_is_of_all_bytes() -> None:
    shown = text_table(FRAMES["whole"], by="instruction", rows=3, sort="excess", width=200)
    assert "the hottest stretch: better addresses would save 86.8 % of the kernel's bytes of global memory here:" in shown


@given(st.lists(st.floats(0, 1)))
def test_bars_are_as_long_as_shares(shares: list[float]) -> None:
    found = bars(shares)
    pairs = sorted(zip(shares, map(len, found), strict=True))
    assert [length for _, length in pairs] == sorted(length for _, length in pairs)
    assert [bool(bar) for bar in found] == [share > 0 for share in shares]
    assert max(map(len, found), default=0) in (0, 8)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30), st.integers(1, 30))
def test_the_listing_is_the_hottest_stretch(weights: list[int], most: int) -> None:
    start, end = hottest(weights, most)
    assert end - start == min(most, len(weights))
    assert sum(weights[start:end]) == max(sum(weights[i : i + end - start]) for i in range(len(weights) - (end - start) + 1))


def test_the_only_hot_instruction_stands_in_the_middle() -> None:
    assert hottest([0.0] * 10 + [0.3] + [0.0] * 10, 5) == (8, 13)
    assert hottest([0.1, *[0.0] * 9], 5) == (0, 5)
    assert hottest([0.2, *[0.0] * 9, 0.15, 0.1, *[0.0] * 9], 5) == (8, 13)


def test_where_source_is_nowhere_the_text_says_how_to_get_it() -> None:
    assert "compile with -lineinfo" in text_table(FRAMES["no-lines"])
    assert "--source-folder" in " ".join(text_table(FRAMES["no-text"]).split())
    assert "--source-folder" not in text_table(FRAMES["whole"])
    assert set(TEXTS) == {"smooth.cu", "weights.cuh"}
