"""The chips that sections are checked for, and what they can count, as NVIDIA's metric library says.

It knows which names of metrics are valid, and how many replay passes they take.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import conjoined, expression
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, parse_target
from ncu_roofline.formats.sectionfile.section import arch_number
from ncu_roofline.plugin.check.nvperf import SCHEDULING, CounterRequest, EvalRequest, Library, NvperfError, libraries, used_size

OK, UNKNOWN, BASE, SUFFIX, FOREIGN = "ok", "unknown", "base", "suffix", "foreign"
"""Verdicts on a name: valid; not on this chip; a counter without rollup; a bad suffix; made by Nsight Compute itself."""

# A metric whose value is a constant of the chip depends on this alone, and costs nothing beside others.
_CONSTANT = "0x0000000000000000"
_REPLAY = 1  # NVPA_ACTIVITY_KIND_PROFILER

# Families that Nsight Compute adds to what the library has: launch parameters, source counters, sampling, derived metrics.
_FOREIGN = re.compile(
    r"launch__|device__attribute_|(profiler|context|numa|nvlink|environment|process|session|green_context)__|derived__|sass__"
    r"|smsp__pcsamp_|(thread_)?inst_executed|(group|memory)_|smsp__branch_targets_threads_|branch_inst_executed"
    r"|(\w+\.)?Triage|(sm|smsp)__maximum_warps_|smsp__sass_(inst|thread_inst)_executed\w*$"
)


class Passes(NamedTuple):
    """Replay passes of a list of metrics: of hardware counters, and of instruction patching (all in one).

    Nsight Compute itself reports one more.
    """

    hardware: int
    sass: int

    @property
    def total(self) -> int:
        """Both kinds never share a pass."""
        return self.hardware + self.sass

    def __str__(self) -> str:
        return f"{self.total} ({self.hardware}+{self.sass})"


class Chip:
    """One chip in one library.  Raises NvperfError if the library has it by name only."""

    def __init__(self, library: Library, name: str) -> None:
        self.name = name
        self._library = library
        self._chip = name.encode()
        size = library.call("CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=self._chip).bytes
        self._scratch = (ctypes.c_uint8 * size)()  # must outlive the evaluator
        self._evaluator = library.call(
            "CUDA_MetricsEvaluator_Initialize", scratch=ctypes.addressof(self._scratch), bytes=size, chip=self._chip
        ).evaluator
        self._needs: dict[str, tuple[str, ...]] = {}
        self._patched: dict[str, bool] = {}

    def verdict(self, name: str) -> str:
        """Whether `name`, as a section writes it, can be collected: OK, UNKNOWN, BASE, SUFFIX or FOREIGN."""
        prefix, _, bare = name.rpartition(":")
        if prefix == "regex":
            return self._matching(bare)
        if prefix in ("group", "pmsampling"):  # resolved by Nsight Compute; names of samplers are not in the library
            return FOREIGN
        if self._request(bare) is not None:
            return OK
        if self._is_base(bare):
            if prefix.startswith("breakdown"):
                return OK
            return FOREIGN if _FOREIGN.match(bare) else SUFFIX if "." in bare else BASE
        return FOREIGN if _FOREIGN.match(bare) else UNKNOWN

    def _matching(self, pattern: str) -> str:
        try:
            found = expression(pattern)
        except ValueError:
            return FOREIGN  # Nsight Compute's dialect, not Python's
        return OK if any(map(found.search, self.names)) else UNKNOWN

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Base names of all metrics."""
        result = []
        for kind in (0, 1, 2):  # counter, ratio, throughput
            found = self._library.call("MetricsEvaluator_GetMetricNames", evaluator=self._evaluator, kind=kind)
            starts = (ctypes.c_size_t * found.count).from_address(found.starts)
            result += [ctypes.string_at(found.names + start).decode() for start in starts]
        return tuple(result)

    def _is_base(self, name: str) -> bool:
        with suppress(NvperfError):
            self._library.call("MetricsEvaluator_GetMetricTypeAndIndex", evaluator=self._evaluator, name=name.encode())
            return True
        return False

    def _request(self, name: str) -> EvalRequest | None:
        request, function = EvalRequest(), "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest"
        values = {"request": ctypes.addressof(request), "request_bytes": used_size(EvalRequest)}
        with suppress(NvperfError):
            self._library.call(function, evaluator=self._evaluator, name=name.encode(), **values)
            return request
        return None

    def passes(self, names: Iterable[str]) -> Passes | None:
        """Replay passes of those of `names` that the chip has; None where the library can't schedule this chip."""
        counters = dict.fromkeys(counter for name in names for counter in self._counters(name.removeprefix("breakdown:")))
        counters.pop(_CONSTANT, None)
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
                needed, _ = self._library.listed(
                    "MetricsEvaluator_GetMetricRawDependencies",
                    {"needed": ("count", ctypes.c_char_p), "optional": ("optional_count", ctypes.c_char_p)},
                    evaluator=self._evaluator,
                    requests=ctypes.addressof(request),
                    request_count=1,
                    request_bytes=used_size(EvalRequest),
                    stride=ctypes.sizeof(EvalRequest),
                )
            self._needs[name] = tuple(one.decode() for one in needed if one is not None)
        return self._needs[name]

    def _is_patched(self, counter: str) -> bool:
        """Whether a raw counter is collected by instruction patching."""
        if counter not in self._patched:
            self._patched[counter] = False
            with suppress(NvperfError):  # some counters of 12.x: they are scheduled, but their domain is not told
                single, group = self._library.listed(
                    "RawCounterConfig_GetRawCounterProperties",
                    {"domains": ("count", ctypes.c_uint32), "group_domains": ("group_count", ctypes.c_uint32)},
                    config=self._probe,
                    counter=counter.encode(),
                )
                name_of = "RawCounterConfig_RawCounterDomainToString"
                names = [self._library.call(name_of, domain=domain).name for domain in single or group]
                self._patched[counter] = b"gpu_sass" in names
        return self._patched[counter]

    @cached_property
    def _probe(self) -> int:
        """A configuration kept open to ask about counters."""
        return self._open()[0]

    def _open(self) -> tuple[int, ctypes.Array[ctypes.c_uint32]]:
        """A new configuration with one pass group over all domains."""
        if not self._library.has(SCHEDULING):
            raise NvperfError("the library is older than CUDA 12")
        config = self._library.call(SCHEDULING, chip=self._chip, activity=_REPLAY).config
        function = "RawCounterConfig_GetAllAvailableRawCounterDomains"
        (found,) = self._library.listed(function, {"domains": ("count", ctypes.c_uint32)}, config=config)
        domains = (ctypes.c_uint32 * len(found))(*found)
        self._group("Begin", config, domains)
        return config, domains

    def _group(self, what: str, config: int, domains: ctypes.Array[ctypes.c_uint32]) -> None:
        address = ctypes.addressof(domains) if len(domains) else None
        self._library.call(f"RawCounterConfig_{what}PassGroup", config=config, count=len(domains), domains=address)

    def _schedule(self, counters: list[str]) -> int:
        if not counters:
            return 0
        config, domains = self._open()
        requests = (CounterRequest * len(counters))()
        for request, counter in zip(requests, counters, strict=True):
            request.counter, request.keep_instances = counter.encode(), 1
        values = {"count": len(counters), "requests": ctypes.addressof(requests)}
        try:
            self._library.call(
                "RawCounterConfig_AddRawCounters", config=config, request_bytes=used_size(CounterRequest), **values
            )
            self._group("End", config, domains)
            return int(self._library.call("RawCounterConfig_GetNumPasses", config=config).passes)
        finally:
            self._library.call("RawCounterConfig_Destroy", config=config)


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
    return tuple(
        Target(chip, architecture.compute_capability)
        for architecture in load_spec().architectures
        for chip in architecture.chips
    )


