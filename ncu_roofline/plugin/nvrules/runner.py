"""Loading rules from folders and running them on launches of a report, in the order and under the conditions of Nsight Compute.

Rules import their neighbours and NvRules by plain names.  They get these by an ``__import__`` of their own, from tables that no
other module sees: two folders may have helpers of one name, and nothing is left behind.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from os import PathLike
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import temporary_folder
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.fields import release_text
from ncu_roofline.chips.formulas import OF_ACTIVE, Counted
from ncu_roofline.chips.ncu import OPS_PATH_SINCE
from ncu_roofline.chips.verdict import Share
from ncu_roofline.formats.report import Kernel, Report, RuleMessage, RuleResult
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import OPCODES_SINCE, counts_tensor_operations, release_of
from ncu_roofline.model.measurements import Measurements, Quantity
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.plugin.nvrules.interface import NAME, IAction, IContext, IFrontend, Vault, make_module

DONE, ERROR, SKIPPED = "done", "error", "skipped"
_LINK = re.compile(r"@(?:(?:section|source|sass):(?:[^@:\n]*:)+(?P<text>[^@:\n]*)|url:(?P<label>[^@:\n]*):(?P<url>[^@\s]+))@")
OURS = "NcuRoofline"
"""What the identifiers of our rules begin with."""
# Sections of ours and of Nsight Compute that count tensor operations.
_TENSOR_SECTION = re.compile(r"@section:\w*HierarchicalTensor\w*:")
# What to collect, up to its purpose or the end of the sentence; never past the next word like it, which keeps it linear.
_COLLECT = re.compile(r"\b(?P<verb>[Cc]ollect) (?P<what>(?:(?![Cc]ollect ).)*?)(?= to see |\.(?:\s|$))")
_OPCODES = "counts per opcode (section @section:SourceCounters:SourceCounters@)"
_WHY = f" Operations of tensor cores are counted from Nsight Compute {release_text(OPS_PATH_SINCE)} on, not by {{}}."
Known = dict[object, object]
"""By (name of a rule's method, id or None): what it would work out."""
_NEXT_STEP = "Give a folder with rules of Nsight Compute (.py files), such as the sections folder of an installation."


class RuleProblem(NamedTuple):
    """A file that is no usable rule, which ncu would leave out without a word."""

    path: str
    reason: str


@dataclass(frozen=True)
class RuleOutcome:
    """One rule on one kernel.

    ``status`` is "done", "error" (its last message says which) or "skipped" (``reason`` says why it was not run, as Nsight
    Compute would not have run it).  ``markers`` counts source markers.
    """

    identifier: str
    name: str
    section: str
    path: str
    status: str = DONE
    reason: str = ""
    messages: tuple[RuleMessage, ...] = ()
    markers: int = 0

    def as_result(self) -> RuleResult:
        """The form in which reports store it."""
        return RuleResult(self.identifier, self.name, self.section, self.messages)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """While inside, what rules print goes to standard error, and their warnings nowhere; what they did to ``sys.path`` goes."""
    before, sys.dont_write_bytecode = (list(sys.path), sys.dont_write_bytecode), True
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.path[:], sys.dont_write_bytecode = before


class Rule(NamedTuple):
    """A rule ready to run."""

    identifier: str
    name: str
    section: str
    parents: tuple[str, ...]
    path: Path
    module: ModuleType
    namespace: RuleModules

    def run(self, action: IAction, vault: Vault, sections: Collection[str] | None, known: Collection[str]) -> RuleOutcome:
        """The rule on a kernel; not of sections beside ``sections``, if given, nor if it needs rules that are not ``known``."""
        frontend = IFrontend(self.identifier, self.path.parent, self.parents, vault)
        context = IContext(action, frontend)
        status, reason = SKIPPED, ""
        if sections is not None and self.section and self.section not in sections:
            reason = f"section {self.section} was not collected"
        else:
            try:
                if callable(getattr(self.module, "evaluate", None)):
                    self.module.evaluate(context)
                needed = context.evaluator
                lacking = [f"metric {one} was not collected" for one in needed.metrics if action.metric_by_name(one) is None]
                lacking += [f"there is no rule {one}" for one in needed.rules if one not in known]
                reason = "; ".join(dict.fromkeys(lacking))
                if not reason:
                    self.module.apply(context)
                    status = DONE
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a rule may raise anything, SystemExit included
                status, reason = ERROR, _described(error)
                frontend.add("error", f"Rule {self.name} returned an error: {reason}")
        own, messages = (self.identifier, self.name, self.section, str(self.path)), tuple(frontend.messages)
        return RuleOutcome(*own, status, reason, messages, frontend.markers)


class RuleSet(NamedTuple):
    """Rules, loaded once for many kernels.  Rules are programs: they run with the rights of whoever loads them."""

    rules: tuple[Rule, ...]
    problems: tuple[RuleProblem, ...]

    def run(
        self, kernel: Kernel, *, collected_only: bool = False, known: Mapping[object, object] | None = None
    ) -> tuple[RuleOutcome, ...]:
        """Every rule on one kernel, parents first.

        ``known`` is what a `Lender` knows of it, for rules of ours.  With ``collected_only``, rules of a section that the
        kernel was not profiled with are skipped, as ncu does.
        """
        sections = {section_identifier(section) for section in kernel.sections} if collected_only else None
        action, vault = IAction(kernel, known), Vault(dict)
        identifiers = {rule.identifier for rule in self.rules}
        with _quiet():
            return tuple([rule.run(action, vault, sections, identifiers) for rule in self.rules])


@lru_cache(maxsize=256)
def section_identifier(section: bytes) -> str:
    """The identifier of a serialized section, "" if it is none; kept, as kernels mostly carry the same, byte for byte."""
    try:
        return parse_section(section).identifier
    except ValueError:
        return ""


class _Loader(SourceFileLoader):
    """Takes bytecode where it lies beside a rule, but writes none; compiling takes longer than running a rule."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        return _compiled(bytes(data), path)


@lru_cache(maxsize=64)
def _compiled(text: bytes, path: str) -> CodeType:
    code: CodeType = compile(text, path, "exec", dont_inherit=True)
    return code


class RuleModules:
    """The modules of some folders, which their rules import by plain names before all others but Python's own."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders, self.modules = folders, {NAME: make_module()}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str, file: Path) -> ModuleType:
        """A module from a file, executed once."""
        if name in self.modules:
            return self.modules[name]
        module = self.modules[name] = ModuleType(name)
        vars(module).update(__file__=str(file), __package__="", __builtins__=self._builtins)
        try:
            exec(_Loader(name, str(file)).get_code(name), vars(module))  # type: ignore[arg-type]
        except BaseException:
            del self.modules[name]
            raise
        return module

    def _import(
        self, name: str, own: Mapping[str, Any] | None = None, local: object = None, wanted: Sequence[str] = (), level: int = 0
    ) -> Any:
        if name not in sys.stdlib_module_names and "." not in name:
            if name in self.modules:
                return self.modules[name]
            if (file := next(filter(Path.is_file, (folder / f"{name}.py" for folder in self._folders)), None)) is not None:
                return self.load(name, file)
        return __import__(name, own, local, wanted, level)  # type: ignore[arg-type]


def load_rules(folders: Iterable[str | PathLike[str]]) -> RuleSet:
    """The rules in these folders, or single rule files, parents first.

    Of several rules with one identifier the first counts.  Raises RooflineError for a folder without any rule; files that
    are broken are listed in ``problems``.
    """
    places = [Path(folder) for folder in folders]
    parents = [place.parent if place.suffix == ".py" else place for place in places]
    found: dict[str, Rule] = {}
    problems: list[RuleProblem] = []
    for place, parent in zip(places, parents, strict=True):
        try:
            files = sorted(path for path in parent.iterdir() if path.suffix == ".py" and path.stem != NAME and path.is_file())
        except OSError as error:
            raise RooflineError("Cannot read rules", place, error.strerror or str(error), _NEXT_STEP) from error
        modules = RuleModules([one.resolve() for one in dict.fromkeys([parent, *parents])])
        rules = [rule for path in (files if place == parent else [place]) if (rule := _load(path, modules, problems))]
        if not rules:
            reason = f"{problems[-1].path}: {problems[-1].reason}" if problems else "it holds no rule"
            raise RooflineError("Cannot use rules", place, reason, _NEXT_STEP)
        for rule in rules:
            found.setdefault(rule.identifier, rule)
    ordered: dict[str, Rule | None] = {}  # each rule after those that it names as parents

    def visit(name: str) -> None:
        if name in found and name not in ordered:
            ordered[name] = None  # so that a circle ends here
            for parent in found[name].parents:
                visit(parent)
            del ordered[name]
            ordered[name] = found[name]

    for name in found:
        visit(name)
    return RuleSet(tuple(filter(None, ordered.values())), tuple(problems))


def _load(path: Path, modules: RuleModules, problems: list[RuleProblem]) -> Rule | None:
    """The rule in a file, None for a helper of rules and for what is no usable rule, which joins the problems."""
    try:
        with _quiet():
            module = modules.load(path.stem, path)
            if not all(callable(getattr(module, one, None)) for one in ("get_identifier", "apply")):
                return None
            asked = (getattr(module, f"get_{one}", str) for one in ("identifier", "name", "section_identifier"))
            identifier, name, section = (str(ask() or "") for ask in asked)
            parents = tuple(map(str, getattr(module, "get_parent_rules_identifiers", tuple)()))
            return Rule(identifier, name or identifier, section, parents, path, module, modules)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule may raise anything, SystemExit included
        problems.append(RuleProblem(str(path), _described(error)))
        return None


@contextlib.contextmanager
def rendered_rules(texts: Iterable[tuple[str, str]]) -> Iterator[RuleSet]:
    """Rules from the names and texts of their files, usable while the context lasts."""
    with temporary_folder({name: text.encode() for name, text in texts}) as folder:
        yield load_rules((folder,))


def _described(error: BaseException) -> str:
    """An exception in a few words, with the place in the rule's file where it came up."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno})" if where is not None else ""
    text = str(error).strip() or type(error).__name__
    return f"{text}{place}" if isinstance(error, SystemError) else f"{type(error).__name__}: {text}{place}"


# Rules on launches, with numbers that the model has computed.


def plain_text(message: str) -> str:
    """The message without ``@section:id:text@`` and the like: the texts stay, web addresses follow theirs in parentheses."""
    if "@" not in message:
        return message
    return _LINK.sub(lambda link: f"{link['label']} ({link['url']})" if link["url"] else link["text"], message)


def collectable(outcome: RuleOutcome, ncu_version: str) -> RuleOutcome:
    """The outcome of a rule of ours, its messages without metrics and sections that the release can't collect.

    Operations of tensor cores are counted from 2023.3 on; before, counts per opcode tell them.
    """
    release = release_of(ncu_version)
    if release >= OPS_PATH_SINCE or not outcome.identifier.startswith(OURS):
        return outcome

    def instead(found: re.Match[str]) -> str:
        parts = found["what"].split(", ")
        kept = [part for part in parts if not (counts_tensor_operations(part) or _TENSOR_SECTION.search(part))]
        if len(kept) == len(parts):
            return found[0]
        kept = [part for part in kept if part != "..."] + ([_OPCODES] if release >= OPCODES_SINCE else [])
        return f"{found['verb']} {', '.join(kept) if kept else 'a report with a later release'}"

    texts = [_COLLECT.sub(instead, message.text) for message in outcome.messages]
    why = _WHY.format(release_text(release))
    pairs = zip(outcome.messages, texts, strict=True)
    return replace(outcome, messages=tuple(one if one.text == text else replace(one, text=text + why) for one, text in pairs))


class Lender:
    """The numbers of all launches of some measurements, taken apart once."""

    def __init__(self, m: Measurements) -> None:
        spec, self._missing = load_spec(), [None] * len(m)
        self._lent: dict[tuple[str, str | None], Sequence[object]] = {}
        adding = {p.id: self._values(m.summands.get(p.id)) for p in spec.precisions if p.unit == "flop" and p.adds}
        # What is not to be added besides, launch by launch.
        twice = [tuple(name for name, values in adding.items() if values[row] is None) for row in range(len(m))]
        for p in spec.precisions:
            self._lent["work", p.id] = self._counted(m.work.get(p.id), self._values(m.fused.get(p.id)), twice)
            self._lent["compute_roof", p.id] = self._values(m.compute.get(p.roof))
        for level in spec.levels:
            self._lent["traffic", level.id] = self._counted(m.traffic.get(level.id), self._missing, [()] * len(m))
            self._lent["bandwidth_roof", level.id] = self._values(m.bandwidth.get(level.id))
            self._lent["rate_share", level.id] = self._values(m.shares.get(level.id))
        for unit in load_units().units:
            quantity = m.units.get(unit.id, Quantity.missing(len(m)))
            facts = zip(self._values(quantity), quantity.is_lower_bound().tolist(), quantity.choice.tolist(), strict=True)
            of_active = [origin.note == OF_ACTIVE for origin in quantity.origins]
            self._lent["busy", unit.id] = [
                None if value is None else Share(value, lower, of_active[choice]) for value, lower, choice in facts
            ]
        self._lent["tensor_gap", None] = m.tensor_gaps.tolist()
        self._lent["tensor_active", None] = [share if math.isfinite(share) else None for share in m.tensor_active.tolist()]

    def of(self, row: int) -> Known:
        """What is known of the launch at position ``row``, None for what is missing; a new dictionary."""
        known: Known = {key: column[row] for key, column in self._lent.items()}
        active = known["tensor_active", None]
        if active is not None:  # else the report may tell of active cycles only
            known["tensor_share", None] = Share(active, False, False)
        return known

    def _values(self, quantity: Quantity | None) -> Sequence[float | None]:
        """The values, None where unknown."""
        found = self._missing if quantity is None else quantity.values.tolist()
        return [value if value is not None and math.isfinite(value) else None for value in found]

    def _counted(
        self, quantity: Quantity | None, fused: Sequence[float | None], twice: Sequence[tuple[str, ...]]
    ) -> Sequence[Counted | None]:
        if quantity is None:
            return self._missing
        origins = [(origin.metrics.split(", "), origin.note, origin.lower_bound) for origin in quantity.origins]
        found: list[Counted | None] = []
        for value, choice, part, names in zip(self._values(quantity), quantity.choice.tolist(), fused, twice, strict=True):
            metrics, note, lower = origins[choice] if choice >= 0 else ([], "", False)
            found.append(None if value is None or choice < 0 else Counted(value, metrics, note, names, part, lower))
        return found


class KernelAdvice(NamedTuple):
    """What the rules said about one launch, by its report and position there; ``seconds``: its run time (NaN if unknown)."""

    report: str
    launch: int
    seconds: float
    outcomes: tuple[RuleOutcome, ...]


def advise(
    report: Report,
    rules: RuleSet,
    measurements: Measurements | None = None,
    *,
    collected_only: bool = False,
    watch: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> tuple[KernelAdvice, ...]:
    """The rules on every launch of ``measurements`` (all of the report, if not given).

    ``collected_only``: as ncu does, only rules of sections that the report was made with.  ``watch`` gets the row numbers and
    gives them back one by one, so it can show how far the work is.  No rule looks at a launch whose counters are not believed.
    Raises RooflineError for damage.
    """
    m = measurements_of(report) if measurements is None else measurements
    foreign, lender, found = disbelieved(m), Lender(m), []
    for row in watch(range(len(m))):
        kernel = report.kernels[int(m.launch[row])]
        outcomes = () if foreign[row] else rules.run(kernel, collected_only=collected_only, known=lender.of(row))
        told = tuple(collectable(outcome, report.ncu_version) for outcome in outcomes)
        found.append(KernelAdvice(str(m.report[row]), int(m.launch[row]), float(m.seconds[row]), told))
    return tuple(found)
