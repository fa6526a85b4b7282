"""`annotate()`: a report in, the bytes of the annotated copy out, and an account of what could be derived.

A launch gets numbers as metrics, sections (an overview and a chart for each precision with work), and what rules say.  Only
fields that every release since 2020.3 knows: no descriptions of charts or metrics, no conditions, no filters.  Nsight Compute
guesses units from words in names: "bytes" and ".pct" are welcome; second, cycle and inst would mislead.  It takes braces out of
labels.

Metrics, sections and rule results go to the end of a result's message, where protobuf merges repeated fields, and the names of
the metrics behind the last name that the file has, so that no other name's number changes.  A viewer shows the first result
with the names that it has met by then, so all names move into the first block that brings any.  What is replaced (tables of
names, sections and rule results of ours that were collected) stays under a field number that no reader knows, and `stripped`
brings it back.  Of the headers the payload size is renewed; nothing else of a file differs: all keeps its bytes and its place.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.base.files import pack_folder
from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Level, Precision, load_spec
from ncu_roofline.chips.fields import Capability, WeightedSum
from ncu_roofline.chips.formulas import SAME_CLOCK, twin
from ncu_roofline.chips.ncu import PEAK, PREFIX, TRAFFIC_RATE, WORK_RATE, braced, slug
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION, OVERVIEW_SECTION, PLAIN, TENSOR_SECTION, Color
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.report import Kernel, Report, RuleMessage, RuleResult, Value, framing
from ncu_roofline.formats.report.framing import Kind, RawFile, message
from ncu_roofline.formats.report.reader import encode_rule
from ncu_roofline.formats.report.writer import set_value
from ncu_roofline.formats.sectionfile.section import made, made_point, made_roof, made_value
from ncu_roofline.formats.wire import BYTES, Field, bytes_field, number_field, read_varint, split, varint
from ncu_roofline.model import Measurements, Selection, measurements_of, roofline
from ncu_roofline.model.explanations import Explanation, explain
from ncu_roofline.model.measurements import Origin, Quantity
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.model.points import Roofs, with_levels_that_matter
from ncu_roofline.model.work import OPCODES
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules import runner
from ncu_roofline.plugin.nvrules.findings import VERDICT
from ncu_roofline.plugin.nvrules.runner import OURS, RuleSet
from ncu_roofline.version import __version__

PathName = str | os.PathLike[str]
METRIC_PREFIX = PREFIX.encode()
OWN_IDENTIFIER = b"NcuRooflineAnnotated"
"""Sections and rule results whose identifiers begin so are ours."""
_STRINGS, _PAYLOAD_SIZE = 4, 5  # field numbers of the block header
_STRING, _IDENTIFIER = 1, 1  # of its table of names; of a section and a rule result
_REPLACED = 1_000_000  # what is added to the number of a field that is replaced
OVERVIEW = OWN_IDENTIFIER.decode() + "Overview"
_FINDINGS = ("error", "optimization", "warning")
_LINK = re.compile(r"@section:([^:@]*):")
_ORIGIN = "Written by ncu-roofline into a copy of this report; nothing of it was collected."
_WAYS = {"binding": "counted", OPCODES: "from counts per opcode", "embedded": "from a chart of the report"}
_FIRST_ORDER = 12  # behind "GPU Speed Of Light" (10) and its own roofline charts
_MOST_ORDERS = 7  # so that all come before the next stock section (20)
_UNITS = {"flop": "FLOP", "op": "OP"}
_GIGA = 1e9
_FALLBACK_CLOCK = 1e9  # Hz; where a report knows no clock at all, peaks per cycle are of this one
_CLOCK = f"{PREFIX}clock"
_WORK, _TRAFFIC, _GIGA_RATE = "work_", "bytes_", "performance_"
"""Operations and bytes of the launch, and thousand million operations per second, for people."""
_INTENSITY, _BOUND_BY, _FROM, _ATTAINED = "intensity_", "bound_by_", "from_", "attained_"
"""Operations per byte; the roof that binds, as text; how work or traffic was counted, as text; in percent of what it allows."""
# Forms of a counter, the longest first, and how each becomes the number of the whole launch or GPU.
_COUNTS = {".sum.per_cycle_elapsed": " x cycles of the run", ".sum.per_second": " x run time", ".sum": ""}
_PEAKS = {".sum.peak_sustained": "", ".avg.peak_sustained": " x L2 slices"}


@dataclass
class Account:
    """What was written, in numbers of launches by id where nothing else is said."""

    explanation: Explanation  # which work and traffic could be derived, and from what
    worked: Counter[str] = field(default_factory=Counter)  # with work of a precision
    charts: Counter[str] = field(default_factory=Counter)  # with a chart of it
    messages: Counter[str] = field(default_factory=Counter)  # of each rule
    dots: Counter[str] = field(default_factory=Counter)  # with a dot of a level in a chart
    unused: str = ""  # ceilings that fit no GPU


def annotate(
    path: PathName,
    write: Callable[[Iterator[bytes]], None],
    ceilings: Sequence[Ceilings] = (),
    rules: Sequence[PathName] | None = None,
    watch: Callable[[Iterable[Kernel], int], Iterable[Kernel]] = lambda kernels, _: kernels,
) -> Account:
    """Give ``write`` the bytes of a copy of the report ``path`` with our sections, metrics and the results of ``rules``.

    ``rules`` are folders of rules, whose code runs; if not said, those that come with the package, which judge with
    the same ``ceilings``.  ``watch`` gets the kernels and their number and gives them back one by one, to show how far the work
    is.  An earlier annotation is replaced, and so is what ncu collected with our sections and rules, which `stripped`
    brings back.  Raises RooflineError for what is no report, holds no kernel or metric, for ceilings that fit none of its GPUs,
    and what ``write`` raises."""
    loaded = None
    if rules is None and ceilings:
        loaded = runner.rendered_rules(tuple(render_rules(ceilings=ceilings).items()))
    elif rules is None or rules:
        loaded = runner.load_rules([pack_folder("rules")] if rules is None else rules)
    with closing(_without_annotation(path)) as raw:
        report = Report(raw)
        framing.check_content("Cannot annotate", report.path, len(report), len(report.metric_names))
        m = measurements_of(report, label=os.fspath(path))
        # Explained are the plain precisions, the tensor types in use and all levels.
        spec = load_spec()
        used = [p.id for p in spec.precisions if p.kind == "tensor" and p.id in m.work and (m.work[p.id].values > 0).any()]
        shown = with_levels_that_matter(m, spec, Selection())
        explained = explain(report, shown, (*spec.core, *used), [level.id for level in spec.levels])
        account = Account(replace(explained, notes=(*report.warnings, *explained.notes)))
        adviser = Adviser(loaded, report.ncu_version, m)

        def additions(kernels: Iterable[Kernel]) -> Iterator[Addition]:
            for i, kernel in enumerate(kernels):
                charts, added = planner.plan(i)
                present = {OVERVIEW, *(identifier(chart.id) for chart in charts)}
                results, replaced = adviser.advice(kernel, present, added.replaced_sections)
                account.worked.update(chart.id for chart in charts)
                drawn = [chart for chart in charts if chart.drawn]
                account.charts.update(chart.id for chart in drawn)
                account.dots.update({level.id for chart in drawn for level in chart.levels if level.moved})
                for rule in results:
                    account.messages[rule.name] += len(rule.messages)
                yield added._replace(rules=results, replaced_rules=replaced)

        with np.errstate(all="ignore"):
            planner = Planner(m, ceilings)
            names = list(dict.fromkeys(name for i in range(len(m)) for name, _ in planner.plan(i)[1].metrics))
            write(appended(raw, names, additions(watch(report.kernels, len(report)))))
        applied = [_ceilings_of(ceilings, *gpu) for gpu in m.gpus]
        idle = [file.provenance for file in ceilings if file not in applied]
        account.unused = "; ".join(f"{name} (other ceilings stand for the GPUs of the report)" for name in idle)
    return account


def _ceilings_of(ceilings: Sequence[Ceilings], device: str, capability: Capability) -> Ceilings | None:
    return next((file for file in ceilings if file.applies_to(device, capability)), None)


def _without_annotation(path: PathName) -> RawFile:
    """The report as it was before an earlier run."""
    raw = framing.open_raw(path)
    try:
        if not is_annotated(raw):
            return raw
        former = framing.copied(stripped(raw))
    except BaseException:
        raw.close()
        raise
    raw.close()
    return RawFile(path, former, unpacked=raw.unpacked)


class Adviser:
    """Rules for all kernels of a report, whose measurements are ``m``; without any, results of ours are kept."""

    def __init__(self, rules: RuleSet | None, ncu_version: str, m: Measurements) -> None:
        self._rules, self._ncu_version, self._m, self._foreign = rules, ncu_version, m, disbelieved(m)

    def advice(
        self, kernel: Kernel, own: AbstractSet[str], replaced: AbstractSet[str]
    ) -> tuple[list[RuleResult], AbstractSet[str]]:
        """What the rules say about a kernel that gets sections of the identifiers ``own`` in place of those ``replaced``; and
        the identifiers of its own results that this replaces: of our rules what they say now, or they move with their section.

        Other rules that have spoken are not asked again.  A kernel whose counters are not believed gets that as its verdict, in
        place of all.  The verdict stands first; of our other rules findings are told, not what is fine or was not collected."""
        present = ({runner.section_identifier(data) for data in kernel.sections} - replaced) | own
        had = {result.identifier: result for result in kernel.rule_results}
        mine = {name for name in had if name.startswith(OURS)}
        if self._rules is not None and (why := self._foreign[kernel.index]):
            message = RuleMessage("warning", f"{why[0].upper()}{why[1:]}.", "Counters rejected")
            return [_adapted(RuleResult(VERDICT, "Roofline Verdict", OVERVIEW, (message,)), present)], mine
        results: Sequence[RuleResult] = ()
        if self._rules is not None:
            results = self._rules.run(kernel, known=runner.known_of(self._m, kernel.index, self._ncu_version))
        said = [one for one in results if one.messages and (one.identifier in mine or one.identifier not in had)]
        again = {one.identifier for one in said}
        moved = [had[name] for name in sorted(mine - again) if had[name].section in replaced]
        told = []
        for one in sorted((*said, *moved), key=lambda one: one.identifier != VERDICT):
            if one.identifier != VERDICT and one.identifier.startswith(OURS):
                one = replace(one, messages=tuple(message for message in one.messages if message.type in _FINDINGS))
            told += [_adapted(one, present)] if one.messages else []
        return told, mine & (again | {one.identifier for one in moved})


def _adapted(result: RuleResult, present: AbstractSet[str]) -> RuleResult:
    """The result under an identifier of our own, in sections that are there, or in what stands for them."""

    def home(section: str) -> str:
        stand_ins = (identifier(one.id) for one in load_spec().precisions if section and one.section == section)
        return next((one for one in (section, next(stand_ins, "")) if one in present), OVERVIEW)

    texts = [_LINK.sub(lambda link: f"@section:{home(link.group(1))}:", said.text) for said in result.messages]
    messages = tuple(replace(said, text=text) for said, text in zip(result.messages, texts, strict=True))
    name = OWN_IDENTIFIER.decode() + result.identifier.removeprefix(OURS)
    return RuleResult(name, result.name, home(result.section), messages)


# What is known of a launch in texts that are the same for many launches, from which its sections are made once.


class Roof(NamedTuple):
    """A compute roof, or a memory level with its bandwidth roof."""

    id: str
    label: str
    theory: str  # where the theoretical one comes from, "" if there is none
    measured: float | None = None  # operations or bytes per second, None if it was not
    whose: str = ""
    file: str = ""
    derivation: str = ""  # how a level's traffic was counted, "" if it was not
    moved: bool = False  # whether there was any

    @property
    def known(self) -> bool:
        return bool(self.theory) or self.measured is not None


class Chart(NamedTuple):
    """The chart of one precision."""

    id: str
    label: str
    unit: str
    derivation: str
    roofs: tuple[Roof, ...]
    levels: tuple[Roof, ...]
    placed: bool  # the launch has a place under a roof, what binds it and how much it attains
    clock: str
    drawn: bool  # viewers draw it, as it has a dot, and a roof from metrics on both sides


class Planner:
    """What launches get, but for advice.  Raises RooflineError for ceilings that fit none of the GPUs."""

    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings]) -> None:
        self._points = roofline(m, ceilings).point_columns
        self._spec, self._ceilings = load_spec(), ceilings
        self._m = m = with_levels_that_matter(m, self._spec, Selection())
        self._roofs = Roofs(m, ceilings, "profiled")
        # A precision's points of one launch differ in level only; what is taken from them here is the same for all.
        pairs = zip(self._points["launch"].tolist(), self._points["precision"].tolist(), strict=True)
        self._point = {pair: row for row, pair in enumerate(pairs)}
        self._labels = {level.id: level.label for level in self._spec.levels}
        self._labels |= {roof: p.roof_label(roof) for p in self._spec.precisions for roof in p.roof_ids()}

    def plan(self, i: int) -> tuple[list[Chart], Addition]:
        """The charts of the launch at position ``i``, and what is added for them."""
        m, spec = self._m, self._spec
        file = _ceilings_of(self._ceilings, m.device[i], m.capability[i])
        clocks = ((m.clock[i], "the profiled SM clock"), (m.clock_max[i], "the maximum SM clock"))
        known = ((float(value), text) for value, text in clocks if math.isfinite(value) and value > 0)
        clock, clock_text = next(known, (_FALLBACK_CLOCK, "a clock of 1 GHz, as the report names none"))
        seconds = float(m.seconds[i])
        levels: list[Roof] = []
        for level in spec.levels:
            derivation = self._text(level, m.traffic, level.id, i, _COUNTS)
            if derivation or level.id in spec.chain:
                roof = self._roof(level, level.id, i, file)
                levels.append(roof._replace(derivation=derivation, moved=_value(m.traffic, level.id, i) > 0))
        levels = [level for level in levels if level.derivation or level.known]
        # Zeros only of what the counters of CUDA cores tell, the others are many.
        works = {p: _value(m.work, p.id, i) for p in spec.precisions if not p.on_request}
        works = {p: value for p, value in works.items() if value > 0 or (value == 0 and p.kind == "core" and not p.opcodes)}
        texts = {p.id: self._text(p, m.work, p.id, i, _COUNTS) for p in works}
        working = [p for p, value in works.items() if value > 0 and math.isfinite(seconds)]
        near = tuple(level for level in levels if level.moved or level.id in spec.chain)
        bounds = {p.id: str(self._points["binds"][self._point[i, p.id]]) if (i, p.id) in self._point else "" for p in working}
        charts = []
        for p in working:
            roofs = tuple(roof for name in p.roof_ids() if (roof := self._roof(p, name, i, file)).known)
            theory = any(roof.theory for roof in roofs) and any(level.theory for level in near)
            drawn = theory and any(level.moved for level in near)
            charts.append(Chart(p.id, p.label, p.unit, texts[p.id], roofs, near, bounds[p.id] != "", clock_text, drawn))
        metrics: list[tuple[str, Value]] = [(f"{PREFIX}annotated_by", f"ncu-roofline {__version__}")]
        for p, value in works.items():
            rate = value / seconds
            metrics += [(_name(_WORK, p.id), value), (_name(WORK_RATE, p.id), rate), (_name(_GIGA_RATE, p.id), rate / _GIGA)]
        for one in levels:
            value = _value(m.traffic, one.id, i)
            metrics += [(_name(_TRAFFIC, one.id), value), (_name(TRAFFIC_RATE, one.id), value / seconds)]
        metrics += [(_name(_FROM, p.id), texts[p.id]) for p in works]
        metrics += [(_name(_FROM, one.id), one.derivation) for one in levels if one.derivation]
        peaks = [roof.id for c in charts for roof in (*c.roofs, *c.levels) if roof.theory]
        metrics += [(_CLOCK, clock)] if peaks else []
        for peak in dict.fromkeys(peaks):
            value = _value(m.compute, peak, i)
            metrics.append((_name(PEAK, peak), (value if math.isfinite(value) else _value(m.bandwidth, peak, i)) / clock))
        for chart in charts:
            work = _value(m.work, chart.id, i)
            for one in chart.levels:
                if one.moved:
                    metrics.append((_name(_INTENSITY, chart.id, one.id), work / _value(m.traffic, one.id, i)))
            if chart.placed:
                metrics.append((_name(_BOUND_BY, chart.id), self._labels[bounds[chart.id]]))
                fraction = self._points["binding_fraction"][self._point[i, chart.id]]
                metrics.append((f"{_name(_ATTAINED, chart.id)}.pct", 100 * float(fraction)))
        finite = ((name, value) for name, value in metrics if not isinstance(value, float) or math.isfinite(value))
        sections = (_chart_section(chart, min(position, _MOST_ORDERS)) for position, chart in enumerate(charts, 1))
        origins = [self._origin(m.work, p.id, i) for p in works] + [self._origin(m.traffic, one.id, i) for one in levels]
        overview = _overview(tuple(p.id for p in works), tuple(levels), tuple(filter(None, origins)))
        replaced = {OVERVIEW_SECTION}
        for p in (p for p, chart in zip(working, charts, strict=True) if chart.drawn):
            replaced |= {one.section for one in spec.precisions if one.section and one.id in (p.id, p.beside)}
            replaced |= {TENSOR_SECTION, LIGHT_TENSOR_SECTION} if p.kind == "tensor" else set()
        return charts, Addition(tuple(finite), (overview, *sections), replaced_sections=replaced)

    def _roof(self, item: Precision | Level, roof: str, i: int, file: Ceilings | None) -> Roof:
        bandwidth = isinstance(item, Level)
        theory = self._text(item, self._m.bandwidth if bandwidth else self._m.compute, roof, i, _PEAKS)
        if theory and roof.endswith(".nofma"):
            theory = f"half of {theory}"
        ceiling = (file.bandwidth(roof) if bandwidth else file.compute(roof)) if file else None
        values = self._roofs.values("bandwidth" if bandwidth else "compute", roof)
        if not (ceiling and file and values.measured[i]):
            return Roof(roof, self._labels[roof], theory)
        value = float(values.drawn[i])
        clock = f" at {format_value(ceiling.clock, 'hertz')}" if math.isfinite(ceiling.clock) else ""
        change = value / ceiling.value if ceiling.follows_sm_clock else 1.0
        scaled = ", scaled to this launch's clock" if abs(change - 1) > SAME_CLOCK else ""
        whose = f"{self._roofs.between(file, ceiling, roof, [i]) or ceiling.id} of {file.provenance}{clock}{scaled}"
        return Roof(roof, self._labels[roof], theory, value, whose, f"{file.status}: {file.provenance}")

    def _text(
        self, item: Precision | Level, quantities: Mapping[str, Quantity], key: str, i: int, forms: Mapping[str, str]
    ) -> str:
        """Where a number of launch ``i`` comes from, "" where it is missing."""
        origin = self._origin(quantities, key, i)
        return _derivation(item.id, isinstance(item, Level), self._m.capability[i], origin, forms is _PEAKS) if origin else ""

    def _origin(self, quantities: Mapping[str, Quantity], key: str, i: int) -> Origin | None:
        choice = int(quantities[key].choice[i]) if math.isfinite(_value(quantities, key, i)) else -1
        return quantities[key].origins[choice] if choice >= 0 else None


def _value(quantities: Mapping[str, Quantity], key: str, i: int) -> float:
    """The number of launch ``i``; NaN where it is missing."""
    return float(quantities[key].values[i]) if key in quantities else math.nan


def _name(kind: str, *identifiers: str) -> str:
    """A metric of a precision, compute roof or level, or of a precision and a level: rl__intensity_fp64_dram."""
    return f"{PREFIX}{kind}{'_'.join(map(slug, identifiers))}"


@lru_cache(maxsize=4096)  # launches of one chip count alike, and these texts take longer to write than all else of a plan
def _derivation(name: str, is_level: bool, capability: tuple[int, int], origin: Origin, peak: bool) -> str:
    """How work or traffic was counted: "a__[add|mul].sum + 2 x a__fma.sum (binding)"; where a theoretical roof comes from:
    "2 x a__fma.sum.peak_sustained x sm clock (binding)"."""
    spec = load_spec()
    item = spec.level(name) if is_level else next(p for p in spec.precisions if p.id == name)
    source = f"({origin.source}: {origin.note})" if origin.note else f"({origin.source})"
    if origin.source == OPCODES and not peak:
        return f"{origin.metrics}, each opcode x what it does {source}"
    if origin.source == "architecture" and peak:
        return f"{origin.metrics} {source}"
    metrics, forms = origin.metrics.split(", "), _PEAKS if peak else _COUNTS
    suffix, how = next(((end, how) for end, how in forms.items() if all(one.endswith(end) for one in metrics)), ("", ""))
    counters = tuple(one.removesuffix(suffix) for one in metrics)
    for binding in spec.bindings(item, capability):
        terms = (binding.peak if peak else binding.counters) or WeightedSum()
        known = terms.counters()
        if binding.source == origin.source and counters in (known, tuple(twin(one) or one for one in known)):
            break
    else:
        return f"{' + '.join(metrics)}{how}{' x its own clock' if peak else ''} {source}"
    groups: dict[float, list[str]] = {}  # terms of one weight together
    for one, (_, weight) in zip(metrics, terms, strict=True):
        groups.setdefault(weight, []).append(one)
    texts = []
    for weight, names in groups.items():
        text = braced(names, ("[", "|", "]"))
        if ", " in text:  # nothing in common
            text = f"({' + '.join(names)})" if weight != 1 else " + ".join(names)
        texts.append(text if weight == 1 else f"{weight:g} x {text}")
    return f"{' + '.join(texts)}{how}{f' x {binding.clock} clock' if peak else ''} {source}"


def identifier(precision: str) -> str:
    """The identifier of a precision's section: tensor.fp16.wgmma is NcuRooflineAnnotatedTensorFP16Wgmma."""
    words = (word.upper() if word[-1:].isdigit() else word.capitalize() for word in precision.split("."))
    return OWN_IDENTIFIER.decode() + "".join(words)


