"""The frames of source lines: by the innermost line, and by the line of the function's own that it is inlined at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE
from ncu_roofline.analyses.source.sums import Sums


def line_columns(sums: Sums, texts: Mapping[str, Sequence[str]], *, outermost: bool = False) -> dict[str, Any]:
    """A row per line in the order of files and lines, then what has no line, by function, then what lies outside."""
    found = sums.instructions
    own = -1 if outermost else 0
    keys = [
        (places[own].file, places[own].line, "") if places else ("", NOWHERE if name else OUTSIDE, name)
        for places, name in zip(found.places, [found.owners[one] for one in found.owner.tolist()], strict=True)
    ]
    sizes = Counter(keys)
    ordered = sorted(sizes, key=lambda key: (key[1] < 0, key[0], abs(key[1]), key[2]))
    place = {key: row for row, key in enumerate(ordered)}
    index = np.array([place[key] for key in keys], dtype=np.int64)
    return {
        "file": [file for file, _, _ in ordered],
        "line": [line for _, line, _ in ordered],
        "text": [_text(texts.get(file, ()), line) if file else name for file, line, name in ordered],
        "instructions": [sizes[key] for key in ordered],
        **sums.table(sums.by(index, len(ordered)), sums.stalls_by(index, len(ordered))),
    }


def has_lines(lines: Mapping[str, Any]) -> bool:
    """Whether warps were counted at some line of the source, by the frame of lines; where not, instructions are shown."""
    line, executed, samples = (np.asarray(lines[name]) for name in ("line", "executed", "samples"))
    return bool(np.any((line > 0) & ((executed != 0) | (samples > 0))))


def _text(lines: Sequence[str], line: int) -> str:
    return lines[line - 1] if 0 < line <= len(lines) else ""
