"""Names of the metrics that are written into reports, and in words how each came about.

Nsight Compute guesses units from words in names: "bytes" and ".pct" are welcome; second, cycle and inst would mislead.  It
takes braces out of labels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.chips import Binding, Level, Precision, Spec
from ncu_roofline.chips.formula import WeightedSum, twin
from ncu_roofline.chips.metric_names import PEAK, PREFIX, TRAFFIC_RATE, WORK_RATE, braced, slug
from ncu_roofline.model.measurements import Origin
from ncu_roofline.model.opcodes import OPCODES

MARK = f"{PREFIX}annotated_by"
CLOCK = f"{PREFIX}clock"
# Forms of a counter, the longest first, and how each becomes the number of the whole launch or GPU.
_COUNTS = {
    ".sum.per_cycle_elapsed": " x cycles of the run",
    ".sum.per_second": " x run time",
    ".sum": "",
}
_MARKS = ("[", "|", "]")
_PEAKS = {".sum.peak_sustained": "", ".avg.peak_sustained": " x L2 slices"}


def work(precision: str) -> str:
    """Operations of the launch."""
    return f"{PREFIX}work_{slug(precision)}"


def work_rate(precision: str) -> str:
    """Operations per second."""
    return f"{PREFIX}{WORK_RATE}{slug(precision)}"


def giga_rate(precision: str) -> str:
    """Thousand million operations per second, for people."""
    return f"{PREFIX}performance_{slug(precision)}"


def traffic(level: str) -> str:
    """Bytes of the launch."""
    return f"{PREFIX}bytes_{slug(level)}"


def traffic_rate(level: str) -> str:
    """Bytes per second."""
    return f"{PREFIX}{TRAFFIC_RATE}{slug(level)}"


def peak(roof: str) -> str:
    """A roof (compute roof id or level id) in operations or bytes per cycle of `CLOCK`."""
    return f"{PREFIX}{PEAK}{slug(roof)}"


def intensity(precision: str, level: str) -> str:
    """Operations per byte."""
    return f"{PREFIX}intensity_{slug(precision)}_{slug(level)}"


def origin(identifier: str) -> str:
    """How the work of a precision or the traffic of a level was counted, as text."""
    return f"{PREFIX}from_{slug(identifier)}"


def attained(precision: str) -> str:
    """Performance in percent of what the lowest roof allows."""
    return f"{PREFIX}attained_{slug(precision)}.pct"


def bound_by(precision: str) -> str:
    """The roof that binds, as text."""
    return f"{PREFIX}bound_by_{slug(precision)}"


def count_text(spec: Spec, item: Precision | Level, capability: tuple[int, int], origin: Origin) -> str:
    """How work or traffic was counted: "a__[add|mul].sum + 2 x a__fma.sum (binding)"."""
    if origin.source == OPCODES:
        return f"{origin.metrics}, each opcode x what it does ({_source(origin)})"
    metrics = tuple(origin.metrics.split(", "))
    suffix, how = _form(metrics, _COUNTS)
    sums = [binding.counters for binding in spec.bindings(item, capability) if binding.source == origin.source]
    return f"{_formula(metrics, suffix, sums)}{how} ({_source(origin)})"


def roof_text(spec: Spec, item: Precision | Level, capability: tuple[int, int], origin: Origin) -> str:
    """Where a theoretical roof comes from: "2 x a__fma.sum.peak_sustained x sm clock (binding)"."""
    if origin.source == "architecture":
        return f"{origin.metrics} ({_source(origin)})"
    metrics = tuple(origin.metrics.split(", "))
    suffix, how = _form(metrics, _PEAKS)
    bindings = [binding for binding in spec.bindings(item, capability) if binding.peak and binding.source == origin.source]
    formula = _formula(metrics, suffix, [binding.peak for binding in bindings if binding.peak])
    return f"{formula}{how} x {_clock(bindings, metrics)} clock ({_source(origin)})"


def _form(metrics: Sequence[str], forms: dict[str, str]) -> tuple[str, str]:
    return next(((suffix, how) for suffix, how in forms.items() if all(name.endswith(suffix) for name in metrics)), ("", ""))


def _formula(metrics: Sequence[str], suffix: str, sums: Sequence[WeightedSum]) -> str:
    """The metrics with the weights that the spec gives them; terms of one weight together."""
    counters = tuple(name.removesuffix(suffix) for name in metrics)
    found = (one for one in sums if counters in (one.counters(), tuple(twin(name) or name for name in one.counters())))
    weights = next((tuple(weight for _, weight in one.terms) for one in found), None)
    if weights is None:
        return " + ".join(metrics)
    groups: dict[float, list[str]] = {}
    for name, weight in zip(metrics, weights, strict=True):
        groups.setdefault(weight, []).append(name)
    return " + ".join(_weighted(weight, names) for weight, names in groups.items())


def _weighted(weight: float, names: Sequence[str]) -> str:
    text = braced(names, _MARKS)
    if ", " in text:  # nothing in common
        text = f"({' + '.join(names)})" if weight != 1 else " + ".join(names)
    return text if weight == 1 else f"{weight:g} x {text}"


def _clock(bindings: Sequence[Binding], metrics: Sequence[str]) -> str:
    counters = {name.partition(".")[0] for name in metrics}
    return next((binding.clock for binding in bindings if binding.peak and set(binding.peak.counters()) == counters), "its own")


def _source(origin: Origin) -> str:
    return f"{origin.source}: {origin.note}" if origin.note else origin.source
