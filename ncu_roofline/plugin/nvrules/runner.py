"""Loading rules from folders and running them on kernels of a report, in the order and under the conditions of Nsight Compute.

Rules import their neighbours and NvRules by plain names.  While rules are loaded or run, the rule folders stand first in
``sys.path`` and the modules of their names are theirs; afterwards everything is as it was.  Neighbouring rules of one folder
are run without going back in between, because that takes as long as a rule.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from itertools import groupby
from os import PathLike
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import temporary_folder
from ncu_roofline.formats.report import Kernel, RuleMessage, RuleResult
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.plugin.nvrules.interface import NAME, IAction, IContext, IFrontend, Vault, make_module

DONE, ERROR, SKIPPED = "done", "error", "skipped"
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


class RuleModules:
    """The modules of one rule folder; ``owned`` are the names that they take."""

    def __init__(self, path: list[str], owned: frozenset[str]) -> None:
        self.path, self.owned, self._inside = path, owned, False
        self.modules = {NAME: make_module()}

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While inside, imports by rules find their own folder and NvRules; what they print goes to standard error."""
        if self._inside:
            yield
            return
        self._inside = True
        saved_path, saved_flag = list(sys.path), sys.dont_write_bytecode
        # There rarely are modules of others that have our names: not all of them are looked at.
        others = self._taken(sys.modules) if any(name in sys.modules for name in self.owned) else {}
        before = frozenset(sys.modules)
        sys.path[:0] = self.path
        sys.dont_write_bytecode = True
        sys.modules.update(self.modules)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
                warnings.simplefilter("ignore")
                yield
        finally:
            self.modules = self._taken(sys.modules.keys() - before)
            sys.modules.update(others)
            sys.path[:], sys.dont_write_bytecode = saved_path, saved_flag
            self._inside = False

    def _taken(self, names: Iterable[str]) -> dict[str, ModuleType]:
        """Those of these modules that have our names, out of the interpreter's table."""
        return {name: sys.modules.pop(name) for name in list(names) if name.partition(".")[0] in self.owned}


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

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While inside, rules of one folder are run without going in and out for each kernel, which takes as long as a rule."""
        folders = list({id(rule.namespace): rule.namespace for rule in self.rules}.values())
        with folders[0].active() if len(folders) == 1 else contextlib.nullcontext():
            yield

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
        outcomes: list[RuleOutcome] = []
        for _, neighbours in groupby(self.rules, key=lambda rule: id(rule.namespace)):
            rules = tuple(neighbours)
            with rules[0].namespace.active():
                outcomes += [rule.run(action, vault, sections, identifiers) for rule in rules]
        return tuple(outcomes)


@lru_cache(maxsize=256)
def section_identifier(section: bytes) -> str:
    """The identifier of a serialized section, "" if it is none; kept, as kernels mostly carry the same, byte for byte."""
    try:
        return parse_section(section).identifier
    except ValueError:
        return ""


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
        path = [str(one.resolve()) for one in dict.fromkeys([parent, *parents])]
        stems = {entry.stem for one in path for entry in Path(one).iterdir() if entry.suffix == ".py" or entry.is_dir()}
        # A rule named like a module of Python's would take that away from everybody.
        owned = frozenset(stems - sys.stdlib_module_names - {"ncu_roofline"} | {NAME})
        namespace = RuleModules(path, owned)
        chosen = files if place == parent else [place]
        rules = [rule for file in chosen if (rule := _load(file, namespace, problems))]
        if not rules:
            reason = f"{problems[-1].path}: {problems[-1].reason}" if problems else "it holds no rule"
            raise RooflineError("Cannot use rules", place, reason, _NEXT_STEP)
        for rule in rules:
            found.setdefault(rule.identifier, rule)
    return RuleSet(tuple(_parents_first(found)), tuple(problems))


@contextlib.contextmanager
def rendered_rules(texts: Iterable[tuple[str, str]]) -> Iterator[RuleSet]:
    """Rules from the names and texts of their files, usable while the context lasts."""
    with temporary_folder({name: text.encode() for name, text in texts}) as folder:
        yield load_rules((folder,))


def _load(path: Path, namespace: RuleModules, problems: list[RuleProblem]) -> Rule | None:
    """The rule in a file, None for a helper of rules and for what is no usable rule, which joins the problems."""
    importlib.invalidate_caches()
    try:
        with namespace.active():
            module = _execute(path, namespace)
            if not callable(getattr(module, "get_identifier", None)) or not callable(getattr(module, "apply", None)):
                return None

            def ask(function: str, default: Any) -> Any:
                return getattr(module, function)() if callable(getattr(module, function, None)) else default

            identifier = str(module.get_identifier())
            name, section = str(ask("get_name", identifier)), str(ask("get_section_identifier", "") or "")
            parents = tuple(map(str, ask("get_parent_rules_identifiers", ())))
            return Rule(identifier, name, section, parents, path, module, namespace)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule may raise anything, SystemExit included
        problems.append(RuleProblem(str(path), _described(error)))
        return None


class _Loader(SourceFileLoader):
    """Compiles the same text once: no bytecode is written beside rules, and compiling takes longer than running them."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        return _compiled(bytes(data), path)


@lru_cache(maxsize=64)
def _compiled(text: bytes, path: str) -> CodeType:
    code: CodeType = compile(text, path, "exec", dont_inherit=True)
    return code


def _execute(path: Path, namespace: RuleModules) -> ModuleType:
    own = path.stem in namespace.owned
    if own and path.stem in sys.modules:
        return sys.modules[path.stem]  # another rule has imported it
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=_Loader(path.stem, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    if own:
        sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if own:
            sys.modules.pop(path.stem, None)
        raise
    return module


def _described(error: BaseException) -> str:
    """An exception in a few words, with the place in the rule's file where it came up."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno})" if where is not None else ""
    text = str(error).strip() or type(error).__name__
    return f"{text}{place}" if isinstance(error, SystemError) else f"{type(error).__name__}: {text}{place}"


def _parents_first(rules: Mapping[str, Rule]) -> Sequence[Rule]:
    """In the given order, but each rule after those that it names as parents; a circle is cut where it closes."""
    ordered: dict[str, Rule | None] = {}

    def visit(name: str) -> None:
        if name in rules and name not in ordered:
            ordered[name] = None  # so that a circle ends here
            for parent in rules[name].parents:
                visit(parent)
            del ordered[name]
            ordered[name] = rules[name]

    for name in rules:
        visit(name)
    return [rule for rule in ordered.values() if rule is not None]
