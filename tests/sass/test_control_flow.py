"""Blocks and loops: of code made by hand, of random graphs against the definition, of compiled code against nvdisasm."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, jump_tables
from ncu_roofline.formats.sass.instructions import SIZE, Flow, Instruction, control_flow, decode, immediate_dominators
from tests.sass import fixtures
from tests.sass.oracle import edges, nvdisasm


def code(*lines: str) -> list[Instruction]:
    """Instructions written as ``if bra 3`` (index of the target), ``exit``, ``brx``, ``call 5``, ``ret`` or ``add``."""
    flows = {"bra": "branch", "brx": "indirect", "call": "call", "ret": "return", "exit": "exit"}
    made = []
    for index, line in enumerate(lines):
        guarded, words = line.startswith("if "), line.removeprefix("if ").split()
        target = int(words[1]) * SIZE if len(words) > 1 else None
        name = words[0].upper()
        made.append(Instruction(index * SIZE, name, name, guarded, flows.get(words[0], ""), target))
    return made


def loops(flow: Flow) -> list[tuple[int, set[int], int | None, int]]:
    """Header, instructions, parent and depth of each loop, in numbers of instructions."""
    inside = [
        {at // SIZE for block in loop.blocks for at in range(flow.blocks[block].start, flow.blocks[block].end, SIZE)}
        for loop in flow.loops
    ]
    return [(loop.header // SIZE, each, loop.parent, loop.depth) for loop, each in zip(flow.loops, inside, strict=True)]


def test_nothing() -> None:
    assert control_flow([]) == Flow((), (), [], [], False, ())


def test_a_straight_line_is_one_block() -> None:
    flow = control_flow(code("add", "add", "exit"))
    assert [(block.start, block.end, block.successors) for block in flow.blocks] == [(0, 48, ())]
    assert flow.loop_of == [-1] * 3


def test_loops_nest() -> None:
    flow = control_flow(code("add", "add", "add", "if bra 2", "add", "if bra 1", "exit"))
    assert loops(flow) == [(1, {1, 2, 3, 4, 5}, None, 1), (2, {2, 3}, 0, 2)]
    assert flow.loop_of == [-1, 0, 1, 1, 0, 0, -1]
    assert [loop.latches for loop in flow.loops] == [(5 * SIZE,), (3 * SIZE,)]


def test_two_ways_back_are_one_loop() -> None:
    flow = control_flow(code("add", "if bra 0", "add", "if bra 0", "exit"))
    assert loops(flow) == [(0, {0, 1, 2, 3}, None, 1)]
    assert flow.loops[0].latches == (SIZE, 3 * SIZE)


def test_loops_beside_each_other() -> None:
    flow = control_flow(code("if bra 0", "add", "if bra 1", "exit"))
    assert [(header, depth) for header, _, _, depth in loops(flow)] == [(0, 1), (1, 1)]


def test_the_end_of_the_code_is_no_loop() -> None:
    assert not control_flow(code("exit", "bra 1", "nop", "nop")).loops
    assert loops(control_flow(code("if bra 0", "exit"))) == [(0, {0}, None, 1)]  # which waits until something is so


def test_an_exit_under_a_condition_goes_on() -> None:
    flow = control_flow(code("if exit", "if bra 0", "exit"))
    assert loops(flow) == [(0, {0, 1}, None, 1)]


def test_cycles_with_two_entries_are_told() -> None:
    flow = control_flow(code("if bra 2", "add", "add", "if bra 1", "exit"))
    assert flow.irreducible
    assert not flow.loops


def test_a_loop_with_such_a_cycle_in_it_is_found() -> None:
    flow = control_flow(code("add", "if bra 3", "add", "add", "if bra 2", "if bra 0", "exit"))
    assert flow.irreducible
    assert loops(flow) == [(0, {0, 1, 2, 3, 4, 5}, None, 1)]


def test_jumps_through_tables() -> None:
    switch = code("add", "brx", "bra 4", "bra 4", "if bra 0", "exit")
    lost, found = control_flow(switch), control_flow(switch, {SIZE: (2 * SIZE, 3 * SIZE, 99 * SIZE, 7)})
    assert lost.unresolved == (SIZE,)
    assert found.unresolved == ()
    assert loops(found) == [(0, {0, 1, 2, 3, 4}, None, 1)]


def test_a_call_goes_on_and_what_is_called_has_loops_of_its_own() -> None:
    flow = control_flow(code("add", "call 4", "if bra 0", "exit", "add", "if bra 4", "ret"))
    assert loops(flow) == [(0, {0, 1, 2}, None, 1), (4, {4, 5}, None, 1)]
    assert not flow.irreducible


def test_loops_that_are_left_by_a_call_stay_loops() -> None:
    flow = control_flow(code("add", "add", "if call 4", "bra 1", "if bra 0", "exit"))
    assert [(header, depth) for header, _, _, depth in loops(flow)] == [(0, 1), (1, 2)]


def test_a_branch_out_of_the_code_ends() -> None:
    assert control_flow(code("bra", "exit")).blocks[0].successors == ()


def test_deep_nests_are_refused() -> None:
    def nest(depth: int) -> list[Instruction]:
        return code(*["add"] * depth, *[f"if bra {depth - 1 - index}" for index in range(depth)], "exit")

    # Each header of "add" is its own block, as the jumps behind lead to it.
    assert max(loop.depth for loop in control_flow(nest(64)).loops) == 64
    with pytest.raises(CodeError, match="nested more than 64 deep"):
        control_flow(nest(65))


@pytest.mark.exhaustive
def test_large_functions_take_little_time() -> None:
    def seconds(count: int) -> float:
        lines = [f"if bra {count}" if index % 10 != 8 else f"if bra {index - 8}" for index in range(count)]
        instructions = code(*lines, "exit")
        start = time.process_time()
        flow = control_flow(instructions)
        assert len(flow.blocks) == count + 1
        return time.process_time() - start

    seconds(1000)
    small, large = seconds(10_000), seconds(100_000)
    assert large < 40 * small


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
def test_dominators_are_what_every_path_goes_through(graph: list[list[int]]) -> None:
    everything = reachable(graph, 0)
    above = {node: {one for one in everything if one == node or node not in reachable(graph, 0, one)} for node in everything}
    for node, found in enumerate(immediate_dominators(graph, 0)):
        if node not in everything or node == 0:
            assert found == -1
        else:
            assert above[found] == above[node] - {node}


@given(graphs)
def test_loops_are_those_of_the_definition(graph: list[list[int]]) -> None:
    instructions, tables = [], {}
    for node, after in enumerate(graph):
        instructions.append(Instruction(node * SIZE, "BRX", "BRX", False, "indirect", None))
        tables[node * SIZE] = [one * SIZE for one in after if one != node]
    flow = control_flow(instructions, tables)
    graph = [[one for one in after if one != node] for node, after in enumerate(graph)]
    entered = sorted(set(range(len(graph))))
    reached: set[int] = set()
    roots = []
    for node in entered:
        if node not in reached:
            roots.append(node)
            reached |= reachable(graph, node)
    whole = [*graph, roots]
    root = len(graph)
    expected: dict[int, set[int]] = {}
    for node, after in enumerate(graph):
        for header in after:
            if node not in reachable(whole, root, header):  # the header dominates it
                backwards = [[one for one in range(len(graph)) if other in graph[one]] for other in range(len(graph))]
                expected.setdefault(header, {header}).update(reachable(backwards, node, header))
    # Nodes beside what leads to the header can't reach a latch without passing it, as all paths to the latch do.
    assert {header: inside for header, inside, _, _ in loops(flow)} == expected


@given(st.binary(max_size=2000))
def test_any_bytes_have_a_control_flow(data: bytes) -> None:
    for capability in ((7, 0), (9, 0), (12, 0)):
        instructions = decode(data, capability)
        flow = control_flow(instructions, jump_tables(data))
        assert len(flow.block_of) == len(instructions)


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("chip", fixtures.CHIPS)
@pytest.mark.parametrize("name", ["linked", "local"])
def test_compiled_code_against_nvdisasm(chip: str, name: str, tmp_path: Path) -> None:
    tool, path = nvdisasm(), tmp_path / "cubin"
    path.write_bytes(fixtures.cubin(chip, name))
    cubin = Cubin(path.read_bytes())
    compared = 0
    for function, (theirs, ends) in edges(tool, path, cubin).items():
        instructions = decode(cubin.functions[function].code, cubin.capability)
        flow = control_flow(instructions, cubin.jump_tables(function))
        own_ends = {block.end - SIZE for block in flow.blocks}
        ours = {
            (block.end - SIZE, flow.blocks[one].start)
            for block in flow.blocks
            for one in block.successors
            if instructions[block.end // SIZE - 1].flow != "call" or flow.blocks[one].start == block.end
        }
        # Where only one of both begins a new block, the other has no edge.
        assert {one for one in theirs - ours if one[1] != one[0] + SIZE or one[0] in own_ends} == set()
        assert {one for one in ours - theirs if one[1] != one[0] + SIZE or one[0] in ends} == set()
        assert not flow.unresolved
        assert not flow.irreducible
        compared += len(theirs)
    assert compared


def test_jump_tables_of_damaged_notes_are_left_out() -> None:
    table = bytes.fromhex("04341400 50010000 00000000 02000000 10020000 60010000")
    assert jump_tables(table) == {0x150: (0x210, 0x160)}
    assert jump_tables(table[:-4]) == {}
    assert jump_tables(bytes.fromhex("0434 0c00 50010000 00000000 ffffffff")) == {}
