"""Intel SDE's instruction mix (``sde -iform 1 -omix FILE``): what one process computed, and what its cores loaded and stored.

Work by NERSC's "Measuring Arithmetic Intensity" and Intel's "Calculating FLOP using Intel SDE": ``*elements_fp_double_4``
counts instructions on four numbers (compares among them), an operation on each; fused multiply-adds are among them once and do
a second one.  Traffic of level l1 is ``*mem-read-N`` and ``*mem-write-N`` times N bytes.  The block of all threads counts;
where there is none, those of the threads are added.  x87, AMX and dot products of BF16 are not among the elements.

The mix does not say how many numbers a masked instruction computed, so the work lies between two bounds, and is used where they
agree.  Iforms of AVX-512 are the same with and without a mask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path, PurePosixPath, PureWindowsPath

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.intel_run import IntelPart, table_of
from ncu_roofline.formats.inputs.tables import JoinedTable
from ncu_roofline.formats.inputs.text import damaged, lines_of, split_number

FORMAT = "sde"
_SIGN = re.compile(r"^[ \t]*# (?:Mix output version|EMIT_(?:GLOBAL_)?DYNAMIC_STATS)\b", re.MULTILINE)
_BEGIN = re.compile(r"# EMIT_(GLOBAL_)?DYNAMIC_STATS\b(?:.*?\bTID\s+(\d+))?")
_END = re.compile(r"# END_(?:GLOBAL_)?DYNAMIC_STATS\b")
_IMAGES = re.compile(r"# EMIT_IMAGE_ADDRESSES\b")
_ADDRESS = re.compile("[0-9a-f]+")
_COUNT = re.compile(r"(\S+)\s+(\S+)")
_BYTES = re.compile(r"\*mem-(read|write)-(\d{1,6})")
_ELEMENTS = re.compile(r"\*elements_fp_(single|double)_(\d{1,3})(_masked)?")
_FUSED = re.compile(r"VFN?M(?:ADD|SUB|ADDSUB|SUBADD)(?:132|213|231)?([SP])([SD])(?:_([XYZ]MM)\w*)?")
_UNCOUNTED = re.compile(r"\*elements_(?![iu]\d).*|V4FN?M\w*|VDPBF16\w*|TDP(?:BF|FP)16\w*|VFN?M\w*H(?:_\w*)?")
_READ = re.compile("|".join(one.pattern for one in (_BYTES, _ELEMENTS, _FUSED)) + r"|\*mem-(?:read|write)")
_PRECISIONS = {"single": "fp32", "double": "fp64"}
_LETTERS = {"S": ("single", 32), "D": ("double", 64)}
_BITS = {"XMM": 128, "YMM": 256, "ZMM": 512}
_CLOSE = 0.01  # of the work: bounds that are no further apart are one number in any chart
_NEXT = "Give SDE's complete output, as `sde -iform 1 -omix FILE -- ./app` writes it."


@dataclass
class _Lanes:
    """Instructions on so many numbers: elements, those of them under a mask, and fused ones, perhaps under a mask."""

    plain: float = 0.0
    masked: float = 0.0
    fused: float = 0.0
    fused_either: float = 0.0


def recognises(head: str) -> bool:
    """Whether a file begins like a mix, or with one of its blocks."""
    return _SIGN.search(head) is not None


def read(path: str | PathLike[str]) -> JoinedTable:
    """The process as one point without a time.  Raises RooflineError for a mix that is cut off or contradicts itself."""
    name = fspath(path)
    counts, image = _counted(name)
    traffic = _traffic(counts, name)
    work, fused, notes, warnings = _work(counts, name)
    if not work and traffic is None and not warnings:
        raise damaged(path, "its counts hold neither operations nor bytes", _NEXT)
    unused = [one for one, value in counts.items() if value and _UNCOUNTED.fullmatch(one) and not _READ.fullmatch(one)]
    if unused:
        warnings.append(f"counts that are not used: {listed(unused)}")
    part = IntelPart(
        path=name,
        tool=FORMAT,
        name=image or Path(name).stem,
        work=work,
        fused=fused,
        traffic={} if traffic is None else {"l1": traffic},
        columns=("*elements_fp_*", "VFM*", "*mem-read-*", "*mem-write-*"),
        notes=tuple(notes),
        reading=tuple(warnings),
    )
    return table_of([part])


def _counted(path: str) -> tuple[dict[str, float], str]:
    """The counts of all threads, and the program that ran.  Blocks of statistics are by thread, "" for all of them."""
    image, begun, images = "", 0, False
    blocks: dict[str, dict[str, float]] = {}
    block: dict[str, float] | None = None
    with closing(lines_of(path)) as lines:
        for number, padded in enumerate(lines, 1):
            line = padded.strip()
            if match := _BEGIN.match(line):
                thread = "" if match[1] else match[2] or "0"
                if thread in blocks:
                    reason = f"line {number} begins the statistics of {f'thread {thread}' if thread else 'all threads'} again"
                    raise damaged(path, reason, "Give one file per run and region, for whether blocks add up is not known.")
                if block is not None:
                    break
                block = blocks[thread] = {}
                begun = number
            elif _END.match(line) or (line.startswith("# $") and not line.endswith("dynamic-counts")):
                block = None  # the statistics of a function: the sums hold them already
            elif block is not None:
                if line and not line.startswith("#"):
                    _count(block, line, f"line {number}", path)
            elif line.startswith("# "):
                images = _IMAGES.match(line) is not None or (images and not line.startswith("# END"))
            elif images and not image:
                words = line.rsplit(None, 2)
                if len(words) == 3 and all(map(_ADDRESS.fullmatch, words[1:])):
                    image = (PureWindowsPath(words[0]) if "\\" in words[0] else PurePosixPath(words[0])).name
    if block is not None:
        raise damaged(path, f"the statistics that begin in line {begun} have no end", _NEXT)
    if not blocks:
        raise damaged(path, "it holds no dynamic statistics", _NEXT)
    if "" in blocks:
        return blocks[""], image
    names = dict.fromkeys(name for one in blocks.values() for name in one)
    return {name: sum(one.get(name, 0.0) for one in blocks.values()) for name in names}, image


def _count(block: dict[str, float], line: str, place: str, path: str) -> None:
    match = _COUNT.fullmatch(line)
    name = match[1] if match else line.split()[0]
    if not (_READ.fullmatch(name) or _UNCOUNTED.fullmatch(name)):
        return
    try:
        value, unit = split_number(match[2] if match else "") or (None, "")
    except ValueError as error:
        raise damaged(path, f"{name} in {place}: {error}", _NEXT) from error
    if value is None or unit or value != int(value):
        raise damaged(path, f"{name} in {place} has no count", _NEXT)
    if name in block:
        raise damaged(path, f"{place} gives {name} again", _NEXT)
    block[name] = value


def _traffic(counts: Mapping[str, float], path: str) -> float | None:
    """Bytes that were loaded and stored, None where nothing was counted.  The counts of all sizes are there as well."""
    sizes = [(match[1], int(match[2]), value) for name, value in counts.items() if (match := _BYTES.fullmatch(name))]
    for way in ("read", "write"):
        stated = counts.get(f"*mem-{way}")
        added = sum(value for what, _, value in sizes if what == way)
        if stated is not None and stated != added:
            raise damaged(path, f"its *mem-{way}-N add up to {added:.0f}, and its *mem-{way} is {stated:.0f}", _NEXT)
    return sum(size * value for _, size, value in sizes) if sizes else None


def _work(counts: Mapping[str, float], path: str) -> tuple[dict[str, float], dict[str, float], list[str], list[str]]:
    """Operations by precision, those of them that fused instructions do, notes, and sentences on what is left out."""
    lanes, unknown = _lanes(counts)
    work, fused, notes, warnings = {}, {}, [], []
    for kind, precision in _PRECISIONS.items():
        mine = {width: one for (of, width), one in lanes.items() if of == kind}
        if kind in unknown:
            reason = f"{unknown[kind]} does not say how wide it is"
            warnings.append(f"{precision} work left out: {reason}; run SDE with -iform 1")
            continue
        if not mine:
            continue
        low = high = pairs = 0.0
        for width, one in mine.items():
            if one.fused + one.fused_either > one.plain + one.masked:
                raise damaged(
                    path, f"it has more fused instructions on {width} numbers of {precision} than instructions", _NEXT
                )
            sure = one.fused + max(0.0, one.fused_either - one.masked)
            low += width * (one.plain + sure)
            high += width * (one.plain + one.masked + one.fused + one.fused_either)
            pairs += 2 * width * sure
        if high - low > _CLOSE * low:
            warnings.append(
                f"{precision} work left out: it is between {low:.4g} and {high:.4g} FLOP, for the mix does not say how many "
                "numbers its masked instructions computed"
            )
            continue
        work[precision], fused[precision] = low, pairs
        if high > low:
            notes.append(f"{precision} work without masked instructions, which did at most {high - low:.4g} FLOP")
    return work, fused, notes, warnings


def _lanes(counts: Mapping[str, float]) -> tuple[dict[tuple[str, int], _Lanes], dict[str, str]]:
    """Instructions by type and width, and for each type a fused instruction that ran and whose width is not known."""
    lanes: dict[tuple[str, int], _Lanes] = {}
    unknown: dict[str, str] = {}
    for name, count in counts.items():
        if match := _ELEMENTS.fullmatch(name):
            one = lanes.setdefault((match[1], int(match[2])), _Lanes())
            one.masked, one.plain = one.masked + count * bool(match[3]), one.plain + count * (not match[3])
    for name, count in counts.items():
        match = _FUSED.fullmatch(name)
        if not match or not count:
            continue
        kind, bits = _LETTERS[match[2]]
        if match[1] == "P" and not match[3]:
            unknown[kind] = name
            continue
        one = lanes.setdefault((kind, 1 if match[1] == "S" else _BITS[match[3]] // bits), _Lanes())
        if "_MASK" in name:
            one.fused_either += count
        else:
            one.fused += count
    return lanes, unknown
