"""`.section` files: text -> the bytes that reports embed, with the verdict of Nsight Compute's own parser.

`google.protobuf.text_format` reads the text.  What it does not say or not check is added: the place of every field, required
fields, values of one choice given twice, and which releases know the fields and values used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from ncu_roofline.sectionfile.text_schema import (
    ALWAYS,
    NAMED_ONLY,
    ROOT,
    FieldType,
    History,
    Release,
    release_text,
    schema,
    section_class,
)
from ncu_roofline.sectionfile.text_tree import Node, SectionSyntaxError, plain_string, read_tree

__all__ = ["Document", "Field", "SectionSyntaxError", "Use", "fields_unknown_to", "parse", "parse_document", "read_bytes"]

Scalar = str | float | int | bool


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: a section has thousands
class Field:
    """A field with its place and, for a scalar, its value (enums as numbers)."""

    name: str
    line: int
    column: int
    value: Scalar | None = None
    children: tuple[Field, ...] = ()

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

    def number(self, name: str) -> int | None:
        """The value of an integer or enum, None if it is absent."""
        found = self.first(name)
        return found.value if found is not None and isinstance(found.value, int) else None

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


@dataclass(frozen=True)
class Document:
    """A section text that is in order: its fields under `root`, the serialized message, and what not every release knows."""

    root: Field
    data: bytes
    uses: tuple[Use, ...]

    def unknown_to(self, release: Release) -> tuple[Use, ...]:
        """What a release would reject the file for."""
        return tuple(use for use in self.uses if not use.history.known_to(release))


def parse(text: str, release: Release | None = None) -> bytes:
    """The serialized ProfilerSection of a section text, for `release` or for any that there is.

    Raises SectionSyntaxError for whatever makes Nsight Compute drop the file.  Fields whose numbers are not published
    (`textschema.NAMED_ONLY`) are not in the bytes.
    """
    return parse_document(text, release).data


def fields_unknown_to(text: str, release: Release) -> tuple[Use, ...]:
    """What `release` would reject the file for, in order; empty if it loads there.  Raises SectionSyntaxError as `parse`."""
    return parse_document(text).unknown_to(release)


def read_bytes(data: bytes) -> str:
    """The text of a section file; bytes that are not UTF-8, which every release loads, are replaced.

    Raises SectionSyntaxError for a byte order mark, which no release accepts.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise SectionSyntaxError(1, 1, "the file starts with a byte order mark; save it as UTF-8 without one", "encoding")
    return data.decode("utf-8", "replace")


