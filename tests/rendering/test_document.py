"""A document said once, for a terminal and as Markdown."""

from __future__ import annotations

from ncu_roofline.rendering.document import ALIKE, MISSING, Column, Document, Note, Table, markdown, terminal

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
