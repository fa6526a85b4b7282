"""Frames of zstd: from the compressor, and made by hand (RFC 8878) where no compressor would make them."""

from __future__ import annotations

import importlib
import sys

MAGIC = b"\x28\xb5\x2f\xfd"
_LONGEST_BLOCK = 1 << 17


def zstd():  # type: ignore[no-untyped-def]
    """Python's zstd module."""
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def packed(data: bytes, *, checksum: bool = False) -> bytes:
    """``data`` in one frame."""
    options = {zstd().CompressionParameter.checksum_flag: int(checksum)}
    return bytes(zstd().compress(data, options=options))


def by_hand(start: bytes, zeros: int, *, window_log: int = 17, size: int | None = None) -> bytes:
    """A frame of ``start`` (up to 128 kB) and ``zeros`` zero bytes, which take 4 bytes for each 128 kB.

    ``size`` is what the frame says that it holds, None for nothing.
    """
    window = (window_log - 10) << 3
    head = bytes([0, window]) if size is None else bytes([0b11000000, window]) + size.to_bytes(8, "little")
    full, rest = divmod(zeros, _LONGEST_BLOCK)
    blocks = [_block(0, len(start)) + start, (_block(1, _LONGEST_BLOCK) + b"\0") * full]
    blocks.append(_block(1, rest) + b"\0" if rest else b"")
    return MAGIC + head + b"".join(blocks) + _block(0, 0, last=True)


def _block(kind: int, size: int, *, last: bool = False) -> bytes:
    return (size << 3 | kind << 1 | int(last)).to_bytes(3, "little")
