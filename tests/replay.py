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
