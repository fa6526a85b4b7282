"""Texts from outside on one line: what may be printed, and how long names are cut."""

from __future__ import annotations

import unicodedata

MAX_LENGTH = 40
_MAX_READ = 4_096  # characters of a name that are looked at; longer ones exist only in hostile reports


def clean(text: str, limit: int | None = _MAX_READ) -> str:
    """``text`` without control, formatting (bidirectional too) and surrogate characters, white space collapsed."""
    if text.isascii() and text.isprintable():
        return " ".join(text[:limit].split())
    kept = (" " if char.isspace() else char for char in text[:limit])
    return " ".join("".join(c for c in kept if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")).split())


def shorten(text: str, limit: int = MAX_LENGTH) -> str:
    """``text`` cut to ``limit`` characters; what goes is the middle, as kernel names differ at their ends."""
    if len(text) <= limit:
        return text
    if limit < 8:
        return text[:limit]
    tail = (limit - 3) * 2 // 5
    return f"{text[: limit - 3 - tail]}...{text[len(text) - tail :]}"
