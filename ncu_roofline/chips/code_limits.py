"""How much of a report's code is read, so that whatever it holds a launch takes about 10 s and 1 GB.

What is known to be large: kernels of 50,000 to 200,000 instructions, in modules of hundreds of functions and 100 MB, inlined up
to 40 deep; shared reports have up to 8,688 instructions, 155 functions, 626 symbols, 2 MB, 98 kB of lines, 9 levels.
"""

from __future__ import annotations

CUBIN_BYTES = 1 << 28  # of a module: the largest of NVIDIA's libraries have about 100 MB
TABLE_ROWS = 1 << 19  # symbols of a module, relocations of its code and lines: a library of 10,000 functions has ten for each
FUNCTIONS = 1 << 14  # of a launch, those inside of others too: what is not inlined into large kernels are hundreds
INSTRUCTIONS = 1 << 18  # of a launch, with addresses that have counts outside of its code: 4 MB of code, 1 GB of memory
ALL_INSTRUCTIONS = 1 << 19  # of all launches that are shown of a report: a hundred of 5,000; each takes some 4 kB of memory
LINE_BYTES = 1 << 23  # of a module's line programs that are run: compilers write 10 to 20 per instruction, 4 MB for 200,000
INLINED_LEVELS = 1 << 23  # lines over each other of all instructions of a report: 200,000 instructions with 40 levels each
NOTE_BYTES = 1 << 24  # of the notes of a module's functions (.nv.info): one of 8,688 instructions has 11 kB
INLINED_LETTERS = 1 << 27  # of texts that say where a launch's code is inlined: 50,000 such places with 2,600 letters each
IMPORTED_BYTES = 1 << 26  # of source files imported for a module: a template library with its headers has 10 to 30 MB
