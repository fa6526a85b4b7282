"""The rule files: in step with their templates, and within what the embedded Pythons of all releases understand."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import subprocess
import symtable
from pathlib import Path
from types import FunctionType

import pytest

import ncu_roofline
from ncu_roofline.base.files import HELPER as PREFIX
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import OVERVIEW_SECTION
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.generate.rules import render_rules, rule_templates
from ncu_roofline.plugin.generate.sections import render_sections
from ncu_roofline.plugin.nvrules.findings import VERDICT
from tests.factory import Metrics, kernel, report, timing
from tests.generate.made import collected, kernel_metrics
from tests.nvrules.running import RULES, helper, our_rules
from tests.published_report import CEILINGS

TEXTS = render_rules()
(HELPER,) = (name.removesuffix(".py") for name in TEXTS if name.startswith(PREFIX))
NAMES = sorted({name.removesuffix(".py") for name in TEXTS} - {HELPER})
DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
IMPORTABLE = {"math", "re", "collections", "functools", "itertools", "operator", "NvRules"}
SECTIONS = {f"Hierarchical{name}RooflineChart" for name in ("Double", "Single", "Half", "Tensor")}
SECTIONS |= {"InstructionRooflineChart", "RooflineOverview"}


@pytest.mark.parametrize("name", TEXTS)
def test_every_release_understands_it(name: str) -> None:
    """Python 3.5, ASCII, modules that all have; enumerations of NvRules are asked for, not counted on."""
    assert TEXTS[name].isascii()
    imported = set()
    for node in ast.walk(ast.parse(TEXTS[name], feature_version=(3, 5))):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Assert)), node.lineno
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            assert not node.args.posonlyargs
            assert not any(one.annotation for one in [*node.args.args, *node.args.kwonlyargs])
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert all(isinstance(one, ast.Name) and one.id == "once" for one in node.decorator_list)
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith(("MsgType_", "Severity_", "SpeedupType_", "MarkerKind_"))
        imported |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        imported |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    assert imported <= IMPORTABLE | ({HELPER} if name != f"{HELPER}.py" else set())


def test_the_helper_is_called_by_its_text_and_is_no_rule() -> None:
    """Nsight Compute runs files of one name from several folders into one module: another text has to have another name."""
    assert render_rules() == TEXTS
    assert not {"get_identifier", "apply"} & defined(TEXTS[f"{HELPER}.py"])
    measured = render_rules(ceilings=[read_ceilings(DEMO / CEILINGS)])
    (other,) = measured.keys() - TEXTS.keys()
    assert other.startswith(PREFIX)
    assert not [name for name, text in measured.items() if HELPER in text]


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_is_there(name: str) -> None:
    nodes = list(ast.walk(ast.parse(TEXTS[f"{name}.py"])))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    shared = {name for name in defined(TEXTS[f"{HELPER}.py"]) if not name.startswith("_")}
    assert read <= shared | own | defined(TEXTS[f"{name}.py"]) | set(dir(builtins))


def defined(text: str) -> set[str]:
    symbols = symtable.symtable(text, "", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}


def test_no_name_of_the_helper_has_two_meanings() -> None:
    """Texts of several modules stand in it: a later one would take the names of an earlier one."""
    meanings: dict[str, list[str]] = {}
    for node in ast.parse(TEXTS[f"{HELPER}.py"]).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            meanings.setdefault(node.name, []).append("")
        elif isinstance(node, ast.Assign):
            for name in (name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)):
                if isinstance(name.ctx, ast.Store):
                    meanings.setdefault(name.id, []).append(ast.dump(node.value))
    module = helper(our_rules())  # numbers that several modules import stand there twice
    twice = {name for name, values in meanings.items() if len(values) > 1}
    assert {name for name in twice if isinstance(getattr(module, name), (tuple, dict, FunctionType))} == set()


def test_names_are_private_and_sections_are_ours() -> None:
    rules = {one.identifier: one for one in our_rules().rules}
    assert rules.keys() == {one.identifier for one in rule_templates(load_spec())}
    for identifier, rule in rules.items():
        assert identifier.startswith("NcuRoofline")
        assert rule.path.stem == identifier
        assert rule.name
        assert rule.module.get_description()
        assert {rule.section, *re.findall(r"@section:(\w+):", TEXTS[rule.path.name])} <= SECTIONS
    # Rules that others name as their parents run before these; so does Nsight Compute from 2023.2 on.
    overview = [identifier for identifier, rule in rules.items() if rule.section == OVERVIEW_SECTION]
    assert len(overview) > 1
    assert overview[0] == VERDICT


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_every_release_lists_them(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """``--list-rules`` imports the files in the Python inside ncu; one that fails there is left out without a word."""
    for release, ncu in ncu_releases.items():
        command = [str(ncu), f"--section-folder={RULES.parent / 'sections'}", f"--section-folder={RULES}", "--list-rules"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}, check=False)
        listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("NcuRoofline")}
        assert sorted(listed) == NAMES, release
        assert HELPER not in done.stdout + done.stderr, release


@pytest.mark.parametrize("interface", ["new", pytest.param("old", marks=pytest.mark.exhaustive)])
def test_every_python_says_the_same(tmp_path: Path, interface: str) -> None:
    """Of what all our sections together collect on an A100; "old": in a report of 2020.3.

    Other Pythons that developers keep: the language of the embedded ones is in between.
    """
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pythons = [path for minor in range(5, 14) for path in sorted(root.glob(f"3.{minor}.*/bin/python"))[:1]]
    if not pythons:
        pytest.skip("no other Python (set PYENV_ROOT to a pyenv with some)")
    metrics: Metrics = {"device__attribute_clock_rate": 1_410_000, "launch__waves_per_multiprocessor": 1.25, **timing()}
    for text in render_sections().values():
        metrics |= kernel_metrics(collected(parse_document(text).section, (8, 0)), (8, 0))
    (tmp_path / "fake.py").write_bytes(Path(__file__).with_name("stand_in.txt").read_bytes())
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    said = set()
    for python in pythons:
        command = [str(python), "-W", "error", "fake.py", "metrics.json", str(RULES), interface, *NAMES]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, f"{python}: {done.stderr}"
        said.add(done.stdout)
    (fake,) = map(json.loads, said)
    assert fake.pop("errors") == []
    assert any(text.startswith("FP64 ") for _, text, *_ in fake["NcuRooflineBoundDouble"])
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        for outcome in our_rules().run(opened.kernels[0]) if interface == "new" else ():
            assert [message[1] for message in fake[outcome.identifier]] == [m.text for m in outcome.messages]
