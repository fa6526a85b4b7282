"""How often loops are entered and how often they go round, as far as the executions of instructions tell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ncu_roofline.formats.sass.control_flow import Flow
from ncu_roofline.formats.sass.instructions import SIZE

Edge = tuple[int, int]


def entries_and_trips(flow: Flow, executed: Sequence[float]) -> list[tuple[float, float]]:
    """For each loop how often warps entered it, and iterations per entry; NaN where the executions don't tell.

    ``executed`` counts warps by instruction of the function.  What a block hands to its only successor, and what a block gets
    from its only predecessor, is known; at a branch with several ways a warp may go more than one, so nothing is subtracted
    there.  What arrives at a header comes from outside or by a back edge.
    """
    first = [executed[block.start // SIZE] for block in flow.blocks]
    last = [executed[block.end // SIZE - 1] for block in flow.blocks]
    before: list[list[int]] = [[] for _ in flow.blocks]
    for number, block in enumerate(flow.blocks):
        for after in block.successors:
            before[after].append(number)
    known: dict[Edge, float] = {}
    for number, block in enumerate(flow.blocks):
        if len(block.successors) == 1:
            known[number, block.successors[0]] = last[number]
        for after in block.successors:
            if len(before[after]) == 1 and after:
                known[number, after] = first[after]
    by_offset = {block.start: number for number, block in enumerate(flow.blocks)}
    result = []
    for loop in flow.loops:
        header = by_offset[loop.header]
        back = [(one, header) for one in before[header] if one in loop.blocks]
        into = [(one, header) for one in before[header] if one not in loop.blocks]
        arrived = first[header]
        entered = math.nan
        if not flow.unresolved:
            if into and header and all(edge in known for edge in into):
                entered = sum(known[edge] for edge in into)
            elif all(edge in known for edge in back):
                entered = arrived - sum(known[edge] for edge in back)
        plausible = 0 <= entered <= arrived
        result.append((entered, arrived / entered if entered > 0 else math.nan) if plausible else (math.nan, math.nan))
    return result
