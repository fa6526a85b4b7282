"""The chips that sections are checked for, and what they can count, as NVIDIA's metric library, libnvperf_host, says.

It knows which names of metrics are valid, and how many replay passes they take.  It comes with every CUDA toolkit, with the
PyPI package nvidia-cuda-cupti and with Nsight Compute, and works without a GPU or a driver.  Its interface is documented in
nvperf_host.h and nvperf_cuda_host.h: every function takes one structure that starts with its own size.
"""

from __future__ import annotations

import ctypes
import glob
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import conjoined, expression
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, parse_target, table
from ncu_roofline.formats.sectionfile.section import arch_number

VARIABLE = "NCU_ROOFLINE_NVPERF_LIB"
HOW_TO_GET = "no libnvperf_host here, so metric names and passes are not checked: pip install nvidia-cuda-cupti"
"""What to tell users where the library is absent."""
OK, UNKNOWN, BASE, SUFFIX, FOREIGN = "ok", "unknown", "base", "suffix", "foreign"
"""Verdicts on a name: valid; not on this chip; a counter without rollup; a bad suffix; made by Nsight Compute itself."""

_TYPES: dict[str, Any] = {"size": ctypes.c_size_t, "pointer": ctypes.c_void_p, "text": ctypes.c_char_p}
_TYPES |= {"texts": ctypes.POINTER(ctypes.c_char_p), "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32}


class _Interface(NamedTuple):
    functions: Mapping[str, str]


_load_interface = table("nvperf.toml", _Interface)
SCHEDULING = "CUDA_RawCounterConfig_Create"


class NvperfError(Exception):
    """A call that the library refused: the function and its status."""


@cache
def _structure(name: str, text: str) -> type[ctypes.Structure]:
    pairs = (entry.split(":") for entry in text.split())
    return type(name, (ctypes.Structure,), {"_fields_": [(field, _TYPES[kind]) for field, kind in pairs]})


EvalRequest = _structure("NVPW_MetricEvalRequest", "index:size kind:u8 rollup:u8 sub:u16")
CounterRequest = _structure("NVPW_RawCounterRequest", "private:pointer counter:text domain:u32 keep_instances:u8")


def used_size(structure: type[ctypes.Structure]) -> int:
    """Bytes up to the end of the last field: what the library takes for a structure's size, padding excluded."""
    last = getattr(structure, structure._fields_[-1][0])
    return int(last.offset + last.size)


class Library:
    """One loaded library and the chips it knows.  Raises OSError or NvperfError for a file that is none, or is too old."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._functions = ctypes.CDLL(path)
        if not self.has("CUDA_MetricsEvaluator_Initialize"):
            raise NvperfError("the library is older than CUDA 11.5")
        self.call("InitializeHost")
        found = self.call("GetSupportedChipNames")
        self.chips = tuple(found.names[index].decode() for index in range(found.count))

    def has(self, function: str) -> bool:
        """Whether the library offers a function."""
        return hasattr(self._functions, f"NVPW_{function}")

    def call(self, function: str, **values: Any) -> Any:
        """Call a function of `data/nvperf.toml`; returns its parameters, filled in.  Raises NvperfError for a refusal."""
        structure = _structure(f"{function}_Params", f"structSize:size pPriv:pointer {_load_interface().functions[function]}")
        parameters: Any = structure(structSize=used_size(structure), **values)
        status = getattr(self._functions, f"NVPW_{function}")(ctypes.byref(parameters))
        if status:
            raise NvperfError(f"{function}: status {status}")
        return parameters

    def listed(self, function: str, arrays: Mapping[str, tuple[str, Any]], **values: Any) -> list[list[Any]]:
        """What a function lists, asked how much that is, then once more; ``arrays``: parameters with those of their length,
        and their type."""
        counts = self.call(function, **values)
        rooms = {name: (kind * getattr(counts, count))() for name, (count, kind) in arrays.items()}
        for name, room in rooms.items():
            values |= {arrays[name][0]: len(room), name: ctypes.addressof(room) if len(room) else None}
        self.call(function, **values)
        return [list(room) for room in rooms.values()]


@cache
def libraries() -> tuple[Library, ...]:
    """Every usable library of this machine, or those that $NCU_ROOFLINE_NVPERF_LIB names (files, separated as in PATH): newer
    ones drop old chips (Volta: up to CUDA 13.0), those of before CUDA 12 come last: they know names, but not passes."""
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
    packages = ("nvidia/cu[0-9]*/lib", "nvidia/cuda_cupti/lib", "nvidia/cuda_cupti/bin", "ncu_report")
    nsights = ("/opt/nvidia/nsight-compute/*", "/usr/local/cuda*/nsight-compute-*", "/usr/lib/nsight-compute")
    places: tuple[tuple[Iterable[str], tuple[str, ...]], ...] = (
        (map(glob.escape, dict.fromkeys(filter(None, sys.path))), packages),
        ((*map(glob.escape, homes), "/usr/local/cuda", "/usr/local/cuda-*"), ("extras/CUPTI/lib64", "lib64", "lib", "bin")),
        ((*nsights, "/usr/lib/*/nsight-compute", *map(glob.escape, around)), ("host/*", "target/*")),
    )
    folders = (f"{root}/{inside}" for roots, insides in places for root in roots for inside in insides)
    patterns = (f"{folder}/{file}" for folder in folders for file in ("libnvperf_host.so", "nvperf_host.dll"))
    return list(dict.fromkeys(os.path.realpath(path) for one in patterns for path in sorted(glob.glob(one), reverse=True)))


class Passes(NamedTuple):
    """Replay passes of metrics: of hardware counters, and of instruction patching; Nsight Compute itself reports one more."""

    hardware: int
    sass: int

    @property
    def total(self) -> int:
        """Both kinds never share a pass."""
        return self.hardware + self.sass

    def __str__(self) -> str:
        return f"{self.total} ({self.hardware}+{self.sass})"


# Families that Nsight Compute adds to what the library has: launch parameters, source counters, sampling, derived metrics.
_FOREIGN = (
    r"launch__|device__attribute_|(profiler|context|numa|nvlink|environment|process|session|green_context)__|derived__|sass__"
    r"|smsp__pcsamp_|(thread_)?inst_executed|(group|memory)_|smsp__branch_targets_threads_|branch_inst_executed"
    r"|(\w+\.)?Triage|(sm|smsp)__maximum_warps_|smsp__sass_(inst|thread_inst)_executed\w*$"
)


class Chip:
    """One chip in one library.  Raises NvperfError if the library has it by name only."""

    def __init__(self, library: Library, name: str) -> None:
        self.name, self._call, self._listed, self._chip = name, library.call, library.listed, name.encode()
        self._schedules = library.has(SCHEDULING)
        size = self._call("CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=self._chip).bytes
        self._scratch = (ctypes.c_uint8 * size)()  # must outlive the evaluator
        where = ctypes.addressof(self._scratch)
        self._evaluator = self._call("CUDA_MetricsEvaluator_Initialize", scratch=where, bytes=size, chip=self._chip).evaluator
        self._needs: dict[str, tuple[str, ...]] = {}
        self._patched: dict[str, bool] = {}

    def verdict(self, name: str) -> str:
        """Whether `name`, as a section writes it, can be collected: OK, UNKNOWN, BASE, SUFFIX or FOREIGN."""
        prefix, _, bare = name.rpartition(":")
        if prefix == "regex":
            try:
                found = expression(bare)
            except ValueError:
                return FOREIGN  # Nsight Compute's dialect, not Python's
            return OK if any(map(found.search, self.names)) else UNKNOWN
        if prefix in ("group", "pmsampling"):  # resolved by Nsight Compute; names of samplers are not in the library
            return FOREIGN
        if self._request(bare) is not None:
            return OK
        is_base, foreign = False, re.match(_FOREIGN, bare)
        with suppress(NvperfError):
            self._call("MetricsEvaluator_GetMetricTypeAndIndex", evaluator=self._evaluator, name=bare.encode())
            is_base = True
        if is_base and prefix.startswith("breakdown"):
            return OK
        return FOREIGN if foreign else UNKNOWN if not is_base else SUFFIX if "." in bare else BASE

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Base names of all metrics."""
        result = []
        for kind in (0, 1, 2):  # counter, ratio, throughput
            found = self._call("MetricsEvaluator_GetMetricNames", evaluator=self._evaluator, kind=kind)
            starts = (ctypes.c_size_t * found.count).from_address(found.starts)
            result += [ctypes.string_at(found.names + start).decode() for start in starts]
        return tuple(result)

    def _request(self, name: str) -> ctypes.Structure | None:
        request, function = EvalRequest(), "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest"
        values = {"request": ctypes.addressof(request), "request_bytes": used_size(EvalRequest)}
        with suppress(NvperfError):
            self._call(function, evaluator=self._evaluator, name=name.encode(), **values)
            return request
        return None

    def passes(self, names: Iterable[str]) -> Passes | None:
        """Replay passes of those of `names` that the chip has; None where the library can't schedule this chip."""
        counters = dict.fromkeys(counter for name in names for counter in self._counters(name.removeprefix("breakdown:")))
        # A metric whose value is a constant of the chip depends on this alone, and costs nothing beside others.
        counters.pop("0x0000000000000000", None)
        try:
            patched = [counter for counter in counters if self._is_patched(counter)]
            hardware = self._schedule([counter for counter in counters if counter not in patched])
            return Passes(hardware, self._schedule(patched))
        except NvperfError:
            return None

    def _counters(self, name: str) -> tuple[str, ...]:
        """Raw counters that a metric needs, in the library's order: the scheduler is greedy, so order matters a little."""
        if name not in self._needs:
            request, needed = self._request(name), list[bytes]()
            if request is not None:
                arrays = {"needed": ("count", ctypes.c_char_p), "optional": ("optional_count", ctypes.c_char_p)}
                values = {"requests": ctypes.addressof(request), "request_bytes": used_size(EvalRequest), "request_count": 1}
                values |= {"evaluator": self._evaluator, "stride": ctypes.sizeof(EvalRequest)}
                needed, _ = self._listed("MetricsEvaluator_GetMetricRawDependencies", arrays, **values)
            self._needs[name] = tuple(one.decode() for one in needed if one is not None)
        return self._needs[name]

    def _is_patched(self, counter: str) -> bool:
        """Whether a raw counter is collected by instruction patching."""
        if counter not in self._patched:
            self._patched[counter] = False
            with suppress(NvperfError):  # some counters of 12.x: they are scheduled, but their domain is not told
                arrays = {"domains": ("count", ctypes.c_uint32), "group_domains": ("group_count", ctypes.c_uint32)}
                config, function = self._probe[0], "RawCounterConfig_GetRawCounterProperties"
                single, group = self._listed(function, arrays, config=config, counter=counter.encode())
                name_of = "RawCounterConfig_RawCounterDomainToString"
                names = [self._call(name_of, domain=domain).name for domain in single or group]
                self._patched[counter] = b"gpu_sass" in names
        return self._patched[counter]

    @cached_property
    def _probe(self) -> tuple[int, dict[str, Any]]:
        """A configuration kept open to ask about counters."""
        return self._open()

    def _open(self) -> tuple[int, dict[str, Any]]:
        """A new configuration with one pass group over all domains, and what begins and ends that."""
        if not self._schedules:
            raise NvperfError("the library is older than CUDA 12")
        config = self._call(SCHEDULING, chip=self._chip, activity=1).config  # NVPA_ACTIVITY_KIND_PROFILER
        function = "RawCounterConfig_GetAllAvailableRawCounterDomains"
        (found,) = self._listed(function, {"domains": ("count", ctypes.c_uint32)}, config=config)
        group = {"config": config, "count": len(found), "domains": (ctypes.c_uint32 * len(found))(*found)}
        self._group("Begin", group)
        return config, group

    def _group(self, what: str, group: dict[str, Any]) -> None:
        address = ctypes.addressof(group["domains"]) if group["count"] else None
        self._call(f"RawCounterConfig_{what}PassGroup", **{**group, "domains": address})

    def _schedule(self, counters: list[str]) -> int:
        if not counters:
            return 0
        config, group = self._open()
        requests: Any = (CounterRequest * len(counters))()
        for request, counter in zip(requests, counters, strict=True):
            request.counter, request.keep_instances = counter.encode(), 1
        values = {"count": len(counters), "requests": ctypes.addressof(requests), "request_bytes": used_size(CounterRequest)}
        try:
            self._call("RawCounterConfig_AddRawCounters", config=config, **values)
            self._group("End", group)
            return int(self._call("RawCounterConfig_GetNumPasses", config=config).passes)
        finally:
            self._call("RawCounterConfig_Destroy", config=config)


@cache
def chip(name: str) -> Chip | None:
    """The chip of a name (GH100) in the first library that knows it; None where none does."""
    for library in libraries():
        if name in library.chips:
            with suppress(NvperfError):
                return Chip(library, name)
    return None


def passes(name: str, metrics: Iterable[str]) -> Passes | None:
    """Replay passes of a metric list on a chip; None without a library that knows the chip."""
    found = chip(name)
    return found.passes(metrics) if found else None


class Target(NamedTuple):
    """A chip (GH100) and its compute capability."""

    chip: str
    capability: tuple[int, int]

    @property
    def arch(self) -> int:
        """The number that sections use."""
        return arch_number(self.capability)


def all_targets() -> tuple[Target, ...]:
    """Every chip known."""
    return tuple(Target(chip, one.compute_capability) for one in load_spec().architectures for chip in one.chips)


def default_targets() -> tuple[Target, ...]:
    """One chip for each compute capability: the largest."""
    return tuple(Target(one.chips[0], one.compute_capability) for one in load_spec().architectures)


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The chips that `names` mean: chips (GH100), compute capabilities (9.0, sm_90), products (H100) or "all"; none is default.

    Raises RooflineError for a name that means nothing.
    """
    found: list[Target] = []
    for name in names:
        meant = [target for target in all_targets() if name.lower() in ("all", target.chip.lower())]
        if not meant:
            models = (one for one in load_spec().architectures if name.lower() in map(str.lower, one.products))
            capabilities = (parse_target(name), *(one.compute_capability for one in models))
            meant = [target for target in default_targets() if target.capability in capabilities][:1]
        if not meant:
            reason = "no chip, compute capability or product has this name"
            raise RooflineError("Cannot use --chip", name, reason, "See `ncu-roofline list architectures`.")
        found += meant
    return tuple(dict.fromkeys(found)) if names else default_targets()


def capabilities(targets: Iterable[Target], everyone: Sequence[Target]) -> str:
    """Compute capabilities for people: "8.7 and 12.1", or "every chip checked" for all of them."""
    found = sorted({target.capability for target in targets})
    if len(found) > 1 and len(found) == len({target.capability for target in everyone}):
        return "every chip checked"
    return f"compute capability {conjoined([capability_text(one) for one in found])}"
