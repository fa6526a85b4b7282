"""`.section` files: text -> fields with their places and the section, with the verdict of Nsight Compute's own parser.

The text is read twice: by the grammar of protobuf's C++ parser, which Nsight Compute uses (extension names, `[a.b]`, do not
occur in sections), and by the schema: values, required fields, and which releases know the fields and values used.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile.message import section_of
from ncu_roofline.formats.sectionfile.schema import ALWAYS, NAMED_ONLY, ROOT, FieldType, History, messages, schema
from ncu_roofline.formats.sectionfile.section import Section

Scalar = str | float | int | bool

_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\n\r\v\f]+|\#[^\n]*)+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?<![0-9.])(?P<number>(?:0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)(?![A-Za-z0-9_.]))"
    r"""|(?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')"""
    r"|(?P<mark>[{}<>\[\]:;,-])"
)
_ESCAPE = re.compile(
    r"\\(?:(?P<character>[abfnrtv\\?'\"])|(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9a-fA-F]{1,2})"
    r"|(?P<point>u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}))?"
)
_CHARACTERS = dict(zip("abfnrtv\\?'\"", b"\a\b\f\n\r\t\v\\?'\"", strict=True))
_MAX_DEPTH = 60
_LIST = "["


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


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: a section has thousands
class Field:
    """A field with its place: a scalar with its value (enums as numbers), or fields and the `message` that they make."""

    name: str
    line: int
    column: int
    value: Scalar | None = None  # as it is written, or "[" of a list, until it is read by the schema
    children: tuple[Field, ...] = ()
    message: Any = None

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[Field, ...]]:
        groups: dict[str, list[Field]] = defaultdict(list)
        for child in self.children:
            groups[child.name].append(child)
        return {name: tuple(group) for name, group in groups.items()}

    def all(self, name: str) -> tuple[Field, ...]:
        """The fields of a name, in order."""
        return self._by_name.get(name, ())

    def first(self, name: str) -> Field | None:
        """The field of a name, None if it is absent."""
        return next(iter(self.all(name)), None)

    def text(self, name: str) -> str:
        """The text of a field, "" if it is absent."""
        found = self.first(name)
        return found.value if found is not None and isinstance(found.value, str) else ""

    def walk(self) -> Iterator[Field]:
        """This field and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Use:
    """A field or value that not every release knows: `name` as people write it, such as Metric.Groups or CC_90."""

    line: int
    column: int
    name: str
    history: History


@dataclass(frozen=True, eq=False)
class Document:
    """A section text that is in order: its fields under `root`, and what not every release knows."""

    root: Field
    uses: tuple[Use, ...]

    @property
    def data(self) -> bytes:
        """The bytes that reports embed; fields whose numbers are not published (`schema.NAMED_ONLY`) are not in them."""
        data: bytes = self.root.message.SerializeToString()
        return data

    @cached_property
    def section(self) -> Section:
        """The section as charts are computed from it.  Raises ValueError for one without identifier."""
        return section_of(self.root.message)

    def unknown_to(self, release: Release) -> tuple[Use, ...]:
        """What a release would reject the file for."""
        return tuple(use for use in self.uses if not use.history.known_to(release))


def read_bytes(data: bytes) -> str:
    """The text of a section file; bytes that are not UTF-8, which every release loads, are replaced.

    Raises SectionSyntaxError for a byte order mark, which no release accepts.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise SectionSyntaxError(1, 1, "the file starts with a byte order mark; save it as UTF-8 without one", "encoding")
    return data.decode("utf-8", "replace")


