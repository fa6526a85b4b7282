"""Every regular expression of the package, found by itself, and texts that would make a careless one slow."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import ncu_roofline

if sys.version_info >= (3, 11):
    from re import _constants as c
    from re import _parser
else:
    import sre_constants as c
    import sre_parse as _parser

PACKAGE = Path(ncu_roofline.__file__).parent
RULES = PACKAGE.parent / "rules"
_FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer", "template"}
_SCANNING = {"sub", "subn", "split", "findall", "finditer"}
_FLAGS_AT = {"sub": 4, "subn": 4, "split": 3}
_MANY = 64  # repetitions from which one counts as unbounded
_POOL = "a1A_ .\n-:<(\"',x\0\N{MICRO SIGN}"
_ENDS = ("", "\0", "\n!", "a")
_PUMPS = 24

# Names and the methods called on them: in one module, and in all.
Applied = tuple[list[tuple[str, str]], list[tuple[str, str]]]


@dataclass(frozen=True)
class Use:
    """An expression, where it stands and by which method it is applied."""

    place: str
    pattern: str | bytes
    flags: int
    method: str

    def run(self, text: str) -> object:
        compiled: Any = re.compile(self.pattern, self.flags)
        given = text if isinstance(self.pattern, str) else text.encode("latin-1", "replace")
        if self.method in _SCANNING:
            return sum(1 for _ in compiled.finditer(given))
        return getattr(compiled, self.method)(given)


class NotKnownError(Exception):
    """A call whose expression can't be told without running the function it stands in."""


def modules() -> Iterator[ModuleType]:
    """All modules of the package."""
    for found in pkgutil.walk_packages([str(PACKAGE)], "ncu_roofline."):
        if not found.name.endswith("__main__") and ".data." not in found.name:
            yield importlib.import_module(found.name)


def uses() -> tuple[list[Use], list[str]]:
    """All uses, and the places of calls whose expression is made of what a function is given."""
    found: dict[Use, None] = {}
    open_calls: list[str] = []
    trees = {module: ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in modules()}
    everywhere = [pair for tree in trees.values() for pair in _applied(tree)]
    for module, tree in trees.items():
        methods = _applied(tree), everywhere
        place = str(Path(str(module.__file__)).relative_to(PACKAGE))
        _calls(place, tree, vars(module), methods, found, open_calls)
        for name, value in vars(module).items():
            for one in _patterns_in(value, 0):
                for method in _methods(name, methods):
                    found[Use(f"{place}:{name}", one.pattern, one.flags, method)] = None
    for path in sorted(RULES.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        _calls(f"rules/{path.name}", tree, {"re": re}, (_applied(tree), []), found, open_calls)
    for path in sorted(path for path in PACKAGE.rglob("*.js") if not path.name.endswith(".min.js")):  # others keep theirs
        for flags, text in _of_javascript(path.read_text(encoding="utf-8")):
            found[Use(str(path.relative_to(PACKAGE)), text, flags, "finditer")] = None
    return list({(re.compile(use.pattern, use.flags), use.method): use for use in found}.values()), open_calls


def _calls(
    place: str,
    tree: ast.AST,
    names: Mapping[str, Any],
    methods: Applied,
    found: dict[Use, None],
    open_calls: list[str],
) -> None:
    assigned = {
        id(node.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if (isinstance(node, ast.ImportFrom) and node.module == "re") or _renamed(node):
            raise AssertionError(f"{place}: say `import re`, so that its expressions are found")
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)):
            continue
        function = node.func.attr
        if node.func.value.id != "re" or function not in _FUNCTIONS:
            continue
        try:
            pattern, flags = _evaluated(node.args[0], names), _flags(node, function, names)
        except NotKnownError:
            open_calls.append(f"{place}: {ast.unparse(node.args[0])}")
            continue
        for method in [function] if function != "compile" else _methods(assigned.get(id(node), ""), methods):
            found[Use(f"{place}:{node.lineno}", pattern, flags, method)] = None


def _renamed(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and any(one.name == "re" and one.asname for one in node.names)


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), dict(names))
    except NameError as error:
        raise NotKnownError from error


def _flags(node: ast.Call, function: str, names: Mapping[str, Any]) -> int:
    place = _FLAGS_AT.get(function, 1 if function == "compile" else 2)
    given = [one.value for one in node.keywords if one.arg == "flags"] + node.args[place : place + 1]
    return int(_evaluated(given[0], names)) if given else 0