def parse_document(text: str, release: Release | None = None) -> Document:
    """The section text with the place of every field.  Raises SectionSyntaxError as `parse`."""
    nodes = read_tree(text)
    checker = _Checker()
    checker.message(ROOT, nodes, "")
    message = _message(_edited(text, checker.edits))
    checker.required(ROOT, nodes, (1, 1), "")
    root = Field(ROOT, 1, 1, None, _fields(ROOT, nodes, message))
    document = Document(root, message.SerializeToString(), tuple(checker.uses))
    if release is not None:
        for use in document.unknown_to(release):
            raise SectionSyntaxError(use.line, use.column, f"{release_text(release)} does not know {use.name}", "release")
    return document


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """The text with some parts replaced: fields without number blanked, spellings that only the C++ parser knows respelled."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _message(text: str) -> Any:
    from google.protobuf import text_format

    try:
        return text_format.Parse(text, section_class()())
    except text_format.ParseError as error:
        message = str(error).rpartition("': ")[2]
        raise SectionSyntaxError(error.GetLine() or 1, error.GetColumn() or 1, message.rstrip(".")) from None


class _Checker:
    """Holds a tree against the schema."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.edits: list[tuple[int, int, str]] = []

    def message(self, kind: str, nodes: Sequence[Node], path: str) -> None:
        fields = schema().messages[kind]
        seen: dict[str, Node] = {}
        for node in nodes:
            field = fields.get(node.name)
            name = f"{path}{node.name}"
            if field is None:
                self.unlisted(kind, node, name)
                continue
            self.once(field, node, seen)
            self.use(node, f"{kind}.{node.name}" if path else node.name, field.history)
            self.value(field, node, name)

    def unlisted(self, kind: str, node: Node, name: str) -> None:
        """A field that is known by name only, or not at all."""
        since = NAMED_ONLY.get((kind, node.name))
        if since is None:
            _fail(node, f"no release knows a field {name}{_similar(node.name, schema().messages[kind])}", "unknown-field")
        self.use(node, f"{kind}.{node.name}", History(since))
        self.edits.append((node.start, node.end, " "))

    @staticmethod
    def once(field: FieldType, node: Node, seen: dict[str, Node]) -> None:
        if field.repeated:
            return
        other = seen.get(field.oneof or field.name)
        if other is not None and other.name == node.name:
            _fail(node, f"{node.name} is given twice, first in line {other.line}", "duplicate-field")
        if other is not None:
            _fail(node, f"{node.name} and {other.name} (line {other.line}) exclude each other", "duplicate-field")
        seen[field.oneof or field.name] = node

    def value(self, field: FieldType, node: Node, name: str) -> None:
        table = schema()
        if field.kind in table.messages:
            if node.raw is not None:
                _fail(node, f"{name} is a message: it needs {{ }}", "syntax")
            self.message(field.kind, node.children, f"{name}.")
        elif node.raw is None:
            _fail(node, f"{name} is a single value, not {{ }}", "syntax")
        elif field.kind in table.enums:
            self.enum(field, node, node.raw)
        else:
            self.scalar(field, node, node.raw)

    def scalar(self, field: FieldType, node: Node, raw: str) -> None:
        if not _SCALARS[field.kind](raw):
            _fail(node, f"{node.name} needs {_NEEDS[field.kind]}, not {raw}", "bad-value")
        if field.kind == "bytes":
            self.respell(node, raw, plain_string(raw))
        elif field.kind == "bool":
            self.respell(node, raw, str(_integer(raw)) if raw[0].isdigit() else raw)
        else:
            number = _number(raw)
            named = number.lstrip("-")[0].isalpha()  # inf, nan
            self.respell(node, raw, number.rstrip("fF") if field.kind == "double" and not named else number)

    def respell(self, node: Node, raw: str, new: str) -> None:
        if new != raw:
            self.edits.append((node.end - len(raw), node.end, new))

    def enum(self, field: FieldType, node: Node, raw: str) -> None:
        values = schema().enums[field.kind]
        named = [one for one in values if one.name == raw]
        number = _integer(raw)
        numbered = [one for one in values if one.number == number]
        if not named and not numbered:
            similar = _similar(raw, [one.name for one in values])
            _fail(node, f"no release knows a value {raw} of {node.name}{similar}", "unknown-value")
        self.use(node, f"{node.name} {raw}", _either([one.history for one in named or numbered]))
        if not named:
            self.respell(node, raw, str(number))

    def use(self, node: Node, name: str, history: History) -> None:
        if history is not ALWAYS:
            self.uses.append(Use(node.line, node.column, name, history))

    def required(self, kind: str, nodes: Sequence[Node], place: tuple[int, int], path: str) -> None:
        """Required fields, of messages from the inside out; `place` is where the owner stands."""
        fields = schema().messages[kind]
        present = {node.name for node in nodes}
        for node in nodes:
            field = fields.get(node.name)
            if field is not None and field.kind in schema().messages:
                self.required(field.kind, node.children, (node.line, node.column), f"{path}{node.name}.")
        missing = [name for name, field in fields.items() if field.required and name not in present]
        if missing:
            where = path.rstrip(".") or "the section"
            raise SectionSyntaxError(*place, f"{where} lacks the required {' and '.join(missing)}", "required-field")


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


def _in_range(low: int, high: int) -> Callable[[str], bool]:
    def test(raw: str) -> bool:
        value = _integer(raw)
        return value is not None and low <= value <= high and not (raw.startswith("-") and low == 0)

    return test


def _is_double(raw: str) -> bool:
    """Decimal only: the C++ parser refuses hexadecimal and octal integers here, and Python's reads `nanf`."""
    digits = _number(raw).lstrip("-").lower()
    if digits[:1].isalpha():
        return digits in ("inf", "infinity", "nan")
    return not (digits[0] == "0" and digits[1:2].isalnum() and digits[1] not in "ef")


_SCALARS: dict[str, Callable[[str], bool]] = {
    "bytes": lambda raw: raw[0] in "\"'",
    "bool": lambda raw: raw in ("true", "True", "t", "false", "False", "f") or (raw[0].isdigit() and _integer(raw) in (0, 1)),
    "uint32": _in_range(0, 2**32 - 1),
    "int64": _in_range(-(2**63), 2**63 - 1),
    "double": lambda raw: raw[0] not in "\"'" and _is_double(raw),
}
_NEEDS = {
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


def _fail(node: Node, message: str, code: str) -> NoReturn:
    raise SectionSyntaxError(node.line, node.column, message, code)


def _fields(kind: str, nodes: Sequence[Node], message: Any) -> tuple[Field, ...]:
    """The nodes with the values that protobuf read from them."""
    fields = schema().messages[kind]
    count: dict[str, int] = defaultdict(int)
    result = []
    for node in nodes:
        field = fields.get(node.name)
        if field is None:
            continue
        content = getattr(message, node.name)
        if field.repeated:
            content = content[count[node.name]]
            count[node.name] += 1
        result.append(_valued(field, node, content))
    return tuple(result)


def _valued(field: FieldType, node: Node, content: Any) -> Field:
    if field.kind in schema().messages:
        return Field(node.name, node.line, node.column, None, _fields(field.kind, node.children, content))
    value = content.decode("utf-8", "replace") if field.kind == "bytes" else content
    return Field(node.name, node.line, node.column, value)
