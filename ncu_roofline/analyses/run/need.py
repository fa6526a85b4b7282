"""What operators need: operations, and bytes of what goes in and comes out, from shapes and types by formulas in TOML.

`data/operators` has those of PyTorch, in the form that a user's own file has (``--operators FILE.toml``).
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips.fields import DATA, read

MATRIX, VECTOR, LINK = "matrix", "vector", "link"
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Slice, ast.List, ast.Call, ast.Name, ast.Load),
    *(ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.USub),
)


class Type(NamedTuple):
    """What the elements of tensors are; see data/tensor_types.toml."""

    name: str
    bytes: int
    tensor: str = ""
    plain: str = ""
    number: int = -1
    kernels: str = ""


class Types(NamedTuple):
    type: tuple[Type, ...]


@cache
def _types() -> dict[str, Type]:
    return {one.name: one for one in read(DATA / "tensor_types.toml", Types).type}


class Operator(NamedTuple):
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    kind: Literal["matrix", "vector", "link"] = "vector"
    into: str = ""
    out_type: str = ""
    out: str = ""
    flops: str = ""
    bytes: str = ""


class Operators(NamedTuple):
    operator: tuple[Operator, ...]


class Need(NamedTuple):
    """What a call needs: operations on ``precision`` ("" for none), bytes, its ``kind``; the sizes and bytes of its result.

    ``inputs``: how many elements each of its inputs has; none where its bytes are not inputs and result, each once.
    """

    flops: float
    bytes: float
    precision: str
    kind: str
    out: tuple[int, ...] = ()
    out_bytes: float = 0.0
    inputs: tuple[int, ...] = ()


class NoFormulaError(ValueError):
    """Why an operator's need is unknown: a clause."""


def load(paths: Sequence[str] = ()) -> dict[str, Operator]:
    """Formulas by the names of operators; those of the user's files win.  Raises RooflineError for a file that has none."""
    return {**_own(), **{name: formula for path in paths for name, formula in _read(Path(path)).items()}}


@cache
def _own() -> dict[str, Operator]:
    return {name: formula for path in sorted((DATA / "operators").glob("*.toml")) for name, formula in _read(path).items()}


def _read(path: Path) -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    try:
        for row in read(path, Operators).operator:
            if shadowed := {*_FUNCTIONS, "out"} & {*row.arguments}:
                raise ValueError(f"no argument may be called {min(shadowed)}")
            for text in filter(None, (row.out, row.flops, row.bytes)):
                compiled(text, row.arguments)
            found |= dict.fromkeys(row.names, row)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        next_step = "Write tables [[operator]] with names, arguments, flops and bytes, as `ncu-roofline guide run` shows."
        raise RooflineError("Cannot read operators", path, shorten(clean(reason), 160), next_step) from error
    return found


