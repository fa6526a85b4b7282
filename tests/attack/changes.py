"""What is done to a report: damage of all sorts, and changes of which it is known beforehand what must come of them."""

from __future__ import annotations

import math
import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ncu_roofline.formats.report import Code, CodeFunction, RuleMessage, RuleResult
from ncu_roofline.formats.report.framing import file_start, message
from ncu_roofline.formats.wire import FIXED32, FIXED64, VARINT, split
from tests.attack.reports import WRITTEN, Document, Field, made, repeated, varint
from tests.factory import by_address, complete, kernel
from tests.report.damaged import DAMAGED
from tests.report.factory import block, report_of
from tests.report.frames import packed
from tests.sectionfile.section_factory import chart, per_second, point, roof, section
from tests.sectionfile.section_factory import one as value_of

TEXT = 2
EDGES = (0, 1, 2, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63, 2**64 - 1)
OFF = (-3, -1, 1, 1000, 2**31, 2**63)
_CONTENT = {VARINT: b"\7", FIXED64: b"8 bytes.", TEXT: b"text", FIXED32: b"four", **dict.fromkeys((3, 4, 6, 7), b"")}
WIRES = [{"wire": wire, "content": content} for wire, content in _CONTENT.items()]
FLOATS = (0.0, -0.0, -1.0, 5e-324, 3.4e38, 1e308, -1e308, math.nan, math.inf, -math.inf)


def joined(parts: Sequence[Any], scale: int = 1) -> str:
    return "".join(part if isinstance(part, str) else part[0] * part[1] * scale for part in parts)  # or [a part, how often]


# Texts that terminals, browsers, spreadsheets, parsers and regular expressions would like to misunderstand.
TEXTS = {called: joined(parts) for called, parts in WRITTEN["texts"].items()}


@dataclass(frozen=True)
class Promise:
    """What must come of a change, besides what holds of every report.

    ``same``: every output is what it was, to the last letter.  ``as_of``: all numbers are those of this report (b"": of the
    base); ``told``: where they are not those of the base, something says that a number was left out.  ``launches``: only the
    rows of these are compared, with those of others, and there are no more but ``launch``, the columns of whose points are
    multiplied by ``factors``, where a column has the value of ``scope``.
    """

    same: bool = False
    as_of: bytes | None = field(default=None, repr=False)
    told: bool = False
    launches: Sequence[tuple[int, int]] | None = None
    launch: int = -1
    factors: Mapping[str, float] = field(default_factory=dict)
    scope: tuple[str, str] = ("", "")


Change = tuple[bytes, str, Promise]
ANYTHING, SAME = Promise(), Promise(same=True, as_of=b"")
Dice = random.Random


# Fields that are something else than the schema says.
def fields(data: bytes, rng: Dice) -> Change:
    """Of a few fields of a sort; few of a sort are chosen as often as many."""
    document, headers, seen = Document(data), rng.random() < 0.2, Counter[str]()
    document.encode(lambda one: seen.update([one.name]) or b"", headers=headers)
    sort, how = rng.choice(sorted(seen)), rng.choice(sorted(FIELD_CHANGES))

    def change(one: Field) -> bytes:
        return FIELD_CHANGES[how](one, rng) if one.name == sort and rng.random() < 2 / seen[sort] else one.encode()

    return document.encode(change, headers=headers), f"{sort}: {how}", ANYTHING


def _nested(one: Field, deep: int) -> bytes:
    return _nested(one._replace(wire=TEXT, content=one.encode()), deep - 1) if deep else one.encode()


FIELD_CHANGES: dict[str, Callable[[Field, Dice], bytes]] = {
    "left out": lambda *_: b"",
    "many times": lambda one, rng: one.encode() * rng.choice((2, 3, 300)),
    "called otherwise": lambda one, rng: one._replace(number=rng.randrange(1, 30)).encode(),
    "of another wire type": lambda one, rng: one._replace(**rng.choice(WIRES)).encode(),
    "longer or shorter": lambda one, rng: one.encode(length=abs(len(one.content) + rng.choice(OFF))),
    "a whole number": lambda one, rng: one._replace(wire=VARINT, content=varint(rng.choice(EDGES))).encode(),
    "a number": lambda one, rng: one._replace(wire=FIXED64, content=struct.pack("<d", rng.choice(FLOATS))).encode(),
    "a text": lambda one, rng: one._replace(wire=TEXT, content=rng.choice(list(TEXTS.values())).encode()).encode(),
    "noise": lambda one, rng: one._replace(wire=TEXT, content=rng.randbytes(rng.choice((0, 1, 7, 60)))).encode(),
    "inside itself": lambda one, rng: _nested(one, rng.choice((3, 90, 300))),
    "of too many bytes": lambda one, _: one.encode(padding=9),
}


