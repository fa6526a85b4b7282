"""`.section` files: text -> fields with their places and the section, read by protobuf's own text format; and sections as text.

Nsight Compute reads them by protobuf's C++ parser.  Corners where Python's differs (`\\u` in texts, blanks that are not ASCII)
are in no real file: of four releases all 89 files give the same bytes.
"""

from __future__ import annotations

import bisect
import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ncu_roofline.chips.fields import Release
from ncu_roofline.formats.sectionfile import section as sections
from ncu_roofline.formats.wire import ALWAYS, FieldType, History

_TOKEN = re.compile(
    r"""\#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<word>[A-Za-z_]\w*)|(?P<mark>[{}<>\[\]:,;])|[-+.\w]+""",
    re.ASCII,
)
_WIDTH = 128  # of lines that are written


class SectionSyntaxError(ValueError):
    """A section text that Nsight Compute refuses: line and column (from 1), what is wrong, and the kind of mistake."""

    def __init__(self, line: int, column: int, message: str, code: str = "syntax") -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line, self.column, self.message, self.code = line, column, message, code


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: a section has thousands
class Field:
    """A field with its place: a scalar with its value (enums as numbers), or fields and the `message` that they make."""

    name: str
    line: int
    column: int
    value: str | float | None = None
    children: tuple[Field, ...] = ()
    message: Any = None

    def all(self, name: str) -> tuple[Field, ...]:
        return tuple(child for child in self.children if child.name == name)

    def first(self, name: str) -> Field | None:
        return next((child for child in self.children if child.name == name), None)

    def text(self, name: str) -> str:
        """The text of a field, "" if it is absent."""
        found = self.first(name)
        return found.value if found is not None and isinstance(found.value, str) else ""

    def walk(self) -> Iterator[Field]:
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
        """The bytes that reports embed; fields whose numbers are not published are not in them."""
        data: bytes = self.root.message.SerializeToString()
        return data

    @cached_property
    def section(self) -> sections.Section:
        """The section as charts are computed from it.  Raises ValueError for one without identifier."""
        return sections.Section(self.root.message)

    def unknown_to(self, release: Release) -> tuple[Use, ...]:
        """What a release would reject the file for."""
        return tuple(use for use in self.uses if not use.history.known_to(release))


