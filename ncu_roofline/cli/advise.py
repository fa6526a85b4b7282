"""`ncu-roofline advise`: what rules say about existing reports, offline."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.cli.ceilings import wanted
from ncu_roofline.cli.options import CeilingsOption, LaunchOptions, ReportOptions, flag, option
from ncu_roofline.cli.outputs import progress, terminal_width, warn, write_text
from ncu_roofline.errors import UsageError
from ncu_roofline.files import pack_folder

if TYPE_CHECKING:
    from ncu_roofline.nvrules import RuleSet
    from ncu_roofline.nvrules.text import ReportAdvice


@dataclass(frozen=True, kw_only=True)
class Request:
    """Which reports, which rules, and how much of what they say."""

    EPILOG: ClassVar[str] = "Rules are Python programs and run with your rights: name only folders that you trust."
    reports: ReportOptions
    launches: LaunchOptions
    rules: tuple[str, ...] = option(
        "folder with rules instead of ours, such as the sections folder of Nsight Compute; may be repeated",
        "DIR",
        action="append",
    )
    all_rules: bool = flag("also rules of sections that the report was not made with")
    all_findings: bool = flag("also what concerns less than 1 %% of the run time of the report's launches")
    measured: CeilingsOption
    json: bool = flag("the same as JSON on standard output")


def run(request: Request) -> int:
    """Print the advice; exit code 1 only if a report could not be read."""
    from ncu_roofline.cli.reading import expand, for_each_report, no_launch
    from ncu_roofline.model.roofline import check_ceilings
    from ncu_roofline.nvrules.text import as_dict, as_text

    given = request.measured.ceilings
    named = wanted(given)
    if given and request.rules:
        reason = "they are for the rules that come with ncu-roofline"
        raise UsageError("Cannot use --ceilings", given[0], reason, "Leave out --rules or --ceilings.")
    # Which GPUs the reports are of is known when they are read, so the rules get the ceilings of all.
    rules = _Rules.of(request.rules, named.all)
    with rules.loaded():  # says at once what is wrong with a folder
        pass
    # A bar over the launches; with several reports there is one over these.
    watched = len(expand(request.reports.reports)) == 1 and not request.reports.dask
    found, failed = for_each_report(request.reports, partial(_advise, request=request, rules=rules, watched=watched))
    if not any(one.kernels for one in found):
        raise no_launch(request.reports, request.launches)
    devices = [device for one in found for device in one.devices]
    check_ceilings(named.files, devices)
    named.of(devices)
    warn(f"Left out {problem.path}: {problem.reason}." for one in found for problem in one.problems)
    if request.json:
        write_text(json.dumps([as_dict(one) for one in found], indent=2))
    else:
        write_text("\n\n".join(as_text(one, terminal_width(100)) for one in found))
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
        from ncu_roofline.nvrules import rendered_rules

        if not self.rendered:
            folders = self.given or (str(pack_folder("rules")),)
            yield _loaded_once(folders, tuple(_state(folder) for folder in folders))
            return
        with rendered_rules(self.rendered) as rules:
            yield rules


@lru_cache(maxsize=1)
def _loaded_once(folders: tuple[str, ...], _states: tuple[object, ...]) -> RuleSet:
    """Reading rules takes as long as running them on fifty launches, so not for each report anew."""
    from ncu_roofline.nvrules import load_rules

    return load_rules(folders)


def _state(folder: str) -> object:
    """What changes with the rules in a folder, or with a single file of them; None where there is nothing to read."""
    with contextlib.suppress(OSError):
        files = sorted(Path(folder).glob("*.py")) if os.path.isdir(folder) else [Path(folder)]
        return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return None


def _advise(path: str, name: str, request: Request, rules: _Rules, watched: bool) -> ReportAdvice:
    from ncu_roofline.cli.reading import check_kernels, launches
    from ncu_roofline.inputs import check_report
    from ncu_roofline.model import measurements_of
    from ncu_roofline.model.plausible import left_out
    from ncu_roofline.nvrules import advise, worth_telling
    from ncu_roofline.nvrules.text import ReportAdvice
    from ncu_roofline.report import read_report

    check_report(path, "rules read more of a report than its metrics")
    with read_report(path) as report, rules.loaded() as loaded:
        check_kernels(report)
        measurements = launches(request.launches).launches(measurements_of(report, label=name))
        watch = partial(progress, what="running rules", total=len(measurements)) if watched else iter
        collected_only = bool(request.rules) and not request.all_rules
        found = advise(report, loaded, measurements, collected_only=collected_only, watch=watch)
        kept, hidden = (found, 0) if request.all_findings else worth_telling(found)
        return ReportAdvice(
            report=name,
            ncu_version=report.ncu_version,
            devices=tuple(dict.fromkeys(zip(measurements.device, measurements.capability, strict=True))),
            kernels=kept,
            problems=loaded.problems,
            left_out=hidden,
            notes=(*report.warnings, *left_out(measurements)),
        )
