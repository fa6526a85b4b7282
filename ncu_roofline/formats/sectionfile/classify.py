"""What the metrics of a roof or point measure, which roof of a chart a dot stands under, and what stock charts count wrongly:
packed half-precision instructions on old releases, tensor work by instructions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_release
from ncu_roofline.chips.ncu import subject
from ncu_roofline.chips.spec import ROOF_NAMES
from ncu_roofline.formats.sectionfile.charts import Chart, Point, Roof

# Names are without "derived__"; clocks are no evidence: every level has one.  Of each table the first match wins.
_CLOCK = r"__cycles_(elapsed|active)|^(sm|smsp)__cycles|^gpu__time"
_LEVELS = {
    r"^syslts__|^pcie__|^ctc__|^lts__\w*sysmem": "system",
    r"^nvl|^lts__\w*peer": "",
    r"^dram__|^fbpa__|^mcc__|^lts__d_sectors_fill_device": "dram",
    r"mem_shared|^l1tex__data_bank": "shared",
    r"^lts__|^l1tex__m_(xbar2l1tex|l1tex2xbar)": "l2",
    r"^l1tex__(t_|lsu_writeback|tex_writeback|data_pipe|data_bank)|^smsp__sass_data_bytes_mem_(global|local)": "l1",
}
_CORE = r"__sass_thread_inst_executed_ops?_([dfh])(?:add|mul|fma)"
_CORE_TYPES = {"d": "fp64", "f": "fp32", "h": "fp16"}
_TENSOR_OPS = r"__ops_path_tensor(?:_op_([a-z]+))?_src_([a-z0-9_]+)"
_FAMILIES = {r"utc": ".tcgen05", r"[a-z]?gmma$": ".wgmma", r"[a-z]+mma$": ".mma"}
# One counter for several source types: on Turing only FP16 exists; the narrow types of Blackwell are one precision of the spec.
_SOURCES = {
    r"(fp16)_bf16_tf32(_|$)": "fp16",
    r"fp4_fp6_fp8(_|$)": "fp8fp6fp4",
    r"fp4_fp6(_|$)": "fp6fp4",
    r"(fp64|fp32|tf32|bf16|fp16|fp8|fp6|fp4|int8|int4|int1)(_|$)": "",
}
_SPARSE = ".sparse"
_TENSOR_INSTRUCTIONS = {
    r"__inst_executed_pipe_(tensor|fp64)\w{0,99}_(op|subpipe)_dmma": "tensor.fp64",
    r"__inst_executed_pipe_tensor": "tensor",
}
_SUFFIX = re.compile(r"(\.|_(sum|avg|min|max)_).*|_x\d+$", re.DOTALL)
_SAME = 1e-9  # of a peak: the same line, computed twice
_FMA = re.compile(r"__sass_thread_inst_executed_op_(?P<type>[dfh])fma(?P<packed>2?)_pred_on")
_WEIGHT = re.compile(r"_x(\d{1,9})(\.|$)")
_INSTRUCTIONS = re.compile(r"__(sass_)?(thread_)?inst_(executed|issued)(_op_\w{1,99})?(\.|$)")
# The path of what loads return to registers, of L1 and of shared memory alike.
_BOTH_L1_AND_SHARED = re.compile(r"^(derived__)?(rl_)?l1tex__(lsu_writeback_active|data_pipe_lsu_wavefronts)(\.|_sum)")
_FIRST_RIGHT = (2025, 1)
_STOCK = "SpeedOfLight_"
# HMMA.884, the tensor instruction of V100, is 8 x 8 x 4 multiply-adds x 2; so is DMMA.884, which only Hopper has larger kin of.
_OF_884 = 512
_V100, _HOPPER = (7, 0), 9


@lru_cache(maxsize=4096)
def classify(metrics: tuple[str, ...]) -> tuple[str, str]:
    """(precision id, level id) of a roof or point with these metrics: ("fp64", "dram"), ("tensor.fp16.wgmma", "l2"), ...
    Either is "" where the names do not tell.  Several types of the tensor pipe together give what they share ("tensor.fp16",
    "tensor"); anything else that mixes precisions or levels gives "".  Sparse counters end in ".sparse"."""
    names = [name if subject(name) else name.removeprefix("derived__").removeprefix("rl_") for name in metrics]
    precisions = {precision for name in names if (precision := _precision(name))}
    levels = {level for name in names if (level := _level(name)) is not None}
    common: list[str] = []  # the dotted prefix that all have, sparse if all of them are
    for parts in zip(*(one.removesuffix(_SPARSE).split(".") for one in precisions), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    sparse = _SPARSE if len(common) > 1 and all(one.endswith(_SPARSE) for one in precisions) else ""
    return ".".join(common) + sparse, levels.pop() if len(levels) == 1 else ""


def _level(name: str) -> str | None:
    if own := subject(name):
        return own if _is_level(own) else None
    if re.search(_CLOCK, name) and "lts2xbar_cycles_active" not in name and "xbar2lts_cycles_active" not in name:
        return None
    return next((level for pattern, level in _LEVELS.items() if re.search(pattern, name)), None)


def _is_level(name: str) -> bool:
    return any(level.id == name for level in load_spec().levels)


def _precision(name: str) -> str:
    if own := subject(name):
        head, _, last = own.rpartition(".")
        return "" if _is_level(own) else head if last in ROOF_NAMES else own  # fp64 of fp64.nofma
    if core := re.search(_CORE, name):
        return _CORE_TYPES[core[1]]
    if tensor := re.search(_TENSOR_OPS, name):
        op, source = tensor[1] or "", tensor[2]
        kinds = (known or match[1] for pattern, known in _SOURCES.items() if (match := re.match(pattern, source)))
        family = next((suffix for pattern, suffix in _FAMILIES.items() if re.match(pattern, op)), "")
        sparse = _SPARSE if "sparsity_on" in source else ""
        return next((f"tensor.{kind}{family}{sparse}" for kind in kinds), "tensor")
    return next((precision for pattern, precision in _TENSOR_INSTRUCTIONS.items() if re.search(pattern, name)), "")


@lru_cache(maxsize=4096)
def is_unfused(metrics: tuple[str, ...]) -> bool:
    """Whether a compute roof of these metrics is that of operations that are not fused: one in each lane of an FMA
    instruction.  Stock sections have none; until 2024 they count packed half-precision instructions as one lane."""
    if any(subject(name).endswith(".nofma") for name in metrics):
        return True
    fused = [(found, name) for name in metrics if (found := _FMA.search(name))]
    weights = sum(int(match[1]) if (match := _WEIGHT.search(name)) else 1 for _, name in fused)
    packed = any(found["type"] == "h" or found["packed"] for found, _ in fused)
    stock = any(name.startswith("derived__") and not name.startswith("derived__rl_") for _, name in fused)
    return bool(fused) and not stock and weights == (2 if packed else 1)


@lru_cache(maxsize=4096)
def counts_instructions(metrics: tuple[str, ...]) -> bool:
    """Whether work of these metrics is instructions, of whatever kind, and not operations."""
    counted = [name for name in metrics if not re.search(_CLOCK, name)]
    return bool(counted) and not classify(metrics)[0] and all(map(_INSTRUCTIONS.search, counted))


@lru_cache(maxsize=4096)
def _counters(metrics: tuple[str, ...]) -> frozenset[str]:
    """What is counted, whatever unit it is summed over and however it is scaled: peaks and counts have the same name then."""
    bare = (re.sub(r"^(derived__)?(rl_)?[a-z0-9]+__", "", name) for name in metrics)
    names = (_SUFFIX.sub("", _SUFFIX.sub("", name)) for name in bare)
    return frozenset(name for name in names if not re.match(r"cycles_(elapsed|active)", name))


def levels_of(roof: Roof) -> tuple[str, ...]:
    """The levels that the diagonal line of a roof limits, the first one by its name; () where the names don't tell."""
    level = classify(roof.traffic_metrics)[1]
    shared = ("shared",) if level == "l1" and any(map(_BOTH_L1_AND_SHARED.search, roof.traffic_metrics)) else ()
    return (level, *shared) if level else ()