def parse_document(text: str) -> Document:
    """A section text.  Raises SectionSyntaxError for whatever makes Nsight Compute drop the file."""
    written = Field(ROOT, 1, 1, None, _Parser(text).whole())
    checker = _Checker()
    root = checker.message(ROOT, written, messages()[ROOT](), "")
    _require(ROOT, root, "")
    return Document(root, tuple(checker.uses))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Parser:
    """Recursive descent over the tokens: fields with their places, before any meaning."""

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

    def whole(self) -> tuple[Field, ...]:
        fields: list[Field] = []
        while self.token.kind != "end":
            fields.append(self.field(0))
        return tuple(fields)

    def field(self, depth: int) -> Field:
        name = self.take()
        if name.kind != "name":
            self.fail(name.start, f"a field name is expected, not {_shown(name)}")
        colon = self.skip(":")
        field = self.members(name, colon, depth) if self.skip("[") else self.value(name, name.start, colon, depth)
        self.skip(",", ";")
        return field

    def members(self, name: _Token, colon: bool, depth: int) -> Field:
        """A list in brackets, behind the first of them."""
        start = self.tokens[self.position - 1].start
        members: list[Field] = []
        while not self.skip("]"):
            if members and not self.skip(","):
                self.fail(self.token.start, f"',' or ']' is expected, not {_shown(self.token)}")
            members.append(self.value(name, self.token.start, colon, depth))
        return Field(name.text, *self.where(start), _LIST, tuple(members))

    def value(self, name: _Token, start: int, colon: bool, depth: int) -> Field:
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
        return Field(name.text, *self.where(start), self.text[first : last.end])

    def message(self, name: _Token, start: int, depth: int) -> Field:
        if depth > _MAX_DEPTH:
            self.fail(start, "nested too deeply")
        opening = self.take()
        closing = "}" if opening.text == "{" else ">"
        children: list[Field] = []
        while not self.skip(closing):
            if self.token.kind == "end":
                self.fail(opening.start, f"{name.text} is opened here and never closed: {closing!r} is missing")
            children.append(self.field(depth))
        return Field(name.text, *self.where(start), None, tuple(children))


def _shown(token: _Token) -> str:
    return "the end of the file" if token.kind == "end" else repr(token.text)


def _unreadable(text: str, at: int) -> str:
    character = text[at]
    if character in "\"'":
        return "the text that starts here does not end on its line"
    if character.isdigit() and character.isascii():
        return "a number is followed by a letter or point without a space"
    return f"unexpected character {character!r}"


class _Checker:
    """Reads fields by the schema."""

    def __init__(self) -> None:
        self.uses: list[Use] = []

    def message(self, kind: str, written: Field, message: Any, path: str) -> Field:
        """The field with the values of all below it, which are also put into `message`."""
        fields = schema().messages[kind]
        seen: dict[str, Field] = {}
        children = []
        for given in written.children:
            field, name = fields.get(given.name), f"{path}{given.name}"
            members = given.children if given.value == _LIST else (given,)
            if field is None:
                for one in members or (given,):
                    self.unlisted(kind, one, name)
                continue
            if given.value == _LIST and not field.repeated:
                _fail(given, f"{name} is a single value, not a list", "syntax")
            for one in members:
                _once(field, one, seen)
                self.use(one, f"{kind}.{one.name}" if path else one.name, field.history)
                children.append(self.value(field, one, message, name))
        return Field(written.name, written.line, written.column, None, tuple(children), message)

    def unlisted(self, kind: str, one: Field, name: str) -> None:
        """A field that is known by name only, or not at all."""
        since = NAMED_ONLY.get((kind, one.name))
        if since is None:
            _fail(one, f"no release knows a field {name}{_similar(one.name, schema().messages[kind])}", "unknown-field")
        self.use(one, f"{kind}.{one.name}", History(since))

    def value(self, field: FieldType, written: Field, owner: Any, name: str) -> Field:
        if field.kind in schema().messages:
            if written.value is not None:
                _fail(written, f"{name} is a message: it needs {{ }}", "syntax")
            inner = getattr(owner, field.name)
            if field.repeated:
                inner = inner.add()
            else:
                inner.SetInParent()
            return self.message(field.kind, written, inner, f"{name}.")
        if written.value is None:
            _fail(written, f"{name} is a single value, not {{ }}", "syntax")
        value = self.scalar(field, written, str(written.value))
        if field.repeated:
            getattr(owner, field.name).append(value)
        else:
            setattr(owner, field.name, value)
        shown = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return Field(written.name, written.line, written.column, shown)

    def scalar(self, field: FieldType, written: Field, raw: str) -> Scalar | bytes:
        if field.kind in schema().enums:
            return self.enum(field, written, raw)
        read, needed = _SCALARS[field.kind]
        value = read(raw)
        if value is None:
            _fail(written, f"{written.name} needs {needed}, not {raw}", "bad-value")
        return value

    def enum(self, field: FieldType, written: Field, raw: str) -> int:
        values = schema().enums[field.kind]
        number = _integer(raw)
        known = [value for value in values if value.name == raw] or [value for value in values if value.number == number]
        if not known:
            similar = _similar(raw, [value.name for value in values])
            _fail(written, f"no release knows a value {raw} of {written.name}{similar}", "unknown-value")
        self.use(written, f"{written.name} {raw}", _either([one.history for one in known]))
        return known[0].number

    def use(self, written: Field, name: str, history: History) -> None:
        if history is not ALWAYS:
            self.uses.append(Use(written.line, written.column, name, history))


