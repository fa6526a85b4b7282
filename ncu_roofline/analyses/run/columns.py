"""The columns of the frames of a whole run, declared once."""

from __future__ import annotations

from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.document import Column

_text, _integer, _number = Column.text, Column.integer, Column.number

RUNS = (
    _text("run", "the trace: its path, or of commands its base name"),
    _text("format", "what wrote it"),
    _integer("gpu", "number of the GPU in the trace"),
    _text("device", "name of the GPU; '' where the trace does not say"),
    _number(
        "wall",
        "second",
        "from the first launch to the end of the last kernel, copy or fill; NaN without a timeline",
    ),
    _number("busy", "second", "time in which the GPU did something; NaN without a timeline"),
    _number("kernel_seconds", "second", "sum of the times of its kernels: what shares are of"),
    _number("copy_seconds", "second", "sum of the times of copies and fills by its copy engines"),
    _integer("launches", "kernels, copies and fills"),
    _number("launch_seconds", "second", "what their launches cost at least, back to back; NaN where nobody measured it"),
    _number("attributed", "ratio", "share of the kernels' time that some operator asked for"),
    _number("modelled", "ratio", "share of the kernels' time whose operators' needs are known"),
    _number("recoverable", "ratio", "share of the kernels' time that these would not need at their roofs"),
)
OPERATORS = (
    _text("run", "the trace: its path, or of commands its base name"),
    _integer("gpu", "number of the GPU in the trace"),
    _text("device", "name of the GPU; '' where the trace does not say"),
    _text(
        "operator",
        "the innermost operator that asked for the work; '' where none did",
        "operator",
        missing="(none)",
        most=(40, 60),
    ),
    _text("shapes", "sizes of its inputs", "shapes", priority=1, most=(24, 44)),
    _text("types", "their types", "types", priority=5),
    _text("group", "annotations around it, or the kernel, where these are asked for", "within", most=(24, 44)),
    _integer("calls", "how often it was called", "calls", priority=2),
    _integer("kernels", "kernels that it launched", "kernels", priority=6),
    _number("seconds", "second", "their time", "time"),
    _number("share", "ratio", "of the time of all kernels", "of time"),
    _number("flops", "flop", "operations that it needs", "needs", priority=3),
    _number("bytes", "byte", "bytes that it needs: what goes in and comes out, each once", "needs bytes", priority=3),
    _number("intensity", "flop/byte", "flops / bytes", "FLOP/B", priority=3),
    _number("performance", "flop/s", "flops / seconds", "FLOP/s", priority=5),
    _number("bandwidth", "byte/s", "bytes / seconds", "B/s", priority=5),
    _text("roof", "the roof that binds what it needs: a precision or dram; '' where its need or the roofs are unknown", "roof"),
    _number("least", "second", "its time at that roof", "at the roof", priority=4),
    _number("fraction", "ratio", "least / seconds", "of roof"),
    _number("recoverable", "ratio", "(seconds - least) / time of all kernels: what would go at the roof", "could go"),
    _text("origin", "where the roof is from"),
    _text("why", "why the need is unknown", "unknown because", priority=2),
)
CHAINS = (
    _text("run", "the trace: its path, or of commands its base name"),
    _integer("gpu", "number of the GPU in the trace"),
    _text("device", "name of the GPU; '' where the trace does not say"),
    _text("chain", "operators that follow each other, each working on the result of the one before", "as one", most=(40, 70)),
    _text("shapes", "sizes of the first one's inputs", "shapes", priority=4, most=(24, 44)),
    _integer("calls", "how often they follow each other", "calls", priority=2),
    _number("seconds", "second", "their time", "time"),
    _number("share", "ratio", "of the time of all kernels", "of time"),
    _number("flops", "flop", "operations that they need", "needs", priority=3),
    _number("bytes", "byte", "bytes that they need where nothing between them leaves the chip", "needs bytes", priority=3),
    _text("roof", "the roof that binds this", "roof"),
    _number("least", "second", "their time at that roof", "at the roof", priority=4),
    _number("recoverable", "ratio", "(seconds - least) / time of all kernels", "could go"),
)
ROOFS = (
    _text("run", "the trace: its path, or of commands its base name"),
    _integer("gpu", "number of the GPU in the trace"),
    _text("device", "name of the GPU"),
    _text("roof", "dram, or the precision of a compute roof"),
    _number("value", "flop/s", "operations or bytes per second"),
    _text("unit", "flop or byte"),
    _text("origin", "theoretical, or the file it was measured in"),
)
TABLES = {"operators": OPERATORS, "chains": CHAINS, "runs": RUNS, "roofs": ROOFS}
CHAINS_SHOWN = ("chain", "shapes", "calls", "seconds", "share", "flops", "bytes", "roof", "recoverable")
SHOWN = ("operator", "shapes", "group", "calls", "seconds", "share", "flops", "bytes", "roof", "fraction", "recoverable", "why")


def label(row: dict[str, object]) -> str:
    """What a row of operators is called in sentences."""
    shapes = f" {row['shapes']}" if row["shapes"] else ""
    return clean(f"{row['operator'] or 'work without an operator'}{shapes}")
