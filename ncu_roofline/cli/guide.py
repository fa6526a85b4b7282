"""`ncu-roofline guide`: the pages of the user guide, for a terminal of any width."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from importlib import resources
from itertools import groupby
from typing import Any

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.texts import advice, shorten
from ncu_roofline.cli.outputs import terminal_width, write_text
from ncu_roofline.rendering.table import Table, TextColumn, command_lines, terminal, wrapped

_CONTENTS = "readme"
_INDENTED = "    "
_KINDS = {"#": "as it is", "": "as it is", "|": "table"}  # of a line, by its first character


def add_guide(parser: ArgumentParser) -> None:
    """Which page."""
    about = "a page, or a term of the glossary; without it, a list of all pages"
    parser.add_argument("topic", metavar="TOPIC", nargs="?", default=_CONTENTS, help=about)


def run_guide(args: Namespace) -> int:
    """Print a page, or the list of pages, or what the glossary says of a term.  Raises UsageError for what there is not."""
    pages = _pages()
    topic = args.topic.lower()
    if topic in pages:
        text = re.sub(r"^<.*>\n\n?", "", pages[topic].read_text(encoding="utf-8"), flags=re.MULTILINE)
    elif known := _terms(pages["glossary"], topic):
        text = "\n".join(known)
    else:
        next_step = advice(f"There are {', '.join(topics())}", topic, topics())
        raise UsageError("Cannot print", shorten(args.topic), "the guide has no such page", next_step)
    text = re.sub(r"\[(\w+)\]\(\w+\.md\)", r"\1", text)
    write_text("\n".join(_page(text, terminal_width())).rstrip())
    return 0


def _terms(glossary: Any, words: str) -> list[str]:
    """The glossary's table, with the rows alone whose term has all of some words."""
    rows = [line for line in glossary.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    wanted = re.findall(r"[\w-]+", words)
    found = [row for row in rows[2:] if wanted and all(word in row.split("|")[1].lower() for word in wanted)]
    return [*rows[:2], *found] if found else []


def topics() -> list[str]:
    """The names of the pages."""
    return sorted(set(_pages()) - {_CONTENTS})


def _pages() -> dict[str, Any]:
    folder = resources.files("ncu_roofline") / "guide"
    return {item.name.removesuffix(".md").lower(): item for item in folder.iterdir() if item.name.endswith(".md")}


def _page(text: str, width: int) -> Iterator[str]:
    """A page of Markdown, no wider than that but for files that are to be copied."""
    for place, part in enumerate(f"\n{text}".split("\n```")):
        language, *lines = part.split("\n")
        if place % 2:
            yield from _commands(lines, width) if language == "sh" else lines
            continue
        for kind, group in groupby(lines, lambda line: "code" if line.startswith(_INDENTED) else _KINDS.get(line[:1], "prose")):
            found = list(group)
            if kind == "table":
                yield from _table(found, width)
            elif kind == "code":
                yield from _commands([line.removeprefix(_INDENTED) for line in found], width)
            else:
                yield from found if kind == "as it is" else _prose(found, width)


def _prose(lines: list[str], width: int) -> Iterator[str]:
    """Paragraphs and lists."""
    texts: list[str] = []
    begins = r"\* |- |\d+\. "
    for line in lines:
        if not texts or re.match(begins, line):
            texts.append(line)
        else:
            texts[-1] += f" {line.strip()}"
    for text in texts:
        item = re.match(begins, text)
        yield from wrapped(text, width, " " * len(item[0]) if item else "", whole=True)


def _commands(lines: list[str], width: int) -> Iterator[str]:
    for line in re.sub(r" \\\n +", " ", "\n".join(lines)).split("\n"):
        command, mark, comment = line.partition("  # ")
        if len(_INDENTED + line) <= width:
            yield _INDENTED + line
            continue
        yield from [f"{_INDENTED}# {comment}"] if mark else []
        yield from command_lines(command, width, _INDENTED)


def _table(lines: list[str], width: int) -> Iterator[str]:
    """A table where there is room, else each row as a paragraph: what its first column says, and the others below."""
    cells = ([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    header, _, *rows = cells
    table = Table(tuple(TextColumn(name, [row[place] for row in rows], left=True) for place, name in enumerate(header)))
    if table.total <= width:
        yield from terminal(table, width)
        return
    first = table.widths[0] + 2
    for row in rows:
        if len(row) == 2 and first <= width // 3:
            yield from wrapped(row[1], width, " " * first, first=row[0].ljust(first), whole=True)
            continue
        yield from wrapped(row[0], width, whole=True)
        named = zip(header[1:], row[1:], strict=True)
        texts = (f"{name}: {text}" if len(header) > 2 and name else text for name, text in named if text not in ("", "-"))
        yield from wrapped(texts, width, _INDENTED if len(header) > 2 else "  ", first="  ", whole=True)
