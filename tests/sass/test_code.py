"""Instructions, blocks and loops of code made by hand, of random graphs against the definition, of any bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.chips.sass import load_sass
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import jump_tables
from ncu_roofline.formats.sass.instructions import SIZE, Flow, Instruction, control_flow, decode, immediate_dominators
from tests.sass.fixtures import cubin

CAPABILITIES = [None, (5, 2), (7, 0), (8, 6), (9, 0), (10, 3), (10, 7), (12, 1), (99, 9)]
FLOW_OF = {"bra": "branch", "brx": "indirect", "call": "call", "ret": "return", "exit": "exit"}


def code(text: str) -> list[Instruction]:
    """Instructions, written as "if bra 3" (the number of the target), "exit", "brx", "call 5", "ret" or "add"."""
    made = []
    for index, line in enumerate(text.split(", ")):
        name, *target = line.removeprefix("if ").split()
        to = int(target[0]) * SIZE if target else None
        made.append(
            Instruction(index * SIZE, name.upper(), name.upper(), line != line.removeprefix("if "), FLOW_OF.get(name, ""), to)
        )
    return made


def loops(flow: Flow) -> dict[int, tuple[set[int], int | None, int]]:
    """Header -> instructions, parent and depth of each loop, in numbers of instructions."""
    inside = [{at // SIZE for one in loop.blocks for at in range(flow.blocks[one].start, flow.blocks[one].end, SIZE)}
              for loop in flow.loops]  # fmt: skip
    return {loop.header // SIZE: (each, loop.parent, loop.depth) for loop, each in zip(flow.loops, inside, strict=True)}


LOOPS: dict[str, dict[int, tuple[set[int], int | None, int]]] = {
    "add, add, exit": {},
    "add, add, add, if bra 2, add, if bra 1, exit": {1: ({1, 2, 3, 4, 5}, None, 1), 2: ({2, 3}, 0, 2)},
    "add, if bra 0, add, if bra 0, exit": {0: ({0, 1, 2, 3}, None, 1)},  # two ways back
    "if bra 0, add, if bra 1, exit": {0: ({0}, None, 1), 1: ({1, 2}, None, 1)},
    "exit, bra 1, nop, nop": {},  # the end of the code
    "if bra 0, exit": {0: ({0}, None, 1)},  # waits until something is so
    "if exit, if bra 0, exit": {0: ({0, 1}, None, 1)},
    "bra, exit": {},  # out of the code
    # A call goes on, and what is called has loops of its own.
    "add, call 4, if bra 0, exit, add, if bra 4, ret": {0: ({0, 1, 2}, None, 1), 4: ({4, 5}, None, 1)},
    # Loops that are left by a call stay loops.
    "add, add, if call 4, bra 1, if bra 0, exit": {0: ({0, 1, 2, 3, 4}, None, 1), 1: ({1, 2, 3}, 0, 2)},
}
IRREDUCIBLE: dict[str, dict[int, tuple[set[int], int | None, int]]] = {  # cycles with two entries
    "if bra 2, add, add, if bra 1, exit": {},
    "add, if bra 3, add, add, if bra 2, if bra 0, exit": {0: ({0, 1, 2, 3, 4, 5}, None, 1)},
}


def test_loops_of_code_made_by_hand() -> None:
    for text, expected in (LOOPS | IRREDUCIBLE).items():
        flow = control_flow(code(text))
        assert (loops(flow), flow.irreducible) == (expected, text in IRREDUCIBLE), text
    assert control_flow([]) == Flow((), (), [], [], False, ())
    nested = control_flow(code(list(LOOPS)[1]))
    assert nested.loop_of == [-1, 0, 1, 1, 0, 0, -1]
    assert [loop.latches for loop in nested.loops] == [(5 * SIZE,), (3 * SIZE,)]
    assert control_flow(code(list(LOOPS)[2])).loops[0].latches == (SIZE, 3 * SIZE)
    assert [tuple(block) for block in control_flow(code("add, add, exit")).blocks] == [(0, 48, ())]
    assert control_flow(code("bra, exit")).blocks[0].successors == ()
    switch = code("add, brx, bra 4, bra 4, if bra 0, exit")
    lost, found = control_flow(switch), control_flow(switch, {SIZE: (2 * SIZE, 3 * SIZE, 99 * SIZE, 7)})
    assert (lost.unresolved, found.unresolved) == ((SIZE,), ())
    assert loops(found) == {0: ({0, 1, 2, 3, 4}, None, 1)}

    def nest(depth: int) -> list[Instruction]:
        return code(", ".join(["add"] * depth + [f"if bra {depth - 1 - index}" for index in range(depth)] + ["exit"]))

    assert max(loop.depth for loop in control_flow(nest(64)).loops) == 64
    with pytest.raises(CodeError, match="nested more than 64 deep"):
        control_flow(nest(65))


graphs = st.integers(1, 12).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, count - 1), max_size=3, unique=True), min_size=count, max_size=count)
)


def reachable(graph: Sequence[Sequence[int]], root: int, without: int = -1) -> set[int]:
    """What can be reached from a node when another one is taken out."""
    found, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node not in found and node != without:
            found.add(node)
            stack += graph[node]
    return found


@given(graphs)
def test_dominators_and_loops_are_those_of_the_definition(graph: list[list[int]]) -> None:
    everything = reachable(graph, 0)
    above = {node: {one for one in everything if one == node or node not in reachable(graph, 0, one)} for node in everything}
    for node, dominator in enumerate(immediate_dominators(graph, 0)):
        if node not in everything or node == 0:
            assert dominator == -1
        else:
            assert above[dominator] == above[node] - {node}
    graph = [[one for one in after if one != node] for node, after in enumerate(graph)]
    jumps = [Instruction(node * SIZE, "BRX", "BRX", False, "indirect", None) for node in range(len(graph))]
    flow = control_flow(jumps, {node * SIZE: [one * SIZE for one in after] for node, after in enumerate(graph)})
    reached, roots = set[int](), list[int]()
    for node in range(len(graph)):
        roots += [node] * (node not in reached)
        reached |= reachable(graph, node)
    whole, root = [*graph, roots], len(graph)
    backwards = [[one for one in range(len(graph)) if other in graph[one]] for other in range(len(graph))]
    expected: dict[int, set[int]] = {}
    for node, after in enumerate(graph):
        for header in after:
            if node not in reachable(whole, root, header):  # the header dominates it
                # Nodes beside what leads to the header can't reach a latch without passing it, as all paths to the latch do.
                expected.setdefault(header, {header}).update(reachable(backwards, node, header))
    assert {header: inside for header, (inside, _, _) in loops(flow).items()} == expected


@given(st.binary(max_size=1000), st.sampled_from(CAPABILITIES))
def test_any_bytes_can_be_decoded(data: bytes, capability: tuple[int, int] | None) -> None:
    instructions = decode(data, capability)
    assert [each.offset for each in instructions] == list(range(0, len(data) // SIZE * SIZE, SIZE))
    assert all(each.target is None or each.target in range(0, len(instructions) * SIZE, SIZE) for each in instructions)
    assert len(control_flow(instructions, jump_tables(data)).block_of) == len(instructions)


def test_what_is_not_known_is_not_guessed() -> None:
    data = cubin("80")[:SIZE]
    for capability in (None, (6, 1), (10, 7), (13, 0)):
        assert {each.name for each in decode(data, capability)} == {f"op {data[0] | (data[1] & 1) << 8:#05x}"}
    (unknown,) = decode(b"\x0e\x70" + bytes(14), (8, 0))
    assert unknown == Instruction(0, "op 0x00e", "op 0x00e", False, "", None)
    fields = load_sass().encodings((8, 0)).by_number[0x3C]  # of which a modifier has a value that is not known
    assert fields is not None
    (source,) = [field for field in fields.fields if "TF32" in field.words]
    assert source.words[3] is None
    word = 0x3C | 7 << 12 | sum(1 << bit for bit in source.bits)
    assert decode(word.to_bytes(SIZE, "little"), (8, 0))[0].opcode == "op 0x03c"


def test_halves_that_add_nothing_load_constants() -> None:
    """HFMA2 R5, -RZ, RZ, 1, 1; not HFMA2 R5, -RZ, R7, 1, 1, nor R5, -RZ, R0, RZ, nor R5, -RZ, 1, 1, RZ."""
    for number, capability in ((0x31, (7, 5)), (0x35, (8, 0)), (0x35, (9, 0)), (0x31, (12, 0))):
        found = []
        for form, factor, other in ((2, 255, 255), (2, 255, 7), (2, 7, 255), (1, 255, 255), (4, 255, 255)):
            low = number | form << 9 | 7 << 12 | 5 << 16 | factor << 24 | 0x3C003C00 << 32
            (one,) = decode((low | (other | 1 << 8) << 64).to_bytes(SIZE, "little"), capability)
            assert one.name == "HFMA2"
            found.append(one.constant)
        assert found == [True, False, False, False, False]


@pytest.mark.exhaustive
def test_large_functions_take_little_time() -> None:
    def seconds(count: int) -> float:
        lines = [f"if bra {count}" if index % 10 != 8 else f"if bra {index - 8}" for index in range(count)]
        instructions = code(", ".join([*lines, "exit"]))
        start = time.process_time()
        assert len(control_flow(instructions).blocks) == count + 1
        return time.process_time() - start

    seconds(1000)
    small, large = seconds(10_000), seconds(100_000)
    assert large < 40 * small
    start = time.process_time()
    assert len(decode(cubin("90") * 40, (9, 0))) > 100_000
    assert time.process_time() - start < 10
