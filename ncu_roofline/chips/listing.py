"""A kernel's code as Nsight Compute tells it to rules: by address the text of an instruction and its line; blocks and loops.

The rule generator puts the source of this file, without annotations, into the rules, where Python may be 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ncu_roofline.chips.findings import Code, rows_by_name

# Where CUDA, compilers, libraries and package managers put them, and names of theirs; only headers, as kernels may be theirs.
LIBRARY_FOLDER = re.compile(
    r"(?:^|/)(?:usr/(?:local/)?include|usr/local/cuda[^/]*|cuda[-.\d]*/(?:include|std|targets|v\d[.\d]*/include)|opt/nvidia|"
    r"crt|cooperative_groups|cub|cute|cutlass|libcudacxx|nv|thrust|Kokkos|(?:dist|site)-packages|\.julia/packages)/",
    re.IGNORECASE,
)
LIBRARY_NAME = re.compile(r"(?:mma|sm_\d\w*|cuda_(?:bf|fp)\d+|cooperative_groups|(?:math|device)_functions)\.(?:h|hpp)$")
HEADER_ENDS = ("", "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tcc", "tpp", "jl", "py")

INSTRUCTION = 16  # bytes
STEPS = 200000  # from block to block on the search for loops
# What comes next may be elsewhere, nobody knows where, or stands as the last operand.
ENDS = ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET", "RTT", "EXIT", "KILL")
INDIRECT, JUMPS = ("BRX", "BRXU", "JMP", "JMX", "JMXU"), ("BRA", "CALL")
LOADING = "HFMA2"  # with factors of zero it loads constants
OPCODE = re.compile(r"\s*(?:@!?U?P\w*\s+)?([A-Z]\w*(?:\.\w+)*)")
TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")


def listing(
    executed: Mapping[int, float],
    functions: Collection[int],
    text: Callable[[int], str] | None,
    line: Callable[[int], tuple[str, int] | None],
    kind_of: Callable[[str], str],
    unit_of: Callable[[str], str],
) -> Any:
    """The instructions that were executed, by address; ``functions`` are the addresses where these begin.

    Where nobody tells the ``text`` of instructions, those that are executed equally often one after the other are a block.
    """
    addresses = sorted(executed)
    owners = owners_of(addresses, functions)
    texts = {address: text(address) if text is not None else "" for address in addresses}
    found = {address: OPCODE.match(texts[address]) for address in addresses}
    opcodes = {address: match.group(1) if match else "" for address, match in found.items()}
    names = {address: opcode.split(".")[0] for address, opcode in opcodes.items()}
    targets = {}
    for address in addresses:
        match = TARGET.search(texts[address]) if names[address] in JUMPS else None
        if match:
            targets[address] = int(match.group(1), 16)
    equal = executed if text is None or not any(texts.values()) else None
    blocks = blocks_of(addresses, names, owners, targets, equal)
    loops = None
    if equal is None and set(names.values()).isdisjoint(INDIRECT):
        goes_on = [address for address in addresses if goes_past(names[address], texts[address])]
        loops = loops_of(blocks, owners, targets, goes_on)
    headers = innermost(loops or {})
    lines = {}
    for address in addresses:
        mine, block = line(address), blocks[address]
        lines[address] = mine or ("", owners[address], headers.get(block) if loops is not None else block)
    constants = {address for address in addresses if names[address] == LOADING and "-RZ, RZ" in texts[address]}
    kinds = {address: "move" if address in constants else kind_of(opcodes[address]) for address in addresses}
    within = {address: (owners[address], headers.get(blocks[address])) for address in addresses}
    return Code(
        names,
        {address: kinds[address] if names[address] else "" for address in addresses},
        lines,
        {address: (lines[address], blocks[address]) for address in addresses},
        blocks,
        within if loops is not None else {address: (lines[address], None) for address in addresses},
        lambda place: [header for header, body in (loops or {}).items() if place[1] in body],
        lambda address: unit_of(names[address]),
        lambda rows, mine: place_of(rows, mine, owners, functions),
        loops is not None,
        rows_by_name(names.items()),
    )


def owners_of(addresses: Iterable[int], functions: Iterable[int]) -> dict[int, int]:
    """Where the function of each address (sorted) begins; 0 where nobody knows."""
    later, begin, found = sorted(functions, reverse=True), 0, {}
    for address in addresses:
        while later and later[-1] <= address:
            begin = later.pop()
        found[address] = begin
    return found


def goes_past(name: str, text: str) -> bool:
    """Whether the next instruction may follow."""
    return name not in ENDS or name == "CALL" or "@" in text or "," in text


def blocks_of(
    addresses: Iterable[int],
    names: Mapping[int, str],
    owners: Mapping[int, int],
    targets: Mapping[int, int],
    equal: Mapping[int, float] | None,
) -> dict[int, int]:
    """The first address of the block that each is in; ``equal``: what is the same for all of a block."""
    starts, blocks, before, begin = set(targets.values()) | set(owners.values()), {}, None, 0
    for address in addresses:
        follows = before is not None and address == before + INSTRUCTION and names[before] not in ENDS
        if not follows or address in starts or (equal is not None and equal[address] != equal[before or 0]):
            begin = address
        blocks[address] = begin
        before = address
    return blocks


def loops_of(
    blocks: Mapping[int, int], owners: Mapping[int, int], targets: Mapping[int, int], goes_on: Iterable[int]
) -> dict[int, set[int]] | None:
    """The blocks of each natural loop, by its header; None if that takes too long."""
    before: dict[int, list[int]] = {block: [] for block in blocks.values()}
    ways = list(targets.items()) + [(address, address + INSTRUCTION) for address in goes_on]
    for address, after in sorted(ways):
        if after in before and owners[after] == owners[address]:
            before[after].append(blocks[address])
    entries = set(owners.values()) | {block for block in before if not before[block]}
    found: dict[int, set[int]] = {}
    left = STEPS
    for header in sorted(before):
        for latch in before[header] if len(before[header]) > 1 or header in entries else ():
            body, steps = body_of(header, latch, before, entries, left)
            left -= steps
            if left <= 0:
                return None
            if body:
                found.setdefault(header, set()).update(body)
    return found


def body_of(
    header: int, latch: int, before: Mapping[int, Sequence[int]], entries: Collection[int], most: int
) -> tuple[set[int], int]:
    """What leads to a latch without passing the header, and the steps that took.

    Nothing if one can enter there, as then the header is none.
    """
    body, stack, steps = {header}, [latch], 0
    while stack and steps < most:
        block, steps = stack.pop(), steps + 1
        if block not in body:
            if block in entries:
                return set(), steps
            body.add(block)
            stack += before[block]
    return body, steps


def innermost(loops: Mapping[int, Collection[int]]) -> dict[int, int]:
    """The header of the innermost loop of each block that is in one."""
    found = {}
    for header in sorted(loops, key=lambda header: (-len(loops[header]), header)):
        found.update(dict.fromkeys(loops[header], header))  # the largest first
    return found


def place_of(rows: Sequence[int], lines: Sequence[Any], owners: Mapping[int, int], functions: Collection[int]) -> str:
    """What a place is called: by a line of the kernel's own files rather than by one of a library."""
    line = next((one for one in lines if len(one) == 2 and not of_library(one[0])), lines[0])
    more, most = len(lines) - 1, ""
    if line != lines[0]:
        most = ", most at {},".format(place_of(rows, lines[:1], owners, functions))
    others = " and {} more line{}".format(more, "s" if more > 1 else "") if more else ""
    if len(line) == 2:
        return "{}:{}{}{}".format(line[0].replace("\\", "/").split("/")[-1], line[1], others, most)
    mine = [row for row in rows if owners[row] == line[1]]
    begin, first, last = line[1], min(mine), max(mine)
    to = " to {:#x}".format(last - begin) if last > first else ""
    several = " of the function at {:#x}".format(begin) if begin and len(functions) > 1 else ""
    return "{} {:#x}{}{}{}{}".format("Offset" if begin else "Address", first - begin, to, several, others, most)


def of_library(path: str) -> bool:
    """Whether a source file is a header of a toolkit or library."""
    path = path.replace("\\", "/")
    name = path.split("/")[-1]
    if path == "./" + name and name.endswith(".jl"):  # Julia's own
        return True
    is_header = name.partition(".")[2].lower() in HEADER_ENDS
    return is_header and (LIBRARY_FOLDER.search(path) is not None or LIBRARY_NAME.match(name) is not None)


def work_of(code: Any, threads: Mapping[int, float], weights: Mapping[str, tuple[str, int]], unknown: str) -> dict[str, float]:
    """Operations by kind, and all (""), nothing where some do work that can't be told, as tensor cores do.

    ``weights``: by name the kind and operations of a thread's instruction; ``unknown`` is a pattern of others that do work.
    """
    others = re.compile(unknown)
    found = {"": 0.0, "fp32": 0.0, "fp64": 0.0}
    for address, name in code.names.items():
        if code.kinds[address] in ("conversion", "move"):
            continue
        if name in weights:
            kind, operations = weights[name]
            for one in {"", kind}:
                found[one] = found.get(one, 0.0) + operations * threads.get(address, 0.0)
        elif not name or others.search(name):
            return {}
    return found
