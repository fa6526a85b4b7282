"""`.section` files: text -> fields with their places and the section, with the verdict of Nsight Compute's own parser.

The grammar is that of protobuf's C++ parser, which Nsight Compute uses (extension names, `[a.b]`, do not occur in sections).
protobuf's own `text_format` gives no places of fields, and takes or refuses other corners (non-breaking blanks, oneofs, -0).
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile.section import (
    ALWAYS,
    NAMED_ONLY,
    ROOT,
    FieldType,
    History,
    Section,
    messages,
    schema,
    text_of,
)

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
_WORDS = {**dict.fromkeys(("true", "True", "t", "1"), True), **dict.fromkeys(("false", "False", "f", "0"), False)}
_NEEDED = {
    "bytes": "a text in quotes",
    "bool": "true or false",
    "uint32": "a whole number from 0 to 4294967295",
    "int64": "a whole number",
    "double": "a decimal number",
}
_MAX_DEPTH = 60
_WIDTH = 128  # of lines that are written


class SectionSyntaxError(ValueError):
    """A section text that Nsight Compute refuses: line and column (from 1), what is wrong, and the kind of mistake."""

    def __init__(self, line: int, column: int, message: str, code: str = "syntax") -> None:
        super().__init__(line, column, message, code)
        self.line, self.column, self.message, self.code = line, column, message, code

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: a section has thousands
class Field:
    """A field with its place: a scalar with its value (enums as numbers), or fields and the `message` that they make."""

    name: str
    line: int
    column: int
    value: Scalar | None = None
    children: tuple[Field, ...] = ()
    message: Any = None

    def all(self, name: str) -> tuple[Field, ...]:
        """The fields of a name, in order."""
        return tuple(child for child in self.children if child.name == name)

    def first(self, name: str) -> Field | None:
        """The field of a name, None if it is absent."""
        return next((child for child in self.children if child.name == name), None)

    def text(self, name: str) -> str:
        """The text of a field, "" if it is absent."""
        found = self.first(name)
        return found.value if found is not None and isinstance(found.value, str) else ""

    def walk(self) -> Iterator[Field]:
        """This field and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()


class Use(NamedTuple):
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
        """The bytes that reports embed; fields whose numbers are not published (`NAMED_ONLY`) are not in them."""
        data: bytes = self.root.message.SerializeToString()
        return data

    @cached_property
    def section(self) -> Section:
        """The section as charts are computed from it.  Raises ValueError for one without identifier."""
        return Section(self.root.message)

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
    parser = _Parser(text)
    message = messages()[ROOT]()
    children = parser.fields(ROOT, message, "", 0)
    if parser.token.kind != "end":
        parser.fail(parser.token.start, f"a field name is expected, not {parser.token}")
    parser.require(ROOT, children, 0, "the section")
    return Document(Field(ROOT, 1, 1, None, children, message), tuple(parser.uses))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end of the file"


