"""`.section` files: text -> fields with their places and the section, with the verdict of Nsight Compute's own parser.

The grammar is that of protobuf's C++ parser, which Nsight Compute uses (extension names, `[a.b]`, do not occur in sections).
protobuf's own `text_format` gives no places of fields, and takes or refuses other corners (non-breaking blanks, oneofs, -0).
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile.schema import ALWAYS, NAMED_ONLY, ROOT, FieldType, History, messages, schema
from ncu_roofline.formats.sectionfile.section import Section, text_of

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
_WIDTH = 128  # of lines that are written


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
        """The bytes that reports embed; fields whose numbers are not published (`schema.NAMED_ONLY`) are not in them."""
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
    root = Field(ROOT, 1, 1, None, children, message)
    parser.require(ROOT, root, 0, "the section")
    return Document(root, tuple(parser.uses))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return repr(self.text) if self.text else "the end of the file"


class _Parser:
    """Recursive descent over the tokens; each field is read by the schema where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.uses: list[Use] = []
        self.tokens = list(self.scan())
        self.position = 0

    def scan(self) -> Iterator[_Token]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if not match:
                character = self.text[at]
                message = f"unexpected character {character!r}"
                if character in "\"'":
                    message = "the text that starts here does not end on its line"
                elif character.isdigit() and character.isascii():
                    message = "a number is followed by a letter or point without a space"
                self.fail(at, message)
            for escape in _ESCAPE.finditer(match[0]) if match.lastgroup == "string" else ():
                if not escape.lastgroup:
                    self.fail(at + escape.start(), f"{match[0][escape.start() :][:2]!r} is no escape sequence")
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], at, match.end())
            at = match.end()
        yield _Token("end", "", at, at)

    def fail(self, offset: int, message: str, code: str = "syntax") -> NoReturn:
        raise SectionSyntaxError(*self.where(offset), message, code)

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
            bracket = self.token.start
            several = self.skip("[")
            if several and field and not field.repeated:
                self.fail(bracket, f"{path}{name.text} is a single value, not a list")
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

    def value(self, field: FieldType | None, path: str, owner: Any, start: int, colon: bool, depth: int) -> Field | None:
        """One value of a field, None of one that is not in the schema."""
        name = path.rpartition(".")[2]
        kind = field.kind if field and field.kind in schema().messages else ""
        if self.token.kind == "mark" and self.token.text in "{<":
            if field and not kind:
                self.fail(start, f"{path} is a single value, not {{ }}")
            if depth == _MAX_DEPTH:
                self.fail(start, "nested too deeply")
            inner: Any = getattr(owner, name) if field else None
            if field and field.repeated:
                inner = inner.add()
            elif inner is not None:
                inner.SetInParent()
            opening = self.take()
            closing = "}" if opening.text == "{" else ">"
            children = self.fields(kind, inner, f"{path}.", depth + 1)
            if self.token.kind == "end":
                self.fail(opening.start, f"{name} is opened here and never closed: {closing!r} is missing")
            if not self.skip(closing):
                self.fail(self.token.start, f"a field name is expected, not {self.token}")
            made = Field(name, *self.where(start), None, children, inner)
            self.require(kind, made, start, path)
            return made if field else None
        if not colon:
            self.fail(self.token.start, f"':' or '{{' is expected after {name}, not {self.token}")
        first = last = self.token
        if first.kind == "string":
            while self.token.kind == "string":  # adjacent strings are one
                last = self.take()
        else:
            self.skip("-")
            last = self.take()
            if last.kind not in ("name", "number"):
                self.fail(last.start, f"{name} needs a value, not {last}")
        if field is None:
            return None
        if kind:
            self.fail(start, f"{path} is a message: it needs {{ }}")
        value = self.scalar(field, start, self.text[first.start : last.end])
        if field.repeated:
            getattr(owner, name).append(value)
        else:
            setattr(owner, name, value)
        return Field(name, *self.where(start), text_of(value) if isinstance(value, bytes) else value)

    def require(self, kind: str, made: Field, start: int, where: str) -> None:
        """Refuses the lack of required fields."""
        fields = schema().messages.get(kind, {})
        missing = [name for name, field in fields.items() if field.required and not made.all(name)]
        if missing:
            self.fail(start, f"{where} lacks the required {' and '.join(missing)}", "required-field")

    def scalar(self, field: FieldType, start: int, raw: str) -> Scalar | bytes:
        values = schema().enums.get(field.kind)
        if values is None:
            value = _read(field.kind, raw)
            if value is None:
                self.fail(start, f"{field.name} needs {_NEEDED[field.kind]}, not {raw}", "bad-value")
            return value
        number = _integer(raw)
        known = [one for one in values if one.name == raw] or [one for one in values if one.number == number]
        if not known:
            similar = _similar(raw, [one.name for one in values])
            self.fail(start, f"no release knows a value {raw} of {field.name}{similar}", "unknown-value")
        self.use(
            start,
            f"{field.name} {raw}",
            History(min(one.history.since for one in known), max(one.history.until for one in known)),
        )
        return known[0].number


def _read(kind: str, raw: str) -> Scalar | bytes | None:
    """A scalar of a kind, None for what is none: numbers as the C++ parser takes them, adjacent strings as one."""
    if kind == "bytes" or raw[0] in "\"'":
        return _bytes(raw) if kind == "bytes" and raw[0] in "\"'" else None
    if kind == "double":  # decimal only
        sign, digits = raw[0] == "-", raw.split()[-1].lstrip("-").lower()
        if digits[0].isalpha():
            value = float(digits) if digits in ("inf", "infinity", "nan") else None
        else:
            other_base = digits[0] == "0" and digits[1:2].isalnum() and digits[1] not in "ef"
            value = None if other_base else float(digits.rstrip("f"))
        return -value if value is not None and sign else value
    if kind == "bool":
        words = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
        number = _integer(raw) if raw[0].isdigit() else None
        return bool(number) if number in (0, 1) else words.get(raw)
    low, high = _WHOLE[kind]
    number = _integer(raw)
    return number if number is not None and low <= number <= high and not (low == 0 and raw[0] == "-") else None


def _integer(raw: str) -> int | None:
    digits = raw.split()[-1].lstrip("-")  # space, and comments, may follow a minus
    try:
        number = int(digits, 8) if digits.startswith("0") and digits.isdecimal() else int(digits, 0)
    except ValueError:
        return None
    return -number if raw[0] == "-" else number


def _bytes(raw: str) -> bytes:
    parts = []
    for string in _TOKEN.finditer(raw):
        literal, at = string[0][1:-1] if string.lastgroup == "string" else "", 0
        for escape in _ESCAPE.finditer(literal):
            parts += [literal[at : escape.start()].encode("utf-8", "surrogatepass"), _escaped(escape)]
            at = escape.end()
        parts.append(literal[at:].encode("utf-8", "surrogatepass"))
    return b"".join(parts)


def _escaped(escape: re.Match[str]) -> bytes:
    if escape["character"]:
        return bytes([_CHARACTERS[escape["character"]]])
    if escape["point"]:
        code = int(escape["point"][1:], 16)
        return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else escape[0].encode()
    return bytes([(int(escape["byte"], 16) if escape["byte"] else int(escape["octal"], 8)) & 0xFF])


_WHOLE = {"uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1)}
_NEEDED = {
    "bytes": "a text in quotes",
    "bool": "true or false",
    "uint32": "a whole number from 0 to 4294967295",
    "int64": "a whole number",
    "double": "a decimal number",
}


def _similar(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
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
