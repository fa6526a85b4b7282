"""Advice as JSON."""

from __future__ import annotations

import json
from typing import Any

from ncu_roofline.plugin.nvrules.findings import Finding, known
from ncu_roofline.plugin.nvrules.telling import BARE, FULL, Told

SCHEMA = "ncu-roofline-advice"
SCHEMA_VERSION = 1


def as_json(told: Told, *, compact: bool = False) -> str:
    """The advice as one strict JSON document; ``compact`` without blanks, line ends, reports and all launches but the longest.

    The keys: ``schema``, ``schema_version``; ``reports``: each with report and ncu_version; ``gpus``: each with device and
    sentences; ``findings``, what could save most time first; ``without_advice``: each with rule, text and launches (a number);
    ``notes``, such as that on clocks; ``left_out``: the numbers of findings that are worth too little (minor), of other
    findings, of notes (without_advice counts as notes), and of texts and sentences that are not there in full.

    A finding has: ``id``, 12 hexadecimal digits that stand for its kernel, rule and title without numbers: the same in any
    report, there once per GPU.  ``device``, ``kernel`` (short name), ``name`` (full name), ``rule`` (identifier), ``type``
    (optimization, warning, ok or error), ``title``, ``text`` (plain).  ``spoken``: whose numbers are in title and text:
    "ranges" over the launches, those of the "longest launch", or "" where all say the same.  ``count``: how many launches it is
    said of; ``launches``: these, each with report and launch (position in the report), the longest first.  ``seconds``: their
    time, ``share``: that as a part of the time of all launches on the GPU (0 to 1).  ``recoverable``: seconds that the rule
    promises to save, of the verdict all that these launches could save; null where nothing is promised or known.  What
    findings on one kernel promise is the same time: not to be added up.  ``speedup``: what that makes of ``seconds``, a
    ratio: seconds / (seconds - recoverable); null where recoverable is.

    With a budget ``reports`` is empty, ``launches`` holds the longest one only, and numbers have four digits; where room is
    short ``text`` and ``sentences`` are the first sentence or none, ``name`` is left out, and minor findings are counted with
    the others.  Where no finding would fit so, ``sentences`` is empty, and a finding has ``id``, ``kernel``, ``rule``,
    ``type``, ``title`` and the four numbers only (of several GPUs ``device`` as well).
    """
    most = {FULL: None, BARE: 0}.get(told.detail, 1)
    silent = told.shortened + told.sentences_left_out + sum(len(said) - len(said[:most]) for said in told.sentences.values())
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "reports": [{"report": report, "ncu_version": release} for report, release in (() if compact else told.reports)],
        "gpus": [{"device": device, "sentences": list(said[:most])} for device, said in told.sentences.items()],
        "findings": [_finding(told, one, compact) for one in told.found],
        "without_advice": [{"rule": one.rule, "text": one.text, "launches": one.launches} for one in told.silences],
        "notes": [*told.notes, *(f"{count} rules did not run: {reason}" for reason, count in told.skipped.items())],
        "left_out": {"minor": told.minor, "findings": told.left_out, "notes": told.notes_left_out, "texts": silent},
    }
    if compact:
        return json.dumps(document, allow_nan=False, separators=(",", ":"))
    return json.dumps(document, allow_nan=False, indent=2)


def _finding(told: Told, one: Finding, compact: bool) -> dict[str, Any]:
    launches = one.launches[:1] if compact else one.launches
    numbers = {"seconds": one.seconds, "share": one.share, "recoverable": one.recoverable, "speedup": one.speedup}
    values = {name: _number(value, compact) for name, value in numbers.items()}
    if told.detail == BARE:
        who = {"device": one.kernel.device} if len(told.sentences) > 1 else {}
        told_apart = {"kernel": one.kernel.name, "rule": one.rule, "type": one.type, "title": one.title}
        return {"id": one.id, **who, **told_apart, **values}
    return {
        "id": one.id,
        "device": one.kernel.device,
        "kernel": one.kernel.name,
        **({"name": one.kernel.full_name} if told.detail == FULL else {}),
        "rule": one.rule,
        "type": one.type,
        "title": one.title,
        "text": told.said_of(one),
        "spoken": one.spoken,
        "count": len(one.launches),
        "launches": [{"report": report, "launch": launch} for report, launch in launches],
        **values,
    }


def _number(value: float, compact: bool) -> float | None:
    return known(float(f"{value:.4g}") if compact else value)
