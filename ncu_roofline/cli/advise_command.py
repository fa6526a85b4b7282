"""`ncu-roofline advise`: what rules say about existing reports, offline."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

from ncu_roofline import files as pack
from ncu_roofline.ceilings import Ceilings, read_ceilings
from ncu_roofline.cli.inputs import expand
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.cli.progress import progress
from ncu_roofline.cli.reading import check_kernels, for_each_report, no_launch, selection
from ncu_roofline.errors import UsageError, printable
from ncu_roofline.inputs import check_report
from ncu_roofline.model import Selection, measurements_of
from ncu_roofline.model.roofline import check_ceilings
from ncu_roofline.nvrules import (
    WORTH,
    KernelAdvice,
    RuleOutcome,
    RuleProblem,
    RuleSet,
    advise,
    load_rules,
    plain_text,
    worth_telling,
)
from ncu_roofline.rendering.table import wrapped
from ncu_roofline.report import RuleMessage, read_report
from ncu_roofline.units import format_value

_TYPES = {"optimization": "try", "warning": "note"}
_MINIMUM_WIDTH = 60


@dataclass(frozen=True)
class ReportAdvice:
    """The advice on one report, its GPUs, rule files that could not be used, and how many messages are not worth telling."""

    report: str
    ncu_version: str
    devices: tuple[tuple[str, tuple[int, int]], ...]
    kernels: tuple[KernelAdvice, ...]
    problems: tuple[RuleProblem, ...]
    left_out: int = 0


def run(args: argparse.Namespace) -> int:
    """Print the advice; exit code 1 only if a report could not be read."""
    ceilings = [read_ceilings(path) for path in args.ceilings]
    if ceilings and args.rules:
        reason = "they are for the rules that come with ncu-roofline"
        raise UsageError("Cannot use --ceilings", args.ceilings[0], reason, "Leave out --rules or --ceilings.")
    rules = _Rules.of(args.rules, ceilings)
    with rules.loaded():  # says at once what is wrong with a folder
        pass
    collected_only = bool(args.rules) and not args.all_rules
    # With several reports there is a bar over these.
    watched = len(expand(args.reports)) == 1 and not args.dask
    asked = _Asked(selection(args), rules, collected_only, args.all_findings, watched)
    found, failed = for_each_report(args, partial(_advise, asked=asked))
    if not any(one.kernels for one in found):
        raise no_launch(args)
    check_ceilings(ceilings, [device for one in found for device in one.devices])
    for problem in dict.fromkeys(problem for one in found for problem in one.problems):
        say(f"ncu-roofline: Left out {problem.path}: {problem.reason}.")
    if args.json:
        write_text(json.dumps([_as_dict(one) for one in found], indent=2))
    else:
        width = max(shutil.get_terminal_size((100, 24)).columns, _MINIMUM_WIDTH)
        write_text("\n\n".join(_text(one, width) for one in found))
    return 1 if failed else 0


@dataclass(frozen=True)
class _Rules:
    """Which rules to run: those of the ``given`` folders, else ours as ``rendered`` (name and text of files), else ours."""

    given: tuple[str, ...] = ()
    rendered: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, given: Sequence[str], ceilings: Sequence[Ceilings]) -> _Rules:
        """Ours are rendered anew where measured ceilings have to go in."""
        if given or not ceilings:
            return cls(tuple(os.path.abspath(folder) for folder in given))
        from ncu_roofline.generate.rules import render_rules

        return cls(rendered=tuple(render_rules(ceilings=ceilings).items()))

    @contextlib.contextmanager
    def loaded(self) -> Iterator[RuleSet]:
        """The rules, usable while the context lasts.  Works on other machines as well, given folders there provided."""
        if not self.rendered:
            folders = self.given or (str(pack.folder("rules")),)
            yield _loaded_once(folders, tuple(_state(folder) for folder in folders))
            return
        with tempfile.TemporaryDirectory(prefix="ncu-roofline-rules-") as folder:
            for name, text in self.rendered:
                (Path(folder) / name).write_text(text, encoding="utf-8")
            yield load_rules((folder,))


@lru_cache(maxsize=1)
def _loaded_once(folders: tuple[str, ...], _states: tuple[object, ...]) -> RuleSet:
    """Reading rules takes as long as running them on fifty launches, so not for each report anew."""
    return load_rules(folders)


def _state(folder: str) -> object:
    """What changes with the rules in a folder, or with a single file of them; None where there is nothing to read."""
    with contextlib.suppress(OSError):
        files = sorted(Path(folder).glob("*.py")) if os.path.isdir(folder) else [Path(folder)]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return None


@dataclass(frozen=True)
class _Asked:
    """What the command line asks for; ``watched`` shows a bar over the launches."""

    select: Selection
    rules: _Rules
    collected_only: bool
    all_findings: bool
    watched: bool


def _advise(path: str, name: str, asked: _Asked) -> ReportAdvice:
    check_report(path, "rules read more of a report than its metrics")
    with read_report(path) as report, asked.rules.loaded() as rules:
        check_kernels(report)
        measurements = asked.select.launches(measurements_of(report, label=name))
        watch = partial(progress, what="running rules", total=len(measurements)) if asked.watched else iter
        found = advise(report, rules, measurements, collected_only=asked.collected_only, watch=watch)
        kept, left_out = (found, 0) if asked.all_findings else worth_telling(found)
        return ReportAdvice(
            report=name,
            ncu_version=report.ncu_version,
            devices=tuple(dict.fromkeys(zip(measurements.device, measurements.capability, strict=True))),
            kernels=kept,
            problems=rules.problems,
            left_out=left_out,
        )


def _text(one: ReportAdvice, width: int) -> str:
    devices = ", ".join(name for name, _ in one.devices) or "no GPU named"
    launches = f"{len(one.kernels)} launch{'' if len(one.kernels) == 1 else 'es'}"
    head = f"{one.report}: {launches}, {devices}, Nsight Compute {one.ncu_version or 'of unknown release'}"
    blocks = [printable(head), *(_kernel_text(kernel, width) for kernel in one.kernels), *_remarks(one.kernels, width)]
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
    return wrapped("\n".join(map(printable, text.splitlines())), width, indent, first=indent, whole=True)


def _remarks(kernels: Sequence[KernelAdvice], width: int) -> list[str]:
    """What rules could not say, once for all launches, and which rules did not run."""
    silent = Counter(
        (outcome.identifier, plain_text(message.text))
        for one in kernels
        for outcome, message in one.messages()
        if message.type == "none"
    )
    lines = []
    for (rule, text), count in silent.items():
        lines += _wrapped(f"{rule} ({count} of {len(kernels)} launches): {text}", width, "  ")
    skipped = Counter(outcome.reason for one in kernels for outcome in one.skipped())
    rules = {outcome.identifier for one in kernels for outcome in one.skipped()}
    blocks = ["\n".join(["Without advice:", *lines])] if lines else []
    if skipped:
        reasons = "; ".join(sorted(skipped))
        note = f"{len(rules)} rules did not run: {reasons}. --all-rules runs those of other sections as well."
        blocks.append("\n".join(_wrapped(note, width, "")))
    return blocks


def _as_dict(one: ReportAdvice) -> dict[str, object]:
    return {
        "report": one.report,
        "ncu_version": one.ncu_version,
        "left_out": one.left_out,
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
