"""The timeline of the section that samples a launch over its time."""

from __future__ import annotations

from collections.abc import Iterable

from ncu_roofline.chips import Precision
from ncu_roofline.chips.phases import BandSpec, counter_of, load_phases
from ncu_roofline.formats.sectionfile.section import SectionTimeline, TimelineGroup, TimelineRow
from ncu_roofline.plugin.generate.choice import Chips
from ncu_roofline.plugin.generate.lower import Lowering

_FIRST = (7, 5)  # what the PM sampler runs on


def timeline(lowering: Lowering) -> SectionTimeline:
    """All bands that are sampled, those of one pass together, and the starts of blocks with the first of them."""
    spec = load_phases()
    chips = frozenset(chip for chip in lowering.chips if chip >= _FIRST)
    names = dict.fromkeys(one.group for band in spec.bands for one in band.collect)
    groups = [TimelineGroup(name, tuple(_rows(lowering, spec.bands, name, chips))) for name in names]
    blocks = lowering.metric({_sampled(spec.collected_blocks): chips}, "Blocks started")
    first = TimelineGroup(groups[0].label, (*groups[0].rows, TimelineRow(blocks.base.label, (blocks,))))
    return SectionTimeline((first, *groups[1:]))


def collect_roofs(lowering: Lowering, precisions: Iterable[Precision]) -> None:
    """Have the peaks collected that the dots of the slices stand under."""
    for precision in precisions:
        lowering.peak(precision, precision.roof_ids()[0])
    for reading in lowering.bandwidth(lowering.spec.level(lowering.spec.memory)):
        for metric in reading.value.metrics[-1:] if reading.value else ():  # the clock; the peaks are collected by now
            lowering.collect(metric.base.name, reading.chips)


def _rows(lowering: Lowering, bands: tuple[BandSpec, ...], group: str, chips: Chips) -> list[TimelineRow]:
    rows = []
    for band in bands:
        wanted = [one for one in band.collect if one.group == group]
        chips_of = {_sampled(one.metric): frozenset(filter(one.applies, chips)) for one in wanted}
        known = {name: where for name, where in chips_of.items() if lowering.ranges(where)}
        if known:
            rows.append(TimelineRow(band.label, (lowering.metric(known, band.label),)))
    return rows


def _sampled(metric: str) -> str:
    """The metric as the sampler knows it: without it the profiler would be meant, but where a group of counters is named."""
    return metric if counter_of(metric) != metric else f"pmsampling:{metric}"
