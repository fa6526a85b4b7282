"""Short readable kernel names: what a person would call the kernel, distinct for distinct kernels.

Demangled names of template libraries run to kilobytes; charts and terminals have room for some forty characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ncu_roofline.base.texts import MAX_LENGTH, clean, shorten

_MAX_DEPTH = 4  # launchers in launchers, and template arguments in template arguments

# Launchers whose template arguments hold the kernel people wrote: {base: scopes it must stand in}.
_KOKKOS = ("ParallelFor", "ParallelReduce", "ParallelScan", "ParallelScanWithTotal", "CombinedFunctorReducer")
_MEMORIES = ("constant", "local", "global", "constant_or_global")
_LAUNCHERS = {
    **dict.fromkeys((*_KOKKOS, *(f"cuda_parallel_launch_{memory}_memory" for memory in _MEMORIES)), "Kokkos"),
    **dict.fromkeys(("forall_cuda_kernel", "forallp_cuda_kernel", "CudaKernelLauncher", "CudaKernelLauncherFixed"), "RAJA"),
    **dict.fromkeys(("launch_global_fcn", "launch_new_reduce_global_fcn"), "RAJA"),
    **dict.fromkeys(("_kernel_agent", "_kernel_agent_vshmem"), "thrust"),
    **dict.fromkeys(("Kernel", "Kernel2", "device_kernel"), "cutlass"),
}
_CAST = re.compile(r"^\((?:unsigned |signed )?[\w: ]+\)\s*(-?\w+)$")
_PLAIN = re.compile(r"^[\w= ]*$")
_NVIDIA_WRAPPER = re.compile(r"__nv_h?dl_wrapper_t<")
_NVIDIA_TAG = "__nv_dl_tag<"
_NVIDIA_FUNCTION = re.compile(r"(?<![\w:])([\w:]+), ?(?:\([\w ]+\))? ?(\d+)")  # the function with a lambda, and which one
_LAMBDA = re.compile(r"(?: const)?::[{\[']lambda")
_LAMBDA_NUMBER = re.compile(r"(?:#|instance )(\d+)")
_TEMPLATE = re.compile(r"[\w:]<")
_NOT_NAME = re.compile(r"[^\w:]+")
_OPENMP = re.compile(r"^__omp_offloading_[0-9a-f]+_[0-9a-f]+_")
_OPENMP_LINE = re.compile(r"_l(\d+)(?=_|$)")
_WORD = re.compile(r"\w*")
# Which arguments are 1, divisible by 16, constants: at least the first is said to be something.
_TRITON_SPECIALISATION = re.compile(r"_\d+(?:de|[dce])(?:\d(?:de|[dce])?)*$")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_JULIA = re.compile(r"^(?:julia|ptxcall)_(?=[\d_]*[^\W\d_])(\w+)_\d+$")
_DIGITS = re.compile(r"\d+")


def _mangled_identifiers(text: str) -> list[str]:
    """The identifiers of an Itanium-mangled name that nobody demangled: ["ns", "kernel"] of ``_ZN2ns6kernelEv``."""
    found, index = [], 3 if text.startswith("_ZN") else 2
    while (length := _DIGITS.match(text, index)) and int(length.group()) <= len(text):
        start = length.end()
        index = start + int(length.group())
        found.append(text[start:index])
        if not text.startswith("_ZN"):
            break
    return found


def _openmp_region(text: str) -> str:
    """ "function:line" of what compilers call an OpenMP target region, "" for other names."""
    start = _OPENMP.match(text)
    line = next(reversed(list(_OPENMP_LINE.finditer(text, start.end() + 1))), None) if start else None
    if not start or not line or not _WORD.fullmatch(text, line.end()):
        return ""
    function = text[start.end() : line.start()]
    inner = _mangled_identifiers(function) if function.startswith("_Z") else []
    return f"{inner[-1] if inner else function}:{line.group(1)}"


def _without_decoration(text: str) -> str:
    """``text`` without what compilers of other languages add to the name in the source."""
    if region := _openmp_region(text):
        return region
    if text.startswith("_Z") and (identifiers := _mangled_identifiers(text)):
        return _without_decoration("::".join(identifiers))
    text = _RUST_HASH.sub("", text)
    if match := _JULIA.match(text):
        return match.group(1)
    if "(" not in text and "<" not in text and (match := _TRITON_SPECIALISATION.search(text)) and match.start() > 0:
        return text[: match.start()]
    return text


def _lambda_inside(text: str) -> str:
    """ "main lambda#1" for the first lambda in the text of a template argument, "" without one."""
    if found := _nvidia_lambda(text):
        return found
    for match in _LAMBDA.finditer(text):
        if function := _function_before(text, match.start()):
            number = _LAMBDA_NUMBER.search(text, match.end())
            return f"{function} lambda{'#' + number.group(1) if number else ''}"
    return ""


def _nvidia_lambda(text: str) -> str:
    """The same for the lambda of a wrapper that nvcc makes: its tag holds the type and address of the function around it."""
    wrapper = _NVIDIA_WRAPPER.search(text)
    tag = text.find(_NVIDIA_TAG, wrapper.end()) if wrapper else -1
    if tag < 0:
        return ""
    address = text.find("&", tag)
    match = _NVIDIA_FUNCTION.search(text, tag + len(_NVIDIA_TAG))
    if not match or 0 <= address < match.start() - 1:
        return ""
    return f"{match.group(1).rsplit('::')[-1]} lambda#{match.group(2)}"


def _function_before(text: str, end: int) -> str:
    """The name in ``name<arguments>(parameters)`` that ends there, without its scopes; "" for anything else."""
    if text.endswith(")", 0, end):
        opening = text.rfind("(", 0, end)
        if text.find(")", opening) != end - 1:
            return ""
        end = opening
    if text.endswith(">", 0, end):
        template = _TEMPLATE.search(text, max(text.rfind("(", 0, end), text.rfind(")", 0, end)) + 1, end)
        if not template:
            return ""
        end = template.end() - 1
    return _NOT_NAME.split(text[:end])[-1].rsplit("::")[-1] if end > 0 else ""


def _named_inside(name: CxxName) -> CxxName | None:
    """The kernel inside the template arguments of a launcher, None if there is no telling."""
    scope = _LAUNCHERS.get(name.base)
    if scope is None or not name.template or not any(part.startswith(scope) for part in name.scopes):
        return None
    first = parse(name.template[0])
    if first and first.base in _LAUNCHERS:
        return first
    if found := next(filter(None, map(_lambda_inside, name.template)), ""):
        return CxxName((), found, (), ())
    return None if scope == "RAJA" else first


def _read(full: str) -> CxxName:
    """The kernel a full name stands for; whatever is no C++ name becomes a bare base."""
    text = _without_decoration(clean(full))
    name = parse(text) or CxxName((), text or "(unnamed)", (), ())
    if match := _JULIA.match(name.base):
        name = CxxName(name.scopes, match.group(1), name.template, name.arguments)
    for _ in range(_MAX_DEPTH):
        inner = _named_inside(name)
        if inner is None:
            break
        name = inner
    return name


def _label(argument: str) -> str:
    """A template argument or parameter type in few characters: ``(int)256`` is 256, ``ns::Add<float>`` is Add."""
    if match := _CAST.match(argument):
        return match.group(1)
    name = None if _PLAIN.match(argument) else parse(argument)
    if name is None:
        return argument
    return name.base + "*" * argument.rstrip().count("*", max(argument.rfind(">"), 0))


def _differences(columns: Sequence[Sequence[str]], depth: int = 0) -> list[str]:
    """For several argument lists, what each has at the places where they differ: ["128", "256"]."""
    found: list[list[str]] = [[] for _ in columns]
    for place in range(max(map(len, columns), default=0)):
        texts = [column[place] if place < len(column) else "" for column in columns]
        if len(set(texts)) == 1:
            continue
        labels = [_label(text) if text else "" for text in texts]
        if len(set(labels)) < len(set(texts)) and depth < _MAX_DEPTH:
            labels = _deeper(texts, labels, depth)
        for pieces, label in zip(found, labels, strict=True):
            if label and label not in pieces:
                pieces.append(label)
    return [",".join(pieces) for pieces in found]


def _deeper(texts: Sequence[str], labels: list[str], depth: int) -> list[str]:
    """``labels`` with the template arguments added that tell equal labels of different texts apart."""
    result = list(labels)
    for label in set(labels):
        group = [i for i, other in enumerate(labels) if other == label]
        parsed = [parse(texts[i]) for i in group]
        inner = _differences([name.template if name else () for name in parsed], depth + 1)
        for i, text in zip(group, inner, strict=True):
            result[i] = text or label
    return result


def _fit(base: str, suffix: str) -> str:
    """``base + suffix`` in MAX_LENGTH characters, the base shortened first."""
    room = max(MAX_LENGTH - len(suffix), 16)
    return shorten(base, room) + shorten(suffix, MAX_LENGTH - min(len(base), room))


def _by_template(names: Sequence[CxxName]) -> list[tuple[str, str]]:
    texts = _differences([name.template for name in names])
    return [(name.base, f"<{text}>" if text else "") for name, text in zip(names, texts, strict=True)]


def _by_scope(names: Sequence[CxxName]) -> list[tuple[str, str]]:
    """The innermost scope that differs, before the base."""
    scopes = [tuple(reversed(name.scopes)) for name in names]
    for place in range(max(map(len, scopes))):
        at = [scope[place] if place < len(scope) else "" for scope in scopes]
        if len(set(at)) > 1:
            plain = [scope.partition("<")[0] for scope in at]
            labels = plain if len(set(plain)) == len(set(at)) else [shorten(scope, MAX_LENGTH // 2) for scope in at]
            return [("", f"{label}::{name.base}" if label else name.base) for label, name in zip(labels, names, strict=True)]
    return [(name.base, "") for name in names]


def _by_arguments(names: Sequence[CxxName]) -> list[tuple[str, str]]:
    texts = _differences([name.arguments for name in names])
    return [(name.base, f"({text})" if text else "") for name, text in zip(names, texts, strict=True)]


def _by_all(names: Sequence[CxxName]) -> list[tuple[str, str]]:
    scopes, templates, arguments = _by_scope(names), _by_template(names), _by_arguments(names)
    return [("".join(s), t[1] + a[1]) for s, t, a in zip(scopes, templates, arguments, strict=True)]


def _candidates(names: Sequence[CxxName]) -> list[str]:
    """A short name for each of several kernels with the same base, distinct where the names allow it."""
    if len(names) == 1:
        return [shorten(names[0].base)]
    best: list[str] = []
    for way in (_by_template, _by_scope, _by_arguments, _by_all):
        texts = [_fit(base, suffix) for base, suffix in way(names)]
        if len(set(texts)) > len(set(best)):
            best = texts
        if len(set(best)) == len(names):
            break
    return best


def _numbered(text: str, taken: dict[str, int]) -> str:
    """``text``, or ``text #2`` and so on if that is taken; ``taken`` holds how often each text was asked for."""
    number = taken.get(text, 0)
    result = text
    while result in taken:
        number += 1
        suffix = f" #{number}"
        result = shorten(text, MAX_LENGTH - len(suffix)) + suffix
    taken[text] = max(number, 1)
    taken.setdefault(result, 1)
    return result