@lru_cache(maxsize=256)
def _overview(counted: tuple[str, ...], levels: tuple[Roof, ...], origins: tuple[Origin, ...]) -> bytes:
    """Numbers, and in words how they were counted: in a table ncu-ui would give names of counters rows several lines high."""
    of = [(_WORK, one.id, f"{one.label} work", f" [{_UNITS[one.unit]}]") for one in load_spec().precisions if one.id in counted]
    of += [(_TRAFFIC, level.id, f"{level.label} traffic", "") for level in levels if level.derivation]
    header, ways = [_metric(_name(kind, name), f"{label}{unit}") for kind, name, label, unit in of], dict[str, list[str]]()
    for (_, _, label, _), origin in zip(of, origins, strict=True):
        way = _WAYS.get(origin.source, origin.source).capitalize()
        ways.setdefault(f"{way} ({origin.note})" if origin.note else way, []).append(label)
    said = [f"{way}: {', '.join(labels)}." for way, labels in ways.items()]
    said += [f"The counters are named on the Raw page ({PREFIX}{_FROM}...)."] if said else []
    title = "Roofline overview (ncu-roofline, added later)"
    return _encoded(OVERVIEW, title, 0, " ".join([_ORIGIN, "What is not listed could not be derived.", *said]), header, title)