# Bytes that know nothing of what they are.
BYTES: dict[str, Callable[[bytes, int, Dice], bytes]] = {
    "bit": lambda data, start, rng: data[:start] + bytes([data[start] ^ 1 << rng.randrange(8)]) + data[start + 1 :],
    "cut off": lambda data, start, _: data[:start],
    "left out": lambda data, start, rng: data[:start] + data[start + rng.choice((1, 4, 30, 300)) :],
    "number": lambda data, start, rng: data[:start] + varint(rng.randrange(240)) + varint(rng.choice(EDGES)) + data[start:],
    "repeat": lambda data, start, rng: data[:start] + data[start:][: rng.randrange(60)] * rng.choice((2, 3, 99)) + data[start:],
}


def any_bytes(data: bytes, rng: Dice) -> Change:
    """In a file, plain or compressed, or in what is compressed."""
    name, frame = rng.choice(list(BYTES)), rng.choice(("", "", "of a frame", "in a frame"))
    whole = packed(data) if frame == "of a frame" else data
    changed = BYTES[name](whole, rng.randrange(len(whole)), rng)
    return packed(changed) if frame == "in a frame" else changed, f"{name} {frame}", ANYTHING


def texts(data: bytes, rng: Dice, wanted: str = "", called: str = "") -> Change:
    """Something that is a text is called something hostile wherever it is: names of kernels, of the GPU, of metrics, ..."""
    document, seen, called = Document(data), set[str](), called or rng.choice(list(TEXTS))
    document.encode(lambda one: seen.add(one.name) or b"" if one.text else b"")
    wanted = wanted or rng.choice(sorted(seen - {"SourceRecord.cubin"}))

    def change(one: Field) -> bytes:
        metric = one.name == "StringTable.strings"
        chosen = one.text and re.fullmatch(wanted, one.name) and (not metric or rng.random() < 0.2)
        return (one._replace(content=(one.content if metric else b"") + TEXTS[called].encode()) if chosen else one).encode()

    return document.encode(change), f"{wanted}: {called}", ANYTHING


def names(data: bytes, rng: Dice) -> Change:
    """All names of kernels, ranges and rules, which say nothing about numbers; mangled ones find the function in the code."""
    named = r"KernelResult\.(demangled|function)|Nvtx\w+\.name|RuleResult\.\w+"
    coded = any(kind == "sources" for _, records in Document(data).parts for kind, _ in records)
    changed, what, _ = texts(data, rng, named if coded else rf"{named}|KernelResult\.mangled")
    return changed, f"names: {what.rpartition(': ')[2]}", Promise(as_of=b"")


# Size: a little of everything would be harmless, a lot of it must be read in time and memory, or refused.  A scale of 1 is what
# the tests of every day take, 10 and more what a campaign may.
def _with(**more: Any) -> bytes:
    return report_of(kernel(complete(), **more), kernel(complete()))


def _chart(work: Any, moved: Any, count: int = 1, **more: Any) -> bytes:
    return _with(sections=(section(chart(roofs=(roof(work, moved),) * count, points=(point(work, moved),) * count), **more),))


def _expression(parts: Sequence[Any], scale: int) -> bytes:
    return _chart(value_of("derived"), value_of("derived"), definitions={"derived": joined(parts, scale)})


