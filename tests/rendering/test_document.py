"""A document said once, for a terminal and as Markdown."""

from __future__ import annotations

from dataclasses import replace

from ncu_roofline.rendering.document import (
    ALIKE,
    MISSING,
    Column,
    Document,
    Note,
    Section,
    Table,
    markdown,
    sparkline,
    terminal,
)

NAN = float("nan")
NO_ROOM = "No room for {names}: a wider terminal, csv and json have them."
COLUMNS = (
    Column("kernel", "str", "", "name"),
    Column("gpu", "str", "", "GPU", "GPU", omit=ALIKE),
    Column("launches", "int", "", "launches", omit=1),
    Column("least", "float", "second", "run time", "time", to="most"),
    Column("intensity", "float", "flop/byte", "work / traffic", "{unit}"),
    Column("share", "float", "ratio", "share of the roof at a level", "of {level} roof", 2),
    Column("overhead", "float", "second", "launch overhead", omit=MISSING),
    Column("bound", "str", "", "what limits it", "bound by", missing="unknown", words=str.upper),
)
ROWS = (
    {"kernel": "a|b", "gpu": "V100", "launches": 1, "least": 1e-3, "most": 2e-3, "intensity": 1234.5, "unit": "flop"},
    {"kernel": "c\nd", "gpu": "V100", "launches": 1, "least": 5e-6, "most": 5e-6, "intensity": NAN, "unit": "op"},
)
MORE = ({"share": 0.5, "overhead": NAN, "bound": "l2"}, {"share": None, "overhead": NAN, "bound": ""})


def document() -> Document:
    rows = [{**row, **more} for row, more in zip(ROWS, MORE, strict=True)]
    show = tuple(column.name for column in COLUMNS)
    table = Table("kernels", COLUMNS, rows, show, words={"level": "L2"}, legend="time: of a launch.", tells=NO_ROOM)
    notes = [Note("Roofs: measured."), Note("a: short", "kernel")]
    return Document("Title", "V100", ["Whole.", "Of a kernel."], [table, ("first line", "- item")], notes)


def test_terminal() -> None:
    assert terminal(document(), width=80).splitlines() == [
        "Whole.",
        "  Of a kernel.",
        "",
        "V100",
        "",
        "kernel    time  FLOP/B or OP/B  of L2 roof  bound by",
        "----------------------------------------------------",
        "a|b     1-2 ms            1234      50.0 %  L2",
        "c d       5 \N{MICRO SIGN}s             n/a              unknown",
        "time: of a launch.",
        "",
        "first line",
        "- item",
        "",
        "Roofs: measured.",
        "",
        "- a: short",
    ]


def test_rows_and_columns_without_room() -> None:
    many = document()
    table = many.blocks[0]
    assert isinstance(table, Table)
    wide = [{**row, "kernel": f"{row['kernel']}{'x' * 30}"} for row in table.rows]
    lines = terminal(
        Document("", blocks=[Table(**{**vars(table), "rows": wide, "words": {"level": "last-level cache"}})]), width=60, top=1
    ).splitlines()
    assert max(map(len, lines)) <= 60
    assert "and 1 more; --all shows them" in lines
    assert "No room for of last-level cache roof: a wider terminal, csv and json have them." in " ".join(
        " ".join(lines).split()
    )


def test_markdown() -> None:
    lines = markdown(document()).decode().splitlines()
    assert lines[:4] == ["# Title", "", "- Whole.", "- Of a kernel."]
    assert "| kernel | bound by | time | FLOP/B or OP/B | of L2 roof |" in lines
    assert "| a&#124;b | L2 | 1-2 ms | 1234 | 50.0 % |" in lines
    assert lines[-4:] == ["## Notes", "", "- Roofs: measured.", "- a: short"]


def test_parts() -> None:
    whole = Document("Both", blocks=[Document("V100", "first", ["Said."]), Document("A100", "second")])
    assert terminal(whole) == "first\n\nSaid.\n\nsecond"
    assert markdown(whole).decode().split("\n\n") == ["# Both", "## V100", "- Said.", "first", "## A100", "second\n"]


def detailed() -> Document:
    """Two kernels, one of which does work of two kinds."""
    kernels = (Column("kernel", "str", "", "name"), Column("seconds", "float", "second", "run time", "time", long="run time"))
    works = (
        Column("kind", "str", "", "kind of work", words=str),
        Column("l2", "float", "flop/byte", "intensity", "L2", group=("intensity [{unit}]", "{unit}"), missing=""),
        Column("rate", "float", "flop/s", "performance", "performance"),
    )
    rows = [{"kernel": "gemm", "seconds": 2e-3}, {"kernel": "copy", "seconds": 1e-3}, {"kernel": "rest", "seconds": 1e-6}]
    details = [
        {"kind": "FP64", "l2": 2.5, "rate": 3e12, "unit": "flop"},
        {"kind": "  INT8", "l2": 1.5, "rate": 4e12, "unit": "op"},
    ]
    detail = Table("work", works, details, ("kind", "l2", "rate"))
    table = Table("kernels", kernels, rows, ("kernel", "seconds"), detail=detail, parts=(2, 0, 0), weight="seconds")
    return Document("Both", blocks=[table, Section(["a: because."], "Reasons", late=True), Section(["said"], "Here", "about:")])


def test_details_stand_beside_their_row_or_below_it() -> None:
    assert terminal(detailed(), width=80, top=2).splitlines()[:7] == [
        "                      work/B",
        "kernel  time  kind        L2  performance",
        "-----------------------------------------",
        "gemm    2 ms  FP64       2.5    3 TFLOP/s",
        "                INT8     1.5      4 TOP/s",
        "copy    1 ms",
        "and 1 more (<0.1 % of the time); --all shows them",
    ]
    table = detailed().blocks[0]
    assert isinstance(table, Table)
    verdict = Column("verdict", "str", "", "what limits it")
    rows = [{**row, "verdict": "nothing that anybody looked at"} for row in table.rows]
    wider = replace(table, rows=rows, columns=(*table.columns, verdict), show=(*table.show, "verdict"))
    assert terminal(Document("", blocks=[wider]), width=60).splitlines() == [
        "kernel  time  verdict",
        "          work/B",
        "  kind        L2  performance",
        "--------------------------------------------",
        "gemm    2 ms  nothing that anybody looked at",
        "  FP64       2.5    3 TFLOP/s",
        "    INT8     1.5      4 TOP/s",
        "copy    1 ms  nothing that anybody looked at",
        "rest    1 \N{MICRO SIGN}s  nothing that anybody looked at",
    ]


def test_details_and_sections_in_markdown() -> None:
    lines = markdown(detailed()).decode().splitlines()
    assert "| kernel | kind | run time | L2 [FLOP/B or OP/B] | performance |" in lines
    assert "| gemm | FP64 | 2 ms | 2.5 | 3 TFLOP/s |" in lines
    assert "| gemm | INT8 | 2 ms | 1.5 | 4 TOP/s |" in lines
    assert "| copy |  | 1 ms |  |  |" in lines
    assert lines[lines.index("### Here") :] == ["### Here", "", "about:", "", "- said", "", "## Reasons", "", "- a: because."]


def test_sparklines_have_means_where_room_is_short_and_tell_what_is_unknown() -> None:
    assert sparkline([0.0, 0.5, 1.0, NAN], 4) == "\u2581\u2585\u2588?"
    assert sparkline([0.0, 1.0, 1.0, NAN], 2) == "\u2585\u2588"
