"""Texts that a terminal would obey or a reader misread, put into every field of a report that holds text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import framing as schema
from ncu_roofline.formats.report import writer
from ncu_roofline.formats.report.writer import ReportData, encode_report
from ncu_roofline.formats.sectionfile.section import messages

FORGED = "FORGED"
HOSTILE = (
    "\x1b[31m\x1b]0;title\x07\x9b2J\x00\x08\x7f\u202eevil\u2066\u200b\ufeff\u2028"
    f"{FORGED}\u2029{FORGED}\x85{FORGED}\x0b{FORGED}\r{FORGED}\r\n{FORGED}  1.0 ms\n{FORGED}\tx"
)
# Bytes that are a message of their own, and which one; `metrics` of the reader's messages are not written by these.
_NESTED = {
    "KernelResult.sections": "Section",
    "RangeResult.sections": "Section",
    "CmdlistResult.sections": "Section",
    "GraphResult.sections": "Section",
    "KernelResult.rules": "RuleResult",
    "CmdlistResult.rules": "RuleResult",
    "BlockHeader.session": "Session",
    "BlockHeader.process": "Process",
}
_NUMBERS = ("Value", "MetricResult", "Instance", "Attribute", "Dim3", "ClockStatus", "Source", "CmdlistLaunch", "Speedup")
_DEEP = 8


def hostile_report(data: ReportData, monkeypatch: pytest.MonkeyPatch, *, names: bool) -> tuple[bytes, set[str]]:
    """The report with the text added to all of its texts, also to ``names`` of metrics; and which fields those were."""
    seen: set[str] = set()
    kinds = {kind.counter: kind.result_message for kind in schema.KINDS}
    pack = writer.pack_block

    def packed(header: Any, records: list[bytes]) -> bytes:
        kind = next((result for counter, result in kinds.items() if getattr(header, counter)), "")
        changed = []
        for record in records:
            result = schema.message(kind).FromString(record)
            _add(result, seen, names, 0)
            changed.append(result.SerializeToString())
        _add(header, seen, names, 0)
        return pack(header, changed)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "pack_block", packed)
        return b"".join(encode_report(data)), seen


def _add(message: Any, seen: set[str], names: bool, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        place = f"{message.DESCRIPTOR.name}.{field.name}"
        if field.message_type is not None:
            for inner in _inner(message, field, depth):
                _add(inner, seen, names, depth + 1)
        elif field.type == field.TYPE_BYTES:
            if place == "StringTable.strings" and not names:
                continue
            seen.add(place)
            if not repeated(field):
                text = getattr(message, field.name)
                if message.DESCRIPTOR.name != "Value" or text:  # else it would be a number no more
                    setattr(message, field.name, _changed(place, text, seen, names))
            else:
                texts = [_changed(place, text, seen, names) for text in getattr(message, field.name)]
                del getattr(message, field.name)[:]
                getattr(message, field.name).extend(texts)


def repeated(field: Any) -> bool:
    """Whether a field holds several values; how protobuf says so changed."""
    found = getattr(field, "is_repeated", None)
    return bool(found) if isinstance(found, bool) else field.label == field.LABEL_REPEATED


def _inner(message: Any, field: Any, depth: int) -> Iterator[Any]:
    """Its messages; one is added where there is none, but for numbers."""
    value, wanted = getattr(message, field.name), field.message_type.name not in _NUMBERS and depth < _DEEP
    if repeated(field):
        if not value and wanted and message.DESCRIPTOR.file.name.startswith("ncu_roofline.formats.report"):
            value.add()
        yield from value
    elif message.HasField(field.name) or (wanted and message.DESCRIPTOR.file.name.startswith("ncu_roofline.formats.report")):
        yield value


def _changed(place: str, text: bytes, seen: set[str], names: bool) -> bytes:
    kind = _NESTED.get(place)
    if kind is None:
        return text + HOSTILE.encode()
    inner = (messages()[kind] if kind == "Section" else schema.message(kind)).FromString(text)
    _add(inner, seen, names, 1)
    return bytes(inner.SerializeToString())


def text_fields() -> set[str]:
    """All fields of what the writer writes that hold text: of reports, and of the sections in them."""
    found: set[str] = set()
    pending = [schema.message(name).DESCRIPTOR for name in ("BlockHeader", *(kind.result_message for kind in schema.KINDS))]
    pending += [schema.message(name).DESCRIPTOR for name in ("RuleResult", "Session", "Process")]
    known = set()
    while pending:
        descriptor = pending.pop()
        if descriptor.name in known:
            continue
        known.add(descriptor.name)
        for field in descriptor.fields:
            if field.message_type is not None:
                pending.append(field.message_type)
            elif field.type == field.TYPE_BYTES:
                found.add(f"{descriptor.name}.{field.name}")
    return found


def faults(text: str) -> list[str]:
    """What is wrong with an output: characters that are no letters, and lines that a report made."""
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n"}
    lines = [f"forged: {line[:60]!r}" for line in text.split("\n") if line.lstrip(" |-").startswith(FORGED)]
    where = [f"{c!r} in {text[max(0, text.index(c) - 60) : text.index(c) + 20]!r}" for c in sorted(bad)]
    return where + lines[:3]


def written(path: Path) -> str:
    """A file as text: what is not UTF-8 is a fault."""
    return path.read_bytes().decode("utf-8")
