"""NVIDIA's metric library, libnvperf_host: where it is, and calls into it.

The library comes with every CUDA toolkit, with the PyPI package nvidia-cuda-cupti and with Nsight Compute, and works without a
GPU or a driver.  Its interface is documented in nvperf_host.h and nvperf_cuda_host.h: every function takes one structure that
starts with its own size.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

VARIABLE = "NCU_ROOFLINE_NVPERF_LIB"
HOW_TO_GET = "no libnvperf_host here, so metric names and passes are not checked: pip install nvidia-cuda-cupti"
"""What to tell users where the library is absent."""

_FILES = ("libnvperf_host.so", "nvperf_host.dll")
_IN_TOOLKIT = ("extras/CUPTI/lib64", "lib64", "lib", "bin")
_IN_PACKAGES = ("nvidia/cu[0-9]*/lib", "nvidia/cuda_cupti/lib", "nvidia/cuda_cupti/bin", "ncu_report")
_IN_NSIGHT = ("host/*", "target/*")
_TOOLKITS = ("/usr/local/cuda", "/usr/local/cuda-*")
_NSIGHTS = (
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/cuda*/nsight-compute-*",
    "/usr/lib/nsight-compute",
    "/usr/lib/*/nsight-compute",
)

_TYPES: dict[str, Any] = {
    "size": ctypes.c_size_t,
    "pointer": ctypes.c_void_p,
    "text": ctypes.c_char_p,
    "texts": ctypes.POINTER(ctypes.c_char_p),
    "u8": ctypes.c_uint8,
    "u32": ctypes.c_uint32,
}

# Parameters behind structSize and pPriv, in the order of the headers; none of their names is checked by the library.
_FUNCTIONS = {
    "InitializeHost": "",
    "GetSupportedChipNames": "names:texts count:size",
    "CUDA_MetricsEvaluator_CalculateScratchBufferSize": "chip:text availability:pointer bytes:size",
    "CUDA_MetricsEvaluator_Initialize": (
        "scratch:pointer bytes:size chip:text availability:pointer counters:pointer counters_bytes:size evaluator:pointer"
    ),
    "MetricsEvaluator_GetMetricNames": "evaluator:pointer kind:u8 names:pointer starts:pointer count:size",
    "MetricsEvaluator_GetMetricTypeAndIndex": "evaluator:pointer name:text kind:u8 index:size",
    "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest": "evaluator:pointer name:text request:pointer request_bytes:size",
    "MetricsEvaluator_GetMetricRawDependencies": (
        "evaluator:pointer requests:pointer request_count:size request_bytes:size stride:size"
        " needed:pointer count:size optional:pointer optional_count:size"
    ),
    "CUDA_RawCounterConfig_Create": "chip:text availability:pointer activity:u32 config:pointer",
    "RawCounterConfig_Destroy": "config:pointer",
    "RawCounterConfig_GetAllAvailableRawCounterDomains": "config:pointer count:size domains:pointer",
    "RawCounterConfig_RawCounterDomainToString": "domain:u32 name:text",
    "RawCounterConfig_BeginPassGroup": "config:pointer count:size domains:pointer",
    "RawCounterConfig_EndPassGroup": "config:pointer count:size domains:pointer",
    "RawCounterConfig_GetRawCounterProperties": (
        "config:pointer counter:text count:size domains:pointer group_count:size group_domains:pointer"
    ),
    "RawCounterConfig_AddRawCounters": "config:pointer request_bytes:size count:size requests:pointer",
    "RawCounterConfig_GetNumPasses": "config:pointer passes:size",
}
SCHEDULING = "CUDA_RawCounterConfig_Create"
_NEEDED = "CUDA_MetricsEvaluator_Initialize"


class NvperfError(Exception):
    """A call that the library refused: the function and its status."""


class EvalRequest(ctypes.Structure):
    """NVPW_MetricEvalRequest."""

    _fields_ = [("index", ctypes.c_size_t), ("kind", ctypes.c_uint8), ("rollup", ctypes.c_uint8), ("sub", ctypes.c_uint16)]


class CounterRequest(ctypes.Structure):
    """NVPW_RawCounterRequest."""

    _fields_ = [
        ("private", ctypes.c_void_p),
        ("counter", ctypes.c_char_p),
        ("domain", ctypes.c_uint32),
        ("keep_instances", ctypes.c_uint8),
    ]


def used_size(structure: type[ctypes.Structure]) -> int:
    """Bytes up to the end of the last field: what the library takes for a structure's size, padding excluded."""
    last = getattr(structure, structure._fields_[-1][0])
    return int(last.offset + last.size)


