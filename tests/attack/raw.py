"""Attacks on the bytes of a file, which know nothing of what is in it, and on the frames around it."""

from __future__ import annotations

import random
from collections.abc import Callable

from ncu_roofline.formats.report.framing import file_start
from tests.attack.fields import EDGES, varint
from tests.report.frames import SKIPPABLE, by_hand, packed


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    """A few bits changed."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 16))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut_off(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def splice(data: bytes, rng: random.Random) -> bytes:
    """A stretch from elsewhere, inserted or in place of what was there."""
    start, source = rng.randrange(len(data)), rng.randrange(len(data))
    length = rng.choice((1, 4, 30, 300))
    return data[:start] + data[source : source + length] + data[start + rng.choice((0, length)) :]


def change_length(data: bytes, rng: random.Random) -> bytes:
    """Four bytes, perhaps a length, replaced by a number that is off by little or by much."""
    start = rng.randrange(max(len(data) - 4, 1))
    old = int.from_bytes(data[start : start + 4], "little")
    new = rng.choice((*EDGES, old + 1, old - 1, old + 4, old * 2)) % 2**32
    return data[:start] + new.to_bytes(4, "little") + data[start + 4 :]


def insert_number(data: bytes, rng: random.Random) -> bytes:
    """A field number and a number, both as protobuf writes them, put in somewhere."""
    start = rng.randrange(len(data) + 1)
    tag = rng.randrange(1, 30) << 3 | rng.choice((0, 0, 2, 5, 1))
    return data[:start] + varint(tag) + varint(rng.choice(EDGES) << rng.choice((0, 32))) + data[start:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    """A stretch, perhaps a field, many times over."""
    start = rng.randrange(len(data))
    length = rng.randrange(1, 60)
    return data[: start + length] + data[start : start + length] * rng.choice((1, 2, 100)) + data[start + length :]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip_bits, cut_off, splice, change_length, insert_number, repeat)


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A file, plain or compressed, with damage somewhere."""
    change = rng.choice(BYTES)
    if rng.random() < 0.3:
        return change(packed(data), rng), f"{change.__name__} of a frame"
    if rng.random() < 0.3:
        return packed(change(data, rng)), f"{change.__name__}, in a frame"
    return change(data, rng), change.__name__


# Frames and files that are no report, though they begin like one.
CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "a frame twice": lambda data: packed(data) * 2,
    "a frame in a frame": lambda data: packed(packed(data)),
    "a frame behind a skippable one": lambda data: SKIPPABLE + packed(data),
    "a frame without an end": lambda data: packed(data)[:-1],
    "a frame that says 100 GB": lambda data: by_hand(data[:9999], 0, size=100 * 10**9),
    "a frame of 50 MB of zeros behind a report": lambda data: by_hand(data[:99_999], 50 * 10**6),
    "a frame with a window of 2 GB": lambda data: by_hand(data[:9999], 0, window_log=31),
    "two reports in one file": lambda data: data + data,
    "a report behind a report's start": lambda data: file_start() + data,
    "a report and zeros": lambda data: data + bytes(10_000),
}


def contained(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A report in a frame or file that is none."""
    name = rng.choice(list(CONTAINERS))
    return CONTAINERS[name](data), name
