"""Loading rules from folders and running them on kernels of a report, in the order and under the conditions of Nsight Compute.

Rules import their neighbours and NvRules by plain names.  They get these by an ``__import__`` of their own, from tables that no
other module sees: two folders may have helpers of one name, and nothing is left behind.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
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
    """The modules of some folders, which their rules import by plain names before all others but Python's own."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders, self.modules = folders, {NAME: make_module()}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str, file: Path) -> ModuleType:
        """A module from a file, executed once."""
        if name in self.modules:
            return self.modules[name]
        module = self.modules[name] = ModuleType(name)
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        vars(module).update(__file__=str(file), __package__=package, __builtins__=self._builtins)
        try:
            exec(_Loader(name, str(file)).get_code(name), vars(module))  # type: ignore[arg-type]
        except BaseException:
            del self.modules[name]
            raise
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(self.modules[parent], child, module)
        return module

    def _found(self, name: str) -> bool:
        """Whether a module is one of the folders'; then it is loaded."""
        if name.partition(".")[0] in sys.stdlib_module_names:
            return False
        if name not in self.modules:
            places = (folder.joinpath(*name.split(".")) for folder in self._folders)
            files = (file for place in places for file in (place / "__init__.py", place.parent / f"{place.name}.py"))
            if (file := next(filter(Path.is_file, files), None)) is not None:
                self.load(name, file)
        return name in self.modules

    def _import(
        self, name: str, own: Mapping[str, Any] | None = None, local: object = None, wanted: Sequence[str] = (), level: int = 0
    ) -> Any:
        if level and own:
            package = own["__package__"].split(".")
            name = ".".join(filter(None, (*package[: len(package) + 1 - level], name)))
        first, *parts = name.split(".")
        if not self._found(first):
            return __import__(name, own, local, wanted)  # type: ignore[arg-type]
        whole = first
        for part in parts:
            whole = f"{whole}.{part}"
            if not self._found(whole):
                raise ModuleNotFoundError(f"No module named {whole!r}", name=whole)
        for part in wanted or ():
            if not hasattr(self.modules[whole], part):
                self._found(f"{whole}.{part}")
        return self.modules[whole if wanted else first]


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
        namespace = RuleModules([one.resolve() for one in dict.fromkeys([parent, *parents])])
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
    try:
        with _quiet():
            module = namespace.load(path.stem, path)
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
    """Takes bytecode where it lies beside a rule, but writes none."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        return _compiled(bytes(data), path)


@lru_cache(maxsize=64)
def _compiled(text: bytes, path: str) -> CodeType:
    """Compiling takes longer than running a rule."""
    code: CodeType = compile(text, path, "exec", dont_inherit=True)
    return code


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
