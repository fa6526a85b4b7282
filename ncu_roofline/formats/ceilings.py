"""Measured ceilings: the JSON that the micro-benchmarks write, read and checked, and those that come with the package.

Schema ``ert-ceilings`` version 1: ``device`` says which GPU, or CPU (``"kind": "cpu"``), ``ceilings`` is a list of
``{"id", "value", "unit", ...}`` in SI units; `data/ceilings.schema.json` has all of it.
A ceiling whose value is null (not on this part), that was not accepted, or whose code path is emulated, is no roof.
``status`` is "measured" (by `bench run`; a file that says nothing is that) or "published": figures of others, each with its
``source``, measured under conditions that nobody can compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import read_file
from ncu_roofline.base.records import inside, misfit, number, parse, short
from ncu_roofline.base.texts import one_line
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, parse_capability
from ncu_roofline.chips.formulas import MOST_OF_THEORY

SCHEMA = "ert-ceilings"
SCHEMA_VERSION = 1
SPARSE = ".sparse"
"""How ids end of ceilings of 2:4 sparse products, in operations of the dense product."""
# Of files of other tools, which do not say on what they were measured, and of CPUs, which have none.
UNKNOWN_CAPABILITY = (0, 0)
# What ceilings are measured on: "kind" of a device, of GPUs where it is missing.
GPU, CPU = "gpu", "cpu"
UNNAMED_CPU = "CPU"  # the device in files of tools that count on CPUs and don't say on which

MEASURED, PUBLISHED = "measured", "published"
NOT_COMPARABLE = "published, conditions not comparable"
"""What is told of published ceilings wherever they are used."""
JUDGES = " (its work per cycle judges)"
"""What is told of the value that launches are held against, where there are others."""
MEASURE_AGAIN = "Measure again where nothing else uses the device."

MOST_BYTES = 200_000_000
"""More than any ceilings file has, thousands of merged GPUs in it: a wrong file must not fill the memory."""
_DATA = Path(__file__).resolve().parents[1] / "data"

# Measured launch latencies, first choice first: back to back in a stream is how applications launch.
_LATENCIES = ("launch.stream", "launch.sync", "launch.graph")
# Least and greatest value that a machine may have; what lies outside is a mistake, and would leave no picture.
_RATES, _SECONDS = (1.0, 1e21), (1e-12, 1e-2)
_SHOWN = 12  # values at a prompt


@dataclass(frozen=True)
class Ceiling:
    """A ceiling: its id, like "dram.read" or "tensor.fp16.wgmma", its unit ("B/s", "FLOP/s", "OP/s" or "s"); where it was
    measured the value in SI units, the SM clock it was measured at in Hz, the kernel (NaN and "" where unknown, as in all that
    follows).

    ``spread`` is the relative standard deviation of its trials; ``per_cycle`` what the whole device does in a cycle of that
    clock, of each trial's own: under a power limit it swings; ``theory`` what the file says that theory gives at that clock,
    and ``share`` what the ceiling is of it, by the cycle; ``peak`` is the theory at the vendor's clock.  The value is what is
    sustained, and judges; where the power limit lowers it, ``burst`` is what is reached before the limit acts, ``limit`` what
    is left when its control has settled.  ``power`` in W.  ``flaw`` is the verdict on one that was not accepted.  ``source``
    says who published it, or what a file of another tool calls it ("" where it was measured by our own benchmark).
    """

    id: str
    value: float = math.nan
    unit: str = ""
    clock: float = math.nan
    variant: str = ""
    spread: float = math.nan
    source: str = ""
    per_cycle: float = math.nan
    theory: float = math.nan
    share: float = math.nan
    peak: float = math.nan
    burst: float = math.nan
    limit: float = math.nan
    power: float = math.nan
    flaw: str = ""

    def __post_init__(self) -> None:
        if (math.isnan(self.per_cycle) or self.impossible) and self.clock > 0:  # its other numbers must not hide a wrong value
            object.__setattr__(self, "per_cycle", self.value / self.clock)

    @property
    def domain(self) -> str:
        """The clock that the benchmark's kernels of it run at: "sm", "memory", "link", or "" for a latency."""
        return {"dram": "memory", "host": "link", "launch": ""}.get(self.id.partition(".")[0], "sm")

    @property
    def kind(self) -> str:
        """ "bandwidth", "compute" or "latency"."""
        return {"B/s": "bandwidth", "s": "latency"}.get(self.unit, "compute")

    @property
    def level(self) -> str:
        """What the id of a bandwidth calls its memory level, "" for others."""
        return self.id.partition(".")[0] if self.unit == "B/s" else ""

    @property
    def regimes(self) -> str:
        """Which of its values judges, for people; "" where it has one alone."""
        burst = self.burst if self.burst > self.value else math.nan
        told = {f"sustained{JUDGES}": self.value, "in a burst": burst, "at the power limit": self.limit}
        unit = {"FLOP/s": "flop/s", "OP/s": "op/s"}.get(self.unit, "byte/s")
        texts = [f"{format_value(value, unit)} {name}" for name, value in told.items() if value > 0]
        return ", ".join(texts) if len(texts) > 1 else ""

    @property
    def impossible(self) -> bool:
        """Whether it is above what its own file says that theory gives, by more than the clock swings."""
        return self.value > MOST_OF_THEORY * self.theory

    @property
    def follows_sm_clock(self) -> bool:
        """Whether it runs at the SM clock: arithmetic, L1 and shared memory."""
        spec = load_spec()
        level = spec.level_of_ceiling(self.id)
        return self.unit in ("FLOP/s", "OP/s") or any(one.id == level and one.domain == "sm" for one in spec.levels)

    @property
    def clock_known(self) -> bool:
        """Whether it is known at which clock it stands: the SM clock, or one that profilers leave alone."""
        return not (self.follows_sm_clock and math.isnan(self.clock))


