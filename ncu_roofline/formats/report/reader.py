"""Opening a report: what is in it and where, with nothing decoded that is not asked for."""

from __future__ import annotations

import operator
import os
from array import array
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import PurePath
from types import TracebackType
from typing import Any, overload

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, printable
from ncu_roofline.base.units import format_value
from ncu_roofline.formats.report.code import CodeIndex
from ncu_roofline.formats.report.framing import KINDS, RawFile, open_raw, scan, text
from ncu_roofline.formats.report.kernel import DEVICE_PREFIX, TIME_METRIC, Device, Kernel, Launch, device_of, read_launch
from ncu_roofline.formats.report.metrics import (
    Instances,
    Layout,
    Place,
    Source,
    Value,
    decode_column,
    decode_counts,
    plain_value,
)
from ncu_roofline.formats.report.opening import SHORT, check_short
from ncu_roofline.formats.report.session import Process, Session, read_process, read_session

_COLUMN_ROWS = 128  # results whose serialized metrics are held at a time
_DEVICE_KEYS = tuple(f"{DEVICE_PREFIX}{key}" for key in ("display_name", "device_index"))
_MOST_LAUNCHES = 20
_NAME_LENGTH = 100
_SHOWN = 12  # kernels at a prompt


class _Kernels(Sequence[Kernel]):
    """Made when looked at and not kept: a report of 10,000 kernels costs the memory of one."""

    def __init__(self, source: Source, places: Sequence[Place], start: int = 0, step: int = 1) -> None:
        self._source = source
        self._places = places
        self._indices = range(start, start + step * len(places), step)

    @overload
    def __getitem__(self, index: int) -> Kernel: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Kernel]: ...

    def __getitem__(self, index: int | slice) -> Kernel | Sequence[Kernel]:
        if isinstance(index, slice):
            indices = self._indices[index]
            return _Kernels(self._source, self._places[index], indices.start, indices.step)
        return Kernel(self._source, self._places[index], self._indices[index])

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        more = [f"  ... and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return "\n".join([f"<{len(self)} kernels>", *(f"  {kernel!r}" for kernel in self[:_SHOWN]), *more])


class Report:
    """An open report.  Use it in a ``with`` statement, or `close` it; kernels can't be decoded after that."""

    warnings: tuple[str, ...] = ()  # sentences on what was left out, as tables of importers have

    def __init__(self, raw: RawFile) -> None:
        self.path = raw.path
        self._raw = raw
        self._places: list[Place] = []
        processes: dict[bytes, Process] = {}
        with_code = array("Q")
        names: list[bytes] = []
        sessions: list[bytes] = []
        short = 0
        for block in scan(raw):
            names.extend(block.header.strings.strings)
            sessions.extend(block.header.session)
            named = block.header.process
            if named not in processes:
                processes[named] = read_process(raw.decode("Process", named, block.start))
            if block.counts[0]:
                with_code.append(block.start)
            for kind, offset, length in block.results():
                short += length <= SHORT
                check_short(raw.path, short)
                self._places.append(Place(KINDS[kind], offset, length, processes[named]))
        session = raw.decode("Session", b"".join(sessions), 0)  # of all blocks: protobuf merges joined messages
        self.session: Session = read_session(session, next((one for data, one in processes.items() if data), Process()))
        self._session_devices = tuple(map(_session_device, session.devices))
        strings = [data.decode("utf-8", "replace") for data in names]
        self._names = frozenset(strings)
        self._source = Source(raw, strings, CodeIndex(raw, with_code, processes))
        self.kernels: Sequence[Kernel] = _Kernels(self._source, self._places)

    @property
    def ncu_version(self) -> str:
        """The release that wrote it, such as "2024.2.1.0", or "" if the report does not say."""
        return self.session.ncu_version

    @property
    def device(self) -> Device | None:
        """The GPU of the first result that names one, else of the session, else None."""
        for kernel in self.kernels:
            device = kernel.device
            if device is not None:
                return device
        return self._session_devices[0] if self._session_devices else None

    @property
    def devices(self) -> tuple[Device, ...]:
        """The GPUs of all results, in the order in which they first occur; those of the session if no result names one."""
        columns = self.columns(_DEVICE_KEYS)
        first: dict[tuple[Value | None, ...], int] = {}
        for index, key in enumerate(zip(*columns.values(), strict=True)):
            first.setdefault(key, index)
        found = (self.kernels[index].device for index in first.values())
        return tuple(dict.fromkeys(device for device in found if device is not None)) or self._session_devices

    @property
    def metric_names(self) -> frozenset[str]:
        """The names of all metrics that some kernel may have; the file's table of names, so it may hold a few more."""
        return self._names

    def launches(self) -> list[Launch]:
        """`Kernel.launch` of all `kernels`.  Raises RooflineError for damaged bytes."""
        return [read_launch(self._raw, place) for place in self._places]

    def columns(self, names: Iterable[str]) -> dict[str, list[Value | None]]:
        """For each metric name its values over all `kernels`, None where a kernel lacks it; the fast way to read many kernels.

        Raises RooflineError for damaged bytes.
        """
        return self.columns_and_instances(names, ())[0]

    def columns_and_instances(
        self, names: Iterable[str], instanced: Iterable[str]
    ) -> tuple[dict[str, list[Value | None]], dict[str, list[Instances]]]:
        """`columns` of ``names``, and in the same pass `Metrics.instances` of the metrics ``instanced``, by name and kernel.

        Meant for counts by name (of an opcode, say).  A kernel without the metric has no instances.  Raises RooflineError for
        damaged bytes.
        """
        result: dict[str, list[Value | None]] = {name: [None] * len(self) for name in names}
        instances: dict[str, list[Instances]] = {name: [[] for _ in range(len(self))] for name in instanced}
        for start in range(0, len(self), _COLUMN_ROWS):
            self._fill(result, instances, range(start, min(start + _COLUMN_ROWS, len(self))))
        return result, instances

    def _fill(self, result: dict[str, list[Value | None]], instances: dict[str, list[Instances]], rows: range) -> None:
        groups: dict[Layout, tuple[list[str], Callable[[Any], Any], list[int], list[Any]]] = {}
        for row in rows:
            record = self._source.record(self._places[row])
            index = record.layout.index
            if record.layout not in groups:
                names = [name for name in result if name in index]
                places = [index[name] for name in [*names, *names[:1]]]  # two at least, so that what is picked is a tuple
                groups[record.layout] = names, operator.itemgetter(*places) if places else tuple, [], []
            _, pick, of, items = groups[record.layout]
            of.append(row)
            items.append(pick(record.items))
            for name, column in instances.items():
                if name in index:
                    column[row] = decode_counts(self._raw, record, name)
        offset = self._places[rows.start].offset
        for names, _, of, items in groups.values():
            for name, serialized in zip(names, zip(*items, strict=True), strict=False):
                target = result[name]
                for row, value in zip(of, decode_column(self._raw, serialized, offset), strict=True):
                    target[row] = value

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        try:
            device = self.device
        except (RooflineError, ValueError):  # damaged, or closed: at a prompt nothing may raise
            device = None
        about = [clean(device.name)] if device else []
        about += [f"Nsight Compute {clean(self.ncu_version)}"] if self.ncu_version else []
        kernels = repr(self.kernels).partition("\n")
        said = ", ".join([kernels[0].strip("<>"), *about])
        return f"<Report {clean(os.path.basename(self.path))}: {said}>{kernels[1]}{kernels[2]}"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table of the first launches; nothing of the report reaches it unescaped."""
        devices = ", ".join(device.name for device in self.devices) or "no GPU named"
        release = f"Nsight Compute {self.ncu_version}" if self.ncu_version else "Nsight Compute of unknown release"
        heading = escape(printable(f"{PurePath(self.path).name}: {len(self)} launches, {devices}, {release}"))
        rows = "".join(map(_row, self.kernels[:_MOST_LAUNCHES]))
        more = len(self) - _MOST_LAUNCHES
        rest = f"<p>and {more} more in <code>report.kernels</code></p>" if more > 0 else ""
        header = "".join(f"<th>{name}</th>" for name in ("launch", "kernel", "grid", "block", "time"))
        return f"<p>{heading}</p><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{rest}"

    def close(self) -> None:
        """Give the file back."""
        self._raw.close()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _session_device(device: Any) -> Device:
    metrics = {text(attribute.name): plain_value(attribute.value) for attribute in device.attributes}
    known = {name: value for name, value in metrics.items() if value is not None}
    known.setdefault(f"{DEVICE_PREFIX}display_name", text(device.name))
    found = device_of(known)
    return found if found is not None else Device(text(device.name))


def read_report(path: str | os.PathLike[str]) -> Report:
    """Open the report ``path``: a `.ncu-rep` of any release from 2019 on, or a `.ncu-repz`, told apart by content.

    Reads the block headers only; the file is checked to be complete to its last byte.  Raises RooflineError, which says what
    the file is instead, or where it is damaged.

    >>> with read_report("gpp-v100.ncu-rep") as report:
    ...     report.device.name, len(report.kernels), report.kernels[0].metrics["dram__bytes.sum"]
    ('Tesla V100-SXM2-16GB', 6, 445530186084)
    """
    raw = open_raw(path)
    try:
        return Report(raw)
    except BaseException:
        raw.close()
        raise


def _row(kernel: Kernel) -> str:
    nanoseconds = kernel.metrics.get(TIME_METRIC)
    seconds = nanoseconds * 1e-9 if isinstance(nanoseconds, (int, float)) else float("nan")
    name = kernel.name if len(kernel.name) <= _NAME_LENGTH else f"{kernel.name[: _NAME_LENGTH - 3]}..."
    sizes = ["x".join(map(str, size)) if size else "" for size in (kernel.launch.grid, kernel.launch.block)]
    cells = [str(kernel.index), name, *sizes, format_value(seconds, "second")]
    return "<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in cells) + "</tr>"
