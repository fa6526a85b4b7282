"""The source lines of a function's instructions, and through which calls they were inlined there."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.line_program import DAMAGED, Rows


class Place(NamedTuple):
    """A line of source; ``function`` is the inlined function (mangled) that it belongs to.

    It is "" for what isn't inlined, and in cubins linked from several files, whose names NVIDIA's linker mixes up.
    """

    file: str
    line: int
    function: str = ""


class Lines:
    """The source lines of one function, by offset of an instruction.  False if there are none."""

    def __init__(self, pieces: Iterable[Rows] = ()) -> None:
        self._pieces = tuple(sorted((piece for piece in pieces if piece.offsets), key=lambda piece: piece.offsets[0]))
        if any(after.offsets[0] < before.end for before, after in pairwise(self._pieces)):
            raise CodeError(DAMAGED)
        self._begins = [piece.offsets[0] for piece in self._pieces]
        self._known: dict[tuple[int, int], tuple[Place, ...]] = {}
        self._made: dict[tuple[int, int], Place] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def at(self, offset: int) -> tuple[Place, ...]:
        """Where an instruction comes from: the innermost line, then the lines it is inlined at; () if the table has none."""
        found = self._row(offset)
        if found is None:
            return ()
        if found not in self._known:
            self._known[found] = tuple(self._places(*found))
        return self._known[found]

    def levels(self, offset: int) -> int:
        """How many lines `at` gives, or more."""
        found = self._row(offset)
        return 0 if found is None else self._pieces[found[0]].levels(found[1])

    def first(self, offset: int) -> Place | None:
        """The line that Nsight Compute tells its rules, None if the table has none.

        Where several rows begin at one address it is that of the first, mostly a call of what is inlined.
        """
        found = self._row(offset)
        if found is None:
            return None
        piece = self._pieces[found[0]]
        return next(self._places(found[0], bisect.bisect_left(piece.offsets, piece.offsets[found[1]])), None)

    def _row(self, offset: int) -> tuple[int, int] | None:
        """The piece and the row in it that an instruction belongs to: of the rows of one address the last."""
        number = bisect.bisect_right(self._begins, offset) - 1
        if number < 0 or offset >= self._pieces[number].end:
            return None
        return number, bisect.bisect_right(self._pieces[number].offsets, offset) - 1

    def _places(self, number: int, row: int) -> Iterator[Place]:
        """The line of a row, then those it is inlined at, each made once."""
        piece = self._pieces[number]
        while row >= 0 and piece.lines[row]:
            if (number, row) not in self._made:
                function = piece.function(row) if piece.callers[row] >= 0 else ""
                self._made[number, row] = Place(piece.files[piece.file_numbers[row] - 1], piece.lines[row], function)
            yield self._made[number, row]
            row = piece.callers[row]