def _applied(tree: ast.AST) -> list[tuple[str, str]]:
    """Names and the methods called on them."""
    return [
        (ast.unparse(node.value), node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS - {"compile", "template"}
    ]


def _methods(name: str, methods: Applied) -> list[str]:
    """How an expression of this name is applied in its module, or in others; one in a table is searched for."""
    for pairs in methods:
        if found := {method for owner, method in pairs if name and owner.rpartition(".")[2] == name}:
            return sorted(found)
    return ["search"]


def _patterns_in(value: object, depth: int) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth < 4 and isinstance(value, (tuple, list, set, frozenset)):
        for one in value:
            yield from _patterns_in(one, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for pair in value.items():
            yield from _patterns_in(pair, depth + 1)


def _of_javascript(text: str) -> Iterator[tuple[int, str]]:
    """Literals between slashes with a quantifier in them; both languages read these alike."""
    literal = r"/((?![ *])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([gimsuy]*)"
    for found in re.finditer(rf"(?<=[(=:,!&|?\s]){literal}(?=[.,;)\s])", text):
        yield (re.IGNORECASE if "i" in found[2] else 0), found[1]


def texts(use: Use, size: int) -> Iterator[str]:
    """Texts of about ``size`` characters made of what the expression matches, each in a way that does not match in the end."""
    for start, pump, end in recipes(use):
        yield start + pump * max(1, (size - len(start) - len(end)) // len(pump)) + end


def recipes(use: Use) -> list[tuple[str, str, str]]:
    """(beginning, what is repeated, end) of texts."""
    tree = _parser.parse(use.pattern, use.flags)
    starts, pumps = dict.fromkeys(("", "a")), dict.fromkeys(_POOL)
    for before, body in _repeats(list(tree), ""):
        starts[before] = None
        pumps |= dict.fromkeys(_samples(body))
        pumps[before] = None
        for sample in _samples(body):
            pumps[before + sample] = None
    pumps |= dict.fromkeys(_samples(list(tree)))
    kept = [pump for pump in pumps if pump]
    rare = kept[: len(_POOL)] + kept[len(_POOL) :][:_PUMPS]
    return [(start, pump, end) for start in list(starts)[:8] for pump in rare for end in _ENDS]


def _repeats(nodes: list[Any], before: str) -> Iterator[tuple[str, list[Any]]]:
    """Unbounded repetitions with a text that leads to them."""
    for position, (kind, value) in enumerate(nodes):
        here = before + "".join(_sample(one) for one in nodes[:position])
        for body in _children(kind, value):
            if kind in _REPEATS and value[1] >= _MANY:
                yield here, body
            yield from _repeats(body, here)


_REPEATS = {getattr(c, name) for name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") if hasattr(c, name)}


def _children(kind: Any, value: Any) -> list[list[Any]]:
    if kind in _REPEATS:
        return [list(value[2])]
    if kind is c.SUBPATTERN:
        return [list(value[3])]
    if kind is c.BRANCH:
        return [list(one) for one in value[1]]
    if kind in (c.ASSERT, c.ASSERT_NOT):
        return [list(value[1])]
    return [list(value)] if getattr(c, "ATOMIC_GROUP", None) is kind else []


def _samples(nodes: list[Any]) -> list[str]:
    """Texts that match a sequence: each alternative of each branch, and each kind of character, once."""
    found = {"".join(_sample(one) for one in nodes): None}
    for kind, value in nodes:
        for body in _children(kind, value):
            found |= dict.fromkeys(_samples(body))
        if kind is c.IN:
            found |= dict.fromkeys(_members(value))
    return list(found)


def _sample(node: tuple[Any, Any]) -> str:
    kind, value = node
    if kind is c.LITERAL:
        return chr(value)
    if kind is c.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if kind is c.ANY:
        return "a"
    if kind is c.IN:
        return next(iter(_members(value)), "")
    if kind in _REPEATS:
        return "".join(map(_sample, value[2])) * max(value[0], 1)
    if kind in (c.ASSERT, c.ASSERT_NOT):
        return ""
    children = _children(kind, value)
    return "".join(map(_sample, children[0])) if children else ""


def _members(value: list[Any]) -> list[str]:
    """Characters of a set, one of each of its parts."""
    accepted = re.compile(_set_text(value))
    own = [chr(one[1]) for one in value if one[0] is c.LITERAL] + [chr(one[1][0]) for one in value if one[0] is c.RANGE]
    return [char for char in dict.fromkeys([*own, *_POOL]) if accepted.fullmatch(char)]


_CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}


def _set_text(value: list[Any]) -> str:
    parts = []
    for kind, one in value:
        if kind is c.NEGATE:
            parts.append("^")
        elif kind is c.LITERAL:
            parts.append(re.escape(chr(one)))
        elif kind is c.RANGE:
            parts.append(f"{re.escape(chr(one[0]))}-{re.escape(chr(one[1]))}")
        else:
            parts.append(_CATEGORIES[one])
    return f"[{''.join(parts)}]"


def seconds(use: Use, text: str, times: int = 3) -> float:
    """Processor time of one application, the least of some: what else the machine does is not in it."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        use.run(text)
        best = min(best, time.process_time() - start)
        if best > _TOO_LONG:
            break
    return best


_TOO_LONG = 0.2
_SIZE = 2_000
# Step by step, so that what is exponential is seen before it takes for ever.
_SIZES = (10, 14, 18, 22, 26, 30, 34, 38, 42, 47, 53, 60, 70, 80, 95, 120, 150, 200, 350, 700, 1_200, _SIZE)
_SUSPICIOUS = 0.0005  # a linear expression takes a tenth of it for so many characters
_GROWTH = 8  # of the time when the text is four times as long: 4 is linear, 16 is quadratic


def faults(use: Use) -> Iterator[str]:
    """Texts on which the expression is slower than linear."""
    for start, pump, end in recipes(use):
        shown = f"{use.place} {use.method} {use.pattern!r} on {start!r} + {pump!r} * n + {end!r}"
        for size in _SIZES:
            text = start + pump * (size // len(pump) + 1) + end
            few = seconds(use, text, 1)
            if few > _TOO_LONG:
                yield f"{shown}: {few:.1f} seconds of {len(text)} characters"
                return
        if few < _SUSPICIOUS:
            continue
        longer = start + pump * (4 * _SIZE // len(pump) + 4) + end
        for _ in range(3):  # a machine that others use too may stumble once
            few, many = seconds(use, text), seconds(use, longer)
            if many <= max(_GROWTH * few, 2 * _SUSPICIOUS):
                break
        else:
            yield f"{shown}: {few:.4f} s, four times longer {many:.4f} s"
            return
