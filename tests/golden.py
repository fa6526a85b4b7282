"""Texts that tests compare with stand in files beside them; UPDATE_GOLDEN=1 rewrites these (then read `git diff`)."""

from __future__ import annotations

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    """``text`` is what the file says; lines must not end in blanks only by accident, so nothing is stripped."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.is_file(), f"{path} is not there: UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8"), f"if the new text is right: UPDATE_GOLDEN=1 (then read `git diff {path}`)"
