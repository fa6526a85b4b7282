"""Transcripts: files with made-up input, commands ("$ ...") and what each gives, as sessions; UPDATE_GOLDEN=1 rewrites that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.golden import assert_golden
from tests.test_sessions import blocks, written


def assert_replays(path: Path, folder: Path, answer: Callable[[str], str]) -> None:
    """``answer`` gives to the commands of a transcript what it says; its files lie in ``folder``, which is not named."""
    found = ""
    for before, command in blocks(path.read_text(encoding="utf-8")):
        written(before, folder)
        found += "".join(f"{line}\n" for line in before)
        if command:
            given = answer(command).replace(f"{folder}/", "").rstrip()
            found += f"$ {command}\n{given}\n" if given else f"$ {command}\n"
    assert_golden(path, found)


def changed(text: str, change: str) -> str:
    """A text with a change as transcripts spell it: "OLD => NEW" everywhere, "until TEXT" or "twice"; with \\n and the like."""
    change = change.encode("latin-1", "backslashreplace").decode("unicode_escape")
    if change == "twice":
        return text * 2
    if change.startswith("until "):
        return text[: text.index(change.removeprefix("until "))]
    old, _, new = change.partition(" =>")
    assert old in text, f"no {old!r} is there"
    return text.replace(old, new.removeprefix(" "))
