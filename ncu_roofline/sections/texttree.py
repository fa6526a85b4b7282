"""Protobuf text format as a tree with positions: every field with its line and column, before any meaning.

Grammar as of protobuf's C++ parser, which Nsight Compute uses; extension names (`[a.b]`) do not occur in sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?P<space>[ \t\n\r\v\f]+|\#[^\n]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)"
    r"""|(?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')"""
    r"|(?P<mark>[{}<>\[\]:;,-])"
)
_MAX_DEPTH = 60


class SectionSyntaxError(ValueError):
    """A section text that Nsight Compute refuses: line and column (from 1), what is wrong, and the kind of mistake."""

    def __init__(self, line: int, column: int, message: str, code: str = "syntax") -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column
        self.message = message
        self.code = code

    def __reduce__(self) -> tuple[type, tuple[int, int, str, str]]:
        return type(self), (self.line, self.column, self.message, self.code)


@dataclass(frozen=True)
class Node:
    """A field as written: `raw` is the text of a scalar (None for a message), `start` and `end` offsets of all of it."""

    name: str
    line: int
    column: int
    start: int
    end: int
    raw: str | None = None
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def read_tree(text: str) -> tuple[Node, ...]:
    """The fields of a section text, in order.  Raises SectionSyntaxError."""
    return _Reader(text).whole()


@dataclass
class _Reader:
    text: str
    line_starts: list[int] = field(default_factory=list)
    tokens: list[_Token] = field(default_factory=list)
    at: int = 0

    def __post_init__(self) -> None:
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if not match:
                self.fail(position, _unreadable(self.text[position]))
            if match.lastgroup != "space":
                self.tokens.append(_Token(match.lastgroup or "", match[0], position, match.end()))
            glued = self.tokens[-1:] and self.tokens[-1].end == position and self.tokens[-1].kind == "number"
            if match.lastgroup == "name" and len(self.tokens) > 1 and self.tokens[-2].end == position:
                glued = self.tokens[-2].kind == "number"
            if glued and match.lastgroup == "name":
                self.fail(position, f"no space between a number and {match[0]!r}")
            position = match.end()
        self.tokens.append(_Token("end", "", len(self.text), len(self.text)))

    def where(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1."""
        import bisect

        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def fail(self, offset: int, message: str) -> None:
        raise SectionSyntaxError(*self.where(offset), message)
