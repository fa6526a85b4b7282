"""Short readable kernel names: what a person would call the kernel, distinct for distinct kernels.

Demangled names of template libraries run to kilobytes; charts and terminals have room for some forty characters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.base.texts import MAX_LENGTH, clean, shorten

_MAX_DEPTH = 4  # launchers in launchers, and template arguments in template arguments

# Launchers whose template arguments hold the kernel people wrote, with the beginning of a scope they must stand in.
_LAUNCHERS = {
    **dict.fromkeys(("ParallelFor", "ParallelReduce", "ParallelScan", "ParallelScanWithTotal"), "Kokkos"),
    **dict.fromkeys((f"cuda_parallel_launch_{one}_memory" for one in ("constant", "local", "global")), "Kokkos"),
    **dict.fromkeys(("cuda_parallel_launch_constant_or_global_memory", "CombinedFunctorReducer"), "Kokkos"),
    **dict.fromkeys(("forall_cuda_kernel", "forallp_cuda_kernel", "CudaKernelLauncher", "CudaKernelLauncherFixed"), "RAJA"),
    **dict.fromkeys(("launch_global_fcn", "launch_new_reduce_global_fcn"), "RAJA"),
    **dict.fromkeys(("_kernel_agent", "_kernel_agent_vshmem"), "thrust"),
    **dict.fromkeys(("Kernel", "Kernel2", "device_kernel"), "cutlass"),
}
# Regular expressions are compiled where they are used first.
_JULIA = r"^(?:julia|ptxcall)_(?=[\d_]*[^\W\d_])(\w+)_\d+$"
_OPENMP = r"^__omp_offloading_[0-9a-f]+_[0-9a-f]+_"
_RUST_HASH = r"::h[0-9a-f]{16}$"
# Which arguments are 1, divisible by 16, constants: at least the first is said to be something.
_TRITON_SPECIALISATION = r"(?<!^)_\d+(?:de|[dce])(?:\d(?:de|[dce])?)*$"
_NVIDIA_FUNCTION = r"(?<![\w:])([\w:]+), ?(?:\([\w ]+\))? ?(\d+)"  # the function with a lambda, and which one
_CAST = r"^\((?:unsigned |signed )?[\w: ]+\)\s*(-?\w+)$"
_OPERATOR = r"operator\s*(\(\)|\[\]|<=>|->\*?|<<=?|>>=?|<=?|>=?)"
_IDENTIFIER = r"^(?:[~@]?[^\W\d][\w$@!.]*|operator\b(?s:.*))$"
# What may stand before the name of a function; kernels return void, but host functions get NVTX ranges too.
_RETURN_TYPE = r"^(?:void|bool|char|short|int|long|float|double|unsigned|signed|auto|size_t|static|inline)[*&]*$"
_ANONYMOUS = ("(anonymous namespace)", "<unnamed>", "_NV_ANON_NAMESPACE", "{anonymous}", "(anonymous class)")
_OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}


class CxxName(NamedTuple):
    """One name: ``scopes::base<template>(arguments)``; texts as they stand in the source, outermost scope first."""

    scopes: tuple[str, ...]
    base: str
    template: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def short_names(names: Sequence[str]) -> list[str]:
    """A short name for each full name: at most 40 printable characters, equal exactly where the full names are equal.

    Return type, arguments, scopes and template arguments go; of those, just enough stays to tell different kernels apart.
    """
    read = {full: _read(full) for full in dict.fromkeys(names)}
    groups: dict[str, list[str]] = {}
    for full, name in read.items():
        groups.setdefault(shorten(name.base), []).append(full)
    chosen: dict[str, str] = {}
    for members in groups.values():
        chosen.update(zip(members, _candidates([read[full] for full in members]), strict=True))
    taken, again = set[str](), Counter[str]()
    for full in read:
        text = result = chosen[full]
        while result in taken:
            again[text] += 1
            suffix = f" #{again[text] + 1}"
            result = shorten(text, MAX_LENGTH - len(suffix)) + suffix
        taken.add(result)
        chosen[full] = result
    return [chosen[full] for full in names]


def across_numbers(names: Sequence[str]) -> str:
    """One name for names that differ in whole numbers only: ``f<1>`` and ``f<2>`` are ``f<*>``; "" for other differences."""
    pieces = [re.split(r"(\d+)", name) for name in names]
    if len({tuple(part[::2]) for part in pieces}) != 1:
        return ""
    return "".join(texts[0] if len(set(texts)) == 1 else "*" for texts in zip(*pieces, strict=True))


def _read(full: str) -> CxxName:
    """The kernel a full name stands for; whatever is no C++ name becomes a bare base."""
    text = _without_decoration(clean(full))
    name = parse(text) or CxxName((), text or "(unnamed)")
    if match := re.match(_JULIA, name.base):
        name = name._replace(base=match.group(1))
    for _ in range(_MAX_DEPTH):
        scope = _LAUNCHERS.get(name.base)
        if scope is None or not name.template or not any(part.startswith(scope) for part in name.scopes):
            break
        inner = parse(name.template[0])
        if not (inner and inner.base in _LAUNCHERS):
            found = next(filter(None, map(_lambda_inside, name.template)), "")
            inner = CxxName((), found) if found else None if scope == "RAJA" else inner
        if inner is None:
            break
        name = inner
    return name


def _without_decoration(text: str) -> str:
    """``text`` without what compilers of other languages add to the name in the source."""
    region = re.match(_OPENMP, text)
    if region and (parts := re.fullmatch(r"(.+)_l(\d+)(?:_\w*)?", text[region.end() :])):
        function, line = parts.groups()
        return f"{(_mangled_identifiers(function) or [function])[-1]}:{line}"
    if identifiers := _mangled_identifiers(text):
        return _without_decoration("::".join(identifiers))
    text = re.sub(_RUST_HASH, "", text)
    return text if "(" in text or "<" in text else re.sub(_TRITON_SPECIALISATION, "", text)


def _mangled_identifiers(text: str) -> list[str]:
    """The identifiers of an Itanium-mangled name that nobody demangled: ["ns", "kernel"] of ``_ZN2ns6kernelEv``."""
    found: list[str] = []
    nested, digits = text.startswith("_ZN"), re.compile(r"\d+")
    index = 3 if nested else 2
    while text.startswith("_Z") and (length := digits.match(text, index)) and int(length.group()) <= len(text):
        index = length.end() + int(length.group())
        found.append(text[length.end() : index])
        if not nested:
            break
    return found


def _lambda_inside(text: str) -> str:
    """ "main lambda#1" for the first lambda in the text of a template argument, "" without one."""
    # The tag of a wrapper that nvcc makes holds the type and address of the function around the lambda.
    wrapper = re.search(r"__nv_h?dl_wrapper_t<", text)
    tag = text.find("__nv_dl_tag<", wrapper.end()) if wrapper else -1
    if tag >= 0:
        address = text.find("&", tag)
        match = re.compile(_NVIDIA_FUNCTION).search(text, tag + len("__nv_dl_tag<"))
        if match and not 0 <= address < match.start() - 1:
            return f"{match.group(1).rsplit('::')[-1]} lambda#{match.group(2)}"
    for written in re.finditer(r"(?: const)?::[{\[']lambda", text):
        if function := _function_before(text, written.start()):
            number = re.compile(r"(?:#|instance )(\d+)").search(text, written.end())
            return f"{function} lambda{'#' + number.group(1) if number else ''}"
    return ""


def _function_before(text: str, end: int) -> str:
    """The name in ``name<arguments>(parameters)`` that ends there, without its scopes; "" for anything else."""
    if text.endswith(")", 0, end):
        opening = text.rfind("(", 0, end)
        if text.find(")", opening) != end - 1:
            return ""
        end = opening
    if text.endswith(">", 0, end):
        template = re.compile(r"[\w:]<").search(text, max(text.rfind("(", 0, end), text.rfind(")", 0, end)) + 1, end)
        if not template:
            return ""
        end = template.end() - 1
    return re.split(r"[^\w:]+", text[:end])[-1].rsplit("::")[-1] if end > 0 else ""


# What tells kernels of the same base apart.


def _candidates(names: Sequence[CxxName]) -> list[str]:
    """A short name for each of several kernels with the same base, distinct where the names allow it."""
    best: list[str] = []
    for way in _ways(names):
        texts = []
        for before, behind in zip(*way, strict=True):
            room = max(MAX_LENGTH - len(behind), 16)  # what stands before is shortened first
            texts.append(shorten(before, room) + shorten(behind, MAX_LENGTH - min(len(before), room)))
        if len(set(texts)) > len(set(best)):
            best = texts
        if len(set(best)) == len(names):
            break
    return best


def _ways(names: Sequence[CxxName]) -> Iterator[tuple[list[str], list[str]]]:
    """What stands before and behind in short names that are told apart by templates, scopes, arguments, and all of these."""
    bases, nothing = [name.base for name in names], [""] * len(names)
    templates = [f"<{text}>" if text else "" for text in _differences([name.template for name in names])]
    yield bases, templates
    depth = max(len(name.scopes) for name in names)
    columns = ([name.scopes[-place] if place <= len(name.scopes) else "" for name in names] for place in range(1, depth + 1))
    scopes = next((column for column in columns if len(set(column)) > 1), nothing)  # the innermost that differ
    plain = [scope.partition("<")[0] for scope in scopes]
    scopes = [shorten(scope, MAX_LENGTH // 2) for scope in scopes] if len(set(plain)) < len(set(scopes)) else plain
    scoped = [f"{scope}::{base}" if scope else base for scope, base in zip(scopes, bases, strict=True)]
    yield scoped, nothing
    arguments = [f"({text})" if text else "" for text in _differences([name.arguments for name in names])]
    yield bases, arguments
    yield scoped, [template + text for template, text in zip(templates, arguments, strict=True)]


def _differences(columns: Sequence[Sequence[str]], depth: int = 0) -> list[str]:
    """For several argument lists, what each has at the places where they differ: ["128", "256"]."""
    found: list[list[str]] = [[] for _ in columns]
    for place in range(max(map(len, columns), default=0)):
        texts = [column[place] if place < len(column) else "" for column in columns]
        if len(set(texts)) == 1:
            continue
        labels = [_label(text) if text else "" for text in texts]
        if len(set(labels)) < len(set(texts)) and depth < _MAX_DEPTH:  # template arguments tell equal labels apart
            places: dict[str, list[int]] = {}
            for i, label in enumerate(labels):
                places.setdefault(label, []).append(i)
            for label, alike in places.items():
                parsed = [parse(texts[i]) for i in alike]
                inner = _differences([name.template if name else () for name in parsed], depth + 1)
                for i, text in zip(alike, inner, strict=True):
                    labels[i] = text or label
        for pieces, label in zip(found, labels, strict=True):
            if label and label not in pieces:
                pieces.append(label)
    return [",".join(pieces) for pieces in found]


def _label(argument: str) -> str:
    """A template argument or parameter type in few characters: ``(int)256`` is 256, ``ns::Add<float>`` is Add."""
    if match := re.match(_CAST, argument):
        return match.group(1)
    name = None if re.match(r"^[\w= ]*$", argument) else parse(argument)
    return name.base + "*" * argument.rstrip().count("*", max(argument.rfind(">"), 0)) if name else argument


# Demangled names and their parts.


def matching_brackets(text: str) -> dict[int, int]:
    """Index of each opening bracket -> index of its closing one; ``<`` and ``>`` that are operators are left out."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    skip = {i for found in re.finditer(_OPERATOR, text) for i in range(found.start(1), found.end(1))}
    for found in re.finditer(r"[()\[\]{}<]|(?<!-)>", text):
        index, char = found.start(), found.group()
        if index in skip:
            continue
        if char in _OPEN:
            stack.append(index)
            continue
        while stack and text[stack[-1]] == "<" and char != ">":
            stack.pop()  # that one was a less-than sign
        if stack and _OPEN[text[stack[-1]]] == char:
            pairs[stack.pop()] = index
    return pairs


