"""Which way the package leans: imports go downward only, peers don't import each other, and there are no circles."""

from __future__ import annotations

import ast
import functools
import graphlib
from pathlib import Path

import grimp
import pytest

import ncu_roofline

ROOT = Path(ncu_roofline.__file__).parent
PACKAGE = "ncu_roofline"
# Lowest first; what stands in one line is peers.  The files of the first lines are used everywhere.
LAYERS = (
    ("guide", "version"),
    ("base",),
    ("chips",),
    ("formats", "rendering"),
    ("model",),
    ("analyses", "plugin"),
    ("bench",),
    ("cli",),
    ("__main__", "pytest_plugin"),
)
# Inside rooms: what stands in one line does not import each other.
ROOMS = {
    "base": (("groups", "texts", "units"), ("errors", "records"), ("files",)),
    "formats": (("wire",), ("report", "sass", "sectionfile", "traces"), ("ceilings",), ("inputs",)),
    "plugin": (("generate", "check", "nvrules"), ("machine", "annotate")),
}
# Inside analyses: the others may use the words and looks of the hierarchical roofline, and not each other.
ANALYSES = (
    ("hierarchical",),
    ("compare", "fma_mix", "instruction", "phases", "portability", "ranks", "run", "source", "time"),
    ("notebook",),
)
# What a package does without, directly or through others: it has to work where these are not.
FORBIDDEN = {
    "chips": ("numpy", "pandas", "google.protobuf"),
    "formats.report": ("numpy", "pandas"),
    "formats.sass": ("numpy", "pandas", "google.protobuf"),
    "formats.sectionfile": ("numpy", "pandas"),
    "formats.inputs": ("numpy",),
    "plugin.generate": ("numpy", "pandas", f"{PACKAGE}.formats.report", f"{PACKAGE}.model"),
    "rendering": (f"{PACKAGE}.chips", f"{PACKAGE}.formats"),
}
# Who opens files: readers each the files of their own format, the package its own data, and whoever deals with the machine.
OPENING = {
    "base": "opens inputs, writes results; files and folders for the time being",
    "formats": "reports, sections, ceilings, files of other tools",
    "chips": "the package's data files",
    "rendering": "the package's page scripts, plotly's script",
    "plugin": "generated files, compared or written; what is installed",
    "bench": "sources, programs, ceilings files",
    "cli": "the demo's sample, the guide's pages, a scheduler's address",
}
# The lazy names of the package, the tables of commands, analyses and importers, and packages that may be missing.
LOOKING_UP = {
    "__init__.py",
    "analyses/__init__.py",
    "chips/__init__.py",
    "cli/__init__.py",
    "formats/inputs/__init__.py",
    "formats/report/framing.py",
    "plugin/nvrules/runner.py",  # what rules import
}
_OPENS = {
    *("FileIO", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile", "mmap", "mkstemp", "open", "open_file", "fdopen"),
    *("read_file", "read_text", "write_text", "read_bytes", "write_bytes"),
}
HEAVY = ("pandas", "matplotlib", "jinja2", "pyarrow")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports, also those inside functions and for types only."""
    return grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def upward(graph: grimp.ImportGraph, layers: tuple[tuple[str, ...], ...], parent: str) -> list[str]:
    """The imports between parts of ``parent`` that don't go downward."""
    place = {part: height for height, parts in enumerate(layers) for part in parts}
    depth, wrong = parent.count(".") + 1, []
    for module in sorted(graph.modules):
        words = module.split(".")
        if not module.startswith(f"{parent}.") or words[depth] not in place:
            continue
        for target in graph.find_modules_directly_imported_by(module):
            other = target.split(".")
            peer = target.startswith(f"{parent}.") and other[depth] in place and other[depth] != words[depth]
            if peer and place[other[depth]] >= place[words[depth]]:
                wrong.append(f"{module} -> {target}")
    return wrong


def test_every_module_has_a_layer(graph: grimp.ImportGraph) -> None:
    parts = {module.split(".")[1] for module in graph.modules if module.startswith(f"{PACKAGE}.")}
    assert parts == {part for parts in LAYERS for part in parts}
    for room, layers in {**ROOMS, "analyses": ANALYSES}.items():
        inside = {module.split(".")[2] for module in graph.modules if module.startswith(f"{PACKAGE}.{room}.")}
        assert inside == {part for parts in layers for part in parts}, room


def test_imports_go_downward(graph: grimp.ImportGraph) -> None:
    assert graph.find_modules_that_directly_import(PACKAGE) == set()
    assert upward(graph, LAYERS, PACKAGE) == []
    for room, layers in {**ROOMS, "analyses": ANALYSES}.items():
        assert upward(graph, layers, f"{PACKAGE}.{room}") == []


def test_there_are_no_circles(graph: grimp.ImportGraph) -> None:
    inside = [module for module in graph.modules if module.startswith(PACKAGE)]
    arrows = {module: {t for t in graph.find_modules_directly_imported_by(module) if t in inside} for module in inside}
    list(graphlib.TopologicalSorter(arrows).static_order())


def test_what_a_package_does_without(graph: grimp.ImportGraph) -> None:
    for part, without in FORBIDDEN.items():
        for name in without:
            target = name if name in graph.modules else name.split(".")[0]
            if target in graph.modules:
                chain = graph.find_shortest_chains(f"{PACKAGE}.{part}", target) if target.startswith(PACKAGE) else None
                found = sorted(chain or ()) or graph.find_shortest_chain(f"{PACKAGE}.{part}", target, as_packages=True)
                assert not found, found


def test_the_package_itself_imports_nothing_at_once() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    assert not [node for node in tree.body if isinstance(node, ast.Import)]
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "typing", "ncu_roofline.version"}


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    for path in ROOT.rglob("*.py"):
        for node in parsed(path).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] in HEAVY], path


def test_modules_are_named_in_imports() -> None:
    """What `import_module` loads is in no graph: only who looks things up in tables, or what may be missing, uses it."""
    using = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if {"import_module", "__import__"} & {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(parsed(path))}
    }
    assert using == LOOKING_UP


def test_who_opens_files() -> None:
    opening = {
        path.relative_to(ROOT).with_suffix("").parts[0]
        for path in ROOT.rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in _OPENS
    }
    assert opening == set(OPENING)


def test_the_test_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute and relative imports, those inside functions and those for types."""
    texts = {
        "chips/a.py": "import made_up.model",
        "chips/b.py": "from . import y\nfrom ..model import z",
        "model/a.py": "def f():\n    from made_up.cli.y import g",
        "model/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import made_up.cli",
        "analyses/a.py": "import made_up.plugin",
        "model/c.py": "import made_up.chips.y",
        **dict.fromkeys(("chips/y.py", "model/z.py", "cli/y.py", "plugin/__init__.py"), ""),
    }
    for name, content in texts.items():
        path = tmp_path / "made_up" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path.parent, path.parent.parent):
            (folder / "__init__.py").touch()
        path.write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = upward(grimp.build_graph("made_up", cache_dir=None), LAYERS, "made_up")
    expected = ["analyses.a -> plugin", "chips.a -> model", "chips.b -> model.z", "model.a -> cli.y", "model.b -> cli"]
    assert [one.replace("made_up.", "") for one in found] == expected
