"""Advice as text: the answer for each GPU, then findings below their kernels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter

from ncu_roofline.base.texts import conjoined, listed
from ncu_roofline.base.units import format_value
from ncu_roofline.chips.verdict import as_percent, as_times
from ncu_roofline.model.ranking import WORTH
from ncu_roofline.plugin.nvrules.findings import FINE, LONGEST, NOTE, VERDICT, Finding, Kernel
from ncu_roofline.plugin.nvrules.telling import Told, first_sentence
from ncu_roofline.rendering.table import fitted, wrapped

_TYPES = {"optimization": "try", "warning": "note"}
_MOST_REPORTS = 4  # named beside a GPU
_MOST_FINDINGS = 3  # told of a kernel, beside its verdict, where it is brief
_INDENT = "    "


def as_text(told: Told, width: int, *, brief: bool = False, whole: bool = False) -> str:
    """The advice in lines of at most ``width`` characters, but for longer words.

    ``brief``: of a kernel its verdict, and a line for each of the findings that could save most.  ``whole``: in full also what
    is fine, and what rules could not tell.
    """
    blocks: list[list[str]] = []
    for device in told.sentences:
        blocks += _gpu(told, device, width, brief, whole)
    blocks += _remarks(told, width, brief, whole)
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def left_out_text(told: Told) -> str:
    """How many findings, notes and texts a limit left out, "" for none."""
    texts = told.shortened + told.sentences_left_out
    counts = ((told.left_out, "finding"), (told.notes_left_out, "note"), (texts, "text"))
    parts = [f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
    return f"{conjoined(parts)} left out." if parts else ""


def _gpu(told: Told, device: str, width: int, brief: bool, whole: bool) -> Iterator[list[str]]:
    """The head of a GPU, and a block for each of its kernels."""
    places = told.places[device]
    releases = dict.fromkeys(release or "of unknown release" for report, release in told.reports if report in places)
    head = (device or "no GPU named", listed(places, _MOST_REPORTS), f"Nsight Compute {listed(releases, _MOST_REPORTS)}")
    found = [one for one in told.found if one.kernel.device == device]
    silent = [one for one in told.kernels if one.device == device and one.reason and one.share >= WORTH]
    silent = [one for one in silent if one not in {finding.kernel for finding in found}]
    sentences = [*told.sentences[device][:1], *([] if found or silent or told.left_out else ["Nothing to say."])]
    yield [*_lines(" \N{MIDDLE DOT} ".join(head), width), *(line for text in sentences for line in _lines(text, width))]
    several = len(places) > 1
    notes: set[tuple[str, str]] = set()
    for mine in _by_kernel(found):
        yield _short(mine, width, several) if brief else _kernel(told, mine, width, whole, several, notes)
        notes |= {(one.rule, one.title) for one in mine if one.type == NOTE}
    for kernel in silent:
        launches = f" ({kernel.launches} launches)" if kernel.launches > 1 else ""
        yield _lines(
            f"{fitted(kernel.name, width - len(launches) - 4)}{launches}: {_time(kernel)}: {kernel.reason}.", width, _INDENT
        )


def _kernel(
    told: Told, found: Sequence[Finding], width: int, whole: bool, several: bool, notes: Collection[tuple[str, str]]
) -> list[str]:
    """A kernel with its findings; of ``notes`` (rule and title) that others have in full, the first sentence is enough."""
    full = [one for one in found if whole or one.type != FINE or one.rule == VERDICT]
    fine = [one.title for one in found if one not in full]
    kernel = found[0].kernel
    lines = _lines(f"{_name(found, width, several)}: {_time(kernel)}; {_headroom(kernel)}", width, _INDENT)
    for one in sorted(full, key=lambda one: one.rule != VERDICT):
        again = not whole and (one.rule, one.title) in notes
        lines += _finding(one, first_sentence(told.said_of(one)) if again else told.said_of(one), width, several)
    return lines + (_lines(f"fine: {'; '.join(fine)}", width, _INDENT, first="  ") if fine else [])


def _launch(finding: Finding, several: bool) -> str:
    """The longest launch of a finding, with its report where there are several."""
    report, number = finding.launches[0]
    return f"launch {number} of {report}" if several else f"launch {number}"


def _by_kernel(found: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one kernel each, kernels in their order."""
    kernels: dict[Kernel, list[Finding]] = {}
    for one in found:
        kernels.setdefault(one.kernel, []).append(one)
    return [kernels[kernel] for kernel in sorted(kernels, key=lambda kernel: kernel.order)]


def _short(found: Sequence[Finding], width: int, several: bool) -> list[str]:
    """A kernel with its verdict, and a line for each of the findings that could save most."""
    kernel = found[0].kernel
    said = f"{kernel.reason}." if kernel.reason else _headroom(kernel)
    lines = _lines(f"{_name(found, width, several)}: {_time(kernel)}: {said}", width, _INDENT)
    for one in _worth_a_line(found)[:_MOST_FINDINGS]:
        gain = ""
        if one.rule == VERDICT:
            gain = f", {len(set(one.launches))} of {kernel.launches} launches"
        elif one.recoverable > 0 and kernel.seconds > 0:
            gain = f": about {as_percent(one.recoverable / kernel.seconds)} less time"
        text, *more = _lines(f"{one.title}{gain}: {one.text}", width - len(" ..."), first="  ")
        lines.append(f"{text} ..." if more else text)
    return lines


