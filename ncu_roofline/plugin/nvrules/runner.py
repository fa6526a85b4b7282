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
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import matching, temporary_folder
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.chips.formulas import OF_ACTIVE, Counted
from ncu_roofline.chips.verdict import Share
from ncu_roofline.formats.report import Kernel, Report, RuleResult
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.model import measurements_of
from ncu_roofline.model.explanations import release_of
from ncu_roofline.model.measurements import Measurements, Origin, Quantity
from ncu_roofline.model.plausible import disbelieved
from ncu_roofline.plugin.nvrules.interface import NAME, IAction, IContext, IFrontend, Vault, make_module

DONE, ERROR, SKIPPED = "done", "error", "skipped"
_LINK = re.compile(r"@(?:(?:section|source|sass):(?:[^@:\n]*:)+(?P<text>[^@:\n]*)|url:(?P<label>[^@:\n]*):(?P<url>[^@\s]+))@")
OURS = "NcuRoofline"
"""What the identifiers of our rules begin with."""
Known = dict[object, object]
"""By (name of a rule's method, id or None): what it would work out; ("release", None) is that of the report."""
_NOWHERE = Origin("", "")
_NEXT_STEP = "Give a folder with rules of Nsight Compute (.py files), such as the sections folder of an installation."


class RuleProblem(NamedTuple):
    """A file that is no usable rule, which ncu would leave out without a word."""

    path: str
    reason: str


@dataclass(frozen=True)
class RuleOutcome(RuleResult):
    """One rule on one kernel, as reports store it, and how that went.

    ``status`` is "done", "error" (its last message says which) or "skipped" (``reason`` says why it was not run, as Nsight
    Compute would not have run it).  ``markers`` counts source markers.
    """

    status: str = DONE
    reason: str = ""
    markers: int = 0


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
        said = tuple(frontend.messages)
        return RuleOutcome(self.identifier, self.name, self.section, said, status, reason, frontend.markers)


class RuleSet(NamedTuple):
    """Rules, loaded once for many kernels.  Rules are programs: they run with the rights of whoever loads them."""

    rules: tuple[Rule, ...]
    problems: tuple[RuleProblem, ...]

    def run(
        self, kernel: Kernel, *, collected_only: bool = False, known: Mapping[object, object] | None = None
    ) -> tuple[RuleOutcome, ...]:
        """Every rule on one kernel, parents first.

        ``known`` is what the model knows of it (`known_of`), for rules of ours.  With ``collected_only``, rules of a section
        that the kernel was not profiled with are skipped, as ncu does.
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
            # Bytecode that lies beside it is taken: compiling takes longer than running a rule.
            exec(SourceFileLoader(name, str(file)).get_code(name), vars(module))  # type: ignore[arg-type]
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
    """The rules in these folders, parents first; loaded once while the files stay as they are.

    Of several rules with one identifier the first counts.  Raises RooflineError for a folder without any rule; files that
    are broken are listed in ``problems``.
    """
    places = tuple(Path(folder).absolute() for folder in folders)
    files = (file.stat() for place in places for file in matching(place, "*.py") if file.exists())
    return _loaded(places, tuple((file.st_mtime_ns, file.st_size) for file in files))


@lru_cache(maxsize=1)
def _loaded(places: tuple[Path, ...], _states: tuple[tuple[int, int], ...]) -> RuleSet:
    found: dict[str, Rule] = {}
    problems: list[RuleProblem] = []
    for place in places:
        try:
            files = sorted(path for path in place.iterdir() if path.suffix == ".py" and path.stem != NAME and path.is_file())
        except OSError as error:
            raise RooflineError("Cannot read rules", place, error.strerror or str(error), _NEXT_STEP) from error
        modules = RuleModules([place, *places])
        rules = [rule for path in files if (rule := _load(path, modules, problems))]
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


@lru_cache(maxsize=1)
def rendered_rules(texts: tuple[tuple[str, str], ...]) -> RuleSet:
    """Rules from the names and texts of their files."""
    with temporary_folder({name: text.encode() for name, text in texts}) as folder:
        return load_rules((folder,))


def _described(error: BaseException) -> str:
    """An exception in a few words, with the place in the rule's file where it came up."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = str(error).strip() or type(error).__name__
    return f"{text}{place}" if isinstance(error, SystemError) else f"{type(error).__name__}: {text}{place}"


# Rules on launches, with numbers that the model has computed.


def plain_text(message: str) -> str:
    """The message without ``@section:id:text@`` and the like: the texts stay, web addresses follow theirs in parentheses."""
    if "@" not in message:
        return message
    return _LINK.sub(lambda link: f"{link['label']} ({link['url']})" if link["url"] else link["text"], message)


def known_of(m: Measurements, row: int, ncu_version: str) -> Known:
    """The model's numbers of the launch at position ``row``, None for what is missing."""

    def value(quantity: Quantity | None) -> tuple[float | None, Origin]:
        found = float(quantity.values[row]) if quantity is not None else math.nan
        if quantity is None or not math.isfinite(found) or quantity.choice[row] < 0:
            return None, _NOWHERE
        return found, quantity.origins[quantity.choice[row]]

    def counted(quantity: Quantity | None, fused: float | None = None, twice: tuple[str, ...] = ()) -> Counted | None:
        total, origin = value(quantity)
        metrics = origin.metrics.split(", ")
        return None if total is None else Counted(total, metrics, origin.note, twice, fused, origin.lower_bound)

    def number(value: float) -> float | None:
        return float(value) if math.isfinite(value) else None

    spec, known = load_spec(), Known({("release", None): release_of(ncu_version)})
    # What is not to be added besides.
    adding = [p.id for p in spec.precisions if p.unit == "flop" and p.adds]
    twice = tuple(name for name in adding if value(m.summands.get(name))[0] is None)
    for p in spec.precisions:
        known["work", p.id] = counted(m.work.get(p.id), value(m.fused.get(p.id))[0], twice)
        known["compute_roof", p.id] = value(m.compute.get(p.roof))[0]
    for level in spec.levels:
        known["traffic", level.id] = counted(m.traffic.get(level.id))
        known["bandwidth_roof", level.id] = value(m.bandwidth.get(level.id))[0]
        known["rate_share", level.id] = value(m.shares.get(level.id))[0]
    for unit in load_units().units:
        share, origin = value(m.units.get(unit.id))
        known["busy", unit.id] = None if share is None else Share(share, origin.lower_bound, origin.note == OF_ACTIVE)
    known["tensor_gap", None] = bool(m.tensor_gaps[row])
    known["tensor_active", None] = active = number(m.tensor_active[row])
    if active is not None:  # else the report may tell of active cycles only
        known["tensor_share", None] = Share(active, False, False)
    return known


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
    foreign, found = disbelieved(m), []
    for row in watch(range(len(m))):
        kernel = report.kernels[int(m.launch[row])]
        known = None if foreign[row] else known_of(m, row, report.ncu_version)
        outcomes = () if known is None else rules.run(kernel, collected_only=collected_only, known=known)
        found.append(KernelAdvice(str(m.report[row]), int(m.launch[row]), float(m.seconds[row]), outcomes))
    return tuple(found)