_GPU, _BYTES = "device__attribute_display_name", "dram__bytes.sum.per_second"
BOMBS: dict[str, Callable[[int], bytes]] = {
    "a long name": lambda n: report_of(kernel(complete(), "void " + "k<int, " * (30_000 * n) + "x(T)"), kernel(complete())),
    "empty records": lambda n: _with() + block([b""] * (3_000 * n), kernels=3_000 * n),
    "empty blocks": lambda n: _with() + block() * (10_000 * n),
    "launches": lambda n: report_of(*[kernel({**complete(), _GPU: f"GPU {index}"}, f"k{index}()") for index in range(40 * n)]),
    "metrics": lambda n: report_of(kernel(complete() | {f"metric__{index}.sum": index for index in range(5_000 * n)})),
    "addresses": lambda n: _with(instances=by_address(1 << 40, inst_executed=range(20_000 * n))),
    "functions of code": lambda n: _with(code=Code(functions=tuple(CodeFunction(f"f{i}", 16 * i) for i in range(5_000 * n)))),
    "NVTX ranges inside each other": lambda n: _with(nvtx=[f"range {index}" for index in range(1_000 * n)]),
    "messages of a rule": lambda n: _with(
        rule_results=(RuleResult("R", "rule", "S", tuple(RuleMessage("warning", f"{i}", "title") for i in range(1_000 * n))),)
    ),
    "sections": lambda n: _with(sections=tuple(Document(made()["two chips"]).results[0].sections) * (50 * n)),
    "roofs and points of a chart": lambda n: _chart(per_second(_BYTES), value_of(_BYTES), 50 * n),
    "a start without an end": lambda _: file_start(),
    **{called: partial(_expression, parts) for called, parts in WRITTEN["expressions"].items()},
}


def listed(data: bytes, rng: Dice, changes: Mapping[str, Callable[[Any], bytes]]) -> Change:
    name = rng.choice(list(changes))
    return changes[name](1 if changes is BOMBS else data), name, ANYTHING


# What says the same in another way.
LATER = (varint(1000 << 3) + b"\7", varint(1001 << 3 | TEXT) + b"\3new", varint(1002 << 3 | FIXED64) + bytes(8))


def _said_twice(one: Field, _: Dice) -> bytes:
    """First with another value, as the last one counts; a message in two parts, which are one."""
    if one.about is None or repeated(one.about):
        return one.encode()
    parts = [b"\3" if one.wire == VARINT else b"" if one.inner is not None else bytes(len(one.content)), one.content]
    if one.about.message_type is not None:
        cut = next((each.end for each in split(one.content)), 0)
        parts = [one.content[:cut], one.content[cut:]]
    return b"".join(one._replace(content=part).encode() for part in parts)


REWRITINGS: dict[str, Callable[[Field, Dice], bytes]] = {
    "as it is": lambda one, _: one.encode(),
    "with a field of a later release": lambda one, rng: one.encode() + rng.choice(LATER),
    "longer varints": lambda one, _: one.encode(1),
    "said twice, messages in parts": _said_twice,
}


def rewritten(data: bytes, rng: Dice) -> Change:
    """Fields in another order, where those of one number keep theirs, which counts."""
    names, order = rng.choices(list(REWRITINGS), k=2), rng.sample(range(2000), 2000)
    changed = Document(data).encode(lambda one: REWRITINGS[rng.choice(names)](one, rng), headers=False, order=order.__getitem__)
    return changed, ", ".join(names), SAME


