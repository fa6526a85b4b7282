"""The part of the report format that this package reads and writes, as tables.

Field numbers are those of the published file format (Nsight Compute Customization Guide, "Report File Format"); the names are
ours.  All text is declared bytes, because real reports hold text that is not UTF-8, and all enums int32, because newer
releases add values.

One record is looked at through several messages, each naming only what its reader needs: what a message does not name is
skipped by protobuf at the speed of memory.  Three of them use that protobuf merges what occurs repeatedly: `NameIds` declares
the repeated metric results as *one* message, which collects all name ids into one list, and `Column` does so for the values
of one metric in many kernels, each serialized on its own and simply joined, `MetricInstances` for the instances of one metric.
The type of a rule's message is repeated, as `rules.encode_rule` writes two.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from typing import Any

MAGIC = b"NVR\0"
FORMAT_VERSION = 7

# What the pure Python protobuf raises for damaged bytes, besides DecodeError; the C++ one of 3.20 warns about some of them,
# and fails with a SystemError where warnings are errors.
_DAMAGE = (IndexError, ValueError, RecursionError, struct.error, TypeError, RuntimeWarning, SystemError)

_HEAD_FIELDS = "thread_id=1 uint32, created=5 uint64, nvtx=10 bytes*, context=11 uint32"
_RESULT_FIELDS = """thread_id=1 uint32, api_call_id=2 uint64, metrics=4 MetricResult*, sections=7 bytes*, nvtx=10 Nvtx,
  context=11 uint32"""

TABLE = f"""
FileHeader: version=1 uint32

BlockHeader: sources=1 uint32, kernels=2 uint32, session=3 bytes*, strings=4 StringTable, payload_size=5 uint32,
  process=6 bytes, ranges=7 uint32, cmdlists=8 uint32, graph_results=9 uint32, graphs=10 uint32

StringTable: strings=1 bytes*

Process: id=1 uint32, host=2 bytes, name=3 bytes

Session: process_id=1 uint32, created=2 uint64, host=3 System, target=4 System, devices=6 SessionDevice*, versions=8 Version*,
  executable=9 Executable, settings=10 Settings, command_line=11 bytes

System: os=1 bytes, build=2 bytes, processor=3 bytes, architecture=4 bytes, name=5 bytes

SessionDevice: id=1 uint32, name=2 bytes, attributes=3 Attribute*

Attribute: name=1 bytes, value=2 Value

Version: provider=1 bytes, version=2 bytes

Executable: path=1 bytes, folder=2 bytes, arguments=3 bytes

Settings: sections=7 bytes, clock_control=8 bytes, replay=11 bytes

SourceId: id=1 uint64

SourceRecord: id=1 uint64, cubin=4 bytes, major=5 uint32, capability=6 uint32, zero=7 uint32,
  files=8 FileTable, functions=9 FunctionTable

FileTable: files=1 bytes*

ImportedFile: name=1 bytes, text=2 bytes

FunctionTable: functions=1 bytes*

CodeFunction: name=1 bytes, address=2 uint64, symbol=3 uint64

Dim3: x=1 uint64, y=2 uint64, z=3 uint64

ClockStatus: requested=1 bool, locked=2 bool

Source: reference=1 uint64

KernelHead: thread_id=1 uint32, mangled=5 bytes, function=6 bytes, demangled=7 bytes, grid=10 Dim3, block=11 Dim3,
  created=14 uint64, nvtx=21 bytes*, context=22 uint32, stream=23 uint32, clock=25 ClockStatus

RangeHead: {_HEAD_FIELDS}, clock=12 ClockStatus

GraphHead: {_HEAD_FIELDS}, stream=12 uint32, clock=13 ClockStatus

CmdlistHead: {_HEAD_FIELDS}, stream=12 uint32, clock=13 ClockStatus, display_name=18 bytes, launches=20 CmdlistLaunch*

CmdlistLaunch: grid=1 Dim3, block=2 Dim3

KernelSource: source=15 Source

KernelBody: sections=17 bytes*, rules=19 bytes*