def _worth_a_line(found: Sequence[Finding]) -> list[Finding]:
    """Findings of a kernel beside its verdict, those that promise most first."""
    first = next((one for one in found if one.rule == VERDICT), None)
    return sorted(
        (one for one in found if one is not first and one.type != FINE),
        key=lambda one: (one.type == NOTE, one.rule == VERDICT, -one.recoverable if one.recoverable > 0 else 0.0),
    )


def _name(found: Sequence[Finding], width: int, several: bool) -> str:
    """A kernel, and how many launches it has or which one."""
    kernel = found[0].kernel
    launches = f"{kernel.launches} launches" if kernel.launches > 1 else _launch(found[0], several)
    return f"{fitted(kernel.name, width - len(launches) - 4)} ({launches})"


def _time(kernel: Kernel) -> str:
    """What share of the time it takes, and how long that is."""
    if not math.isfinite(kernel.seconds):
        return "its run time is not known"
    share = f"{as_percent(kernel.share)} of the time, " if kernel.share < 1 else ""
    return f"{share}{_seconds(kernel.seconds)}"


def _headroom(kernel: Kernel) -> str:
    """What could be saved of its time."""
    if not math.isfinite(kernel.recoverable):
        return kernel.reason or "its headroom is not known"
    return f"{as_times(kernel.speedup)} at its present traffic and instructions, {_seconds(kernel.recoverable)} less"


def _seconds(value: float) -> str:
    return format_value(value, "second", 3)


def _finding(one: Finding, text: str, width: int, several: bool) -> list[str]:
    facts = [one.rule, *_saved(one)]
    if len(set(one.launches)) < one.kernel.launches:
        facts.append(f"{len(set(one.launches))} of {one.kernel.launches} launches")
    if one.spoken == LONGEST and text:
        which = "its longest launch" if len(set(one.launches)) == one.kernel.launches else "the longest of these"
        text = f"In {which} ({_launch(one, several).removeprefix('launch ')}): {text}"
    head = f"{_TYPES.get(one.type, one.type)}: {one.title} [{'; '.join(facts)}]"
    said = wrapped(text.split("\n"), width, _INDENT, first=_INDENT, whole=True)  # rules write lists
    return [*_lines(head, width, _INDENT, first="  "), *said]


def _saved(one: Finding) -> list[str]:
    """What a finding promises beyond what the head of its kernel says."""
    told = (one.rule, one.recoverable) == (VERDICT, one.kernel.recoverable)
    if not one.recoverable > 0 or not one.kernel.seconds > 0 or told:
        return []
    return [f"about {as_percent(one.recoverable / one.kernel.seconds)} less time, {_seconds(one.recoverable)}"]


def _lines(text: str, width: int, indent: str = "", *, first: str = "") -> list[str]:
    return wrapped(text, width, indent, first=first, whole=True)


def _remarks(told: Told, width: int, brief: bool, whole: bool) -> Iterable[list[str]]:
    """What rules could not say, once for all launches, which did not run, what they did not get, and what is left out."""
    if brief and told.found:
        more = sum(len(_worth_a_line(mine)[_MOST_FINDINGS:]) for mine in _by_kernel(told.found))
        which = f"{more:,} more finding{'' if more == 1 else 's'}, and all" if more else "all findings"
        yield _lines(f"--verbose shows {which} in full.", width)
    elif told.silences and whole:
        full = [f"{one.rule} ({one.launches} of {told.launches} launches): {one.text}" for one in told.silences]
        yield ["What rules could not tell:", *(line for text in full for line in _lines(text, width, "  ", first="  "))]
    elif silent := _silent(told):
        yield _lines(f"Without advice: {', '.join(silent)}. --all-findings shows why.", width)
    if told.skipped:
        count = sum(told.skipped.values())
        which = f"{count} rule{' did' if count == 1 else 's did'} not run: {'; '.join(told.skipped)}."
        yield _lines(f"{which} --all-rules runs those of other sections as well.", width)
    for note in told.notes:
        yield _lines(f"{note[0].upper()}{note[1:].removesuffix('.')}.", width)
    if told.minor:
        said = f"{told.minor:,} finding{' is' if told.minor == 1 else 's are'} left out"
        also = f"{left_out_text(told).removesuffix('.')}, and {told.minor:,}" if left_out_text(told) else f"{said},"
        yield _lines(f"{also} worth less than {as_percent(WORTH)} of the run time each: --all-findings shows them.", width)
    else:
        yield _lines(left_out_text(told), width)


def _silent(told: Told) -> list[str]:
    """The rules that told nothing, with the number of launches where it is not all."""
    count: Counter[str] = Counter()
    for one in filter(attrgetter("alone"), told.silences):
        count[one.rule] += one.launches
    return [
        rule if times >= told.launches else f"{rule} ({times} of {told.launches} launches)" for rule, times in count.items()
    ]