def _once(field: FieldType, written: Field, seen: dict[str, Field]) -> None:
    """Refuses a second value of a field or of a choice."""
    if field.repeated:
        return
    other = seen.get(field.oneof or field.name)
    if other is not None and other.name == written.name:
        _fail(written, f"{written.name} is given twice, first in line {other.line}", "duplicate-field")
    if other is not None:
        _fail(written, f"{written.name} and {other.name} (line {other.line}) exclude each other", "duplicate-field")
    seen[field.oneof or field.name] = written


def _require(kind: str, owner: Field, path: str) -> None:
    """Refuses the lack of required fields, of messages from the inside out."""
    fields = schema().messages[kind]
    for child in owner.children:
        if child.message is not None:
            _require(fields[child.name].kind, child, f"{path}{child.name}.")
    missing = [name for name, field in fields.items() if field.required and not owner.all(name)]
    if missing:
        where = path.rstrip(".") or "the section"
        _fail(owner, f"{where} lacks the required {' and '.join(missing)}", "required-field")


def _either(histories: Sequence[History]) -> History:
    """Known where any of the alternatives is; an open end wins."""
    if any(one is ALWAYS for one in histories):
        return ALWAYS
    since = None if any(one.since is None for one in histories) else min(one.since for one in histories if one.since)
    until = None if any(one.until is None for one in histories) else max(one.until for one in histories if one.until)
    return ALWAYS if since is None and until is None else History(since, until)


def _number(raw: str) -> str:
    """Without the space that may follow a minus."""
    return f"-{raw[1:].split()[-1]}" if raw.startswith("-") else raw


def _integer(raw: str) -> int | None:
    raw = _number(raw)
    digits = raw.lstrip("-")
    try:
        return int(raw, 8) if digits.startswith("0") and digits.isdecimal() else int(raw, 0)
    except ValueError:
        return None


def _whole(low: int, high: int) -> Callable[[str], int | None]:
    def read(raw: str) -> int | None:
        value = _integer(raw)
        signed = raw.startswith("-") and low == 0
        return value if value is not None and low <= value <= high and not signed else None

    return read


def _double(raw: str) -> float | None:
    """Decimal only, as the C++ parser refuses hexadecimal and octal integers here."""
    if raw[0] in "\"'":
        return None
    digits = _number(raw).lstrip("-").lower()
    if digits[0].isalpha():
        return float(_number(raw)) if digits in ("inf", "infinity", "nan") else None
    other_base = digits[0] == "0" and digits[1:2].isalnum() and digits[1] not in "ef"
    return None if other_base else float(_number(raw).rstrip("fF"))


def _bool(raw: str) -> bool | None:
    number = _integer(raw) if raw[0].isdigit() else None
    if raw in ("true", "True", "t") or number == 1:
        return True
    return False if raw in ("false", "False", "f") or number == 0 else None


def _bytes(raw: str) -> bytes | None:
    """Adjacent strings are one."""
    if raw[0] not in "\"'":
        return None
    literals = (match[0][1:-1] for match in _TOKEN.finditer(raw) if match.lastgroup == "string")
    return b"".join(_unescaped(literal) for literal in literals)


def _unescaped(literal: str) -> bytes:
    at, parts = 0, []
    for escape in _ESCAPE.finditer(literal):
        parts += [literal[at : escape.start()].encode("utf-8", "surrogatepass"), _escaped_bytes(escape)]
        at = escape.end()
    return b"".join((*parts, literal[at:].encode("utf-8", "surrogatepass")))


def _escaped_bytes(escape: re.Match[str]) -> bytes:
    if escape["character"]:
        return bytes([_CHARACTERS[escape["character"]]])
    if escape["point"]:
        code = int(escape["point"][1:], 16)
        return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else escape[0].encode()
    return bytes([(int(escape["byte"], 16) if escape["byte"] else int(escape["octal"], 8)) & 0xFF])


_SCALARS: dict[str, tuple[Callable[[str], Scalar | bytes | None], str]] = {
    "bytes": (_bytes, "a text in quotes"),
    "bool": (_bool, "true or false"),
    "uint32": (_whole(0, 2**32 - 1), "a whole number from 0 to 4294967295"),
    "int64": (_whole(-(2**63), 2**63 - 1), "a whole number"),
    "double": (_double, "a decimal number"),
}
"""How a scalar is read, None for what is none, and what it needs to be."""


def _similar(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; {found[0]} is meant?" if found else ""


def _fail(field: Field, message: str, code: str) -> NoReturn:
    raise SectionSyntaxError(field.line, field.column, message, code)
