"""Files of this room's sessions: traces and exports, whole and damaged, and small reports."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.analyses.data import read
from tests.analyses.makers import written
from tests.analyses.traces_made import BF16, HOSTILE, LATE, MM, SOFTMAX, call, document, event, write

SIZES = [[64, 1024, 1024], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "False"]
SQUARES = [[2048, 2048], [2048, 2048]], [BF16, BF16]
MAIN, ODD = "void main_loop<double>(double *, int)", 'void odd("\x7f\u202e]\\n[[limits]]")'
GNU = "void foo<4, unsigned long>(float*, unsigned long)"


def trace(softmax: float, copy: float = 40, spread: float = 0, last: str = "aten::relu") -> dict[str, Any]:
    """Calls of a softmax whose kernels take some us, more or less by a ``spread``, copies, and one of something else."""
    events = []
    for number, more in enumerate((-2, -1, 0, 1, 2)):
        events.append(call("aten::_softmax", 1000 + 1500 * number, softmax * (1 + more * spread), *SIZES))
        events.append(call("aten::copy_", 2200 + 1500 * number, copy, *SQUARES))
    return document(*events, call(last, 9500, 60, [[1024, 1024]], [BF16]))


def small(softmax: float) -> dict[str, Any]:
    """Operators of 2 us beside a large one."""
    calls = (call(f"aten::small{number}", 2000 + 100 * number, 2, *SQUARES) for number in range(3))
    return document(call("aten::_softmax", 1000, softmax, *SIZES), *calls)


def counted(*launches: tuple[float, float, str, int], step: Any = ()) -> dict[str, Any]:
    """Products of 64 x 64 matrices whose kernels (at, us, name, grid) a report may have."""
    shapes = [[64, 64], [64, 64]], [BF16, BF16], ["", ""]
    size = {"stream": 7, "block": [128, 1, 1]}
    calls = (call("aten::mm", at, us, *shapes, called=name, grid=[grid, 1, 1], **size) for at, us, name, grid in launches)
    return document(step, *calls)


def database(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as opened:
        for statement in statements:
            opened.execute(statement)


def put(content: Any, path: Path) -> None:
    """Bytes as they are, or a trace."""
    write(path, content) if isinstance(content, dict) else path.write_bytes(content)


def reported(kernels: list[dict[str, Any]], path: Path) -> None:
    written(path.parent, path.stem, [{**(STEADY if "steady" in one else {}), **one} for one in kernels])


TEXT = json.dumps(document(MM)).encode()
STEADY = {"gpu": "H100", "ms": 0.04, "idle": True, "fp32": 1e6, "l1": 2e6, "l2_sectors": 31250, "dram": 1e6}
NAMED = {**STEADY, "name": "void foo<(int)4, unsigned long>(float *, T2)", "mangled": "_Z3fooILi4EmEvPfT0_"}
RANKS, LATER = {0: 100, 1: 300, 2: 300}, [{**LATE[0], "name": "graph_kernel<8>"}]
LARGER = call("aten::_softmax", 1000, 800, [[128, 1024, 1024], [], []], *SIZES[1:])
TRACES: dict[str, Any] = {
    "two": document(MM, SOFTMAX),
    "hostile": document(MM, SOFTMAX, LATE, HOSTILE),
    **{f"rank{n}": {**document(call("aten::mm", 1000, us)), "distributedInfo": {"rank": n}} for n, us in RANKS.items()},
    "a": trace(400), "b": trace(480), "gelu": trace(480, last="aten::gelu"), "spread": trace(400, spread=0.01),
    "steady": trace(440), "mild": trace(440, spread=0.02), "wild": trace(440, spread=0.1),
    "small4": small(400), "small8": small(800),
    "late": document(call("aten::_softmax", 1000, 400, *SIZES), LATE), "larger": document(LARGER, LATER),
    "relu": document(call("aten::relu", 1, 50, [[8]], [BF16])),
    "foo": counted((1000, 20, GNU, 8), (2000, 30, GNU, 8), (3000, 50, "other(int)", 8)),
    "foo8": counted((1000, 20, GNU, 8), (2000, 30, GNU, 8), (4000, 10, GNU.replace("4", "8"), 8)),
    "annotated": counted((1000, 20, GNU, 8), (3000, 50, "other(int)", 8), step=[event("user_annotation", "step", 900, 3000)]),
    "cpu": document(MM[:1]),
    "moe": document(call("vllm::moe", 1000, 9, [[8, 16], [4, 32]], [BF16, BF16])),
}  # fmt: skip
FILES: dict[str, Callable[[Path], Any]] = {
    "run.json.gz": partial(put, document(MM, SOFTMAX, LATE)),
    **{f"{name}.json": partial(put, content) for name, content in TRACES.items()},
    "cut.json.gz": partial(put, gzip.compress(TEXT)[:-20]),
    "cut.json": partial(put, TEXT[:-9]),
    "bad.sqlite": partial(put, b"SQLite format 3\x00" + bytes(200)),
    "long.csv": partial(put, b"Total Time (ns),Instances,Name\n1000,10," + b"k" * 200_000 + b"\n"),
    "open.csv": partial(put, b'Total Time (ns),Instances,Name\n1000,10,"k1\n1000,10,k2\n'),
    "none.sqlite": lambda path: database(path, "CREATE TABLE other (a INTEGER)"),
    "view.sqlite": lambda path: database(
        path, "CREATE TABLE kept (start INTEGER)", "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM kept"
    ),
    **{f"{name}.ncu-rep": partial(reported, kernels) for name, kernels in read("reports").items()},
}  # fmt: skip
