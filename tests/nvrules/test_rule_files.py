"""The rule files: in step with their templates, and within what the embedded Pythons of all releases understand."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import subprocess
import symtable
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import ncu_roofline
from ncu_roofline.base.files import HELPER as PREFIX
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import OVERVIEW_SECTION
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.formats.report import read_report
from ncu_roofline.plugin.generate.rules import _collected, render_rules, rule_templates
from ncu_roofline.plugin.generate.sections import render_sections
from ncu_roofline.plugin.nvrules.findings import VERDICT
from tests.factory import A100, H100, complete, flops, kernel, report, timing
from tests.nvrules.running import RULES, helper, our_rules
from tests.published_report import CEILINGS

TEXTS = render_rules()
(HELPER,) = (name.removesuffix(".py") for name in TEXTS if name.startswith(PREFIX))
NAMES = sorted({name.removesuffix(".py") for name in TEXTS} - {HELPER})
DEMO = Path(ncu_roofline.__file__).parent / "data" / "demo"
IMPORTABLE = {"math", "re", "collections", "functools", "itertools", "operator", "NvRules"}
SECTIONS = {
    "HierarchicalDoubleRooflineChart",
    "HierarchicalSingleRooflineChart",
    "HierarchicalHalfRooflineChart",
    "HierarchicalTensorRooflineChart",
    "InstructionRooflineChart",
    "RooflineOverview",
}


def test_the_committed_files_are_what_the_templates_give() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in RULES.glob("*.py")}
    assert sorted(committed) == sorted(TEXTS)
    assert [name for name in TEXTS if committed[name] != TEXTS[name]] == []


def test_rendering_is_deterministic() -> None:
    assert render_rules() == TEXTS


@pytest.mark.parametrize("name", TEXTS)
def test_python_3_5_understands_it(name: str) -> None:
    tree = ast.parse(TEXTS[name], feature_version=(3, 5))
    assert TEXTS[name].isascii()
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Assert)), node.lineno
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            arguments = node.args
            assert not arguments.posonlyargs
            assert not any(one.annotation for one in [*arguments.args, *arguments.kwonlyargs])
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert all(isinstance(one, ast.Name) and one.id == "once" for one in node.decorator_list)


@pytest.mark.parametrize("name", TEXTS)
def test_it_imports_only_what_every_release_has(name: str) -> None:
    found = set()
    for node in ast.walk(ast.parse(TEXTS[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    assert found <= IMPORTABLE | ({HELPER} if name != f"{HELPER}.py" else set())


def test_the_helper_is_called_by_its_text_and_is_no_rule() -> None:
    """Nsight Compute runs files of one name from several folders into one module: another text has to have another name."""
    assert not {"get_identifier", "apply"} & defined(TEXTS[f"{HELPER}.py"])
    ceilings = read_ceilings(DEMO / CEILINGS)
    measured = render_rules(ceilings=[ceilings])
    (other,) = measured.keys() - TEXTS.keys()
    assert other.startswith(PREFIX)
    assert not [name for name, text in measured.items() if HELPER in text]


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_is_there(name: str) -> None:
    text = TEXTS[f"{name}.py"]
    tree = ast.parse(text)
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    shared = {name for name in defined(TEXTS[f"{HELPER}.py"]) if not name.startswith("_")}
    assert read <= shared | own | defined(text) | set(dir(builtins))


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


def defined(text: str) -> set[str]:
    """What a module defines or imports."""
    return {
        one.get_name() for one in symtable.symtable(text, "", "exec").get_symbols() if one.is_assigned() or one.is_imported()
    }


@pytest.mark.parametrize("name", TEXTS)
def test_enumerations_are_asked_for_not_counted_on(name: str) -> None:
    for node in ast.walk(ast.parse(TEXTS[name])):
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith(("MsgType_", "Severity_", "SpeedupType_", "MarkerKind_"))


@pytest.mark.parametrize("template", rule_templates(load_spec()), ids=lambda one: one.identifier)
def test_names_are_private_and_sections_are_ours(template: object) -> None:
    rule = {one.identifier: one for one in our_rules().rules}[template.identifier]  # type: ignore[attr-defined]
    assert rule.identifier.startswith("NcuRoofline")
    assert rule.path.stem == rule.identifier
    assert rule.section in SECTIONS
    assert rule.name
    assert rule.module.get_description()
    assert set(re.findall(r"@section:(\w+):", TEXTS[rule.path.name])) <= SECTIONS


def test_the_verdict_is_the_first_of_its_section() -> None:
    """Rules that others name as their parents run before these; so does Nsight Compute from 2023.2 on."""
    overview = [rule.identifier for rule in our_rules().rules if rule.section == OVERVIEW_SECTION]
    assert len(overview) > 1
    assert overview[0] == VERDICT


@pytest.mark.exhaustive
@pytest.mark.ncu
def test_every_release_lists_them(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    """``--list-rules`` imports the files in the Python inside ncu; one that fails there is left out without a word."""
    for release, ncu in ncu_releases.items():
        sections = [f"--section-folder={RULES.parent / 'sections'}"] if (RULES.parent / "sections").is_dir() else []
        command = [str(ncu), *sections, f"--section-folder={RULES}", "--list-rules"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": str(tmp_path)}, check=False)
        listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("NcuRoofline")}
        assert sorted(listed) == NAMES, release
        assert HELPER not in done.stdout + done.stderr, release


# A stand-in for the stand-in, in words that Python 3.5 understands: the interface of 2020.3 (no ids, no titles), or later.
FAKE = """
import json, sys, types
metrics, folder, old, errors = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3] == "old", []
sys.path.insert(0, folder)
sys.dont_write_bytecode = True

