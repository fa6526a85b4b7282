"""Files that are no whole report, by what is wrong with them: each is made of a whole one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ncu_roofline.formats.report.framing import MAGIC, file_start, frame, message
from tests.report.factory import block, blocks_of
from tests.report.frames import by_hand, packed

GB = 10**9
Damage = Callable[[bytes], bytes]


def start_of(data: bytes, number: int) -> int:
    """Where the block with the result of a number begins."""
    at = len(file_start())
    for header, records in blocks_of(data):
        number -= header.kernels
        if number < 0:
            break
        at += len(block_bytes(header, records))
    return at


def block_bytes(header: Any, records: list[bytes]) -> bytes:
    """A block whose header says what it says."""
    return frame(header.SerializeToString()) + b"".join(map(frame, records))


def recounted(place: int, **changes: int) -> Damage:
    """So much more in fields of the header of a block."""

    def change(data: bytes) -> bytes:
        blocks = blocks_of(data)
        for name, more in changes.items():
            setattr(blocks[place][0], name, getattr(blocks[place][0], name) + more)
        return file_start() + b"".join(block_bytes(*one) for one in blocks)

    return change


def cut(number: int, more: int) -> Damage:
    """Cut off so many bytes behind the start of the block of a kernel; of the one before, for less than nothing."""
    return lambda data: data[: start_of(data, number) + more]


def always(data: bytes) -> Damage:
    return lambda _: data


def version(number: int) -> Damage:
    header = frame(message("FileHeader")(version=number).SerializeToString())
    return lambda data: MAGIC + header + data[len(file_start()) :]


LINES = Path(__file__).with_name("no_reports.txt").read_text("utf-8").splitlines()
_NAMED = message("KernelHead")(function=b"k").SerializeToString()

# Of the whole report the first block is of the session, the second of a module, the third of a kernel.
DAMAGED: dict[str, Damage] = {
    **{name: always(ast.literal_eval(data)) for name, data in (line.split(": ", 1) for line in LINES)},
    "UTF-8 text": always("grüße\n".encode() * 2000),
    "zeros": lambda data: bytes(len(data)),
    "wrong magic": lambda data: b"NVX\0" + data[4:],
    "next version": version(8),
    "far future version": version(2**32 - 1),
    "older version": version(1),
    "damaged file header": lambda data: MAGIC + frame(b"\x08") + data,
    "long file header": lambda data: MAGIC + b"\xff\xff\xff\xff" + data,
    "cut off": lambda data: data[: len(data) * 2 // 3],
    "cut in the length of a header": cut(2, 2),
    "cut before a header": cut(2, 4),
    "cut in a header": cut(2, 9),
    "cut behind a header": lambda data: data[: start_of(data, 2) + 5 + data[start_of(data, 2)]],
    "cut in the last byte": lambda data: data[:-1],
    "garbage behind": lambda data: data + b"garbage behind it",
    "a little garbage behind": lambda data: data + b"\x04\0\0\0junk",
    "braces behind": lambda data: data + b"{}",
    "zeros behind": lambda data: data + bytes(4),
    "many zeros behind": lambda data: data + bytes(5000),
    "twice in one file": lambda data: data + data,
    "payload size too small": recounted(2, payload_size=-5),
    "payload size much too small": recounted(2, payload_size=-150),
    "payload size too large": recounted(2, payload_size=3),
    "payload size of the last block too large": recounted(-1, payload_size=1),
    "payload size of the last block too small": recounted(-1, payload_size=-3),
    "payload size beyond the end": recounted(2, payload_size=GB),
    "a record too many": recounted(2, kernels=1),
    "a module counted as a kernel": recounted(1, sources=-1, kernels=1),
    "a kernel counted as a module": recounted(2, sources=1, kernels=-1),
    "records that say nothing": lambda data: data + block([_NAMED] * 100_001, kernels=100_001),
    "zstd of zstd": lambda data: packed(packed(data)),
    "zstd of a report cut off": lambda data: packed(data[:-9]),
    "zstd of a report and garbage": lambda data: packed(data + b"\xff" * 30),
    "zstd of two reports": lambda data: packed(data + data),
    "zstd twice": lambda data: packed(data) * 2,
    "zstd behind two skipped frames": lambda data: b"\x5f*M\x18\4\0\0\0note" + b"\x50*M\x18\0\0\0\0" + packed(data),
    "zstd in two frames": lambda data: packed(data[:500]) + packed(data[500:]),
    "zstd and empty frames": lambda data: packed(data) + packed(b"") * 300_000,
    "zstd and garbage": lambda data: packed(data) + b"garbage",
    "zstd and a zero": lambda data: packed(data) + b"\0",
    "zstd cut off": lambda data: packed(data)[:-10],
    "zstd with a wrong checksum": lambda data: packed(data, checksum=True)[:-1] + b"\0",
    "zstd that says too little": lambda data: by_hand(data, 0, size=10),
    "zstd that says too much": lambda data: by_hand(data, 0, size=len(data) + 1),
    "zstd of 100 GB of zeros": always(by_hand(bytes(9), 100 * GB)),
    "zstd of 50 MB of zeros behind": lambda data: by_hand(data[:9999], 50 * 10**6),
    "zstd with a window of 2 GB": lambda data: by_hand(data, 0, window_log=31),
}