@cache
def compiled(text: str, arguments: tuple[str, ...]) -> Any:
    """The code of an expression.  Raises ValueError for anything but arithmetic on these names and functions."""
    try:
        tree = ast.parse(str(text), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no expression ({error.msg})") from error
    known = {*arguments, *_FUNCTIONS, "weight_of", "out"}
    for node in ast.walk(tree):
        good = isinstance(node, _NODES) and (not isinstance(node, ast.Name) or node.id in known)
        good = good and (not isinstance(node, ast.Call) or isinstance(node.func, ast.Name))
        if not good or (isinstance(node, ast.Constant) and not isinstance(node.value, (int, float))):
            raise ValueError(f"{text!r} may hold numbers, {', '.join(sorted(known))} and + - * / // % only")
    return compile(tree, "operators", "eval")


# What formulas may call.  A tensor is the list of its sizes.


class Tensor(list[int]):
    """The sizes of a tensor, the bytes of its elements, and how often each is in it: more than once where it is expanded."""

    item: float = 0.0
    repeats: int = 1


def conv(x: Sequence[int], weight: Sequence[int], *around: Any) -> list[int]:
    """The sizes of a convolution's result; ``around``: stride, padding and dilation, one number or one per dimension."""
    sizes = zip(x[2:], weight[2:], *(_each(one, len(x) - 2) for one in around), strict=True)
    return [x[0], weight[0], *((size + 2 * pad - gap * (taps - 1) - 1) // step + 1 for size, taps, step, pad, gap in sizes)]


def conv_transposed(x: Sequence[int], weight: Sequence[int], *around: Any) -> list[int]:
    """The same of a transposed one: stride, padding, dilation, what is added to the sizes, and the number of groups."""
    sizes = zip(x[2:], weight[2:], *(_each(one, len(x) - 2) for one in around[:-1]), strict=True)
    inner = ((size - 1) * step - 2 * pad + gap * (taps - 1) + more + 1 for size, taps, step, pad, gap, more in sizes)
    return [x[0], weight[1] * around[-1], *inner]


def _each(value: Any, count: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(one) for one in (values * count if len(values) == 1 else values)]


def _size(tensor: Tensor) -> float:
    return math.prod(tensor) * tensor.item / tensor.repeats


def pool(x: Sequence[int], kernel: Any, stride: Any, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> list[int]:
    """The sizes of a pooling's result; each one number or one per dimension, no stride that of the kernel."""
    rank = max(len(kernel), len(x) - 2) if isinstance(kernel, list) else len(x) - 2
    sizes = zip(x[-rank:], *(_each(one, rank) for one in (kernel, stride or kernel, padding, dilation)), strict=True)
    return [
        *x[:-rank],
        *((size + 2 * pad - gap * (taps - 1) - 1 + ceil * (step - 1)) // step + 1 for size, taps, step, pad, gap in sizes),
    ]


def reduced(x: Sequence[int], over: Any) -> list[int]:
    """What is left of sizes without those of the listed dimensions, of all where none is listed: [] is one number."""
    listed = over if isinstance(over, list) else []
    listed = listed[0] if listed and isinstance(listed[0], list) else [one for one in listed if one is not None]
    gone = {one % len(x) for one in listed} if x and listed else range(len(x))
    return [size for dimension, size in enumerate(x) if dimension not in gone]


# Where operators of the way back have the gradient, that is the sizes of what the way forward made, its input and its weights.
_BACKWARD = {
    "aten::convolution_backward": (0, 1, 2),
    "aten::cudnn_convolution_backward": (1, 0, 2),
    "aten::max_pool2d_with_indices_backward": (0, 1, None),
}
Sizes = dict[tuple[str, str, str], Any]


def sizes_told(names: Sequence[str], shapes: Sequence[Sequence[Any] | None]) -> Sizes:
    """Results of convolutions and poolings, and weights, by the sizes of the other two, from operators of the way back: for
    traces without strides and paddings.  None where these differ."""
    told: Sizes = {}
    for name, row in zip(names, shapes, strict=True):
        places = _BACKWARD.get(name)
        if places and row and len(row) > max(place or 0 for place in places):
            grad, x, weight = (row[place] if place is not None else [] for place in places)
            for key, size in ((("out", str(x), str(weight)), grad), (("weight", str(x), str(grad)), weight)):
                told[key] = size if told.get(key, size) == size else None
    return told


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "numel": math.prod,
    "size": _size,
    "item": operator.attrgetter("item"),
    "conv": conv,
    "conv_transposed": conv_transposed,
    "pool": pool,
    "reduced": reduced,
    "max": max,
    "min": min,
    "sum": sum,
}


def need(
    formulas: Mapping[str, Operator],
    name: str,
    shapes: Sequence[Any] | None,
    types: Sequence[str] | None,
    values: Sequence[Any] | None,
    kernels: Iterable[str],
    strides: Sequence[Any] | None = None,
    told: Sizes | None = None,
) -> Need:
    """What a call of an operator needs.  Raises NoFormulaError where that can't be told; ``kernels`` are those it launched.

    ``strides`` as in `Ranges`; ``told``: `sizes_told` of the trace.
    """
    formula = formulas.get(name) or formulas.get(name.removesuffix("_"))
    if formula is None:
        raise NoFormulaError("no formula")
    if shapes is None:
        raise NoFormulaError("no shapes")
    names = " ".join(kernels)
    known = _types()
    guessed = next((one.name for one in known.values() if one.kernels and re.search(one.kernels, names)), "")
    room: dict[str, Any] = {}
    tensors: list[tuple[str, Tensor]] = []
    for place, argument in enumerate(formula.arguments):
        shape = shapes[place] if place < len(shapes) else None
        kind = types[place] if types and place < len(types) else guessed if shape else ""
        if shape and all(isinstance(inner, (list, tuple)) for inner in shape):  # a list of tensors, whose types nobody records
            kind = kind if kind in known else guessed
            shape = [sum(math.prod(inner) for inner in shape if all(type(size) is int for size in inner))]
        if kind in known and isinstance(shape, (list, tuple)) and all(type(size) is int for size in shape):
            room[argument] = tensor = Tensor(shape)
            tensor.item = known[kind].bytes
            steps = strides[place] if strides and place < len(strides) and shape == shapes[place] else ()
            tensor.repeats = math.prod(size for size, step in zip(shape, steps, strict=False) if step == 0) or 1
            tensors.append((kind, tensor))
        else:
            room[argument] = _value(values[place] if values and place < len(values) else None)
    if not tensors:
        raise NoFormulaError("no types" if not types else "unknown types")
    main = next((known[kind] for kind, _ in tensors if known[kind].tensor or known[kind].plain), known[tensors[0][0]])
    inputs = [one for one in tensors if one[1] is not room.get(formula.into)]

    def run(text: str) -> Any:
        return eval(compiled(text, formula.arguments), {"__builtins__": {}}, room)

    def by_strides(made: Callable[..., list[int]]) -> Callable[..., Any]:
        def sizes(x: Sequence[int], *others: Any) -> Any:
            weights = others[0] if made is conv else []
            return (told or {})["out", str(x), str(weights)] if values is None else made(x, *others)

        return sizes

    try:
        room |= {**_FUNCTIONS, "conv": by_strides(conv), "pool": by_strides(pool)}
        room["weight_of"] = lambda x, grad: (told or {})["weight", str(x), str(grad)]
        target = room.get(formula.into)
        out = target if isinstance(target, Tensor) else Tensor(run(formula.out) if formula.out else _broadcast(inputs))
        out.item = target.item if isinstance(target, Tensor) else known[_result(formula, name, tensors, main.name, room)].bytes
        room["out"] = out
        flops = float(run(formula.flops)) if formula.flops else 0.0
        moved = float(run(formula.bytes)) if formula.bytes else sum(_size(one) for _, one in (*inputs, ("", out)))
    except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError, OverflowError) as error:
        lacking = "its stride and padding were not recorded" if values is None else "arguments that do not fit its formula"
        raise NoFormulaError(lacking) from error
    if not (0 <= flops < 1e24 and 0 < moved < 1e18):
        raise NoFormulaError("sizes that no GPU has")
    precision = main.plain
    if formula.kind == MATRIX:
        precision = main.tensor or ("tensor.tf32" if main.name == "float" and "tf32" in names else main.plain)
    counts = () if formula.bytes else tuple(math.prod(one) for _, one in inputs)
    return Need(flops, moved, precision if flops else "", formula.kind, tuple(out), _size(out), counts)


def _result(formula: Operator, name: str, tensors: Sequence[tuple[str, Tensor]], main: str, room: Mapping[str, Any]) -> str:
    """The type of a result: as the formula says, or the argument that it names; element by element the widest of the inputs."""
    if formula.out_type in formula.arguments:
        asked = room[formula.out_type]
        numbered = (one.name for one in _types().values() if type(asked) is int and one.number == asked)
        return "float" if asked is True else next(numbered, main)
    if formula.out_type or formula.out or formula.kind != VECTOR:
        return formula.out_type or main
    if name.endswith("_"):
        return tensors[0][0]
    kinds = [kind for kind, tensor in tensors if tensor] or [main]
    return max(kinds, key=lambda kind: (bool(_types()[kind].plain), _types()[kind].bytes))


def _value(text: Any) -> Any:
    """A concrete input: numbers, lists and truth values as PyTorch writes them."""
    try:
        return json.loads(str(text).lower()) if text not in (None, "") else None
    except (ValueError, RecursionError):
        return None


def _broadcast(tensors: Sequence[tuple[str, Tensor]]) -> list[int]:
    rank = max(len(tensor) for _, tensor in tensors)
    padded = [[1] * (rank - len(tensor)) + tensor for _, tensor in tensors]
    return [max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True)]