def peaks_of(chart: Chart, point: Point) -> tuple[float, float]:
    """Peak work and peak traffic that a dot stands under, per second, in theory; NaN where the chart draws none for it.  The
    horizontal line and the diagonal may come from different roofs: some charts draw the line of a second precision at one
    level only.  Where several lines could be meant and none is the dot's own, there is no telling: NaN."""
    level = classify(point.traffic_metrics)[1]
    roofs = [roof for roof in chart.roofs if not roof.is_measured] or chart.roofs
    own = _of_work(roofs, point)
    here = [roof for roof in roofs if classify(roof.traffic_metrics)[1] == level]
    here = here or [roof for roof in roofs if level in levels_of(roof)]
    both = [roof for roof in own if roof in here]
    work = max((roof.work for roof in own), default=math.nan)
    return work, _only([roof.traffic for roof in both or here])


def _of_work(roofs: Sequence[Roof], point: Point) -> list[Roof]:
    """Roofs for the work of a dot, by the closest agreement that any roof has."""
    precision, counted = classify(point.work_metrics)[0], _counters(point.work_metrics)
    kinds = [(roof, classify(roof.work_metrics)[0]) for roof in roofs]
    steps = [[roof for roof in roofs if (mine := _counters(roof.work_metrics)) and mine <= counted]]
    if precision:
        steps.append([roof for roof, kind in kinds if kind == precision])
        steps.append([roof for roof, kind in kinds if _is_kind_of(kind, precision)])
        steps.append([roof for roof, kind in kinds if _is_kind_of(precision, kind)])
    # Constants, and counters of unknown names: one line is everybody's, of several nobody knows whose they are.
    unnamed = [roof for roof, kind in kinds if not (precision and kind)]
    steps.append([] if math.isnan(_only([roof.work for roof in unnamed])) else unnamed)
    return next(filter(None, steps), [])


