"""Which way the package leans: imports go downward only, and peers don't import each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ncu_roofline

ROOT = Path(ncu_roofline.__file__).parent
PACKAGE = "ncu_roofline"
LAYERS = {
    "units": 0,
    "errors": 0,
    "pack": 0,
    "metricnames": 0,
    "clocks": 0,
    "files": 1,
    "wire": 1,
    "verdict": 1,
    "formula": 1,
    "spec": 2,
    "report": 2,
    "sections": 2,
    "ceilings": 2,
    "importers": 3,
    "model": 4,
    "rules": 5,
    "models": 5,
    "lint": 5,
    "rendering": 6,
    "generate": 6,
    "annotate": 6,
    "bench": 7,
    "install": 7,
    "cli": 8,
    "__main__": 9,
}
# What a package may not use although its layer would allow it: it has to work where these are not.
FORBIDDEN = {
    "report": ("numpy", "pandas"),
    "importers": ("numpy",),
    "sections": ("numpy", "pandas"),
    "spec": ("numpy", "pandas"),
    "generate": ("pandas", f"{PACKAGE}.report"),
}
# Renderers know the columns of the frames and how names are shortened, and nothing else of the model.
RENDERING_MAY_USE = ("ncu_roofline.model.columns", "ncu_roofline.model.names", "ncu_roofline.analyses.columns")
HEAVY = ("pandas", "matplotlib", "plotly", "jinja2", "pyarrow")

MODULES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path, root: Path = ROOT) -> str:
    """The dotted name of the module in ``path``."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, root: Path = ROOT) -> Iterator[tuple[str, ast.AST]]:
    """Dotted names of all modules that a module imports anywhere, also only for types; of ``from a import b`` it is a.b."""
    package = name_of(path, root).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (start, node.module)))
            yield from ((f"{module}.{alias.name}", node) for alias in node.names)


def part_of(name: str) -> str:
    """The part of the package that a dotted name belongs to: "spec" of ncu_roofline.facts.loading; "" for the package itself."""
    words = name.split(".")
    return words[1] if len(words) > 1 and words[1] in LAYERS else ""


def upward(path: Path, root: Path = ROOT) -> list[str]:
    """The imports of a module that don't go downward."""
    source = part_of(name_of(path, root))
    wrong = []
    for name, _ in imports(path, root):
        target = part_of(name)
        if name.split(".")[0] != PACKAGE or target == source or (not target and name == f"{PACKAGE}.__version__"):
            continue
        if not target or LAYERS[target] >= LAYERS[source]:
            wrong.append(name)
    return wrong


def test_every_module_has_a_layer() -> None:
    parts = {name_of(path).split(".")[1] for path in MODULES if name_of(path) != PACKAGE}
    assert parts <= set(LAYERS)
    assert {"units", "errors", "formula", "spec", "report", "sections", "ceilings", "model", "rendering", "cli"} <= parts


@pytest.mark.parametrize("path", [path for path in MODULES if name_of(path) != PACKAGE], ids=name_of)
def test_imports_go_downward(path: Path) -> None:
    assert upward(path) == []


def test_the_package_itself_imports_nothing_at_once() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    assert not [node for node in tree.body if isinstance(node, ast.Import)]
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "typing"}


@pytest.mark.parametrize("part", FORBIDDEN)
def test_what_a_package_does_without(part: str) -> None:
    for path in MODULES:
        if part_of(name_of(path)) == part:
            used = [name for name, _ in imports(path) if f"{name}.".startswith(tuple(f"{one}." for one in FORBIDDEN[part]))]
            assert used == [], name_of(path)


def test_renderers_know_only_columns_and_names_of_the_model() -> None:
    for path in MODULES:
        if part_of(name_of(path)) == "rendering":
            used = [name for name, _ in imports(path) if part_of(name) == "model"]
            assert all(f"{name}.".startswith(tuple(f"{one}." for one in RENDERING_MAY_USE)) for name in used), name_of(path)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_packages_are_imported_where_they_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {id(node) for node in tree.body}
    found = [name for name, node in imports(path) if name.split(".")[0] in HEAVY and id(node) in at_once]
    assert found == []


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("spec/x.py", "import ncu_roofline.report.reader", ["ncu_roofline.report.reader"]),
        ("spec/x.py", "from ncu_roofline import formula, units, report", ["ncu_roofline.report"]),
        ("spec/x.py", "from . import y\nfrom .y import z\nfrom ..model import a", ["ncu_roofline.model.a"]),
        ("spec/__init__.py", "from . import y\nfrom .. import cli", ["ncu_roofline.cli"]),
        ("model/x.py", "def f():\n    from ncu_roofline.cli.parser import parse", ["ncu_roofline.cli.parser.parse"]),
        ("model/x.py", "if TYPE_CHECKING:\n    import ncu_roofline.analyses", ["ncu_roofline.analyses"]),
        ("cli/x.py", "from ncu_roofline import __version__, roofline", ["ncu_roofline.roofline"]),
        ("units.py", "import math\nfrom ncu_roofline.errors import RooflineError", ["ncu_roofline.errors.RooflineError"]),
    ],
)
def test_the_test_sees(tmp_path: Path, module: str, text: str, wrong: list[str]) -> None:
    path = tmp_path / PACKAGE / module
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert upward(path, tmp_path / PACKAGE) == wrong