def default_targets() -> tuple[Target, ...]:
    """One chip for each compute capability: the largest."""
    return tuple(Target(architecture.chips[0], architecture.compute_capability) for architecture in load_spec().architectures)


def targets_of(names: Sequence[str]) -> tuple[Target, ...]:
    """The chips that `names` mean: chips (GH100), compute capabilities (9.0, sm_90), products (H100) or "all"; none is default.

    Raises RooflineError for a name that means nothing.
    """
    if not names:
        return default_targets()
    return tuple(dict.fromkeys(target for name in names for target in _meant(name)))


def _meant(name: str) -> Iterable[Target]:
    if name.lower() == "all":
        return all_targets()
    found = [target for target in all_targets() if target.chip == name.upper()]
    if not found:
        capability = parse_target(name)
        models = (one for one in load_spec().architectures if name.lower() in map(str.lower, one.products))
        capabilities = (capability, *(one.compute_capability for one in models))
        found = [target for target in default_targets() if target.capability in capabilities][:1]
    if not found:
        reason = "it is neither a chip nor a compute capability nor a product known"
        raise RooflineError("Cannot use --chip", name, reason, "See `ncu-roofline list architectures`.")
    return found


def capabilities(targets: Iterable[Target], everyone: Sequence[Target]) -> str:
    """Compute capabilities for people: "8.7 and 12.1", or "every chip checked" for all of them."""
    found = sorted({target.capability for target in targets})
    if len(found) > 1 and len(found) == len({target.capability for target in everyone}):
        return "every chip checked"
    return f"compute capability {conjoined([capability_text(one) for one in found])}"
