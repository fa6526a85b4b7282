"""Texts that tests compare with stand in files beside them; UPDATE_GOLDEN=1 rewrites these (then read `git diff`)."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest


def assert_golden(path: Path, text: str) -> None:
    """``text`` is what the file says, to the letter; where it is not, the lines that differ are the message."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.is_file(), f"{path} is not there: UPDATE_GOLDEN=1 writes it"
    lines = difflib.unified_diff(path.read_text(encoding="utf-8").splitlines(), text.splitlines(), "golden", "now", n=1)
    if differing := "\n".join(line[:300] for line in [*lines][:60]):
        pytest.fail(f"{path.name} (if the new text is right: UPDATE_GOLDEN=1)\n{differing}", pytrace=False)
