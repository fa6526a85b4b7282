"""The part of the report format that this package reads and writes: the messages of `data/report_fields.txt`.

One record is looked at through several messages, each naming only what its reader needs: what a message does not name is
skipped by protobuf at the speed of memory.  Three of them use that protobuf merges what occurs repeatedly: `NameIds` declares
the repeated metric results as *one* message, which collects all name ids into one list, and `Column` does so for the values
of one metric in many kernels, each serialized on its own and simply joined, `MetricInstances` for the instances of one metric.
The type of a rule's message is repeated, as `rules.encode_rule` writes two.
"""

from __future__ import annotations

import functools
import struct
from pathlib import Path
from typing import Any, NamedTuple

MAGIC = b"NVR\0"
FORMAT_VERSION = 7
_TABLE = Path(__file__).resolve().parents[2] / "data" / "report_fields.txt"

# What the pure Python protobuf raises for damaged bytes, besides DecodeError; the C++ one of 3.20 warns about some of them,
# and fails with a SystemError where warnings are errors.
_DAMAGE = (IndexError, ValueError, RecursionError, struct.error, TypeError, RuntimeWarning, SystemError)


class Kind(NamedTuple):
    """A kind of profiled result: its counter in the block header and the messages through which its records are seen.

    Fields ending in ``_message`` are names of messages.
    """

    name: str
    counter: str
    head_message: str
    body_message: str
    ids_message: str
    metrics_message: str
    result_message: str


# In the order in which their records follow each other in a block.
KINDS = (
    Kind("kernel", "kernels", "KernelHead", "KernelBody", "KernelNameIds", "KernelMetrics", "KernelResult"),
    Kind("range", "ranges", "RangeHead", "OtherBody", "OtherNameIds", "OtherMetrics", "RangeResult"),
    Kind("cmdlist", "cmdlists", "CmdlistHead", "CmdlistBody", "OtherNameIds", "OtherMetrics", "CmdlistResult"),
    Kind("graph", "graph_results", "GraphHead", "OtherBody", "OtherNameIds", "OtherMetrics", "GraphResult"),
)


@functools.cache
def message(name: str) -> Any:
    """The class of the message ``name``."""
    return messages()[name]


@functools.cache
def messages() -> dict[str, Any]:
    """The classes of all messages by name."""
    from ncu_roofline.formats.wire import build_messages

    return build_messages("ncu_roofline.formats.report", _TABLE.read_text("utf-8"))


@functools.cache
def damage_errors() -> tuple[type[Exception], ...]:
    """What parsing damaged bytes can raise."""
    from google.protobuf.message import DecodeError

    return (DecodeError, *_DAMAGE)


def text(data: bytes) -> str:
    """Text of a report: without the NUL that Windows appends, and with a mark in place of what is not UTF-8."""
    return data.rstrip(b"\0").decode("utf-8", "replace")
