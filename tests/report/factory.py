"""Reports for tests: built by the writer, or block by block where the writer would not build them."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from ncu_roofline.formats.report import KernelData, Process, ReportData, Session, Value, encode_report
from ncu_roofline.formats.report.framing import file_start, message, pack_block

DEVICE: dict[str, Value] = {
    "device__attribute_display_name": "NVIDIA A100-PCIE-40GB",
    "device__attribute_architecture": 0x170,  # ncu can't tell the chip without, and then skips filtered parts of sections
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_device_index": 0,
    "device__attribute_multiprocessor_count": 108,
}
SESSION = Session(
    process=Process(42, "/home/user/app", "box"),
    host="box",
    os="Linux",
    created=1_700_000_000,
    ncu_version="2022.3.0.0",
    driver_version="550.54",
    cuda_version="12.4",
    versions=(
        ("Display Driver Version", "550.54"),
        ("CUDA Version", "12.4"),
        ("Nsight Compute Target", "2022.3.0.0 (build 31729285) (public-release)"),
    ),
    command_line="ncu --set full -f --clock-control none -o out ./app 12",
    clock_control="none",
)


def saxpy(index: int = 0, **changes: Any) -> KernelData:
    """A kernel with a few metrics; ``changes`` are fields of `KernelData`."""
    metrics = {**DEVICE, "dram__bytes.sum": 1e9 + index + 0.25, "launch__grid_size": 256 + index, "text__metric": "a b"}
    fields = {"grid": (128, 2, 1), "block": (256, 1, 1), "stream": 7, "context": 1, "metrics": metrics}
    return KernelData(**{"name": "saxpy(int, float *)", **fields, **changes})


def encoded(kernels: Iterable[KernelData], session: Session = SESSION) -> bytes:
    """A whole report as bytes."""
    return b"".join(encode_report(ReportData(kernels, session)))


def report_of(*kernels: KernelData) -> bytes:
    """The same of kernels one by one."""
    return encoded(kernels)


def write(folder: Path, data: bytes, name: str = "x.ncu-rep") -> Path:
    """``data`` as a file in ``folder``."""
    path = folder / name
    path.write_bytes(data)
    return path


def block(records: Sequence[bytes] = (), strings: Sequence[str] = (), **header: Any) -> bytes:
    """A block with the given header fields (as named in the schema)."""
    fields = message("BlockHeader")(**{"sources": 0, "kernels": 0, **header})
    fields.strings.strings.extend(text.encode() for text in strings)
    return bytes(pack_block(fields, list(records)))


def blocks_of(data: bytes) -> list[tuple[Any, list[bytes]]]:
    """Header and records of each block of a whole report."""
    stream, found = io.BytesIO(data[len(file_start()) :]), []

    def record() -> bytes:
        return stream.read(int.from_bytes(stream.read(4), "little"))

    while head := record():
        header, records = message("BlockHeader").FromString(head), []
        end = stream.tell() + header.payload_size
        while stream.tell() < end:
            records.append(record())
        found.append((header, records))
    return found


def result(metrics: Sequence[tuple[int, Value | None]], kind: str = "KernelResult", **fields: Any) -> bytes:
    """A serialized result with (name id, value) metrics in that order."""
    record = message(kind)(**fields)
    for name_id, value in metrics:
        metric = record.metrics.add(name_id=name_id)
        if isinstance(value, str):
            metric.value.text = value.encode()
        elif isinstance(value, int):
            metric.value.uint64 = value
        elif value is not None:
            metric.value.double = value
    return bytes(record.SerializeToString())


def file_of(*blocks: bytes) -> bytes:
    """A report of these blocks."""
    return bytes(file_start() + b"".join(blocks))


def from_text(lines: Iterable[str]) -> bytes:
    """A report of lines: "block" with fields of its header, then its records: a message with its fields, or "bytes"."""
    blocks: list[tuple[Any, list[bytes]]] = []
    for line in lines:
        name, _, said = line.partition(" ")
        if name == "block":
            blocks.append((text_format.Parse(said, message("BlockHeader")()), []))
        elif name == "bytes":
            blocks[-1][1].append(ast.literal_eval(said))
        else:
            blocks[-1][1].append(text_format.Parse(said, message(name)()).SerializeToString())
    return file_start() + b"".join(pack_block(*one) for one in blocks)