def across_numbers(names: Sequence[str]) -> str:
    """One name for names that differ in whole numbers only: ``f<1>`` and ``f<2>`` are ``f<*>``; "" for other differences."""
    pieces = [re.split(r"(\d+)", name) for name in names]
    if len({tuple(part[::2]) for part in pieces}) != 1:
        return ""
    return "".join(texts[0] if len(set(texts)) == 1 else "*" for texts in zip(*pieces, strict=True))


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
    taken: dict[str, int] = {}
    for full in read:
        chosen[full] = _numbered(chosen[full], taken)
    return [chosen[full] for full in names]


_OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSE = {close: opening for opening, close in _OPEN.items()}
_OPERATOR = re.compile(r"operator\s*(\(\)|\[\]|<=>|->\*?|<<=?|>>=?|<=?|>=?)")
_WRITTEN_LAMBDA = re.compile(r"^[{\['<]+\s*(?:unnamed\s+)?lambda(\d*)\b")
_WRITTEN_NUMBER = re.compile(r"(?:#|instance\s+)(\d+)")
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
                first = parts[0]
                if len(parts) == 1 and first.text and not first.template and not _RETURN_TYPE.match(first.text):
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
    match = _WRITTEN_LAMBDA.match(part.text)
    if not match:
        return ""
    number = _WRITTEN_NUMBER.search(part.text + part.arguments)
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