def split_arguments(text: str) -> tuple[str, ...]:
    """The parts of ``text`` between its outermost commas, stripped."""
    pairs, parts, start, index = matching_brackets(text), list[str](), 0, 0
    while index < len(text):
        if text[index] == ",":
            parts.append(text[start:index].strip())
            start = index + 1
        index = pairs.get(index, index) + 1
    last = text[start:].strip()
    return (*parts, last) if parts or last else ()


def _components(text: str) -> list[dict[str, str]]:
    """The ``::`` parts (text, template, arguments) of the function in ``text`` without return type and trailing qualifiers.

    None for plain words.
    """
    new = {"text": "", "template": "", "arguments": ""}
    pairs, parts, index, operator = matching_brackets(text), [new.copy()], 0, re.compile(_OPERATOR)
    while index < len(text):
        part, char = parts[-1], text[index]
        if text.startswith("::", index):
            parts.append(new.copy())
            index += 2
            continue
        if char == "o" and not part["text"] and (match := operator.match(text, index)):
            part["text"], index = match.group().replace(" ", ""), match.end()
            continue
        end = pairs.get(index)
        if char == " ":
            if part["arguments"]:
                break
            if part["text"] == "operator":
                part["text"] += " "
            elif text[index + 1 : index + 2] not in ("(", "<"):
                first = parts[0]
                word = len(parts) == 1 and first["text"] and not first["template"]
                if word and not re.match(_RETURN_TYPE, first["text"]):
                    return []
                parts = [new.copy()]
        elif end is None:
            part["text"] += char
        elif part["text"] and char == "<" and not part["arguments"]:
            part["template"] = text[index + 1 : end]
        elif part["text"] and char == "(":
            part["arguments"] = text[index : end + 1]
        else:
            part["text"] += text[index : end + 1]
        index = end + 1 if end is not None else index + 1
    return parts


