"""Instructions from their bytes: names, the modifiers that decide work and bytes, where control goes; basic blocks and loops.

Loops are natural ones: cycles that are entered at their headers only.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ncu_roofline.chips.fields import Capability
from ncu_roofline.chips.sass import Encoding, encodings
from ncu_roofline.formats.sass import CodeError

SIZE = 16
"""Bytes of an instruction, since compute capability 7.0."""

_NUMBER = 0x1FF
_UNGUARDED = 7
"""The predicate that is always true (PT), not negated."""
FUSED_HALVES, _IMMEDIATE_ADDED = "HFMA2", 2
_ZERO = 255
"""The register that is always zero (RZ)."""
_BRANCH, _RELATIVE_CALL = 0x147, 0x144
_UNKNOWN = "op {:#05x}"
FLOWS = {
    "BRA": "branch",
    **dict.fromkeys(("BRX", "BRXU", "JMP", "JMX", "JMXU"), "indirect"),
    "CALL": "call",
    **dict.fromkeys(("RET", "RTT"), "return"),
    **dict.fromkeys(("EXIT", "KILL"), "exit"),
}
"""What changes where control goes next, by name: see `Instruction.flow`."""
_DEEPEST = 64  # loops around a block; of code that was written by people a few, of hostile code as many as there are blocks
_PATIENCE = 16  # times that each block is looked at: loops take two, cycles with several entries as many as there are cycles


class Instruction(NamedTuple):
    """One instruction.

    ``offset`` and ``target``: bytes from the beginning of the code.  ``name`` is its mnemonic ("HMMA"), ``opcode`` has those
    modifiers, too, that decide its work and bytes ("HMMA.16816.F32"); both are "op 0x1a3" where the encoding is not known.
    ``guarded``: it depends on a predicate.  ``flow``: "" (goes on with the next), "branch", "indirect", "call", "return" or
    "exit"; ``target``: of branches and calls, where it is part of the instruction and inside the code, else None.
    ``constant``: it is HFMA2 R0, -RZ, RZ, x, y, which adds nothing: by it compilers load constants.
    """

    offset: int
    name: str
    opcode: str
    guarded: bool
    flow: str
    target: int | None
    constant: bool = False


def decode(code: bytes, capability: Capability | None, names: Container[str] | None = None) -> tuple[Instruction, ...]:
    """The instructions of a function's code, in order; with ``names`` only those, jumps, and those that are not known.

    Any bytes can be decoded; what does not fill an instruction at the end is no instruction.
    """
    by_number, masks, places = encodings(capability)
    left_out = set[int]()
    if names is not None:
        left_out |= {
            number for number, one in by_number.items() if one.name not in FLOWS and one.name and one.name not in names
        }
    seen: dict[int, tuple[str, str, str]] = {}
    sign = 1 << len(places) >> 1
    whole = len(code) - len(code) % SIZE
    found = []
    for index, (low, high) in enumerate(struct.iter_unpack("<QQ", memoryview(code)[:whole])):
        number = low & _NUMBER
        if number in left_out:
            continue
        bits = (low | high << 64) & masks.get(number, 0) | number
        if bits not in seen:
            opcode = _opcode(by_number.get(number), bits)
            name = opcode.partition(".")[0]
            seen[bits] = name, opcode, FLOWS.get(name, "")
        name, opcode, flow = seen[bits]
        guarded = low >> 12 & 15 != _UNGUARDED
        target = None
        if flow:
            # A jump may have a second condition: a predicate as its operand, or (branches) of the warp: .U, .DIV, .CONV.
            guarded = guarded or high >> 23 & 15 != _UNGUARDED or (number == _BRANCH and low >> 32 & 3 != 0)
            # A call may add a register to its distance (forms of operands 1, and bit 91).
            if number == _BRANCH or (number == _RELATIVE_CALL and low >> 9 & 7 == 4 and not high >> 27 & 1):
                distance = 4 * ((_value(low | high << 64, places) ^ sign) - sign)
                target = (index + 1) * SIZE + distance
        inside = target is not None and 0 <= target < whole and target % SIZE == 0
        constant = name == FUSED_HALVES and low >> 9 & 7 == _IMMEDIATE_ADDED and low >> 24 & 0xFF == high & 0xFF == _ZERO
        found.append(Instruction(index * SIZE, name, opcode, guarded, flow, target if inside else None, constant))
    return tuple(found)


def _opcode(encoding: Encoding | None, bits: int) -> str:
    """The opcode that these bits of an instruction stand for."""
    fields = [field.words[_value(bits, field.bits)] for field in encoding.fields] if encoding else [None]
    words = [word for word in (encoding.name, *fields) if word] if encoding and None not in fields else []
    if encoding is None or not words:  # a value of its fields may be none that is known
        return _UNKNOWN.format(bits & _NUMBER)
    also = (one.word for one in encoding.aliases if any(bits & mask == value for mask, value in one.cases))
    return ".".join((*words[:1], *also, *words[1:]))


def _value(bits: int, places: Sequence[int]) -> int:
    return sum((bits >> place & 1) << index for index, place in enumerate(places))


class Block(NamedTuple):
    """Instructions that are executed one after the other: offsets of the first and behind the last, blocks that may follow."""

    start: int
    end: int
    successors: tuple[int, ...]


class Loop(NamedTuple):
    """A natural loop.

    ``header``: offset of the block that every round begins with.  ``blocks``: indices of its blocks, with those of loops
    inside.  ``parent``: index of the loop around it.  ``depth``: 1 for outermost loops.
    """

    header: int
    blocks: frozenset[int]
    parent: int | None
    depth: int


class Flow(NamedTuple):
    """The control flow of a function.

    ``loops``: outer before inner ones, else by their headers; cycles with several entries are none.  ``block_of`` and
    ``loop_of``: indices per instruction, of the innermost loop, -1 in none.  ``unresolved``: offsets of jumps whose targets are
    not known; what they lead to counts as entered from outside, which may hide loops.
    """

    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]
    block_of: list[int]
    loop_of: list[int]
    unresolved: tuple[int, ...]


def control_flow(instructions: Sequence[Instruction], tables: Mapping[int, Sequence[int]] | None = None) -> Flow:
    """Blocks and loops of the instructions of a function, as `decode` gives them.

    ``tables``: targets of indirect jumps by the jump's offset, where they are known.  A call leads to what it calls in this
    code and to what follows it; nothing leads back from there (compilers also leave loops by calls that never return).
    Raises CodeError for loops that are nested deeper than people write them.
    """
    tables, count = tables or {}, len(instructions)
    targets: list[list[int]] = []  # where each may jump to, as indices of instructions; not where it goes on
    starts = {0} if instructions else set()
    for index, each in enumerate(instructions):
        may = tables.get(each.offset, ()) if each.flow == "indirect" else ()
        own = [one // SIZE for one in may if one % SIZE == 0 and 0 <= one // SIZE < count]
        targets.append(own if each.target is None else [each.target // SIZE])
        starts.update([index + 1] if each.flow else (), targets[index])
    edges = [*sorted(starts - {count}), count]
    block_of = [block for block, (start, end) in enumerate(pairwise(edges)) for _ in range(start, end)]
    blocks = []
    for start, end in pairwise(edges):
        last = instructions[end - 1]
        goes_on = last.guarded or last.flow in ("", "call")
        after = [end] if goes_on and end < count else []
        # An endless jump to itself only fills up the end of the code.
        after += targets[end - 1] if goes_on or targets[end - 1] != [end - 1] else []
        blocks.append(Block(start * SIZE, end * SIZE, tuple(dict.fromkeys(block_of[one] for one in after))))
    loops = _loops(blocks)
    innermost = [-1] * len(blocks)
    for index, loop in enumerate(loops):  # inner ones come later
        for block in loop.blocks:
            innermost[block] = index
    unresolved = tuple(each.offset for each in instructions if each.flow == "indirect" and not tables.get(each.offset))
    return Flow(tuple(blocks), loops, block_of, [innermost[block] for block in block_of], unresolved)


def _loops(blocks: Sequence[Block]) -> tuple[Loop, ...]:
    """The natural loops.

    After Tarjan's test of reducibility: what goes back up the tree of a depth-first search closes a loop where nothing that
    leads to it, without passing the header, lies outside of the tree below the header.  Inner loops are found first, and are
    one node of outer ones.
    """
    graph = [block.successors for block in blocks]
    order, last = depth_first(graph)
    first = {node: number for number, node in enumerate(order)}
    latches: dict[int, list[int]] = {}
    before: list[list[int]] = [[] for _ in graph]
    for node in order:
        for after in graph[node]:
            before[after].append(node)
            if first[after] <= first[node] <= last[after]:
                latches.setdefault(after, []).append(node)
    outermost = list(range(len(graph)))  # the header of the outermost loop around a node that was found so far, with shortcuts

    def find(node: int) -> int:
        top = node
        while outermost[top] != top:
            top = outermost[top]
        while outermost[node] != top:
            outermost[node], node = top, outermost[node]
        return top

    members, parents, heights = dict[int, set[int]](), dict[int, int](), dict[int, int]()
    left = _PATIENCE * (len(graph) + sum(map(len, graph)))
    for header in sorted(latches, key=first.__getitem__, reverse=True):
        body, closed = set[int](), False
        for latch in latches[header]:
            found, stack = set[int](), [find(latch)]
            while stack:
                node = stack.pop()
                if node == header or node in body or node in found:
                    continue
                if not first[header] < first[node] <= last[header]:  # entered beside the header
                    break
                found.add(node)
                stack += map(find, before[node])
                left -= 1 + len(before[node])
                if left < 0:
                    raise CodeError("its cycles have more entries than people write")
            else:
                body |= found
                closed = True
        if closed:
            inner = body & members.keys()
            heights[header] = 1 + max((heights[node] for node in inner), default=0)
            if heights[header] > _DEEPEST:
                raise CodeError(f"its loops are nested more than {_DEEPEST} deep")
            members[header] = {header}.union(body, *(members[node] for node in inner))
            parents |= dict.fromkeys(inner, header)
            for node in body:
                outermost[node] = header
    depths: dict[int, int] = {}
    for header in sorted(members, key=first.__getitem__):  # outer loops before inner ones
        depths[header] = depths[parents[header]] + 1 if header in parents else 1
    ordered = sorted(depths, key=lambda header: (depths[header], header))
    place = {header: index for index, header in enumerate(ordered)}
    return tuple(
        Loop(
            header=blocks[header].start,
            blocks=frozenset(members[header]),
            parent=place[parents[header]] if header in parents else None,
            depth=depths[header],
        )
        for header in ordered
    )


def depth_first(successors: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """All nodes in the order in which a depth-first search meets them, and of each node its place or the last one below it.

    It begins at the first node, and again at the first of what it did not reach: where code is entered from outside.
    """
    parents = [-1] * len(successors)
    order: list[int] = []
    seen = [False] * len(successors)
    for root in range(len(successors)):
        stack = [(root, -1)]
        while stack:
            node, parent = stack.pop()
            if seen[node]:
                continue
            seen[node] = True
            parents[node] = parent
            order.append(node)
            stack.extend((after, node) for after in reversed(successors[node]) if not seen[after])
    last = [0] * len(successors)
    for place, node in reversed(list(enumerate(order))):
        last[node] = max(last[node], place)
        if parents[node] >= 0:
            last[parents[node]] = max(last[parents[node]], last[node])
    return order, last
