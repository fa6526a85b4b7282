"""The baseline of the reading benchmark: every metric through plain protobuf messages, as a script would do it."""

from __future__ import annotations

import struct
from pathlib import Path

from ncu_roofline.formats.wire import build_messages

_MESSAGES = build_messages(
    "plain",
    """
Value: text=1 bytes, single=2 float, number=3 double, small=4 uint32, count=5 uint64

Element: id=1 Value, value=2 Value

Metric: name=1 uint32, value=2 Value, list=3 Element*

Result: metrics=13 Metric*

Strings: strings=1 bytes*

Header: sources=1 uint32, results=2 uint32, strings=4 Strings
""",
)


def every_metric(path: str) -> int:
    """Read all scalar metrics of a report into dictionaries; returns how many there were."""
    data = Path(path).read_bytes()
    position, strings, results = 4, [], []

    def record() -> bytes:
        nonlocal position
        (length,) = struct.unpack_from("<I", data, position)
        begin, position = position + 4, position + 4 + length
        return data[begin:position]

    record()
    while position < len(data):
        header = _MESSAGES["Header"].FromString(record())
        strings += [one.decode() for one in header.strings.strings]
        for _ in range(header.sources):
            record()
        results += [_MESSAGES["Result"].FromString(record()) for _ in range(header.results)]
    count = 0
    for result in results:
        values = {}
        for metric in result.metrics:
            for field in ("number", "count", "text", "single", "small"):
                if metric.value.HasField(field):
                    values[strings[metric.name]] = getattr(metric.value, field)
                    break
        count += len(values)
    return count
