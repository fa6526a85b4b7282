"""Attacks whose outcome is known beforehand: what changes nothing, one thing only, or makes a number that can't be true."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.attack.attack import AsWithout, Doubled, Gone, Promise, SameNumbers, Scaled
from tests.attack.document import MESSAGES, Document, Part, number_of, set_value
from tests.attack.texts import HOSTILE

IMPOSSIBLE: dict[str, float | str | None] = {
    "-1": -1.0, "-1e300": -1e300, "NaN": float("nan"), "Inf": float("inf"), "-Inf": -float("inf"), "1e308": 1e308,
    "a text": "n/a", "digits as text": "1000000", "nothing": None,
}  # fmt: skip
# What a roofline is made of; everything else is of no use to it.
_USED = re.compile(
    r"dram__bytes|lts__t_(sectors|bytes)|l1tex__t_bytes|smsp__sass_thread_inst|sm__ops_path|gpu__time_duration\.sum"
    r"|(sm|lts|dram|l1tex)__cycles_elapsed|device__attribute_(multi|max_|fbp|num_l2s|global_memory_bus)"
    r"|smsp__(thread_)?inst_executed|smsp__sass_inst|pct_of_peak|peak_sustained|launch__waves"
)


# What changes nothing.  Each takes a document and changes it in place.
def names_in_another_order(document: Document, rng: random.Random) -> None:
    names = [name for part in document.parts for name in part.header.strings.strings]
    order = list(range(len(names)))
    rng.shuffle(order)
    for part in document.parts:
        del part.header.strings.strings[:]
    document.parts[0].header.strings.strings.extend(names[old] for old in order)
    _renumber(document, {old: new for new, old in enumerate(order)})


def names_twice(document: Document, rng: random.Random) -> None:
    names = [name for part in document.parts for name in part.header.strings.strings]
    document.parts[-1].header.strings.strings.extend(names)
    _renumber(document, {old: old + len(names) for old in range(len(names)) if rng.random() < 0.5})


def _renumber(document: Document, numbers: dict[int, int]) -> None:
    for result in document.results:
        for metric in result.metrics:
            metric.name_id = numbers.get(metric.name_id, metric.name_id)


def names_unused(document: Document, _: random.Random) -> None:
    document.parts[-1].header.strings.strings.extend([b"nobody__uses.sum", b""])


def all_in_one_block(document: Document, _: random.Random) -> None:
    first = next((part for part in document.parts if part.records), None)
    if first is None or len({part.header.process for part in document.parts if part.records}) > 1:
        return
    if len({kind for part in document.parts for kind, _ in part.records if kind in MESSAGES}) > 1:
        return  # kinds of results stand in one order inside a block, so joining would number the launches anew
    for part in document.parts:
        if part is not first:
            first.records += part.records
            part.records = []
            first.header.strings.strings.extend(part.header.strings.strings)
            del part.header.strings.strings[:]


def blocks_without_records(document: Document, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 50))):
        header = type(document.parts[0].header)(process=document.parts[0].header.process)
        document.parts.insert(rng.randrange(1, len(document.parts) + 1), Part(header, []))


def metrics_in_another_order(document: Document, rng: random.Random) -> None:
    for result in document.results:
        if len({metric.name_id for metric in result.metrics}) == len(result.metrics):
            metrics = list(result.metrics)
            rng.shuffle(metrics)
            del result.metrics[:]
            result.metrics.extend(metrics)


def metrics_twice(document: Document, rng: random.Random) -> None:
    """With the same value: other ones are told."""
    for result in document.results:
        if result.metrics and rng.random() < 0.5:
            first = type(result.metrics[0])()
            first.CopyFrom(rng.choice(result.metrics))
            metrics = [first, *result.metrics]
            del result.metrics[:]
            result.metrics.extend(metrics)


def numbers_of_another_type(document: Document, rng: random.Random) -> None:
    for result in document.results:
        for metric in result.metrics:
            value = number_of(metric.value)
            if value is None or not value.is_integer() or not 0 <= value < 2**32 or rng.random() < 0.5:
                continue
            metric.value.Clear()
            kind = rng.choice(("double", "uint64", "uint32"))
            setattr(metric.value, kind, value if kind == "double" else int(value))


UNCHANGED: tuple[Callable[[Document, random.Random], None], ...] = (
    names_in_another_order, names_twice, names_unused, all_in_one_block, blocks_without_records, metrics_in_another_order,
    metrics_twice, numbers_of_another_type,
)  # fmt: skip


def unchanged(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A report with the same meaning, and how it is laid out."""
    change = rng.choice(UNCHANGED)
    document = Document.of(data)
    change(document, rng)
    return document.encode(), change.__name__.replace("_", " ")


# What changes one thing.
_WORK = {"fp64": "smsp__sass_thread_inst_executed_op_d", "fp32": "smsp__sass_thread_inst_executed_op_f"}
_TRAFFIC = {"l1": "l1tex__t_bytes.sum", "l2": "lts__t_sectors_srcunit_tex.sum", "dram": "dram__bytes.sum"}
_TIME = "gpu__time_duration.sum"