def read_bytes(data: bytes) -> str:
    """The text of a section file; bytes that are not UTF-8, which every release loads, are replaced.  Raises
    SectionSyntaxError for a byte order mark, which no release accepts."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise SectionSyntaxError(1, 1, "the file starts with a byte order mark; save it as UTF-8 without one", "encoding")
    return data.decode("utf-8", "replace")


def parse_document(text: str) -> Document:
    """A section text.  Raises SectionSyntaxError for whatever makes Nsight Compute drop the file."""
    from google.protobuf import text_format

    try:
        strict = text_format.Parse(text, sections.messages(strict=True)[sections.ROOT](), allow_unknown_field=True)
        message = sections.messages()[sections.ROOT].FromString(strict.SerializeToString())
    except text_format.ParseError as error:
        reason = re.sub(r"^\d+:\d+ : |section\.", "", str(error))
        raise SectionSyntaxError(error.GetLine() or 1, error.GetColumn() or 1, reason) from None
    except Exception as error:  # RecursionError, and what an implementation of protobuf says of such depth
        raise SectionSyntaxError(1, 1, "messages are nested too deeply") from error
    walk = _Walk(text)
    root = Field(sections.ROOT, 1, 1, None, walk.fields(sections.ROOT, message, ""), message)
    walk.require(sections.ROOT, root.children, (1, 1), "the section")
    if walk.tokens[walk.at][1]:
        raise SectionSyntaxError(
            *walk.places[walk.tokens[walk.at][2]], f"a field name is expected, not {walk.tokens[walk.at][1]!r}"
        )
    return Document(root, tuple(walk.uses))


class _Walk:
    """Goes through the tokens of a text that was read, beside its message: protobuf does not tell where its fields stand."""

    def __init__(self, text: str) -> None:
        lines = [0, *(match.end() for match in re.finditer("\n", text))]
        found = [(match.lastgroup, match[0], match.start()) for match in _TOKEN.finditer(text) if match[0][0] != "#"]
        self.tokens, self.at, self.uses = [*found, (None, "", len(text))], 0, list[Use]()
        self.places = {at: (line := bisect.bisect_right(lines, at), at - lines[line - 1] + 1) for _, _, at in self.tokens}

    def skip(self, *marks: str) -> bool:
        found = self.tokens[self.at][1] in marks
        self.at += found
        return found

    def fields(self, kind: str, message: Any, path: str) -> tuple[Field, ...]:
        """The fields of a message; of kind "" any fields, which are left out."""
        known, seen, children = sections.schema().messages.get(kind, {}), dict[str, int](), list[Field]()
        while self.tokens[self.at][0] == "word":
            _, name, start = self.tokens[self.at]
            self.at += 1
            field = known.get(name)
            if kind and field is None:
                close = difflib.get_close_matches(name, list(known), 1)
                meant = f"; {close[0]} is meant?" if close else ""
                reason = f"no release knows a field {path}{name}{meant}"
                raise SectionSyntaxError(*self.places[start], reason, "unknown-field")
            published = field if field and field.number else None  # of others nothing is in the message
            self.skip(":")
            several = self.skip("[")
            while not (several and self.skip("]")):
                start = self.tokens[self.at][2] if several else start
                position = seen[name] = seen.get(name, -1) + 1
                value: Any = getattr(message, name) if published else None
                value = value[position] if published and published.repeated else value
                child = self.field(published, f"{path}{name}", value, self.places[start])
                if field:
                    self.use(self.places[start], f"{kind}.{name}" if path else name, field.history)
                children += [child] if published else []
                self.skip(",")
                if not several:
                    break
            self.skip(",", ";")
        return tuple(children)

    def field(self, field: FieldType | None, path: str, value: Any, place: tuple[int, int]) -> Field:
        name = path.rpartition(".")[2]
        if self.skip("{", "<"):
            kind = field.kind if field else ""
            children = self.fields(kind, value, f"{path}.")
            self.skip("}", ">")
            self.require(kind, children, place, path)
            return Field(name, *place, None, children, value)
        self.skip("-")
        of_value, raw = self.tokens[self.at][:2]
        self.at += 1
        while of_value == self.tokens[self.at][0] == "text":  # adjacent texts are one
            self.at += 1
        values = sections.schema().enums.get(field.kind, ()) if field else ()
        if known := [one for one in values if one.name == raw] or [one for one in values if one.number == value]:
            since, until = min(one.history.since for one in known), max(one.history.until for one in known)
            self.use(place, f"{name} {raw}", History(since, until))
        return Field(name, *place, sections.text_of(value) if isinstance(value, bytes) else value)

    def use(self, place: tuple[int, int], name: str, history: History) -> None:
        if history != ALWAYS:
            self.uses.append(Use(*place, name, history))

    def require(self, kind: str, children: Sequence[Field], place: tuple[int, int], where: str) -> None:
        given = {child.name for child in children}
        missing = [name for name, one in sections.schema().messages.get(kind, {}).items() if one.required and name not in given]
        if missing:
            raise SectionSyntaxError(*place, f"{where} lacks the required {' and '.join(missing)}", "required-field")


def section_text(section: Any, *, cc_names: bool) -> str:
    """The fields of a section, each on one line if it fits; ``cc_names``: architectures are called CC_80, else by number."""

    def fields(kind: str, message: Any, indent: str) -> Iterator[str]:
        nested = sections.schema().messages
        present = [(nested[kind][descriptor.name], content) for descriptor, content in message.ListFields()]
        for field, content in sorted(present, key=lambda pair: pair[0].kind in nested):  # what is short first
            for value in content if field.repeated else [content]:
                if field.kind not in nested:
                    yield f"{indent}{field.name}: {_scalar(field, value, cc_names)}\n"
                    continue
                inner = list(fields(field.kind, value, f"{indent}  "))
                line = f"{indent}{field.name} {{ {' '.join(map(str.strip, inner))}{' ' if inner else ''}}}\n"
                fits = len(line) <= _WIDTH and not any("\n" in text[:-1] for text in inner)
                yield line if fits else f"{indent}{field.name} {{\n{''.join(inner)}{indent}}}\n"

    return "".join(fields(sections.ROOT, section, ""))


def _scalar(field: FieldType, value: Any, cc_names: bool) -> str:
    if field.kind == "bytes":  # names of GPUs come from files of others
        return json.dumps("".join(c if c.isprintable() else " " for c in sections.text_of(value)), ensure_ascii=False)
    if field.kind == "GpuArch":
        return f"CC_{value}" if cc_names else str(value)
    if field.kind in sections.schema().enums:
        return next(one.name for one in sections.schema().enums[field.kind] if one.number == value)
    if field.name == "ColorValue":
        return f"0x{value:08X}"
    return str(value).lower() if field.kind == "bool" else repr(value)
