"""What rules say to collect, made fit for the release of Nsight Compute that a report was made with.

Rules don't know that release: in Nsight Compute they run in the one that collects, here in any.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ncu_roofline.model.collecting import OPCODES_SINCE, OPS_PATH_SINCE, counts_tensor_operations, release_of, release_text
from ncu_roofline.report import RuleMessage
from ncu_roofline.rules.outcome import RuleOutcome

_OURS = "NcuRoofline"
# Sections of ours and of Nsight Compute that count tensor operations.
_TENSOR_SECTION = re.compile(r"@section:\w*HierarchicalTensor\w*:")
# What to collect, up to its purpose or the end of the sentence.
_COLLECT = re.compile(r"\b(?P<verb>[Cc]ollect) (?P<what>.*?)(?= to see |\.(?:\s|$))")
_OPCODES = "counts per opcode (section @section:SourceCounters:SourceCounters@)"
_WHY = f" Operations of tensor cores are counted from Nsight Compute {release_text(OPS_PATH_SINCE)} on, not by {{}}."


def collectable(outcome: RuleOutcome, ncu_version: str) -> RuleOutcome:
    """The outcome of a rule of ours, its messages without metrics and sections that the release can't collect.

    Operations of tensor cores are counted from 2023.3 on; before, counts per opcode tell them.
    """
    release = release_of(ncu_version)
    if release >= OPS_PATH_SINCE or not outcome.identifier.startswith(_OURS):
        return outcome
    if not any("ollect " in one.text for one in outcome.messages):
        return outcome
    instead = _OPCODES if release >= OPCODES_SINCE else ""
    return replace(outcome, messages=tuple(_fit(one, instead, release_text(release)) for one in outcome.messages))


def _fit(message: RuleMessage, instead: str, release: str) -> RuleMessage:
    def wanted(found: re.Match[str]) -> str:
        parts = found["what"].split(", ")
        kept = [part for part in parts if not _is_tensor(part)]
        if len(kept) == len(parts):
            return found[0]
        kept = [part for part in kept if part != "..."] + [instead] * bool(instead)
        return f"{found['verb']} {', '.join(kept) if kept else 'a report with a later release'}"

    text = _COLLECT.sub(wanted, message.text)
    return message if text == message.text else replace(message, text=text + _WHY.format(release))


def _is_tensor(part: str) -> bool:
    return counts_tensor_operations(part) or _TENSOR_SECTION.search(part) is not None