@lru_cache(maxsize=1024)
def _chart_section(chart: Chart, order: int) -> bytes:
    unit, title = _UNITS[chart.unit], f"{chart.label} roofline"
    header = [_metric(_name(_GIGA_RATE, chart.id), f"{chart.label} performance [G{unit}/s]")]
    if chart.placed:
        header.append(_metric(_name(_BOUND_BY, chart.id), "Bound by"))
        header.append(_metric(f"{_name(_ATTAINED, chart.id)}.pct", "Share of what it allows"))
    moved = [level for level in chart.levels if level.moved]
    header += [_metric(_name(_INTENSITY, chart.id, one.id), f"{one.label} intensity [{unit}/byte]") for one in moved]
    roofs = (*chart.roofs, *chart.levels)
    parts = [_ORIGIN, "Dots and lines say what they are made of when pointed at.", f"Theoretical roofs stand at {chart.clock}."]
    hues = ", ".join(f"{one.label} {load_spec().level(one.id).hue}" for one in chart.levels)
    parts += [f"Colours: {hues}; other compute roofs grey."] if chart.drawn else []
    parts += dict.fromkeys(f"Lighter roofs are {one.file}." for one in roofs if one.measured is not None)
    if missing := [level.label for level in chart.levels if not level.derivation]:
        parts.append(f"No counter of the report gives the traffic of {', '.join(missing)}.")
    items = []
    if chart.drawn:
        work = made_value(_metric(_name(WORK_RATE, chart.id)))
        points = []
        for level in moved:
            text = f"{level.label}: bytes = {level.derivation}; work = {chart.derivation}"
            points.append(made_point(work, made_value(_metric(_name(TRAFFIC_RATE, level.id))), text, _color(level).light))
        drawn = made(
            "RooflineChart",
            Label=f"{chart.label} roofline, derived from the report",
            AxisIntensity=made("RooflineAxis", Label=f"Intensity [{unit}/byte]", Base=10.0),
            AxisWork=made("RooflineAxis", Label=f"Performance [{unit}/s]", Base=10.0),
            Rooflines=list(_rooflines(chart)),
            AchievedValues=points,
        )
        items = [made("BodyItem", RooflineChart=drawn)]
    else:
        parts.append("The report does not give a compute roof and a bandwidth roof, so there is no chart.")
    long = f"{title} (ncu-roofline, added later)"
    return _encoded(identifier(chart.id), long, order, " ".join(parts), header, title, *items)


