"""Reads demangled C++ names, as c++filt, cu++filt and the compilers' own demanglers spell them, without a C++ grammar.

Only brackets and ``::`` are understood; what does not look like a C++ name is left alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSE = {close: opening for opening, close in _OPEN.items()}
_OPERATOR = re.compile(r"operator\s*(\(\)|\[\]|<=>|->\*?|<<=?|>>=?|<=?|>=?)")
_LAMBDA = re.compile(r"^[{\['<]+\s*(?:unnamed\s+)?lambda(\d*)\b")
_LAMBDA_NUMBER = re.compile(r"(?:#|instance\s+)(\d+)")
_BRACKET = re.compile(r"[()\[\]{}<]|(?<!-)>")
_COMMA_OR_OPEN = re.compile(r"[,(\[{<]")
_WITH = "[with "
_ASSIGNED = re.compile(r"(?<=\w) = ")
_NOT_WORD = re.compile(r"\W+")
_IDENTIFIER = re.compile(r"^(?:[~@]?[^\W\d][\w$@!.]*|operator\b.*)$", re.DOTALL)
_KEYWORDS = re.compile(r"\b(?:const|volatile|struct|class|enum)\s+")
# What may stand before the name of a function; kernels return void, but host functions get NVTX ranges too.
_RETURN_TYPE = re.compile(r"^(?:void|bool|char|short|int|long|float|double|unsigned|signed|auto|size_t|static|inline)[*&]*$")
_ANONYMOUS = {"(anonymous namespace)", "<unnamed>", "_NV_ANON_NAMESPACE", "{anonymous}", "(anonymous class)"}


@dataclass(frozen=True)
class CxxName:
    """One name: ``scopes::base<template>(arguments)``; texts as they stand in the source, outermost scope first."""

    scopes: tuple[str, ...]
    base: str
    template: tuple[str, ...]
    arguments: tuple[str, ...]


@dataclass
class _Component:
    """A part between two ``::`` while it is read."""

    text: str = ""
    template: str = ""
    arguments: str = ""


def matching_brackets(text: str) -> dict[int, int]:
    """Index of each opening bracket -> index of its closing one; ``<`` and ``>`` that are operators are left out."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    skip = {i for found in _OPERATOR.finditer(text) for i in range(found.start(1), found.end(1))}
    for found in _BRACKET.finditer(text):
        index, char = found.start(), found.group()
        if index in skip:
            continue
        if char in _OPEN:
            stack.append(index)
            continue
        while stack and text[stack[-1]] == "<" and char != ">":
            stack.pop()  # that one was a less-than sign
        if stack and text[stack[-1]] == _CLOSE[char]:
            pairs[stack.pop()] = index
    return pairs


def split_arguments(text: str) -> tuple[str, ...]:
    """The parts of ``text`` between its outermost commas, stripped."""
    if "," not in text:
        return (text.strip(),) if text.strip() else ()
    pairs, parts, start, skip_to = matching_brackets(text), [], 0, 0
    for found in _COMMA_OR_OPEN.finditer(text):
        index = found.start()
        if index < skip_to:
            continue
        if found.group() == ",":
            parts.append(text[start:index].strip())
            start = index + 1
        skip_to = pairs.get(index, index) + 1
    return (*parts, text[start:].strip())


def _is_return_type(parts: list[_Component]) -> bool:
    return len(parts) > 1 or bool(parts[0].template) or bool(_RETURN_TYPE.match(parts[0].text)) or not parts[0].text


def _components(text: str) -> list[_Component]:
    """The ``::`` parts of the function in ``text`` without return type and trailing qualifiers; none for plain words."""
    pairs, parts, index = matching_brackets(text), [_Component()], 0
    while index < len(text):
        part, char = parts[-1], text[index]
        if text.startswith("::", index):
            parts.append(_Component())
            index += 2
            continue
        if (match := _OPERATOR.match(text, index)) and not part.text:
            part.text, index = match.group().replace(" ", ""), match.end()
            continue
        end = pairs.get(index)
        if char == " ":
            if part.arguments:
                break
            if part.text == "operator":
                part.text += " "
            elif text[index + 1 : index + 2] not in ("(", "<"):
                if not _is_return_type(parts):
                    return []
                parts = [_Component()]
        elif end is None:
            part.text += char
        elif part.text and char == "<" and not part.arguments:
            part.template = text[index + 1 : end]
        elif part.text and char == "(":
            part.arguments = text[index : end + 1]
        else:
            part.text += text[index : end + 1]
        index = end + 1 if end is not None else index + 1
    return parts


def _lambda_name(part: _Component, scope: str) -> str:
    """ "main lambda#1" for a lambda of function ``main``, "" for anything else."""
    match = _LAMBDA.match(part.text)
    if not match:
        return ""
    number = _LAMBDA_NUMBER.search(part.text + part.arguments)
    suffix = f"#{number.group(1)}" if number else match.group(1) and f"#{match.group(1)}"
    return f"{scope} lambda{suffix}".strip()


def _parameter(text: str) -> str:
    """ "T=int" for "class T = int", which a with clause says of a template parameter; other texts as they are."""
    match = _ASSIGNED.search(text)
    return f"{_NOT_WORD.split(text[: match.start()])[-1]}={text[match.end() :]}" if match else text


@lru_cache(maxsize=1024)
def parse(text: str) -> CxxName | None:
    """The parts of a demangled name or type, or None for what is no C++ name.

    A lambda is named after the function it stands in ("main lambda#1"), a call operator after its class.
    """
    text = text.strip()
    with_clause = ""
    if _WITH in text and text.endswith("]"):
        text, _, with_clause = text[:-1].partition(_WITH)
        text = text.rstrip()
    text = _KEYWORDS.sub("", text).lstrip("*& ")
    parts = [part for part in _components(text) if part.text not in _ANONYMOUS]
    while len(parts) > 1 and (parts[-1].text == "operator()" or not parts[-1].text):
        parts.pop()
    if not parts:
        return None
    last = parts[-1]
    scopes = tuple(f"{part.text}<{part.template}>" if part.template else part.text for part in parts[:-1])
    base = _lambda_name(last, parts[-2].text if scopes else "") or last.text.strip("*& ")
    if not _IDENTIFIER.match(base) and "lambda" not in base:
        return None
    template = split_arguments(last.template)
    if with_clause and not template:
        template = tuple(_parameter(part.strip()) for part in with_clause.split(";"))
    return CxxName(scopes, base, template, split_arguments(last.arguments[1:-1]))
