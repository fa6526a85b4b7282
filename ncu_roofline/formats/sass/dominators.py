"""Dominators of a graph, by the method of Lengauer and Tarjan: nearly linear in its edges, whatever the graph."""

from __future__ import annotations

from collections.abc import Sequence


def depth_first(successors: Sequence[Sequence[int]], root: int) -> tuple[list[int], list[int]]:
    """The nodes that can be reached from ``root``, in the order in which a depth-first search meets them.

    Also the parent of each node in the tree of the search; -1 of the root and of what can't be reached.
    """
    parents = [-1] * len(successors)
    order: list[int] = []
    seen = [False] * len(successors)
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        if seen[node]:
            continue
        seen[node] = True
        parents[node] = parent
        order.append(node)
        stack.extend((after, node) for after in reversed(successors[node]) if not seen[after])
    return order, parents


def immediate_dominators(successors: Sequence[Sequence[int]], root: int) -> list[int]:
    """The immediate dominator of each node; -1 of the root and of what can't be reached from it."""
    order, parents = depth_first(successors, root)
    number = [-1] * len(successors)
    for index, node in enumerate(order):
        number[node] = index
    before: list[list[int]] = [[] for _ in order]
    for index, node in enumerate(order):
        for after in successors[node]:
            before[number[after]].append(index)
    parent = [number[parents[node]] if parents[node] >= 0 else -1 for node in order]
    found = [-1] * len(successors)
    for index, dominator in enumerate(_by_number(parent, before)):
        if index:
            found[order[index]] = order[dominator]
    return found


def _by_number(parent: list[int], before: list[list[int]]) -> list[int]:
    """Immediate dominators of nodes 0 (the root) to n - 1, numbered as a depth-first search meets them."""
    count = len(parent)
    semi = list(range(count))
    forest = _Forest(count, semi)
    dominators = [0] * count
    bucket: list[list[int]] = [[] for _ in range(count)]
    for node in range(count - 1, 0, -1):
        for one in before[node]:
            semi[node] = min(semi[node], semi[forest.lowest(one)])
        bucket[semi[node]].append(node)
        above = parent[node]
        forest.ancestor[node] = above
        for one in bucket[above]:
            lowest = forest.lowest(one)
            dominators[one] = lowest if semi[lowest] < above else above
        bucket[above] = []
    for node in range(1, count):
        if dominators[node] != semi[node]:
            dominators[node] = dominators[dominators[node]]
    return dominators


class _Forest:
    """The part of the tree that was looked at, its paths shortened as they are asked for."""

    def __init__(self, count: int, semi: list[int]) -> None:
        self.ancestor = [-1] * count
        self._semi = semi
        self._label = list(range(count))

    def lowest(self, node: int) -> int:
        """The node with the lowest semidominator on the path from ``node`` up to its root, which is left out."""
        ancestor, label, semi = self.ancestor, self._label, self._semi
        if ancestor[node] < 0:
            return node
        path = []
        one = node
        while ancestor[ancestor[one]] >= 0:
            path.append(one)
            one = ancestor[one]
        for one in reversed(path):
            above = ancestor[one]
            if semi[label[above]] < semi[label[one]]:
                label[one] = label[above]
            ancestor[one] = ancestor[above]
        return label[node]