@dataclass(frozen=True, repr=False)
class Ceilings:
    """The measured ceilings of one GPU, or of a CPU (``kind``).

    ``date``, ``driver`` and ``tool`` (what measured them) are "" where unknown.
    """

    path: str
    device: str
    uuid: str
    compute_capability: tuple[int, int]
    date: str
    by_id: Mapping[str, Ceiling]
    kind: str = GPU
    status: str = MEASURED
    driver: str = ""
    tool: str = ""

    def __repr__(self) -> str:
        head = f"<Ceilings {one_line(self.provenance)}: {len(self.by_id)} values>"
        first = [f"  {one_line(one.id)}  {one.value:.4g} {one.unit}" for one in list(self.by_id.values())[:_SHOWN]]
        rest = [f"  ... and {len(self.by_id) - _SHOWN} more"] if len(self.by_id) > _SHOWN else []
        return "\n".join([head, *first, *rest])

    @property
    def provenance(self) -> str:
        """Which file, GPU and day the values come from, for people."""
        said = NOT_COMPARABLE if self.status == PUBLISHED else ""
        return ", ".join(part for part in (Path(self.path).name, self.device, self.date, said) if part)

    @property
    def source(self) -> str:
        """Who measured them: the program, or what the figures were published in."""
        published = dict.fromkeys(one.source for one in self.by_id.values() if one.source)
        return "; ".join(published) if self.status == PUBLISHED else self.tool

    def applies_to(self, device: str, compute_capability: tuple[int, int]) -> bool:
        """Whether the ceilings were measured on this model of GPU; where they, or a file of another tool that counted on a
        CPU, don't say on which, the user has to know.  Those of a CPU apply to it only: it has no compute capability.
        """
        unnamed = not self.device and self.compute_capability == UNKNOWN_CAPABILITY
        if unnamed or (self.kind == CPU and (device, compute_capability) == (UNNAMED_CPU, UNKNOWN_CAPABILITY)):
            return True
        return self.compute_capability == compute_capability and model_name(self.device) == model_name(device)

    def bandwidth(self, level: str) -> Ceiling | None:
        """The measured bandwidth roof (B/s) of a level: what it can deliver at best, by any of its ceilings."""
        names = (name for one in load_spec().levels if one.id == level for name in one.ceilings)
        found = [self.by_id[name] for name in (*names, level) if name in self.by_id]
        return max(found, key=lambda ceiling: ceiling.value, default=None)

    def by_writes(self, level: str) -> tuple[tuple[float, Ceiling], ...]:
        """The bandwidths of a level by the share of their bytes that they write, where it was measured for several."""
        writes = next((one.writes for one in load_spec().levels if one.id == level), ())
        measured = tuple((share, one) for name, share in writes if (one := self.by_id.get(name)) and not one.impossible)
        return measured if len(measured) > 1 else ()

    def launch_latency(self) -> Ceiling | None:
        """What one launch costs at least (s): back to back in a stream, else with a wait, else in a graph."""
        return next((self.by_id[name] for name in _LATENCIES if name in self.by_id), None)

    def compute(self, roof: str) -> Ceiling | None:
        """The measured compute roof (FLOP/s or OP/s) of a roof id.

        A tensor roof without instruction family (``tensor.fp16``) is the best family measured.  What sparse products reach is
        told as dense operations and no roof of dense ones; theirs (``tensor.fp16.sparse``) is the full-rate family's alone.
        """
        if roof in self.by_id:
            return self.by_id[roof]
        dense, architecture = roof.removesuffix(SPARSE), load_spec().architecture(self.compute_capability)
        if not roof.startswith("tensor.") or dense.count(".") != 1:
            return None
        if dense != roof:
            return self.by_id.get(f"{dense}.{architecture.tensor}{SPARSE}") if architecture else None
        found = [one for name, one in self.by_id.items() if name.startswith(roof + ".") and "sparse" not in name.split(".")]
        return max(found, key=lambda ceiling: ceiling.value, default=None)


