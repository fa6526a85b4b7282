"""All that a report says, as text: what the reader makes of it, or why it refuses."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, ItemsView
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import Kernel, Report, read_report
from tests.report.factory import DEVICE, SESSION

_SAYS_NOTHING = re.compile(r"(, )?\b\w+=(?:None|\(\)|''|Process\(id=0\))(?=[,)])")
# What other releases of protobuf and zstd say otherwise.
_OF_LIBRARIES = re.compile(r"(?<=does not parse )\(.*\)(?=\.| \(bytes)|(?<=that ncu writes )\(.*?\)")
_OF_KERNEL = (
    *("process", "launch", "function_name", "mangled_name", "nvtx", "metrics", "sections", "rule_results"),
    *("device", "module", "code", "base_address"),
)
_OF_METRIC = ("instances", "instance_count", "by_address")
_NOTHING = re.compile(r"''|\(\)|None|\[\]|\{\}|\[\[\], \[\]\]|Launch\(kind='kernel'\)|(Session\(process=)?Process\(id=0\)\)?")


def transcript(path: Path) -> str:
    """Every question to the report at ``path`` with its answer, a line each; one sentence where it is refused."""
    try:
        with read_report(path) as report:
            answers = {name: answer(ask) for name, ask in _questions(report)}
    except RooflineError as error:
        answers = {"refused": f"{error}"}
    lines = [f"{name}: {said}\n" for name, said in answers.items() if not _NOTHING.fullmatch(said)]
    return _OF_LIBRARIES.sub("...", "".join(lines).replace(f"{path.parent}/", ""))


def answer(ask: Callable[[], object]) -> str:
    try:
        return _SAYS_NOTHING.sub("", repr(ask()))
    except RooflineError as error:
        return f"! {error}"


def _questions(report: Report) -> ItemsView[str, Callable[[], object]]:
    names = sorted(report.metric_names - DEVICE.keys())
    asked: dict[str, Callable[[], object]] = {
        "session": lambda: report.session if report.session != SESSION else "as written",
        "device": lambda: report.device,
        "devices": lambda: report.devices,
        "launches": lambda: len(report.launches()),
        "columns": lambda: report.columns(names),
        "counts": lambda: {name: of for name, of in report.columns_and_instances((), names)[1].items() if any(of)},
    }
    for kernel in report.kernels:
        asked |= {f"{kernel.index} {name}": functools.partial(_told, kernel, name) for name in _OF_KERNEL}
        for name in names:
            asked |= {f"{kernel.index} {one} of {name}": functools.partial(_counts, kernel, one, name) for one in _OF_METRIC}
    return asked.items()


def _told(kernel: Kernel, name: str) -> object:
    found = getattr(kernel, name)
    if name == "metrics":
        return {key: value for key, value in found.items() if key not in DEVICE}
    return found() if callable(found) else found


def _counts(kernel: Kernel, ask: str, name: str) -> object:
    """Instances, none of a metric without any."""
    if not kernel.metrics.has_name(name) or not kernel.metrics.instance_count(name):
        return None
    found = getattr(kernel.metrics, ask)(name)
    return [column.tolist() for column in found] if ask == "by_address" else found
