"""A section message as the text of a `.section` file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ncu_roofline.formats.sectionfile.schema import ROOT, FieldType, schema
from ncu_roofline.formats.sectionfile.section import text_of

_WIDTH = 128


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