class _Parser:
    """Recursive descent over the tokens; each field is read by the schema where it stands."""

    def __init__(self, text: str) -> None:
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.uses: list[Use] = []
        self.tokens = self.scan(text)
        self.token = next(self.tokens)

    def scan(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match:
                self.fail(at, f"what begins with {text[at]!r} is no word, number, text or mark, or does not end on its line")
            for escape in _ESCAPE.finditer(match[0]) if match.lastgroup == "string" else ():
                if not escape.lastgroup:
                    self.fail(at + escape.start(), f"{match[0][escape.start() :][:2]!r} is no escape sequence")
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at)
            at = match.end()
        yield _Token("end", "", at)

    def fail(self, offset: int, message: str, code: str = "syntax") -> NoReturn:
        raise SectionSyntaxError(*self.where(offset), message, code)

    def where(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def take(self) -> _Token:
        token = self.token
        self.token = next(self.tokens, token)
        return token

    def skip(self, *marks: str) -> bool:
        """Take the next token if it is one of `marks`."""
        found = self.token.kind == "mark" and self.token.text in marks
        if found:
            self.take()
        return found

    def fields(self, kind: str, message: Any, path: str, depth: int) -> tuple[Field, ...]:
        """The fields of a message, which they are also put into; of kind "" any fields, which are left out."""
        known = schema().messages.get(kind, {})
        seen: dict[str, tuple[str, int]] = {}
        children: list[Field] = []
        while self.token.kind == "name":
            name = self.take()
            field = known.get(name.text)
            if kind and field is None:
                since = NAMED_ONLY.get((kind, name.text))
                if since is None:
                    similar = _similar(name.text, known)
                    self.fail(name.start, f"no release knows a field {path}{name.text}{similar}", "unknown-field")
                self.use(name.start, f"{kind}.{name.text}", History(since))
            colon = self.skip(":")
            several = self.token.text == "[" and self.take()
            if several and field and not field.repeated:
                self.fail(several.start, f"{path}{name.text} is a single value, not a list")
            members = 0
            while not (several and self.skip("]")) and not (members and not several):
                if members and not self.skip(","):
                    self.fail(self.token.start, f"',' or ']' is expected, not {self.token}")
                start = self.token.start if several else name.start
                if field:
                    self.once(field, start, seen)
                    self.use(start, f"{kind}.{name.text}" if path else name.text, field.history)
                child = self.value(field, f"{path}{name.text}", message, start, colon, depth)
                children += [child] if child else []
                members += 1
            self.skip(",", ";")
        return tuple(children)

    def once(self, field: FieldType, start: int, seen: dict[str, tuple[str, int]]) -> None:
        """Refuses a second value of a field or of a choice."""
        other, line = seen.get(field.oneof or field.name, ("", 0))
        if other == field.name:
            self.fail(start, f"{field.name} is given twice, first in line {line}", "duplicate-field")
        if other:
            self.fail(start, f"{field.name} and {other} (line {line}) exclude each other", "duplicate-field")
        if not field.repeated:
            seen[field.oneof or field.name] = field.name, self.where(start)[0]

    def use(self, start: int, name: str, history: History) -> None:
        if history != ALWAYS:
            self.uses.append(Use(*self.where(start), name, history))

    def require(self, kind: str, children: Sequence[Field], start: int, where: str) -> None:
        """Refuses the lack of required fields."""
        fields, given = schema().messages.get(kind, {}), {child.name for child in children}
        missing = [name for name, field in fields.items() if field.required and name not in given]
        if missing:
            self.fail(start, f"{where} lacks the required {' and '.join(missing)}", "required-field")

    def value(self, field: FieldType | None, path: str, owner: Any, start: int, colon: bool, depth: int) -> Field | None:
        """One value of a field, None of one that is not in the schema."""
        name = path.rpartition(".")[2]
        kind = field.kind if field and field.kind in schema().messages else ""
        opening = self.token
        if self.skip("{", "<"):
            if field and not kind:
                self.fail(start, f"{path} is a single value, not {{ }}")
            if depth == _MAX_DEPTH:
                self.fail(start, "nested too deeply")
            inner: Any = getattr(owner, name) if field else None
            if field and field.repeated:
                inner = inner.add()
            elif field:
                inner.SetInParent()
            children = self.fields(kind, inner, f"{path}.", depth + 1)
            closing = "}" if opening.text == "{" else ">"
            if self.token.kind == "end":
                self.fail(opening.start, f"{name} is opened here and never closed: {closing!r} is missing")
            if not self.skip(closing):
                self.fail(self.token.start, f"a field name is expected, not {self.token}")
            self.require(kind, children, start, path)
            return Field(name, *self.where(start), None, children, inner) if field else None
        if not colon:
            self.fail(self.token.start, f"':' or '{{' is expected after {name}, not {self.token}")
        negative = self.token.kind != "string" and self.skip("-")
        token = self.take()
        if token.kind not in ("string", "name", "number"):
            self.fail(token.start, f"{name} needs a value, not {token}")
        literals = [token.text]
        while token.kind == self.token.kind == "string":  # adjacent strings are one
            literals.append(self.take().text)
        if field is None:
            return None
        if kind:
            self.fail(start, f"{path} is a message: it needs {{ }}")
        value = self.scalar(field, start, negative, literals)
        try:
            if field.repeated:
                getattr(owner, name).append(value)
            else:
                setattr(owner, name, value)
        except (TypeError, ValueError):  # None, or out of range
            said = f"{'-' * negative}{' '.join(literals)}"
            self.fail(start, f"{name} needs {_NEEDED[field.kind]}, not {said}", "bad-value")
        return Field(name, *self.where(start), text_of(value) if isinstance(value, bytes) else value)

    def scalar(self, field: FieldType, start: int, negative: bool, literals: Sequence[str]) -> Scalar | bytes | None:
        """The value, None for what no field of this kind may have: numbers as the C++ parser takes them."""
        first = literals[0]
        if field.kind == "bytes":
            return b"".join(map(_bytes, literals)) if first[0] in "\"'" else None
        number = _integer(first, negative)
        if values := schema().enums.get(field.kind):
            raw = f"{'-' * negative}{first}"
            known = [one for one in values if one.name == raw] or [one for one in values if one.number == number]
            if not known:
                similar = _similar(raw, [one.name for one in values])
                self.fail(start, f"no release knows a value {raw} of {field.name}{similar}", "unknown-value")
            since, until = min(one.history.since for one in known), max(one.history.until for one in known)
            self.use(start, f"{field.name} {raw}", History(since, until))
            return known[0].number
        if field.kind == "bool":
            return None if negative else _WORDS.get(str(number) if first[0].isdigit() else first)
        if field.kind == "double":  # decimal only
            other_base = first[0] == "0" and first[1:2].isalnum() and first[1] not in "efEF"
            if first[0] in "\"'" or other_base or (first[0].isalpha() and first.lower() not in ("inf", "infinity", "nan")):
                return None
            value = float(first if first[0].isalpha() else first.rstrip("fF"))
            return -value if negative else value
        return None if negative and field.kind == "uint32" else number


def _integer(digits: str, negative: bool) -> int | None:
    try:
        number = int(digits, 8) if digits.startswith("0") and digits.isdecimal() else int(digits, 0)
    except ValueError:
        return None
    return -number if negative else number


def _bytes(literal: str) -> bytes:
    parts, at = [], 1
    for escape in _ESCAPE.finditer(literal):
        parts += [literal[at : escape.start()].encode("utf-8", "surrogatepass"), _escaped(escape)]
        at = escape.end()
    return b"".join((*parts, literal[at:-1].encode("utf-8", "surrogatepass")))


def _escaped(escape: re.Match[str]) -> bytes:
    if escape["character"]:
        return bytes([_CHARACTERS[escape["character"]]])
    if escape["point"]:
        code = int(escape["point"][1:], 16)
        return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else escape[0].encode()
    return bytes([(int(escape["byte"], 16) if escape["byte"] else int(escape["octal"], 8)) & 0xFF])


def _similar(name: str, known: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, list(known), 1)
    return f"; {found[0]} is meant?" if found else ""


def section_text(section: Any, *, cc_names: bool) -> str:
    """The fields of a section, each on one line if it fits; ``cc_names``: architectures are called CC_80, else by number."""
    return "".join(_fields(ROOT, section, "", cc_names))


def _fields(kind: str, message: Any, indent: str, cc_names: bool) -> Iterator[str]:
    known = schema().messages[kind]
    present = [(known[descriptor.name], content) for descriptor, content in message.ListFields()]
    for field, content in sorted(present, key=lambda pair: pair[0].kind in schema().messages):  # what is short first
        for value in content if field.repeated else [content]:
            if field.kind not in schema().messages:
                yield f"{indent}{field.name}: {_scalar(field, value, cc_names)}\n"
                continue
            inner = list(_fields(field.kind, value, f"{indent}  ", cc_names))
            line = f"{indent}{field.name} {{ {' '.join(map(str.strip, inner))}{' ' if inner else ''}}}\n"
            if len(line) <= _WIDTH and not any("\n" in text[:-1] for text in inner):
                yield line
            else:
                yield f"{indent}{field.name} {{\n{''.join(inner)}{indent}}}\n"


def _scalar(field: FieldType, value: Any, cc_names: bool) -> str:
    if field.kind == "bytes":  # names of GPUs come from files of others
        return json.dumps("".join(c if c.isprintable() else " " for c in text_of(value)), ensure_ascii=False)
    if field.kind == "GpuArch":
        return f"CC_{value}" if cc_names else str(value)
    if field.kind in schema().enums:
        return next(one.name for one in schema().enums[field.kind] if one.number == value)
    if field.name == "ColorValue":
        return f"0x{value:08X}"
    return str(value).lower() if field.kind == "bool" else repr(value)
