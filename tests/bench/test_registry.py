"""Ceilings files: those that come with the package and what their H100 recorded; nobody named; pictures of machines."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text

import ncu_roofline
from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.bench.catalogue import data_sheet, theory
from ncu_roofline.bench.device import device_of
from ncu_roofline.bench.document import as_text
from ncu_roofline.bench.files import File, live_line, measured, merge
from ncu_roofline.bench.picture import FORMATS, _marks, energy, figure, looks, machine_roofs, render
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.ceilings import NOT_COMPARABLE, ceilings_of, model_name, read_ceilings, registry
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.plugin.machine.install import render_pack
from ncu_roofline.plugin.nvrules.runner import advise, load_rules
from ncu_roofline.rendering.picture import settings
from ncu_roofline.rendering.plan import spread
from tests.bench.fakes import EPYC, H200, HERE, device, read_toml, some
from tests.bench.made import FILES, changed, content, document, entry, write
from tests.bench.scrubbing import MEASURED, PROMISES, rejudged, scrubbed
from tests.cli.command import Command, assert_refused
from tests.golden import assert_golden
from tests.rendering.test_picture import overlapping, undrawn_tick_labels

DATA = Path(ncu_roofline.__file__).parent / "data"
PATHS = sorted((DATA / "ceilings").glob("*.json"))
SCHEMA = json.loads((DATA / "ceilings.schema.json").read_text(encoding="utf-8"))
H100 = DATA / "ceilings" / "h100-80gb-hbm3.json"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_file(path: Path) -> None:
    told, found = json.loads(path.read_text(encoding="utf-8")), read_ceilings(path)
    jsonschema.validate(told, SCHEMA)
    assert path.stem == found.device.replace("NVIDIA ", "").replace("Tesla ", "").lower().replace(" ", "-")
    gpu = find_gpu(found.device, told["device"]["sm_count"])
    assert gpu is not None
    own = device_of(gpu)
    assert told["device"]["cc"] == own.capability_text
    known = {"host.h2d", "host.d2h", *(kind.id for kind in data_sheet())}
    for name, one in found.by_id.items():
        peak = theory(one, own)
        if peak is None:  # the table of GPUs knows no host, not all slices of L2, and no roof of divisions
            assert one.domain in ("link", "") or one.level == "l2" or name.endswith(".div"), name
        else:
            assert name in known or load_spec().level_of_ceiling(name), name
            assert 0.5 * (not peak.uncertain) < one.value / peak.value <= 1.01, name
    if told["status"] != "measured":
        assert "host" not in told
        assert NOT_COMPARABLE.split(", ")[1] in told["warnings"][0]
        return
    assert scrubbed(told) == told
    assert all((told["device"]["driver"], told["device"]["power_limit_w"], told["tool"]["version"], told["host"]["time_utc"]))
    clocks = [one.clock for one in found.by_id.values() if one.domain in ("sm", "memory")]
    assert (len(clocks) > 20, all(clocks), told["settings"]["data"]) == (True, True, "random")


def test_the_form_is_that_of_measured_files() -> None:
    found = [(model_name(one.device), one.compute_capability, one.status) for one in registry()]
    assert len(found) == len(set(found)) == len(PATHS)
    told = document()
    for good in (told, scrubbed(told)):
        jsonschema.validate(good, SCHEMA)
    row = {"id": "dram.read", "value": 1, "unit": "B/s"}
    bad = ({"device": {"name": "x", "cc": "sm_90"}}, {"ceilings": [{**row, "unit": "GB/s"}]})
    for change in (*bad, {"status": "published", "ceilings": [row]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**told, **change}, SCHEMA)


def test_scrubbing_takes_names_and_leaves_measurements() -> None:
    named = changed(document(), {"host": {"name": "node17.cluster.example"}})
    after = scrubbed(named)
    assert not [name for name in ("node17", "GPU-0000", "00000000:1B:00.0") if name in as_text(after)]
    assert (after["ceilings"], after["status"], after["device"]["driver"]) == (named["ceilings"], "measured", "580.65")
    assert scrubbed(after) == after
    merged = merge([File(name, told := content(name), ceilings_of(name, told)) for name in ("0.json", "1.json", "2.json")])
    assert {entry["gpus"] for entry in merged["ceilings"]} == {3, 0}
    assert not [name for name in ("node0", "GPU-0000", "0.json") if name in as_text(scrubbed(merged))]
    named["warnings"].append("node17.cluster.example is slow")
    with pytest.raises(RooflineError, match=r"'node17.*' is the name of a machine or GPU.*Take it out by hand"):
        scrubbed(named)
    texts = "".join((HERE / "measured_h100" / name).read_text(encoding="utf-8") for name in ("results.json", "summary.md"))
    assert not re.search(r"GPU-[0-9a-f]{8}|uuid|pci_bus_id|[0-9a-f]{4}(:[0-9a-f]{2}){2}|/(tmp|home|root|work|usr)\b", texts)


def test_a_file_of_a_cpu_applies_to_no_gpu(tmp_path: Path) -> None:
    cpu, name = device(EPYC), content("epyc.json")["device"]["name"]
    found = read_ceilings(write("epyc.json", tmp_path / "cpu.json"))
    assert (cpu.kind, cpu.capability_text, cpu.gpu, cpu.is_mig, device().kind) == ("cpu", "", None, False, "gpu")
    others = ((H200["name"], (9, 0)), (H200["name"], (0, 0)), (name, (9, 0)), ("", (0, 0)))
    assert not any(found.applies_to(*one) for one in others)
    assert found.applies_to(name, (0, 0))  # in a log of LIKWID, say
    assert render_pack("2025.3", None).files == render_pack("2025.3", found).files  # sections and rules are of GPUs
    with pytest.raises(ValueError, match="compute capability"):
        device(EPYC, kind="npu")


def test_the_file_of_the_package_is_made_of_the_recorded_trials() -> None:
    made, shipped = scrubbed(rejudged(MEASURED)), json.loads(H100.read_text(encoding="utf-8"))
    assert shipped["ceilings"] == json.loads(json.dumps(made["ceilings"]))
    assert any("applied afterwards" in warning for warning in shipped["warnings"])


def words_of(result: Any, message: RuleMessage) -> tuple[str, str, str]:
    """Where a rule said what; of the verdict, which has other words by now, its limit and how full that is."""
    of_verdict = r"[A-Z]\w+(?: FMA)?(?:-bound)? at \d+ %"
    found = re.search(of_verdict, message.text) if result.identifier.endswith("Verdict") else None
    return result.section, message.title, found[0].replace("-bound", "") if found else message.text


APPS = ["gpp-nw1", "gpp-nw2", "gpp-nw3", "gpp-nw4", "gpp-nw5", "gpp-nw6", "lecture-a", "lecture-c", "gsrb"]


@pytest.mark.parametrize("name", some(APPS, ("gpp-nw6", "gsrb", "lecture-c")))
def test_rules_inside_ncu_said_what_advise_says_now(name: str, h100_reports: Path) -> None:
    with read_report(h100_reports / f"{name}.ncu-rep") as report:
        results = [result for kernel in report.kernels for result in kernel.rule_results]
        rules = [rule for kernel in advise(report, load_rules([pack_folder("rules")])) for rule in kernel.outcomes]
    inside, offline = ({words_of(one, text) for one in said for text in one.messages} for said in (results, rules))
    assert len(inside) >= 4
    # Offline some say more: what only the whole report tells.  Reuse is told anew.
    missing = [one for one in inside if not any(other[:2] == one[:2] and other[2].startswith(one[2]) for other in offline)]
    # A rule in ncu takes the one load of a constant by HFMA2 for FP16 work: it sees no machine code.
    known = {"Mixed precisions", "FP16 FMA mix", "FP64 at 65 % of its DRAM roof"} if name == "lecture-c" else set()
    known |= {"Tail of the last wave"} if name in ("gpp-nw1", "gpp-nw2") else set()  # in other words since that run
    assert {title for _, title, _ in missing if "euse" not in title} == known
    assert name != "lecture-c" or not [text for _, _, text in offline if "FP16" in text]


ARITHMETIC = [name for name in PROMISES if name.partition(".")[0] not in ("dram", "l2", "l1", "smem")]


@pytest.mark.parametrize("name", some(ARITHMETIC, ("fp64.nofma", "int32.mad", "tensor.fp16.wgmma")))
def test_kernels_of_the_benchmark_under_the_roofs_that_they_measured(name: str, h100_reports: Path) -> None:
    """recorded/*.txt; no dot is above its roof, and a measured roof stands at the clock of the launch."""
    result = roofline(str(h100_reports / f"bench.{name}.ncu-rep"), H100)
    assert result.points["fraction"].max() <= 1.012
    roofs = result.roofs[result.roofs["origin"] == "measured"].set_index("roof")
    measured = {one["id"]: one for one in json.loads(H100.read_text(encoding="utf-8"))["ceilings"]}
    clock = float(result.kernels["clock_profiled"].median())
    if name == "tensor.fp16.wgmma":  # the value over the mean clock would be 0.3 % above
        roof, value = roofs.loc["tensor.fp16"], measured[name]["per_sm_and_cycle"] * 132 * clock
        assert [roof["clock"], roof["value"]] == pytest.approx([clock, value])
        assert "stand at the clock of the launches" in roof["notes"]
    assert roofs.loc["dram", "value"] == max(one["value"] for name, one in measured.items() if name.startswith("dram."))
    ends = result.points.groupby(["launch", "precision"])["fraction"].agg(["min", "max", "count"]).itertuples()
    lines = [f"{int(row[0][0])} {row[0][1]}: {row[1]:.3f} to {row[2]:.3f} of its roof at {row[3]} levels" for row in ends]
    kernels = result.kernels[["verdict", "headroom", "reason"]].itertuples(index=False)
    lines += [f"{row.verdict}, headroom {row.headroom:.3f}: {row.reason}" for row in kernels]
    assert_golden(HERE / "recorded" / f"{name}.txt", "\n".join([*lines, ""]))


HOSTILE = ("\33[31mred\33[0m", "$\\frac{1}{0}$", "x_{3}^{$", "a" * 300, "\u202eevil", "<script>&amp;", "\u6f22", "two\nlines")


def hostile() -> dict[str, Any]:
    """Names that a terminal, a formula or a page would obey, or that are far too long; values that are none."""
    entries = [entry(f"fp64.{name}", 1e12 * (1 + index), "FLOP/s") for index, name in enumerate(HOSTILE)]
    entries += [entry(f"{name}.read", 1e11 * (3 + index), "B/s", verdict=name) for index, name in enumerate(HOSTILE)]
    entries += [entry("fp16.fma", math.nan, "FLOP/s")]
    entries += [entry("bf16.fma", 3e12, "FLOP/s", clock=[], theory="none", burst=7, power_limit=[], power_w="much")]
    entries += [entry("tensor.fp16.mma", 5e12, "FLOP/s", accepted=False, verdict=HOSTILE[0] * 20, reasons=[HOSTILE[3]])]
    made = document(entries=entries, name=" ".join(HOSTILE), driver=HOSTILE[1], sm_count=HOSTILE[0])
    return {**made, "status": HOSTILE[1], "warnings": [*HOSTILE]}


def machines() -> dict[str, dict[str, Any]]:
    sources = [File(name, told := content(name), ceilings_of(name, told)) for name in ("a.json", "b.json")]
    many = [entry(f"k{i}.fma", 1e12 + i, "FLOP/s") for i in range(90)] + [entry("dram.read", 1e12, "B/s")]
    found = {"H100": {**MEASURED, "status": "published", "warnings": ["ECC changes at the next reboot"]}, "hostile": hostile()}
    found |= {"a CPU": content("epyc.json"), "two GPUs": merge(sources), "many": document(entries=many)}
    for name, rows in read_toml("roofs.toml").items():
        entries = [entry(key, None if value == "-" else value, unit) for key, (value, unit, *_) in rows.items()]
        changes = {key: more[0] for key, (_, _, *more) in rows.items() if more}
        found[name] = changed(document(entries=entries), {"ceilings": changes})
    return {name: changed(deepcopy(told), {"tool": {"version": "1.0.0"}}) for name, told in found.items()}


MACHINES = machines()


def texts_of(made: Figure) -> list[Text]:
    hidden = {id(label) for axes in made.axes for label in undrawn_tick_labels(axes)}
    return [one for one in made.findobj(Text) if one.get_text().strip() and one.get_visible() and id(one) not in hidden]


def test_roofs_of_machines_and_what_pictures_say() -> None:
    text = ""
    for name, told in MACHINES.items():
        found, text = machine_roofs(told), f"{text}# {name}\n"
        for roof in (*found.bandwidth, *found.compute[:20]):
            numbers = (roof.value, roof.peak, roof.share, roof.burst, roof.limit, energy(roof) * 1e12)
            cells = ("-" if math.isnan(value) else f"{value:.4g}" for value in numbers)
            label, hue = looks(roof)
            of = f"{label} ({roof.id[:40]!a}) {' '.join(cells)} {roof.unit}"
            text += f"{of}, {roof.flaw[:28]!a} {roof.regimes!a}, {hue is not None}\n"
        near = "; ".join(" ".join(f"{one:.4g}" for one in mark.beside) for mark in _marks(found) if getattr(mark, "beside", ()))
        text += f"others: {', '.join(found.others[:21])}\nnear: {near[:300]}\n"
        if name in ("H100", "a CPU", "two GPUs", "ridges at 10 and 40", "one peak", "a power limit"):
            made = figure(told)
            lines = {f"{one.get_gid()} {one.get_linestyle()} {one.get_alpha() or 1}" for one in made.axes[1].lines}
            words = [" ".join(one.get_text().split()) for one in texts_of(made)]
            text += f"lines: {', '.join(sorted(lines))}\n{' | '.join(words)}\n"
    assert_golden(HERE / "pictures.txt", text)


@pytest.mark.parametrize("name", some([one for one in MACHINES if "unmeasured" not in one], ("H100",)))
def test_no_two_texts_overlap_and_all_are_on_the_sheet(name: str) -> None:
    with settings():
        made = figure(MACHINES[name], "light" if name == "H100" else "dark")
        made.canvas.draw()
    texts, (width, height) = texts_of(made), made.canvas.get_width_height()
    assert overlapping(texts) == []
    for one in texts:
        extent = one.get_window_extent()
        assert min(extent.x0, extent.y0, width - extent.x1, height - extent.y1) >= 0, one.get_text()


def test_names_are_text() -> None:
    texts = [one.get_text() for one in texts_of(figure(hostile()))]
    assert not [text for text in texts if is_math_text(text) or {"\33", "\u202e"} & {*text}]
    for text in HOSTILE:  # of `bench run`, whose content comes from the program and the driver, not from a file
        row = entry("dram.read", 1e12, "B/s", reasons=[text], verdict=text, variant={"kernel": text})
        whole = {**document(entries=[row], name=text, uuid=text), "warnings": [text], "host": {"name": text}}
        assert all(line.isprintable() and not line.startswith("lines") for line in measured(whole).split("\n"))
        line = live_line(entry(text, 3e305, "FLOP/s", verdict=text, reasons=[text, text * 3]))
        assert (line.isprintable(), len(line) <= 100) == (True, True)


@pytest.mark.parametrize("suffix", some(FORMATS, ("svg",)))
def test_bytes_are_the_same_every_time(suffix: str) -> None:
    assert render(MACHINES["H100"], suffix, "dark") == render(MACHINES["H100"], suffix, "dark")


def test_nothing_to_draw_and_nothing_to_draw_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Command) -> None:
    nothing = document(entries=[entry("dram.read", 4e12, "B/s", accepted=False, verdict="wrong"), entry("a", 1e-6, "s")])
    with pytest.raises(RooflineError, match="no ceiling of a memory level or of arithmetic was accepted"):
        render(nothing, "svg")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = r"^Cannot draw the roofline of NVIDIA H200: the packages that draw can't be .* with `ncu-roofline bench draw`\.$"
    with pytest.raises(RooflineError, match=told):
        render(content("a.json"), "png")
    FILES["a.json"](tmp_path / "a.json")
    assert_refused(run("bench", "draw", tmp_path / "a.json", "-o", tmp_path / "roof.png"), "the roofline of NVIDIA H200")
    # `bench run` works with the standard library alone
    code = "import sys, ncu_roofline.bench.picture; print(*{'numpy', 'pandas', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"\n"


def test_rows_keep_their_order_and_distance() -> None:
    close = [spread(one, 10, 0, 100) for one in ([50.0, 50.0, 50.0], [99.0, 98.0, 1.0], [90.0, 50.0], [])]
    assert [*close, spread([3.0, 2.0], 200, 0, 100)] == [[60.0, 50.0, 40.0], [100.0, 90.0, 1.0], [90.0, 50.0], [], [100.0, 0.0]]
    assert spread([60.0, 59.0, 51.0, 50.0], 10, 0, 100) == pytest.approx([70.0, 60.0, 50.0, 40.0])
