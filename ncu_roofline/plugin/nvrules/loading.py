"""From folders to rule modules, without leaving a trace in the interpreter.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.plugin.nvrules.context import NAME, make_module

_NEXT_STEP = "Give a folder with rules of Nsight Compute (.py files), such as the sections folder of an installation."


@dataclass(frozen=True)
class Rule:
    """A rule ready to run."""

    identifier: str
    name: str
    section: str
    parents: tuple[str, ...]
    path: Path
    module: ModuleType
    namespace: RuleModules


@dataclass(frozen=True)
class RuleProblem:
    """A file that is no usable rule, which ncu would leave out without a word."""

    path: str
    reason: str


@dataclass
class RuleModules:
    """The modules of one rule folder."""

    path: list[str]
    owned: frozenset[str]
    modules: dict[str, ModuleType] = field(default_factory=dict)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """While inside, imports by rules find their own folder and NvRules; what they print goes to standard error."""
        saved_path, saved_flag = list(sys.path), sys.dont_write_bytecode
        saved = _taken(self._others())
        before = frozenset(sys.modules)
        sys.path[:0] = self.path
        sys.dont_write_bytecode = True
        sys.modules.update(self.modules)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
                warnings.simplefilter("ignore")
                yield
        finally:
            self.modules = _taken(self._mine(sys.modules.keys() - before))
            sys.modules.update(saved)
            sys.path[:], sys.dont_write_bytecode = saved_path, saved_flag

    def _others(self) -> list[str]:
        """Loaded modules that have our names but are not ours; as there rarely are any, not all of them are looked at."""
        return self._mine(sys.modules) if any(name in sys.modules for name in self.owned) else []

    def _mine(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name.partition(".")[0] in self.owned]


def _taken(names: Sequence[str]) -> dict[str, ModuleType]:
    """These modules, out of the interpreter's table."""
    return {name: sys.modules.pop(name) for name in names}


def load(folders: Sequence[Path]) -> tuple[list[Rule], list[RuleProblem]]:
    """The rules of these folders (or single files), of one identifier the first; raises RooflineError for a bad folder."""
    parents = [folder if folder.is_dir() else folder.parent for folder in folders]
    found: dict[str, Rule] = {}
    problems: list[RuleProblem] = []
    for folder, parent in zip(folders, parents, strict=True):
        files = _files(folder)
        namespace = _namespace(parent, parents)
        usable = 0
        for path in files:
            rule = _load(path, namespace, problems)
            if rule is not None:
                usable += 1
                found.setdefault(rule.identifier, rule)
        if not usable:
            reason = f"{problems[-1].path}: {problems[-1].reason}" if problems else "it holds no rule"
            raise RooflineError("Cannot use rules", folder, reason, _NEXT_STEP)
    return list(found.values()), problems


def _files(folder: Path) -> list[Path]:
    try:
        if folder.is_file() and folder.suffix == ".py":
            return [folder]
        return sorted(path for path in folder.iterdir() if path.suffix == ".py" and path.stem != NAME and path.is_file())
    except OSError as error:
        raise RooflineError("Cannot read rules", folder, error.strerror or str(error), _NEXT_STEP) from error


def _namespace(folder: Path, folders: Sequence[Path]) -> RuleModules:
    path = [str(one.resolve()) for one in dict.fromkeys([folder, *folders])]
    stems = {entry.stem for one in path for entry in Path(one).iterdir() if entry.suffix == ".py" or entry.is_dir()}
    # A rule named like a module of Python's would take that away from everybody.
    owned = frozenset(stems - sys.stdlib_module_names - {"ncu_roofline"} | {NAME})
    return RuleModules(path, owned, {NAME: make_module()})


def _load(path: Path, namespace: RuleModules, problems: list[RuleProblem]) -> Rule | None:
    importlib.invalidate_caches()
    try:
        with namespace.active():
            module = _execute(path, namespace)
            if not callable(getattr(module, "get_identifier", None)) or not callable(getattr(module, "apply", None)):
                return None  # a helper of rules
            return _describe(path, module, namespace)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a rule may raise anything, SystemExit included
        problems.append(RuleProblem(str(path), describe(error)))
        return None


class _Loader(SourceFileLoader):
    """Compiles the same text once: no bytecode is written beside rules, and compiling takes longer than running them."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        """As the base class has it."""
        return _compiled(bytes(data), path)


@lru_cache(maxsize=64)
def _compiled(text: bytes, path: str) -> CodeType:
    code: CodeType = compile(text, path, "exec", dont_inherit=True)
    return code


def _execute(path: Path, namespace: RuleModules) -> ModuleType:
    if path.stem in namespace.owned and path.stem in sys.modules:
        return sys.modules[path.stem]  # another rule has imported it
    spec = importlib.util.spec_from_file_location(path.stem, path, loader=_Loader(path.stem, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    if path.stem in namespace.owned:
        sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if path.stem in namespace.owned:
            sys.modules.pop(path.stem, None)
        raise
    return module


def _describe(path: Path, module: ModuleType, namespace: RuleModules) -> Rule:
    def ask(function: str, default: object) -> object:
        return getattr(module, function)() if callable(getattr(module, function, None)) else default

    identifier = str(module.get_identifier())
    parents = ask("get_parent_rules_identifiers", ())
    return Rule(
        identifier=identifier,
        name=str(ask("get_name", identifier)),
        section=str(ask("get_section_identifier", "") or ""),
        parents=tuple(map(str, parents)) if isinstance(parents, (list, tuple, set)) else (),
        path=path,
        module=module,
        namespace=namespace,
    )


def describe(error: BaseException) -> str:
    """An exception in a few words, with the place in the rule's file where it came up."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno})" if where is not None else ""
    text = str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {text}{place}" if not isinstance(error, SystemError) else f"{text}{place}"
