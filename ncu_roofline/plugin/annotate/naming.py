"""Names of the metrics that are written into reports, and in words how each came about.

Nsight Compute guesses units from words in names: "bytes" and ".pct" are welcome; second, cycle and inst would mislead.  It
takes braces out of labels.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncu_roofline.chips import Level, Precision, Spec
from ncu_roofline.chips.formula import WeightedSum, twin
from ncu_roofline.chips.metric_names import PREFIX, braced, slug
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
_PEAKS = {".sum.peak_sustained": "", ".avg.peak_sustained": " x L2 slices"}
WORK, TRAFFIC, GIGA_RATE = "work_", "bytes_", "performance_"
"""Operations and bytes of the launch, and thousand million operations per second, for people."""
INTENSITY, BOUND_BY, ORIGIN = "intensity_", "bound_by_", "from_"
"""Operations per byte; the roof that binds, as text; how work or traffic was counted, as text."""


def name(kind: str, *identifiers: str) -> str:
    """A metric of a precision, compute roof or level, or of a precision and a level: rl__intensity_fp64_dram."""
    return f"{PREFIX}{kind}{'_'.join(map(slug, identifiers))}"


def attained(precision: str) -> str:
    """Performance in percent of what the lowest roof allows."""
    return f"{name('attained_', precision)}.pct"


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
    counters = {name.partition(".")[0] for name in metrics}
    clocks = (binding.clock for binding in bindings if binding.peak and set(binding.peak.counters()) == counters)
    return f"{formula}{how} x {next(clocks, 'its own')} clock ({_source(origin)})"


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
    texts = []
    for weight, names in groups.items():
        text = braced(names, ("[", "|", "]"))
        if ", " in text:  # nothing in common
            text = f"({' + '.join(names)})" if weight != 1 else " + ".join(names)
        texts.append(text if weight == 1 else f"{weight:g} x {text}")
    return " + ".join(texts)


def _source(origin: Origin) -> str:
    return f"{origin.source}: {origin.note}" if origin.note else origin.source
