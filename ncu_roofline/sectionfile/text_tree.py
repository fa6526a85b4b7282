"""Protobuf text format as a tree with positions: every field with its line and column, before any meaning.

Grammar as of protobuf's C++ parser, which Nsight Compute uses; extension names (`[a.b]`) do not occur in sections.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\n\r\v\f]+|\#[^\n]*)+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)(?![A-Za-z0-9_.]))"
    r"""|(?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')"""
    r"|(?P<mark>[{}<>\[\]:;,-])"
)
_ESCAPE = re.compile(
    r"\\(?:(?P<character>[abfnrtv\\?'\"])|(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9a-fA-F]{1,2})"
    r"|(?P<point>u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}))?"
)
_CHARACTERS = dict(zip("abfnrtv\\?'\"", b"\a\b\f\n\r\t\v\\?'\"", strict=True))
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
    """The fields of a section text, in order; members of a list are fields of their own.  Raises SectionSyntaxError."""
    return _Reader(text).whole()


def plain_string(literal: str) -> str:
    """A string literal with all its escapes as three octal digits, which every parser reads alike."""
    return _ESCAPE.sub(lambda escape: "".join(f"\\{byte:03o}" for byte in _unescaped(escape)), literal)


def _unescaped(escape: re.Match[str]) -> bytes:
    if escape["character"]:
        return bytes([_CHARACTERS[escape["character"]]])
    if escape["point"]:
        code = int(escape["point"][1:], 16)
        return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else escape[0].encode()
    return bytes([(int(escape["byte"], 16) if escape["byte"] else int(escape["octal"], 8)) & 0xFF])


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.tokens = list(self.scan())
        self.position = 0

    def scan(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if not match:
                self.fail(at, _unreadable(self.text, at))
            if match.lastgroup == "string":
                self.escapes(match)
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at, match.end())
            at = match.end()
        yield _Token("end", "", at, at)

    def escapes(self, string: re.Match[str]) -> None:
        for escape in _ESCAPE.finditer(string[0]):
            if not escape.lastgroup:
                self.fail(string.start() + escape.start(), f"{string[0][escape.start() :][:2]!r} is no escape sequence")

    def fail(self, offset: int, message: str) -> NoReturn:
        raise SectionSyntaxError(*self.where(offset), message)

    def where(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def skip(self, *marks: str) -> bool:
        """Take the next token if it is one of `marks`."""
        found = self.token.kind == "mark" and self.token.text in marks
        if found:
            self.take()
        return found

    def whole(self) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self.token.kind != "end":
            nodes += self.field(0)
        return tuple(nodes)

    def field(self, depth: int) -> list[Node]:
        name = self.take()
        if name.kind != "name":
            self.fail(name.start, f"a field name is expected, not {_shown(name)}")
        colon = self.skip(":")
        if self.token.text == "[" and self.token.kind == "mark":
            nodes = self.members(name, colon, depth)
        else:
            nodes = [self.value(name, name.start, colon, depth)]
        self.skip(",", ";")
        return nodes

    def members(self, name: _Token, colon: bool, depth: int) -> list[Node]:
        """A list in brackets."""
        self.take()
        nodes: list[Node] = []
        while not self.skip("]"):
            if nodes and not self.skip(","):
                self.fail(self.token.start, f"',' or ']' is expected, not {_shown(self.token)}")
            nodes.append(self.value(name, self.token.start, colon, depth))
        return nodes

    def value(self, name: _Token, start: int, colon: bool, depth: int) -> Node:
        if self.token.kind == "mark" and self.token.text in "{<":
            return self.message(name, start, depth + 1)
        if not colon:
            self.fail(self.token.start, f"':' or '{{' is expected after {name.text}, not {_shown(self.token)}")
        first = self.token.start
        if self.token.kind == "string":
            while self.token.kind == "string":  # adjacent strings are one
                last = self.take()
        else:
            self.skip("-")
            last = self.take()
            if last.kind not in ("name", "number"):
                self.fail(last.start, f"{name.text} needs a value, not {_shown(last)}")
        return Node(name.text, *self.where(start), start, last.end, self.text[first : last.end])

    def message(self, name: _Token, start: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            self.fail(start, "nested too deeply")
        opening = self.take()
        closing = "}" if opening.text == "{" else ">"
        children: list[Node] = []
        while not self.skip(closing):
            if self.token.kind == "end":
                self.fail(opening.start, f"{name.text} is opened here and never closed: {closing!r} is missing")
            children += self.field(depth)
        return Node(name.text, *self.where(start), start, self.tokens[self.position - 1].end, None, tuple(children))


def _shown(token: _Token) -> str:
    return "the end of the file" if token.kind == "end" else repr(token.text)


def _unreadable(text: str, at: int) -> str:
    character = text[at]
    if character in "\"'":
        return "the text that starts here does not end on its line"
    if character.isdigit() and character.isascii():
        return "a number is followed by a letter or point without a space"
    return f"unexpected character {character!r}"