@cache
def _parameters(function: str) -> type[ctypes.Structure]:
    pairs = [entry.split(":") for entry in _FUNCTIONS[function].split()]
    fields = [("structSize", ctypes.c_size_t), ("pPriv", ctypes.c_void_p), *((name, _TYPES[kind]) for name, kind in pairs)]
    return type(f"{function}_Params", (ctypes.Structure,), {"_fields_": fields})


class Library:
    """One loaded library and the chips it knows.  Raises OSError or NvperfError for a file that is none, or is too old."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._functions = ctypes.CDLL(path)
        if not self.has(_NEEDED):
            raise NvperfError("the library is older than CUDA 11.5")
        self.call("InitializeHost")
        found = self.call("GetSupportedChipNames")
        self.chips = tuple(found.names[index].decode() for index in range(found.count))

    def has(self, function: str) -> bool:
        """Whether the library offers a function."""
        return hasattr(self._functions, f"NVPW_{function}")

    def call(self, function: str, **values: Any) -> Any:
        """Call a function of `_FUNCTIONS`; returns its parameters, filled in.  Raises NvperfError for a refusal."""
        structure = _parameters(function)
        parameters = structure(structSize=used_size(structure), **values)
        status = getattr(self._functions, f"NVPW_{function}")(ctypes.byref(parameters))
        if status:
            raise NvperfError(f"{function}: status {status}")
        return parameters

    def listed(self, function: str, arrays: Mapping[str, tuple[str, Any]], **values: Any) -> list[list[Any]]:
        """What a function lists: it is asked how much that is, then once more with room for it.

        ``arrays`` are parameters for arrays, with the parameter for their length and their type.
        """
        counts = self.call(function, **values)
        rooms = {name: (kind * getattr(counts, count))() for name, (count, kind) in arrays.items()}
        for name, room in rooms.items():
            values |= {arrays[name][0]: len(room), name: ctypes.addressof(room) if len(room) else None}
        self.call(function, **values)
        return [list(room) for room in rooms.values()]


@cache
def libraries() -> tuple[Library, ...]:
    """Every usable library of this machine, or those that $NCU_ROOFLINE_NVPERF_LIB names (files, separated as in PATH).

    There may be several because newer ones drop old chips (Volta: up to CUDA 13.0).  Those of before CUDA 12 come last: they
    know names, but not passes.
    """
    loaded = []
    for path in find_libraries():
        with suppress(OSError, NvperfError):
            loaded.append(Library(path))
    return tuple(sorted(loaded, key=lambda library: not library.has(SCHEDULING)))


def find_libraries() -> list[str]:
    """Paths of the library, each file once, Python's packages first."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return [path for path in named.split(os.pathsep) if path]
    ncu = shutil.which("ncu")
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    # ncu is a wrapper script in the folder that holds target/, or the program itself inside it
    around = list(map(str, Path(ncu).resolve().parents[:3])) if ncu else []
    places = (
        (map(glob.escape, dict.fromkeys(filter(None, sys.path))), _IN_PACKAGES),
        ((*map(glob.escape, homes), *_TOOLKITS), _IN_TOOLKIT),
        ((*_NSIGHTS, *map(glob.escape, around)), _IN_NSIGHT),
    )
    patterns = (
        f"{root}/{inside}/{file}" for roots, insides in places for root in roots for inside in insides for file in _FILES
    )
    return list(dict.fromkeys(os.path.realpath(path) for one in patterns for path in sorted(glob.glob(one), reverse=True)))
