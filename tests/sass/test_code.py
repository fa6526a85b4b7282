"""Instructions, blocks and loops of code made by hand, of random graphs against the definition, of any bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.chips.sass import encodings
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import jump_tables
from ncu_roofline.formats.sass.instructions import SIZE, Flow, Instruction, control_flow, decode
from tests.golden import assert_golden
from tests.sass.fixtures import cubin

LOOPS = Path(__file__).with_name("loops.txt")
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


def loops(flow: Flow) -> dict[int, set[int]]:
    """Header -> instructions of each loop, in numbers of instructions."""
    starts = [[flow.blocks[one] for one in loop.blocks] for loop in flow.loops]
    inside = [{at // SIZE for block in each for at in range(block.start, block.end, SIZE)} for each in starts]
    return {loop.header // SIZE: each for loop, each in zip(flow.loops, inside, strict=True)}


def test_loops_of_code_made_by_hand() -> None:
    """Lines that begin with ">" are code."""
    text = ""
    for line in LOOPS.read_text("utf-8").splitlines():
        text += "" if line.startswith("  ") else f"{line}\n"
        if line.startswith("> "):
            flow = control_flow(code(line[2:]))
            for loop, inside in zip(flow.loops, loops(flow).values(), strict=True):
                text += f"  {loop.header // SIZE}: {sorted(inside)} depth {loop.depth} in {loop.parent}\n"
            text += f"  loop of each: {flow.loop_of}\n"
    assert_golden(LOOPS, text)
    assert control_flow([]) == Flow((), (), [], [], ())
    assert [tuple(block) for block in control_flow(code("add, add, exit")).blocks] == [(0, 48, ())]
    assert control_flow(code("bra, exit")).blocks[0].successors == ()
    switch = code("add, brx, bra 4, bra 4, if bra 0, exit")
    lost, found = control_flow(switch), control_flow(switch, {SIZE: (2 * SIZE, 3 * SIZE, 99 * SIZE, 7)})
    assert (lost.unresolved, found.unresolved) == ((SIZE,), ())
    assert loops(found) == {0: {0, 1, 2, 3, 4}}

    def nest(depth: int) -> list[Instruction]:
        return code(", ".join(["add"] * depth + [f"if bra {depth - 1 - index}" for index in range(depth)] + ["exit"]))

    assert max(loop.depth for loop in control_flow(nest(64)).loops) == 64
    with pytest.raises(CodeError, match="nested more than 64 deep"):
        control_flow(nest(65))
    ladder = ", ".join(f"if bra {200 - place}" for place in (100, *range(1, 200)))
    with pytest.raises(CodeError, match="more entries than people write"):
        control_flow(code(f"{ladder}, exit"))


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
def test_loops_are_those_of_the_definition(graph: list[list[int]]) -> None:
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
    assert loops(flow) == expected


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
    fields = encodings((8, 0)).by_number[0x3C].fields  # of which a modifier has a value that is not known
    (source,) = [field for field in fields if "TF32" in field.words]
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
