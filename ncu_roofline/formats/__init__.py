"""Files: reports, sections, machine code, ceilings, tables of other tools."""