def _encoded(name: str, title: str, order: int, description: str, header: Sequence[Any], body: str, *items: Any) -> bytes:
    section = made(
        "Section",
        Identifier=name,
        DisplayName=title,
        Order=_FIRST_ORDER + order,
        Description=description,
        Header=made("Header", Rows=(len(header) + 1) // 2, Metrics=header),
        Body=[made("Body", DisplayName=body, Items=items)] if items else [],
    )
    data: bytes = section.SerializeToString()
    return data


def _rooflines(chart: Chart) -> Iterator[Any]:
    """Theoretical roofs; then measured ones as constants, lighter; where one of two lines was not measured, the theoretical."""
    for roof, level, color in _pairs([one for one in chart.roofs if one.theory], [one for one in chart.levels if one.theory]):
        label = f"{level.label} and {roof.label} roof at {chart.clock}: {level.theory}; {roof.theory}"
        yield made_roof(_per_second(roof), _per_second(level), label, color.light)
    levels = [one for one in chart.levels if one.known]
    some = any(one.measured is not None for one in levels)
    for roof, level, color in _pairs(chart.roofs, levels):
        # Without a level that was measured the compute roof is drawn with one that was.
        if level.measured is not None or (roof.measured is not None and not some):
            lines, texts = [], []
            for one, unit in ((roof, f"{chart.unit}/s"), (level, "byte/s")):  # measured, else theoretical
                known = one.measured is not None
                lines.append(made_value(constant=one.measured) if known else _per_second(one))
                texts.append(f"{format_value(one.measured or 0.0, unit)}, {one.whose}" if known else "theoretical")
            yield made_roof(lines[0], lines[1], f"measured: {level.label} {texts[1]}; {roof.label} {texts[0]}", color.dark)


def _pairs(roofs: Sequence[Roof], levels: Sequence[Roof]) -> list[tuple[Roof, Roof, Color]]:
    """What is drawn together, in which colour: each level with the highest compute roof, the other compute roofs with the
    outermost level, and these first, as viewers draw later ones over them; then levels beside the chain (shared memory)."""
    if not roofs or not levels:
        return []
    others = [(roof, levels[-1], PLAIN) for roof in roofs[1:]]
    in_order = sorted(levels, key=lambda level: level.id in load_spec().chain)
    return others + [(roofs[0], level, _color(level)) for level in in_order]


def _per_second(roof: Roof) -> Any:
    """A peak per cycle times the clock: the form that viewers want at least one roof in."""
    return made_value(_metric(_name(PEAK, roof.id)), clock=_metric(_CLOCK))


def _color(level: Roof) -> Color:
    return load_spec().level(level.id).color


def _metric(name: str, label: str = "") -> Any:
    return made("Metric", Name=name, Label=label)


class Addition(NamedTuple):
    """What one result gets (sections are serialized), and the identifiers of sections and rule results that this replaces."""

    metrics: Sequence[tuple[str, Value]] = ()
    sections: Sequence[bytes] = ()
    rules: Sequence[RuleResult] = ()
    replaced_sections: AbstractSet[str] = frozenset()
    replaced_rules: AbstractSet[str] = frozenset()


class _Layout:
    """The blocks of a report, its names, and the first block that brings names."""

    def __init__(self, raw: RawFile) -> None:
        self.raw = raw
        self.blocks = tuple(framing.scan(raw))
        self.names = [name for block in self.blocks for name in block.header.strings.strings]
        self.place = next((block for block in self.blocks if block.header.strings.strings), None)
        self.own = {number: name for number, name in enumerate(self.names) if name.startswith(METRIC_PREFIX)}

    def tables(self, number: int) -> bytes:
        """The tables of names under this field number, of all blocks together."""
        headers = (self.raw[block.start + 4 : block.payload] for block in self.blocks)
        return b"".join(header[one.content : one.end] for header in headers for one in split(header) if one.number == number)

    def written(
        self, changed: Callable[[Kind, int, bytes], bytes], number_of: Callable[[Field, bytes], int | None], names: bytes = b""
    ) -> Iterator[bytes]:
        """The bytes of the report with each result ``changed``, given its kind, place and bytes, other numbers for fields of
        headers, and a table of ``names`` in the first block with any."""
        if self.blocks:
            yield self.raw[: self.blocks[0].start]
        for block in self.blocks:
            kinds = {offset: kind for kind, offset, _ in block.results()}
            records = [(kinds.get(offset), offset, self.raw[offset : offset + length]) for offset, length in block.records]
            payload = b"".join(framing.frame(changed(kind, offset, data) if kind else data) for kind, offset, data in records)
            header = self.raw[block.start + 4 : block.payload]
            if len(payload) != block.header.payload_size:
                start, _, end = _last(header, _PAYLOAD_SIZE)
                header = header[:start] + number_field(_PAYLOAD_SIZE, len(payload)) + header[end:]
            more = bytes_field(_STRINGS, names) if names and block is self.place else b""
            yield framing.frame(_renumbered(self.raw, block.start, header, number_of) + more) + payload


def _last(data: bytes, number: int) -> tuple[int, int, int]:
    """Where the last field of this number starts, its content starts, and it ends; the end of ``data`` if there is none."""
    found = [one for one in split(data) if one.number == number]
    return found[-1][2:] if found else (len(data), len(data), len(data))


def _renumbered(raw: RawFile, offset: int, record: bytes, number_of: Callable[[Field, bytes], int | None]) -> bytes:
    """A record with other numbers for its fields, without those that get None."""
    kept = []
    try:
        for one in split(record):
            number = number_of(one, record[one.content : one.end])
            if number == one.number:
                kept.append(record[one.start : one.end])
            elif number is not None:
                kept.append(varint(number << 3 | one.wire_type) + record[read_varint(record, one.start)[1] : one.end])
    except ValueError as error:
        raise raw.damaged(offset, str(error)) from error
    return b"".join(kept)


def _numbers(kind: Kind) -> dict[str, int]:
    return {field.name: field.number for field in message(kind.view("Result")).DESCRIPTOR.fields}


def _identifier(data: bytes) -> bytes:
    """The identifier of a section or a rule result."""
    first = next((one for one in split(data) if one.number == _IDENTIFIER), None)
    return b"" if first is None else data[first.content : first.end]


def is_annotated(raw: RawFile) -> bool:
    """Whether an earlier run has annotated the report.  Raises RooflineError for damaged bytes."""
    return bool(_Layout(raw).own)


def stripped(raw: RawFile) -> Iterator[bytes]:
    """The bytes of ``raw`` without what was appended.  Raises RooflineError for damaged bytes."""
    layout = _Layout(raw)

    kept = bool(layout.tables(_STRINGS + _REPLACED))  # earlier versions appended to the last table: their names stay

    def number_in_header(one: Field, content: bytes) -> int | None:
        former = _STRINGS if one.number == _STRINGS + _REPLACED else one.number
        return None if kept and one.number == _STRINGS and content else former

    def without_own(kind: Kind, offset: int, record: bytes) -> bytes:
        numbers = _numbers(kind)
        named = {numbers[name] for name in ("sections", "rules") if name in numbers}

        def number_of(one: Field, content: bytes) -> int | None:
            if one.wire_type == BYTES and one.number == numbers["metrics"]:
                own = raw.decode("MetricScalar", content, offset).name_id in layout.own
            else:
                own = one.wire_type == BYTES and one.number in named and _identifier(content).startswith(OWN_IDENTIFIER)
            former = one.number - _REPLACED
            return None if own else former if former in named else one.number

        return _renumbered(raw, offset, record, number_of)

    return layout.written(without_own, number_in_header)


def appended(raw: RawFile, names: Sequence[str], additions: Iterable[Addition]) -> Iterator[bytes]:
    """The bytes of ``raw`` with ``additions``, one for each of its results in order.

    ``names`` are those of all metrics that are added.  Raises RooflineError for damaged bytes, and for a report without names.
    """
    layout = _Layout(raw)
    if layout.place is None:
        raise raw.damaged(0, "there is no table of metric names")
    ids = {name.decode("utf-8", "replace"): number for number, name in layout.own.items()}
    new = [name for name in dict.fromkeys(names) if name not in ids]
    ids.update((name, len(layout.names) + i) for i, name in enumerate(new))
    tables = layout.tables(_STRINGS) + b"".join(bytes_field(_STRING, name.encode()) for name in new)
    remaining = iter(additions)

    def with_addition(kind: Kind, offset: int, record: bytes) -> bytes:
        addition, numbers = next(remaining), _numbers(kind)
        given = {"sections": addition.replaced_sections, "rules": addition.replaced_rules}
        replaced = {numbers[name]: {one.encode() for one in given[name]} for name in given if given[name] and name in numbers}

        def number_of(one: Field, content: bytes) -> int:
            goes = one.wire_type == BYTES and one.number in replaced and _identifier(content) in replaced[one.number]
            return one.number + _REPLACED if goes else one.number

        result = message(kind.view("Result"))()
        for name, value in addition.metrics:
            set_value(result.metrics.add(name_id=ids[name]).value, value)
        result.sections.extend(addition.sections)
        if "rules" in numbers:  # else the format has no place for them in results of this kind
            result.rules.extend(map(encode_rule, addition.rules))
        encoded: bytes = result.SerializeToString()
        # Where nothing is replaced, the fields are not looked at: they are many.
        return (_renumbered(raw, offset, record, number_of) if replaced else record) + encoded

    def number_in_header(one: Field, content: bytes) -> int:
        return one.number + _REPLACED if one.number == _STRINGS and content else one.number

    return layout.written(with_addition, number_in_header, tables)