@lru_cache(maxsize=1024)
def parse(text: str) -> CxxName | None:
    """The parts of a demangled name or type, or None for what is no C++ name.

    A lambda is named after the function it stands in, a call operator after its class; "class T = int" of a with clause is the
    template argument "T=int".
    """
    text = text.strip()
    with_clause = ""
    if "[with " in text and text.endswith("]"):
        text, _, with_clause = text[:-1].partition("[with ")
        text = text.rstrip()
    text = re.sub(r"\b(?:const|volatile|struct|class|enum)\s+", "", text).lstrip("*& ")
    parts = [part for part in _components(text) if part["text"] not in _ANONYMOUS]
    while len(parts) > 1 and parts[-1]["text"] in ("operator()", ""):
        parts.pop()
    if not parts:
        return None
    last = parts[-1]
    scopes = tuple(f"{part['text']}<{part['template']}>" if part["template"] else part["text"] for part in parts[:-1])
    base = last["text"].strip("*& ")
    if written := re.match(r"^[{\['<]+\s*(?:unnamed\s+)?lambda(\d*)\b", last["text"]):
        number = re.search(r"(?:#|instance\s+)(\d+)", last["text"] + last["arguments"]) or written
        base = f"{parts[-2]['text'] if scopes else ''} lambda{number.group(1) and '#' + number.group(1)}".strip()
    if not re.match(_IDENTIFIER, base) and "lambda" not in base:
        return None
    template = split_arguments(last["template"])
    if with_clause and not template:
        halves = (re.split(r"(?<=\w) = ", part.strip(), maxsplit=1) for part in with_clause.split(";"))
        template = tuple("=".join([re.split(r"\W+", one)[-1] if rest else one, *rest]) for one, *rest in halves)
    return CxxName(scopes, base, template, split_arguments(last["arguments"][1:-1]))