def scaled(data: bytes, rng: random.Random) -> tuple[bytes, str, Promise]:
    """The report "several" with the work, the bytes or the time of one launch multiplied."""
    document = Document.of(data)
    launch = rng.randrange(len(document.results))
    factor = rng.choice((0.5, 2.0, 1.5))
    what = rng.choice(("time", *_WORK, *_TRAFFIC))
    metrics = (_TIME,) if what == "time" else (_TRAFFIC[what],) if what in _TRAFFIC else ()
    result = document.results[launch]
    for name, value in document.numbers(result).items():
        if name in metrics or (what in _WORK and name.startswith(_WORK[what])):
            document.put(result, name, value * factor)
    said = f"{what} of launch {launch} times {factor}"
    if what == "time":
        factors = {
            "seconds": factor,
            "performance": 1 / factor,
            "bandwidth": 1 / factor,
            "work": 1.0,
            "intensity": 1.0,
            "traffic": 1.0,
        }
        return document.encode(), said, Scaled(launch, factors)
    if what in _TRAFFIC:
        factors = {
            "traffic": factor,
            "bandwidth": factor,
            "intensity": 1 / factor,
            "work": 1.0,
            "performance": 1.0,
            "seconds": 1.0,
        }
        return document.encode(), said, Scaled(launch, factors, level=what)
    factors = {"work": factor, "performance": factor, "intensity": factor, "traffic": 1.0, "bandwidth": 1.0, "seconds": 1.0}
    return document.encode(), said, Scaled(launch, factors, precision=what)


def impossible(data: bytes, rng: random.Random) -> tuple[bytes, str, Promise]:
    """A report in which a metric of one launch, or of all, can't be true."""
    document, without = Document.of(data), Document.of(data)
    launches = range(len(document.results))
    chosen = list(launches) if rng.random() < 0.3 else [rng.choice(launches)]
    known = sorted(document.numbers(document.results[chosen[0]]))
    used = [name for name in known if _USED.search(name)]
    name = rng.choice(used or known or ["none"])
    said, value = rng.choice(list(IMPOSSIBLE.items()))
    for launch in chosen:
        metric = document.metric(document.results[launch], name)
        if metric is not None:
            metric.value.Clear()
            if value is not None:
                set_value(metric.value, value)
            without.remove(without.results[launch], name)
    which = "all launches" if len(chosen) > 1 else f"launch {chosen[0]}"
    return (
        document.encode(),
        f"{name} of {which} is {said}",
        AsWithout(without.encode(), told=isinstance(value, float) and value == value),
    )


def gone(data: bytes, rng: random.Random) -> tuple[bytes, str, Promise]:
    """A report without one of its launches."""
    document = Document.of(data)
    launch = rng.randrange(len(document.results))
    _take(document, launch)
    return document.encode(), f"without launch {launch}", Gone(launch)


def doubled(data: bytes, rng: random.Random) -> tuple[bytes, str, Promise]:
    """A report that has one of its launches once more, as the last."""
    document, copy = Document.of(data), Document.of(data)
    launch = rng.randrange(len(document.results))
    header = type(document.parts[0].header)(process=document.parts[-1].header.process)
    document.parts.append(Part(header, [_take(copy, launch)]))
    return document.encode(), f"launch {launch} twice", Doubled(launch)


def _take(document: Document, launch: int) -> tuple[str, object]:
    """Take a launch away: its counter and message."""
    result = document.results[launch]
    for part in document.parts:
        for index, (_, record) in enumerate(part.records):
            if record is result:
                return part.records.pop(index)
    raise IndexError(launch)


# Texts of a launch that say nothing about its numbers.
def renamed(data: bytes, rng: random.Random) -> tuple[bytes, str, Promise]:
    """A report whose kernels, ranges, rules, program and host are called something hostile."""
    document = Document.of(data)
    called, text = rng.choice(list(HOSTILE.items()))
    encoded = text.encode("utf-8", "replace")
    has_code = any(kind == "sources" for part in document.parts for kind, _ in part.records)
    for part in document.parts:
        for kind, record in part.records:
            if kind == "kernels":
                record.demangled = record.function = encoded
                if not has_code:  # there the mangled name is that of the function in it
                    record.mangled = encoded
                for rule in range(len(record.rules)):
                    record.rules[rule] = _rule_saying(record.rules[rule], encoded)
            if kind in MESSAGES:
                _rename_ranges(record, encoded)
    return document.encode(), f"all names are {called}", SameNumbers()


def _rename_ranges(record: object, text: bytes) -> None:
    for thread in record.nvtx.threads:  # type: ignore[attr-defined]
        for domain in thread.domains:
            for pushed in domain.stack:
                pushed.name = text


def _rule_saying(data: bytes, text: bytes) -> bytes:
    from ncu_roofline.formats.report.framing import message

    rule = message("RuleResult").FromString(data)
    rule.identifier = rule.name = rule.section = text
    for item in rule.body.items:
        item.message.text = item.message.title = text
    return bytes(rule.SerializeToString())


_HELD = ("device__attribute_display_name",)


def described(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A report whose GPU, host, program, versions, settings or metrics are called something hostile."""
    from ncu_roofline.formats.report.framing import message

    document = Document.of(data)
    called, text = rng.choice(list(HOSTILE.items()))
    encoded = text.encode("utf-8", "replace")
    what = rng.choice(("GPU", "session", "process", "metrics", "text of metrics"))
    for part in document.parts:
        if what == "session":
            sessions = [message("Session").FromString(each) for each in part.header.session]
            for each in sessions:
                each.command_line = each.host.os = each.host.name = each.target.os = each.executable.path = encoded
                each.executable.arguments = each.settings.sections = each.settings.clock_control = encoded
                for version in each.versions:
                    version.version = encoded
            del part.header.session[:]
            part.header.session.extend(each.SerializeToString() for each in sessions)
        if what == "process":
            part.header.process = message("Process")(id=4, host=encoded, name=encoded).SerializeToString()
        if what == "metrics":
            for index in range(len(part.header.strings.strings)):
                if rng.random() < 0.2:
                    part.header.strings.strings[index] += encoded
    for result in document.results if what in ("GPU", "text of metrics") else ():
        for name in _HELD if what == "GPU" else sorted(document.numbers(result)):
            if what == "GPU" or rng.random() < 0.3:
                document.put(result, name, text.encode("utf-8", "replace").decode())
    return document.encode(), f"{what}: {called}"
