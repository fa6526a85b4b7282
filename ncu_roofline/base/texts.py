"""Texts from outside: what of them may be printed or written, how names are cut, and which name was meant."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

MAX_LENGTH = 40
_MAX_READ = 4_096  # characters of a name that are looked at; longer ones exist only in hostile reports
_BLANKS = str.maketrans("\n\r\t", "   ")
_LIKE = 0.6  # of the letters of two words that have to agree; difflib's own default
# Folders of an absolute path, where a word begins or after a mark (--file=/a/b, -I/a), in the spellings of Unix and Windows.
_FOLDERS = r"""(?:(?<=^-[A-Za-z])|(?<![\w.\\/*~-]))(?:[A-Za-z]:)?(?:~[^\\/=:,;"'\s]*)?[\\/](?:[^\\/=:,;"']*[\\/])*(?=[^\\/])"""


def printable(text: str) -> str:
    """``text`` on one line and without anything that a terminal would obey: control characters, changes of direction."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(value: object) -> str:
    """The text of ``value``, line ends and tabs as blanks, the rest `printable`."""
    text = str(value)
    return text if text.isprintable() else printable(text.replace("\r\n", " ").translate(_BLANKS))


def block(text: str) -> str:
    """A text of several lines, each `one_line`."""
    return text if text.isprintable() else "\n".join(map(one_line, text.replace("\r\n", "\n").split("\n")))


def clean(text: str, limit: int | None = _MAX_READ) -> str:
    """``text`` without control, formatting (bidirectional too) and surrogate characters, white space collapsed."""
    if text.isascii() and text.isprintable():
        return " ".join(text[:limit].split())
    kept = "".join(" " if char.isspace() else char for char in text[:limit])
    return " ".join("".join(c for c in kept if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")).split())


def expression(text: str) -> re.Pattern[str]:
    """A regular expression that a user gives.  Raises ValueError for what is none."""
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None


def first_found(pattern: re.Pattern[str], text: str) -> str:
    """What is found in ``text``: the first group that took part and is not empty, else all of it; "" for nothing."""
    match = pattern.search(text)
    return str(next(filter(None, match.groups()), match.group())) if match else ""


def without_folders(command: str) -> str:
    """A command line with the base names of the absolute paths in it, for results that are passed on."""
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:  # quotes that do not match
        return re.sub(_FOLDERS, "", command)
    kept = [re.sub(_FOLDERS, "", word) for word in words]
    return shlex.join(kept) if kept != words else command


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names for a sentence, without repetitions, cut after ``most``: a, b, c and 12 more."""
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:most]) + (f" and {len(unique) - most} more" if len(unique) > most else "")


def conjoined(words: Sequence[str]) -> str:
    """Words for a sentence: "a", "a and b", "a, b and c"; "" for none."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def plural(count: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


def shorten(text: str, limit: int = MAX_LENGTH) -> str:
    """``text`` cut to ``limit`` characters; what goes is the middle, as kernel names differ at their ends."""
    if len(text) <= limit:
        return text
    if limit < 8:
        return text[:limit]
    tail = (limit - 3) * 2 // 5
    return f"{text[: limit - 3 - tail]}...{text[len(text) - tail :]}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The name of ``known`` that is most like ``word``, "" where none is."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, n=1, cutoff=_LIKE)
    return names[found[0]] if found else ""


def did_you_mean(reason: str, word: str, known: Iterable[str], end: str = "") -> str:
    """A clause about an unknown ``word``, and the question whether the nearest of the ``known`` was meant, else ``end``."""
    found = nearest(word, known)
    return f"{reason}; did you mean {found}?" if found else f"{reason}{end}"


def advice(next_step: str, word: str, known: Iterable[str]) -> str:
    """The last sentence of an error about an unknown ``word``: what to do, which has no full stop yet, and the question."""
    return did_you_mean(next_step, word, known, ".")