def model_name(device: str) -> str:
    """The name under which ceilings and rules know a model of GPU."""
    words = device.replace("NVIDIA", "").replace("Tesla", "").split()
    return " ".join(words).lower()


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Read a measured-ceilings file; values are in FLOP/s, OP/s, B/s and s.

    Raises RooflineError for anything else, with the place in it.

    >>> measured = read_ceilings("gpp-v100-ceilings.json")
    >>> measured.device, measured.by_id["fp64.fma"].value
    ('Tesla V100-SXM2-16GB', 7068860000000.0)
    """
    return ceilings_of(path, read_document(path))


def read_document(path: str | PathLike[str]) -> dict[str, Any]:
    """All that a measured-ceilings file says, whether or not anything was accepted; its texts hold nothing a terminal obeys.

    "device" is an object, "ceilings" a list of objects, each with an "id"; every field that any command reads is missing, null
    or of the type that `bench run` writes, every value lies within what a machine may have.  Raises RooflineError for others.
    """
    try:
        document: dict[str, Any] = parse(read_file(path, MOST_BYTES).decode("utf-8-sig"))
        reason = next(_wrong(document), "")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    if reason:
        next_step = "Give the JSON file that `ncu-roofline bench run` wrote."
        raise RooflineError("Cannot read ceilings", path, reason, next_step)
    return document


def ceilings_of(path: str | PathLike[str], document: Mapping[str, Any]) -> Ceilings:
    """The roofs among what `read_document` gave.  Raises RooflineError where no ceiling was accepted."""
    device, kind = document["device"], document["device"].get("kind") or GPU
    found = [ceiling_of(entry, device) for entry in document["ceilings"] if is_roof(entry)]
    if not found:
        reason = "`bench run` wrote it, but none of its ceilings was accepted"
        raise RooflineError("Cannot use ceilings", path, reason, MEASURE_AGAIN)
    capability = parse_capability(str(device.get("cc"))) if kind == GPU else None
    return Ceilings(
        path=str(path),
        device=device.get("name") or "",
        uuid=device.get("uuid") or "",
        compute_capability=capability or UNKNOWN_CAPABILITY,
        date=(inside(document, "host", "time_utc") or "")[:10],
        by_id={ceiling.id: ceiling for ceiling in found},
        kind=kind,
        status=document.get("status") or MEASURED,
        driver=device.get("driver") or "",
        tool=" ".join(filter(None, (inside(document, "tool", key) for key in ("name", "version")))),
    )


@cache
def registry() -> tuple[Ceilings, ...]:
    """The ceilings that come with the package, one file per model of GPU and status."""
    return tuple(read_ceilings(path) for path in sorted((_DATA / "ceilings").glob("*.json")))


def proven() -> dict[str, frozenset[str]]:
    """Ceilings that were run on real hardware: ids by compute capability ("9.0"), of the registry's measured files."""
    found: dict[str, frozenset[str]] = {}
    for one in registry():
        if one.status == MEASURED and one.kind == GPU:
            capability = capability_text(one.compute_capability)
            found[capability] = found.get(capability, frozenset()) | one.by_id.keys()
    return found