CmdlistBody: sections=7 bytes*, rules=21 bytes*

OtherBody: sections=7 bytes*

KernelNameIds: metrics=13 NameIds

OtherNameIds: metrics=4 NameIds

NameIds: ids=1 uint32*

KernelMetrics: metrics=13 bytes*

OtherMetrics: metrics=4 bytes*

MetricResult: name_id=1 uint32, value=2 Value, instances=3 Instance*

MetricScalar: name_id=1 uint32, value=2 Value

Instance: correlation=1 Value, value=2 Value

MetricInstances: instances=3 MergedInstances

InstanceBytes: instances=3 bytes*

MergedInstances: correlation=1 ColumnValues, value=2 ColumnValues

Value: text=1 bytes, float=2 float, double=3 double, uint32=4 uint32, uint64=5 uint64

Column: value=2 ColumnValues

ColumnValues: text=1 bytes*, float=2 float*, double=3 double*, uint32=4 uint32*, uint64=5 uint64*

Nvtx: domains=1 NvtxDomain*, threads=2 NvtxThread*, start_end=3 NvtxStartEnd*

NvtxDomain: id=1 uint64, name=2 bytes, strings=3 NvtxString*

NvtxString: id=1 uint64, value=2 bytes

NvtxThread: id=1 uint32, domains=2 NvtxPushPop*

NvtxPushPop: id=1 uint64, stack=3 NvtxPushed*

NvtxPushed: name=1 bytes, attributes=2 NvtxAttributes

NvtxStartEnd: id=1 uint64, ranges=3 NvtxStarted*

NvtxStarted: id=1 uint64, name=2 bytes, attributes=3 NvtxAttributes

NvtxAttributes: message=5 NvtxMessage

NvtxMessage: type=1 int32, text=2 bytes, handle=3 uint64

RuleResult: identifier=1 bytes, name=2 bytes, body=3 RuleBody, section=4 bytes

RuleBody: items=1 RuleItem*

RuleItem: message=1 RuleMessage, focus=8 FocusMetric*, speedup=10 Speedup

RuleMessage: text=1 bytes, type=2 int32*, id=3 int32, title=4 bytes

FocusMetric: message_id=1 int32, name=2 bytes, value=3 double, severity=4 int32, info=5 bytes

Speedup: type=1 int32, value=2 double

KernelResult: thread_id=1 uint32, api_call_id=2 uint64, program=3 uint64, kernel_id=4 uint64, mangled=5 bytes, function=6 bytes,
  demangled=7 bytes, dimensions=8 uint32, offset=9 Dim3, grid=10 Dim3, block=11 Dim3, metrics=13 MetricResult*,
  source=15 Source, sections=17 bytes*, rules=19 bytes*, nvtx=21 Nvtx, context=22 uint32, stream=23 uint32, clock=25 ClockStatus

RangeResult: {_RESULT_FIELDS}, clock=12 ClockStatus

CmdlistResult: {_RESULT_FIELDS}, stream=12 uint32, clock=13 ClockStatus, rules=21 bytes*

GraphResult: {_RESULT_FIELDS}, stream=12 uint32, clock=13 ClockStatus
"""


@dataclass(frozen=True)
class Kind:
    """A kind of profiled result: its counter in the block header and the messages through which its records are seen.

    Fields ending in ``_message`` are names of `TABLE`.
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
    """The class of the message ``name`` of `TABLE`."""
    return _messages()[name]


@functools.cache
def _messages() -> dict[str, Any]:
    from ncu_roofline.formats.wire import build_messages

    return build_messages("ncu_roofline.formats.report", TABLE)


@functools.cache
def damage_errors() -> tuple[type[Exception], ...]:
    """What parsing damaged bytes can raise."""
    from google.protobuf.message import DecodeError

    return (DecodeError, *_DAMAGE)


def text(data: bytes) -> str:
    """Text of a report: without the NUL that Windows appends, and with a mark in place of what is not UTF-8."""
    return data.rstrip(b"\0").decode("utf-8", "replace")