class IMetric(object):
    ValueKind_UNKNOWN, ValueKind_STRING, ValueKind_FLOAT, ValueKind_DOUBLE, ValueKind_UINT32, ValueKind_UINT64 = range(6)
    def __init__(self, value): self.v = value
    def kind(self): return 1 if isinstance(self.v, str) else 3 if isinstance(self.v, float) else 5
    def as_double(self): return float(self.v)
    def as_uint64(self): return int(self.v)
    def as_string(self): return self.v if isinstance(self.v, str) else ""

class Action(object):
    def metric_by_name(self, name):
        if name in metrics: return IMetric(metrics[name])
        errors.append(name)  # releases before 2023 write an error into the report, whether or not the rule catches it
        raise SystemError("not found: " + name)

class Frontend(object):
    MsgType_MSG_NONE, MsgType_MSG_OK, MsgType_MSG_WARNING, MsgType_MSG_ERROR = range(4)
    def __init__(self): self.said = []
    def message(self, kind, text, *title):
        if old and title: raise TypeError("no titles")
        self.said.append([kind, text] + list(title))
        return None if old else len(self.said)

if not old:
    Action.metric_names = lambda self: list(metrics)
    Frontend.MsgType_MSG_OPTIMIZATION, Frontend.SpeedupType_GLOBAL, Frontend.SpeedupType_LOCAL = 5, 1, 0
    Frontend.Severity_SEVERITY_HIGH, Frontend.Severity_SEVERITY_LOW = 2, 1
    Frontend.speedup = lambda self, message, kind, value: self.said[message - 1].append(value)
    Frontend.focus_metric = lambda self, *args: self.said[args[0] - 1].append(list(args[1:]))

class Range(object):
    def action_by_idx(self, index): return Action()

class Context(object):
    def __init__(self): self.fe = Frontend()
    def range_by_idx(self, index): return Range()
    def frontend(self): return self.fe

module = types.ModuleType("NvRules")
module.IMetric, module.get_context = IMetric, lambda handle: handle
sys.modules["NvRules"] = module
result = {}
for name in sys.argv[4:]:
    context = Context()
    __import__(name).apply(context)
    result[name] = context.fe.said
result["errors"] = sorted(set(errors))
print(json.dumps(result))
"""


def interpreters() -> Iterator[Path]:
    """Other Pythons that developers keep, oldest first; the language of the embedded ones is in between."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in ("3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"):
        yield from sorted(root.glob(f"{version}.*/bin/python"))[:1]


def busy_kernel() -> dict[str, float | int | str]:
    return complete(
        H100,
        **flops("f", 10**6, 10**6, 10**9),  # type: ignore[arg-type]
        **{
            "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum": 10**12,
            "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum": 10**11,
            "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum": 10**12,
            "launch__waves_per_multiprocessor": 1.25,
            "smsp__thread_inst_executed_per_inst_executed.ratio": 20.5,
            "sm__inst_executed_pipe_xu.sum": 10**6,
        },
    )


def as_collected_on_an_a100() -> dict[str, float | int | str]:
    """What all our sections together collect there, as in a report of 2020.3."""
    sections = render_sections()
    rows = [row for text in sections.values() for row in _collected(text).items()]
    collected = {name: 1000.0 for (low, high), names in rows if low <= 80 <= high for name in names}
    return {**collected, **A100, "device__attribute_clock_rate": 1_410_000, **timing()}


@pytest.mark.sampled("new")
@pytest.mark.parametrize("interface", ["old", "new"])
def test_every_python_says_the_same(tmp_path: Path, interface: str) -> None:
    pythons = list(interpreters())
    if not pythons:
        pytest.skip("no other Python (set PYENV_ROOT to a pyenv with some)")
    (tmp_path / "fake.py").write_text(FAKE)
    metrics = busy_kernel() if interface == "new" else as_collected_on_an_a100()
    (tmp_path / "metrics.json").write_text(json.dumps(metrics))
    said = {}
    for python in pythons:
        command = [str(python), "-W", "error", "fake.py", "metrics.json", str(RULES), interface, *NAMES]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, f"{python}: {done.stderr}"
        said[str(python)] = done.stdout
    assert len(set(said.values())) == 1
    fake = json.loads(next(iter(said.values())))
    assert fake.pop("errors") == []
    if interface == "old":
        assert any(text.startswith("FP64 ") for _, text in fake["NcuRooflineBoundDouble"])
        return
    with read_report(report(tmp_path / "r.ncu-rep", kernel(busy_kernel()))) as opened:
        for outcome in our_rules().run(opened.kernels[0]):
            assert [message[1] for message in fake[outcome.identifier]] == [m.text for m in outcome.messages]
    assert any(fake.values())