def energy_per_unit(entry: Mapping[str, Any]) -> float | None:
    """Joules per operation or byte of an entry of "ceilings" (J per launch has no use: None), as it says or power over rate."""
    if entry.get("unit") == "s":
        return None
    stated = number(entry.get("energy_per_unit_j"))
    found = stated if stated > 0 else number(entry.get("power_w")) / (number(entry.get("value")) or math.nan)
    return found if found > 0 else None


@cache
def json_schema() -> dict[str, Any]:
    """What the fields are that any command reads."""
    schema: dict[str, Any] = json.loads((_DATA / "ceilings.schema.json").read_text(encoding="utf-8"))
    return schema


def _wrong(document: Any) -> Iterator[str]:
    """What is wrong with a document, the first thing first: what follows it need not hold."""
    document, form = document if isinstance(document, dict) else {}, json_schema()
    named = (document.get("schema"), document.get("schema_version")) == (SCHEMA, SCHEMA_VERSION)
    if not named or any(document.get(key) is None for key in form["required"]):
        what = f'"schema" {SCHEMA}, "schema_version" {SCHEMA_VERSION}, an object "device" and a list "ceilings"'
        yield f"it is no ceilings file: these have {what}"
    where, must, what = misfit(form, document, form["$defs"])[1:].partition(" must ")
    if must:
        yield f'"{where}"{must}{what}'
    device, entries = document["device"], document["ceilings"]
    if device.get("kind") != CPU and parse_capability(str(device.get("cc"))) is None:
        yield f'"device.cc" must read like "9.0", not {short(device.get("cc"))}'
    if not entries:
        yield "it holds no ceiling"
    spec, roofs = load_spec(), set[str]()
    for entry in entries:
        name, value, unit, ends = (entry.get(key) for key in ("id", "value", "unit", "ci95"))
        head = name.partition(".")[0]
        units: tuple[str, ...] = ("B/s", "FLOP/s", "OP/s", "s")
        if spec.level_of_ceiling(name):
            units = units[:1]
        elif head == "tensor":
            units = units[1:3]
        elif any(precision.id == head and precision.unit == "flop" for precision in spec.precisions):
            units = units[1:2]
        least, most = _SECONDS if unit == "s" else _RATES
        if ends and len(ends) == 2 and number(ends[0]) > number(ends[1]):
            yield f"ci95 of {name} must be from its lower to its upper end, not {short(ends)}"
        if value is not None and unit not in units:
            yield f"the unit of {name} must be {' or '.join(units)}, not {short(unit)}"
        if value is not None and not least <= value <= most:
            yield f"the value of {name} must lie between {least:g} and {most:g} {unit}, not {short(value)}"
        if is_roof(entry) and name in roofs:
            yield f"it holds two accepted ceilings {name}"
        if is_roof(entry) and document.get("status") == PUBLISHED and not entry.get("source"):
            yield f'{name} has no "source", and the file says that its figures were published'
        roofs |= {name} if is_roof(entry) else set()


def is_roof(entry: Mapping[str, Any]) -> bool:
    """Whether an entry of "ceilings" is a roof: it has a value that was accepted, of a code path that is not emulated."""
    accepted = entry.get("value") is not None and entry.get("accepted") is not False
    return accepted and "emulated" not in (entry.get("reasons") or [])


def ceiling_of(entry: Mapping[str, Any], device: Mapping[str, Any]) -> Ceiling:
    """An entry of "ceilings" of a file with this "device", accepted or not."""

    def positive(*keys: str, times: float = 1.0) -> float:
        found = number(inside(entry, *keys)) * times
        return found if found > 0 else math.nan  # the one NaN: others would differ from it where ceilings are compared

    value, theory = number(entry.get("value")), positive("theory", "at_measured_clock")
    sms, share = number(device.get("sm_count") or device.get("cores")), positive("theory", "fraction")
    return Ceiling(
        id=entry["id"],
        value=value,
        unit=str(entry.get("unit")),
        clock=positive("clock", "sm_mhz_mean", times=1e6),
        variant=inside(entry, "variant", "kernel") or "",
        spread=number(entry.get("cv")),
        source=entry.get("source") or "",
        per_cycle=positive("per_sm_and_cycle", times=sms),
        theory=math.nan if inside(entry, "theory", "uncertain") else theory,
        share=share if share > 0 else number(value / theory),
        peak=positive("theory", "value"),
        burst=positive("burst", "value"),
        limit=positive("power_limit", "value"),
        power=positive("power_w"),
        flaw=str(entry.get("verdict") or "not accepted") if entry.get("accepted") is False else "",
    )
