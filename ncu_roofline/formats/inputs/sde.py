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
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath

from ncu_roofline.base.texts import listed
from ncu_roofline.formats.inputs.intel_run import IntelPart, table_of
from ncu_roofline.formats.inputs.tables import JoinedTable
from ncu_roofline.formats.inputs.text import Table, lines_of, split_number

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


def recognises(head: str) -> bool:
    """Whether a file begins like a mix, or with one of its blocks."""
    return _SIGN.search(head) is not None


def read(path: str | PathLike[str]) -> JoinedTable:
    """The process as one point without a time.  Raises RooflineError for a mix that is cut off or contradicts itself."""
    mix = Table(path, _NEXT)
    counts, image = _counted(mix)
    traffic = _traffic(counts, mix)
    work, fused, notes, warnings = _work(counts, mix)
    if not work and traffic is None and not warnings:
        raise mix.damaged("its counts hold neither operations nor bytes")
    unused = [one for one, value in counts.items() if value and _UNCOUNTED.fullmatch(one) and not _READ.fullmatch(one)]
    if unused:
        warnings.append(f"counts that are not used: {listed(unused)}")
    part = IntelPart(
        path=mix.path,
        tool=FORMAT,
        name=image or Path(path).stem,
        work=work,
        fused=fused,
        traffic={} if traffic is None else {"l1": traffic},
        columns=("*elements_fp_*", "VFM*", "*mem-read-*", "*mem-write-*"),
        notes=tuple(notes),
        reading=tuple(warnings),
    )
    return table_of([part])


def _counted(mix: Table) -> tuple[dict[str, float], str]:
    """The counts of all threads, and the program that ran.  Blocks of statistics are by thread, "" for all of them."""
    image, begun, images = "", 0, False
    blocks: dict[str, dict[str, float]] = {}
    block: dict[str, float] | None = None
    with closing(lines_of(mix.path)) as lines:
        for number, padded in enumerate(lines, 1):
            line = padded.strip()
            if match := _BEGIN.match(line):
                thread = "" if match[1] else match[2] or "0"
                if thread in blocks:
                    reason = f"line {number} begins the statistics of {f'thread {thread}' if thread else 'all threads'} again"
                    raise mix.damaged(reason, "Give one file per run and region, for whether blocks add up is not known.")
                if block is not None:
                    break
                block = blocks[thread] = {}
                begun = number
            elif _END.match(line) or (line.startswith("# $") and not line.endswith("dynamic-counts")):
                block = None  # the statistics of a function: the sums hold them already
            elif block is not None:
                if line and not line.startswith("#"):
                    _count(mix, block, line, number)
            elif line.startswith("# "):
                images = _IMAGES.match(line) is not None or (images and not line.startswith("# END"))
            elif images and not image:
                words = line.rsplit(None, 2)
                if len(words) == 3 and all(map(_ADDRESS.fullmatch, words[1:])):
                    image = (PureWindowsPath(words[0]) if "\\" in words[0] else PurePosixPath(words[0])).name
    if block is not None:
        raise mix.damaged(f"the statistics that begin in line {begun} have no end")
    if not blocks:
        raise mix.damaged("it holds no dynamic statistics")
    if "" in blocks:
        return blocks[""], image
    names = dict.fromkeys(name for one in blocks.values() for name in one)
    return {name: sum(one.get(name, 0.0) for one in blocks.values()) for name in names}, image


def _count(mix: Table, block: dict[str, float], line: str, number: int) -> None:
    match = _COUNT.fullmatch(line)
    name = match[1] if match else line.split()[0]
    if not (_READ.fullmatch(name) or _UNCOUNTED.fullmatch(name)):
        return
    text = match[2] if match else ""
    value = mix.number(
        name, number, text, read=lambda cell: split[0] if (split := split_number(cell)) and not split[1] else None
    )
    if value is None or value != int(value):
        raise mix.damaged(f"{name} in line {number} has no count")
    if name in block:
        raise mix.damaged(f"line {number} gives {name} again")
    block[name] = value


def _traffic(counts: Mapping[str, float], mix: Table) -> float | None:
    """Bytes that were loaded and stored, None where nothing was counted.  The counts of all sizes are there as well."""
    sizes = [(match[1], int(match[2]), value) for name, value in counts.items() if (match := _BYTES.fullmatch(name))]
    for way in ("read", "write"):
        stated = counts.get(f"*mem-{way}")
        added = sum(value for what, _, value in sizes if what == way)
        if stated is not None and stated != added:
            raise mix.damaged(f"its *mem-{way}-N add up to {added:.0f}, and its *mem-{way} is {stated:.0f}")
    return sum(size * value for _, size, value in sizes) if sizes else None


def _work(counts: Mapping[str, float], mix: Table) -> tuple[dict[str, float], dict[str, float], list[str], list[str]]:
    """Operations by precision, those of them that fused instructions do, notes, and sentences on what is left out."""
    lanes, unknown = _lanes(counts)
    work, fused, notes, warnings = {}, {}, [], []
    for kind, precision in _PRECISIONS.items():
        if kind in unknown:
            reason = f"{unknown[kind]} does not say how wide it is"
            warnings.append(f"{precision} work left out: {reason}; run SDE with -iform 1")
            continue
        low = high = pairs = 0.0
        for width, (plain, masked, sure, either) in lanes[kind].items():
            if sure + either > plain + masked:
                raise mix.damaged(f"it has more fused instructions on {width} numbers of {precision} than instructions")
            sure_at_least = sure + max(0.0, either - masked)
            low += width * (plain + sure_at_least)
            high += width * (plain + masked + sure + either)
            pairs += 2 * width * sure_at_least
        if high - low > _CLOSE * low:
            warnings.append(
                f"{precision} work left out: it is between {low:.4g} and {high:.4g} FLOP, for the mix does not say how many "
                "numbers its masked instructions computed"
            )
        elif lanes[kind]:
            work[precision], fused[precision] = low, pairs
            if high > low:
                notes.append(f"{precision} work without masked instructions, which did at most {high - low:.4g} FLOP")
    return work, fused, notes, warnings


def _lanes(counts: Mapping[str, float]) -> tuple[dict[str, dict[int, list[float]]], dict[str, str]]:
    """Instructions by type and width, and for each type a fused instruction that ran and whose width is not known.

    On so many numbers: elements, those of them under a mask, and fused ones, perhaps under a mask.
    """
    lanes: dict[str, dict[int, list[float]]] = {kind: {} for kind in _PRECISIONS}
    unknown: dict[str, str] = {}
    for name, count in counts.items():
        if match := _ELEMENTS.fullmatch(name):
            lanes[match[1]].setdefault(int(match[2]), [0.0] * 4)[1 if match[3] else 0] += count
    for name, count in counts.items():
        match = _FUSED.fullmatch(name)
        if not match or not count:
            continue
        kind, bits = _LETTERS[match[2]]
        if match[1] == "P" and not match[3]:
            unknown[kind] = name
        else:
            width = 1 if match[1] == "S" else _BITS[match[3]] // bits
            lanes[kind].setdefault(width, [0.0] * 4)[3 if "_MASK" in name else 2] += count
    return lanes, unknown