def _is_kind_of(kind: str, precision: str) -> bool:
    """Whether ``kind`` (tensor.bf16.wgmma) is a kind of ``precision`` (tensor.bf16), dense or sparse alike."""
    inner, outer = kind.removesuffix(_SPARSE), precision.removesuffix(_SPARSE)
    return inner.startswith(f"{outer}.") and kind.endswith(_SPARSE) == precision.endswith(_SPARSE) and bool(outer)


def _only(peaks: Sequence[float]) -> float:
    same = peaks and max(peaks) - min(peaks) <= _SAME * max(peaks)
    return max(peaks) if same else math.nan


HALVED = (
    "Nsight Compute before 2025.1 counts a packed half-precision instruction as one lane: this chart's roofs are 2x too low, "
    "and so are its points if the kernel uses packed instructions (for scalar ones the points are right)"
)


def counts_halves_once(chart: Chart, ncu_version: str) -> bool:
    """Whether roofs and points of a chart are 2x too low (`HALVED`): an FP16 chart of some releases (``"2024.2.1.0"``; "" if
    unknown).  Counters of half precision count instructions of a thread, and HFMA2 does 4 operations, HADD2 and HMUL2 do 2.
    Stock sections weighted them 2, 1, 1 until 2024 and 4, 2, 2 since 2025.1.  The weights in the names of the derived metrics
    decide; the version does for stock charts whose names carry none."""
    lines: list[Roof | Point] = [*chart.roofs, *chart.points]
    if not any(classify(line.work_metrics)[0] == "fp16" for line in lines):
        return False
    names = {name for line in lines for name in line.work_metrics}
    weights = {match[1] for name in names if (match := re.search(r"_hfma_pred_on_x(\d{1,9})", name))}
    old = (parse_release(ncu_version) or _FIRST_RIGHT) < _FIRST_RIGHT  # nothing is corrected on a guess
    return weights == {"2"} if weights else old and chart.section.startswith(_STOCK)


def tensor_caveat(metrics: tuple[str, ...], capability: tuple[int, int]) -> str:
    """What is wrong with work (or a roof) of these metrics on a chip: "" for work that is not counted by instructions.  Stock
    charts of 2021.3 to 2024.1 count 512 operations for every tensor instruction; later chips have instructions of 512 to
    16384.  Instructions without any weight, as charts of others may have them, are not operations at all."""
    counted = [name for name in metrics if re.search(r"__inst_executed_pipe_(tensor|fp64\w{0,99}_dmma)", name)]
    if not counted:
        return ""
    match = _WEIGHT.search(counted[0])
    weight = int(match[1]) if match else counted.count(counted[0])  # old sections list a metric as often as it counts
    dmma = all("dmma" in name for name in counted)
    if weight == _OF_884 and (capability[0] != _HOPPER if dmma else capability == _V100):
        return ""
    holds = ", which holds for V100 only" if weight == _OF_884 and not dmma else " whatever its shape"
    operations = f"{weight} operation{'' if weight == 1 else 's'}"
    return f"counts {operations} per tensor instruction{holds}; here the real work differs by shape and type"
