"""Attacks by size: a little of everything would be harmless, a lot of it must be read in time and memory, or refused.

``scale`` 1 is what the tests of every day take, 10 and more what a campaign may.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ncu_roofline.formats.report import Code, CodeFunction, KernelData, RuleMessage, RuleResult
from ncu_roofline.formats.report.framing import file_start, message
from tests.attack.bases import embedded_section, encoded
from tests.attack.document import Document, Part
from tests.factory import by_address, complete, kernel
from tests.report.factory import block
from tests.sectionfile.section_factory import chart, one, per_second, point, roof, section


def _long_name(scale: int) -> bytes:
    text = "void " + "k<int, " * (30_000 * scale) + "x(T)"
    return encoded(replace(kernel(complete()), name=text, function_name=text), kernel(complete()))


def _empty_records(scale: int) -> bytes:
    return encoded(kernel(complete())) + block([b""] * (10_000 * scale), kernels=10_000 * scale)


def _empty_blocks(scale: int) -> bytes:
    return encoded(kernel(complete())) + block() * (10_000 * scale)


def _bare_launches(scale: int) -> bytes:
    record = message("KernelResult")(demangled=b"k").SerializeToString()
    return encoded(kernel(complete())) + block([record] * (500 * scale), kernels=500 * scale)


def _launches(scale: int) -> bytes:
    return encoded(*[kernel(complete(), f"kernel_{index}(int)") for index in range(100 * scale)])


def _chips(scale: int) -> bytes:
    names = [f"GPU {index}" for index in range(40 * scale)]
    return encoded(*[kernel({**complete(), "device__attribute_display_name": name}) for name in names])


def _names(scale: int) -> bytes:
    document = Document.of(encoded(kernel(complete())))
    document.parts[-1].header.strings.strings.extend(b"metric__%d.sum" % index for index in range(50_000 * scale))
    return document.encode()


def _metrics(scale: int) -> bytes:
    return encoded(kernel({**complete(), **{f"metric__{index}.sum": index for index in range(5_000 * scale)}}))


def _instances(scale: int) -> bytes:
    many = [(f"OP{index}", 1.0) for index in range(10_000 * scale)]
    names = ("sass__thread_inst_executed_true_per_opcode_with_modifier_all", "sass__inst_executed_per_opcode_with_modifier_all")
    return encoded(kernel(complete(), instances=dict.fromkeys(names, many)))


def _addresses(scale: int) -> bytes:
    return encoded(kernel(complete(), instances=by_address(1 << 40, inst_executed=range(20_000 * scale))))


def _functions(scale: int) -> bytes:
    functions = tuple(CodeFunction(f"f{index}", 16 * index) for index in range(5_000 * scale))
    return encoded(kernel(complete(), code=Code(functions=functions)))


def _sources(scale: int) -> bytes:
    return encoded(kernel(complete())) + block([b"\x08\x01"] * (10_000 * scale), sources=10_000 * scale)


def _ranges(scale: int) -> bytes:
    return encoded(kernel(complete(), nvtx=[f"range {index}" for index in range(1_000 * scale)]), kernel(complete()))


def _rules(scale: int) -> bytes:
    said = tuple(RuleMessage("warning", f"said {index}", "title") for index in range(1_000 * scale))
    return encoded(kernel(complete(), rule_results=(RuleResult("R", "rule", "S", said),)))


def _sections(scale: int) -> bytes:
    return encoded(kernel(complete(), sections=tuple(embedded_section(f"S{index}") for index in range(50 * scale))))


def _chart(scale: int) -> bytes:
    work, moved = per_second("dram__bytes.sum.per_second"), one("dram__bytes.sum.per_second")
    drawn = chart(roofs=(roof(work, moved),) * (50 * scale), points=(point(work, moved),) * (50 * scale))
    return encoded(kernel(complete(), sections=(section(drawn),)))


def _expression(text: Callable[[int], str]) -> Callable[[int], bytes]:
    def build(scale: int) -> bytes:
        derived = {"derived": text(scale)}
        work = one("derived")
        drawn = chart(roofs=(roof(work, work),), points=(point(work, work),))
        return encoded(kernel(complete(), sections=(section(drawn, definitions=derived),)), kernel(complete()))

    return build


def _sessions(scale: int) -> bytes:
    document = Document.of(encoded(kernel(complete())))
    session = message("Session")(command_line=b"ncu " + b"-k 'a b' " * 1000)
    for version in range(500):
        session.versions.add(provider=b"p%d" % version, version=b"1")
    header = document.parts[0].header
    document.parts[1:1] = [Part(type(header)(session=[session.SerializeToString()]), []) for _ in range(10 * scale)]
    return document.encode()


def _many_kinds(scale: int) -> bytes:
    kinds = ("range", "graph", "cmdlist")
    return encoded(*[KernelData("one", kind=kinds[index % 3], metrics=complete()) for index in range(50 * scale)])


BOMBS: dict[str, Callable[[int], bytes]] = {
    "a long name": _long_name,
    "empty records": _empty_records,
    "empty blocks": _empty_blocks,
    "launches without a metric": _bare_launches,
    "launches": _launches,
    "GPUs": _chips,
    "names of metrics": _names,
    "metrics": _metrics,
    "opcodes": _instances,
    "addresses": _addresses,
    "functions of a module": _functions,
    "records of a module": _sources,
    "NVTX ranges inside each other": _ranges,
    "messages of a rule": _rules,
    "sections": _sections,
    "roofs and points of a chart": _chart,
    "an expression in brackets": _expression(lambda scale: "(" * 5_000 * scale + "1" + ")" * 5_000 * scale),
    "a long expression": _expression(lambda scale: "1" + "+1" * 20_000 * scale),
    "an expression of minus signs": _expression(lambda scale: "-" * 5_000 * scale + "1"),
    "a power of powers": _expression(lambda scale: "9**" * 50 * scale + "9"),
    "a number of many digits": _expression(lambda scale: "9" * 401 * scale + " * 2"),
    "an expression of itself": _expression(lambda _: "derived + 1"),
    "a division by nothing": _expression(lambda _: "1 / 0"),
    "sessions": _sessions,
    "ranges, graphs and lists": _many_kinds,
    "a start without an end": lambda _: file_start(),
}


def bomb(rng: random.Random, scale: int = 1) -> tuple[bytes, str]:
    """One of them."""
    name = rng.choice(list(BOMBS))
    return BOMBS[name](scale), name