def laid_out(data: bytes, rng: Dice) -> Change:
    """Names and metrics in another order, some twice, names that nobody uses, numbers of another type, empty blocks."""
    document = Document(data)
    listed = [name for header, _ in document.parts for name in header.strings.strings]
    order = rng.sample(range(len(listed)), len(listed))
    for header, _ in document.parts:
        del header.strings.strings[:]
    document.parts[0][0].strings.strings.extend([*(listed[old] for old in order), *listed, b"nobody__uses.sum", b""])
    for result in document.results:
        metrics = [type(one).FromString(one.SerializeToString()) for one in result.metrics]
        if len({one.name_id for one in metrics}) == len(metrics):  # else the last one of a name counts
            rng.shuffle(metrics)
        for one in metrics:
            one.name_id = order.index(one.name_id) if rng.random() < 0.5 else one.name_id + len(listed)
            if one.value.HasField("uint64") and (number := one.value.uint64) < 2**32 and rng.random() < 0.5:
                one.value.Clear()
                setattr(one.value, rng.choice(("double", "uint32")), number)
        del result.metrics[:]
        result.metrics.extend([*rng.sample(metrics, len(metrics) // 8), *metrics])
    for _ in range(rng.choice((1, 50))):
        header = message("BlockHeader")(process=document.parts[0][0].process)
        document.parts.insert(rng.randrange(1, len(document.parts) + 1), (header, []))
    return document.encode(), "", SAME


# What changes one thing.
IMPOSSIBLE = {"-1": -1.0, "-1e300": -1e300, "NaN": math.nan, "Inf": math.inf, "1e308": 1e308, "a text": "n/a", "nothing": None}
USED = re.compile(WRITTEN["used"])  # what a roofline is made of; everything else is of no use to it


def impossible(data: bytes, rng: Dice) -> Change:
    """A metric of one launch, or of all, can't be true: it is as good as none."""
    document, without = Document(data), Document(data)
    launches = range(len(document.results))
    chosen = list(launches) if rng.random() < 0.3 else [rng.choice(launches)]
    known = sorted(document.numbers(document.results[chosen[0]]))
    name = rng.choice([name for name in known if USED.search(name)] or known or ["none"])
    said, value = rng.choice(list(IMPOSSIBLE.items()))
    for launch in chosen:
        document.put(document.results[launch], name, value)
        left = without.results[launch]
        for metric in [metric for named, metric in without.metrics(left) if named == name]:
            left.metrics.remove(metric)
    told = isinstance(value, float) and value == value
    return document.encode(), f"{name} of launches {chosen} is {said}", Promise(as_of=without.encode(), told=told)


def scaled(data: bytes, rng: Dice) -> Change:
    """The work, the bytes or the time of one launch multiplied: its numbers follow, all others stay."""
    document, factor, what = Document(data), rng.choice((0.5, 2.0, 1.5)), rng.choice(list(WRITTEN["scaled"]))
    # The metrics, the columns that follow, and those that are divided by as much.
    launch, (metrics, more, fewer) = rng.randrange(len(document.results)), WRITTEN["scaled"][what]
    for name, value in document.numbers(document.results[launch]).items():
        if re.fullmatch(metrics, name):
            document.put(document.results[launch], name, value * factor)
    factors = dict.fromkeys(("seconds", "performance", "bandwidth", "work", "intensity", "traffic"), 1.0)
    factors |= dict.fromkeys(more.split(), factor) | dict.fromkeys(fewer.split(), 1 / factor)
    others = [(index, index) for index in range(len(document.results)) if index != launch]
    scope = ("", "") if what == "time" else ("precision" if what.startswith("fp") else "level", what)
    promise = Promise(as_of=b"", launches=others, launch=launch, factors=factors, scope=scope)
    return document.encode(), f"{what} of launch {launch} times {factor}", promise


def moved(data: bytes, rng: Dice) -> Change:
    """A launch is there once more, as the last, or no more: the rows of the others stay."""
    document = Document(data)
    count, launch = len(document.results), rng.randrange(len(document.results))
    chosen = document.results[launch]
    if rng.random() < 0.5:
        header = message("BlockHeader")(process=document.parts[-1][0].process)
        document.parts.append((header, [record for _, records in document.parts for record in records if record[1] is chosen]))
        what, pairs = f"launch {launch} twice", [*((index, index) for index in range(count)), (launch, count)]
    else:
        for _, records in document.parts:
            records[:] = [record for record in records if record[1] is not chosen]
        what, pairs = f"without launch {launch}", [(old, old - (old > launch)) for old in range(count) if old != launch]
    return document.encode(), what, Promise(as_of=b"", launches=pairs)


# How often which sort comes, and what it is made of ("": any base).
FAMILIES: dict[str, tuple[int, str, Callable[[bytes, Dice], Change]]] = {
    "fields": (30, "", fields),
    "bytes": (6, "", any_bytes),
    "damaged": (3, "code", partial(listed, changes=DAMAGED)),
    "texts": (8, "", texts),
    "names": (8, "", names),
    "size": (5, "", partial(listed, changes=BOMBS)),
    "other writing": (8, "", rewritten),
    "other layout": (10, "", laid_out),
    "impossible numbers": (14, "", impossible),
    "other numbers": (10, "several", scaled),
    "launches gone or twice": (6, "several", moved),
}


class Attack(NamedTuple):
    family: str
    base: str
    data: bytes
    what: str
    promise: Promise


def attack(seed: int, number: int, bases: Mapping[str, bytes], only: Sequence[str] = ()) -> Attack:
    """The report of a number of a seed; of the families ``only``, or all."""
    rng = random.Random(f"{seed}:{number}")
    families = list(only or FAMILIES)
    family = rng.choices(families, [FAMILIES[name][0] for name in families])[0]
    _, wanted, change = FAMILIES[family]
    base = wanted or rng.choice(list(bases))
    return Attack(family, base, *change(bases.get(base) or made()[base], rng))
