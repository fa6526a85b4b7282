"""What rules say about a report, as text and for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ncu_roofline.nvrules.advice import WORTH, KernelAdvice, plain_text
from ncu_roofline.nvrules.context import RuleOutcome
from ncu_roofline.nvrules.loading import RuleProblem
from ncu_roofline.rendering.table import wrapped
from ncu_roofline.report import RuleMessage
from ncu_roofline.texts import printable
from ncu_roofline.units import format_value

_TYPES = {"optimization": "try", "warning": "note"}


@dataclass(frozen=True)
class ReportAdvice:
    """The advice on one report, its GPUs, rule files that could not be used, and how many messages are not worth telling.

    ``notes``: what the rules did not get, since it can't be.
    """

    report: str
    ncu_version: str
    devices: tuple[tuple[str, tuple[int, int]], ...]
    kernels: tuple[KernelAdvice, ...]
    problems: tuple[RuleProblem, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()


def as_text(one: ReportAdvice, width: int) -> str:
    """The advice in lines of at most ``width`` characters, but for longer words and heads."""
    devices = ", ".join(name for name, _ in one.devices) or "no GPU named"
    launches = f"{len(one.kernels)} launch{'' if len(one.kernels) == 1 else 'es'}"
    head = f"{one.report}: {launches}, {devices}, Nsight Compute {one.ncu_version or 'of unknown release'}"
    blocks = [printable(head), *(_kernel_text(kernel, width) for kernel in one.kernels), *_remarks(one.kernels, width)]
    blocks += ["\n".join(_wrapped(f"{note[0].upper()}{note[1:]}.", width, "")) for note in one.notes]
    if one.left_out:
        said = f"{one.left_out} message{' is' if one.left_out == 1 else 's are'} left out"
        note = f"{said}, each worth less than {WORTH:.0%} of the run time of all launches. --all-findings shows them."
        blocks.append("\n".join(_wrapped(note.replace("%", " %"), width, "")))
    return "\n\n".join(blocks)


def _kernel_text(one: KernelAdvice, width: int) -> str:
    facts = [f"launch {one.launch}", f"grid {one.grid}" if one.grid else "", f"block {one.block}" if one.block else ""]
    facts.append(format_value(one.seconds, "second", 3) if one.seconds > 0 else "")
    lines = [printable(f"{one.kernel} ({', '.join(fact for fact in facts if fact)})")]
    for outcome, message in one.messages():
        if message.type != "none":
            lines += _message_lines(outcome, message, width)
    if len(lines) == 1:
        lines.append("  nothing to say")
    return "\n".join(lines)


def _message_lines(outcome: RuleOutcome, message: RuleMessage, width: int) -> list[str]:
    title = message.title or outcome.name
    gain = ""
    if message.speedup is not None:
        of_what = "of the kernel's time" if message.speedup_type == "global" else "of one unit's time"
        gain = f", up to {message.speedup:.0f} % {of_what}"
    head = f"  {_TYPES.get(message.type, message.type)}: {title} [{outcome.identifier}{gain}]"
    return [printable(head), *_wrapped(plain_text(message.text), width, "      ")]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrapped(text.split("\n"), width, indent, first=indent, whole=True)


def _remarks(kernels: Sequence[KernelAdvice], width: int) -> list[str]:
    """What rules could not say, once for all launches, and which rules did not run."""
    silent = Counter(
        (outcome.identifier, plain_text(message.text))
        for kernel in kernels
        for outcome, message in kernel.messages()
        if message.type == "none"
    )
    lines = []
    for (rule, text), count in silent.items():
        lines += _wrapped(f"{rule} ({count} of {len(kernels)} launches): {text}", width, "  ")
    skipped = Counter(outcome.reason for kernel in kernels for outcome in kernel.skipped())
    rules = {outcome.identifier for kernel in kernels for outcome in kernel.skipped()}
    blocks = ["\n".join(["Without advice:", *lines])] if lines else []
    if skipped:
        reasons = "; ".join(sorted(skipped))
        note = f"{len(rules)} rules did not run: {reasons}. --all-rules runs those of other sections as well."
        blocks.append("\n".join(_wrapped(note, width, "")))
    return blocks


def as_dict(one: ReportAdvice) -> dict[str, object]:
    """The advice for JSON."""
    return {
        "report": one.report,
        "ncu_version": one.ncu_version,
        "left_out": one.left_out,
        "notes": list(one.notes),
        "kernels": [
            {
                "launch": kernel.launch,
                "kernel": kernel.kernel,
                "name": kernel.name,
                "rules": [_outcome_dict(outcome) for outcome in kernel.outcomes],
            }
            for kernel in one.kernels
        ],
    }


def _outcome_dict(outcome: RuleOutcome) -> dict[str, object]:
    fields = asdict(outcome)
    del fields["path"]
    for message in fields["messages"]:
        message["plain"] = plain_text(message["text"])
    return fields
