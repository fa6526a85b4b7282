"""How much of a report's code is read, so that whatever it holds a launch takes about 10 s and 1 GB.

What is known to be large: kernels of 50,000 to 200,000 instructions, in modules of hundreds of functions and 100 MB, inlined up
to 40 deep; shared reports have up to 8,688 instructions, 155 functions, 626 symbols, 2 MB, 98 kB of lines, 9 levels.
"""

from __future__ import annotations

CUBIN_BYTES = 1 << 28
"""Of a module: the largest of NVIDIA's libraries have about 100 MB."""

TABLE_ROWS = 1 << 19
"""Symbols of a module, and relocations of its code and lines: a library of 10,000 functions has some ten for each."""

FUNCTIONS = 1 << 14
"""Of a launch, those inside of others too: what is not inlined into large kernels are hundreds."""

INSTRUCTIONS = 1 << 18
"""Of a launch, with the addresses that have counts outside of its code: 4 MB of code, 1 GB of memory."""

ALL_INSTRUCTIONS = 1 << 19
"""Of all launches that are shown of a report at once: a hundred of 5,000; each takes some 4 kB of memory."""

LINE_BYTES = 1 << 23
"""Of the line programs of a module that are run: compilers write 10 to 20 bytes per instruction, so 4 MB for 200,000."""

INLINED_LEVELS = 1 << 23
"""Lines over each other of all instructions of a report: 200,000 instructions with 40 levels each."""

NOTE_BYTES = 1 << 24
"""Of the notes of a module's functions (``.nv.info``) that are looked at; one of 8,688 instructions has 11 kB."""

INLINED_LETTERS = 1 << 27
"""Of the texts that say where the code of a launch is inlined: 50,000 such places with 2,600 letters each."""

IMPORTED_BYTES = 1 << 26
"""Of source files that are imported for a module: a template library with all its headers has 10 to 30 MB."""
