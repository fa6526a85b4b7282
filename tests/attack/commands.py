"""The command lines that every attacked report may meet: every command that reads reports, with every view, format and option.

``{r}`` is the attacked report, ``{b}`` the report it was made of, ``{o}`` the name of a result without its suffix.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

# What numbers are compared in; each report meets the first of them.
TABLES = ("show --json {r}", "show --json --view instruction {r}", "show --json --view time {r}")

QUICK = """
show {r}
show --by kernel {r}
show --by application --clock max {r}
show --source embedded {r}
show --source embedded --json --full-paths {r}
show --view time --launch-latency 4us --width 80 {r}
show --view instruction {r}
show --view instruction --by kernel --kernel . {r}
show --view phases {r}
show --view phases --json {r}
show --trajectory {b} {r}
show --label nvtx --all --notes {r}
show --label 'nvtx:(s.*)' --json {r}
show --nvtx . --launch 0,2-3 --top 2 {r}
show --precision fp64,tensor --level l2,dram --width 60 {r}
show --ceilings auto --gpu 8.0 {r}
show --keep-going {r} {b}
show --json --keep-going {b} {r}
explain {r}
explain --json {r}
explain --view instruction {r}
explain --view phases {r}
explain --precision tensor --level l2 {r}
explain --keep-going --gpu 9.0 --kernel . --nvtx s --launch 0 --top 1 {r} {b}
advise {r}
advise --json --all-findings --all-rules {r}
advise --json --full-paths --longest 3 {r} {b}
advise --ceilings auto --top 2 --kernel . --keep-going {r} {b}
advise --verbose --nvtx s --launch 0 {r}
annotate {r} -o {o}.ncu-rep
annotate {r} -o {o}.ncu-repz --no-rules
annotate {r} -o {o}.ncu-rep --ceilings auto --force
compare {b} {r}
compare {r} {b} {r} --against previous --match order --times raw --tolerance 5% --width 90
compare {b} {r} --json --times normalised
compare {r} {b} -o {o}.md --title T
compare {b} {r} -o {o}.csv --table levels --kernel . --launch 0-2 --top 2
compare {b} {r} -o {o}.json --clock max --precision fp64 --level dram --nvtx s
compare {b} {r} -o {o}.txt --gpu 8.0 --force
compare {b} {r} -o {o}.parquet --table summary
compare {b} {r} -o {o}.csv --table roofs --small
compare {b} {r} --fail-if 'time > 1.05 * baseline' --fail-if 'fraction < 0.9 * baseline' --strict
compare {b} {r} --fail-if 'bytes.dram > 1.1 * baseline or flops.fp64 > baseline' --format csv --table thresholds
compare --keep-going {b} {r} --ceilings auto
ranks {r} {b}
ranks {b} {r} {r} --json --by application --rank '(a|b)'
ranks {b} {r} -o {o}.csv --table ranks --kernel . --launch 0 --nvtx s --top 1
ranks {b} {r} -o {o}.parquet --table points --precision fp64 --level l1 --gpu 8.0
ranks {b} {r} -o {o}.json --force --keep-going --clock max
ranks {b} {r} --format text --ceilings auto --width 70
portability {r}
portability A={b} B={r} --json --ceiling mix --precision fp64
portability {b} B={r} -o {o}.csv --force --ceiling nofma --level binding --by kernel --kernel . --launch 0 --nvtx s --top 1
portability A={b} B={r} -o {o}.md --title T --flops canonical --canonical-flops 1e9 --clock max
portability --keep-going {r} B={b} --json
portability {r} --format json --ceilings auto --label nvtx --application app --platforms X -o {o}.json
render {r} -o {o}.csv
render {r} -o {o}.csv --table roofs
render {r} -o {o}.csv --table kernels --by kernel
render {r} -o {o}.json --view time --launch-latency 4us
render {r} -o {o}.json --view instruction
render {r} -o {o}.md --by application
render {r} -o {o}.md --view time --title T
render {r} -o {o}.txt --source embedded
render {r} -o {o}.txt --view instruction
render {r} -o {o}.csv --view time --table machines
render {r} -o {o}.csv --view time --table absent
render {r} -o {o}.parquet --table kernels
render {r} -o {o} --format nersc
render {r} -o - --format csv --force
render {r} -o {o}.csv --view phases --table bands
render {r} -o {o}.parquet --view phases --table sampled
render {r} -o {o}.html --view phases
source {r}
source --all --by loop --top 3 --width 70 {r}
source --by function --sort work --ascii {r}
source --json --keep-going --full-paths {r} {b}
source --no-disassembly --by instruction --rows 5 --launch 0-3 {r}
source {r} -o {o}.csv --table instructions --kernel . --nvtx s
source {r} -o {o}.csv --table stalls --by outer-line
source {r} -o {o}.csv --table findings
source {r} -o {o}.csv --table outer_lines
source {r} -o {o}.csv --table totals
source {r} -o {o}.csv --table functions
source {r} -o {o}.parquet --table loops
source {r} -o {o}.parquet --table lines
source {r} -o {o}.md --title T --ceilings auto --by line
source {r} -o {o}.json --clock max --force
source {r} -o {o}.txt --source-folder .
source {r} -o - --format csv
source {r} -o {o}.html --theme dark
source {r} -o {o}.svg
render --keep-going {r} {b} -o {o}.json --clock max --ceilings auto
"""

SLOW = """
compare {b} {r} -o {o}.html --title T --theme dark
compare {r} {b} -o {o}.svg --theme light
render {r} -o {o}.html
render {r} -o {o}.html --view time --launch-latency 4us --theme dark
render {r} -o {o}.html --view instruction --title T
render {b} {r} -o {o}.html --trajectory --label '(.*)'
render {r} -o {o}.html --source embedded --theme light
render {r} -o {o}.svg --theme dark
render {r} -o {o}.svg --view time --preset slide
render {r} -o {o}.svg --view instruction --by kernel
render {r} -o {o}.svg --source embedded
render {b} {r} -o {o}.svg --label nvtx --precision fp64 --level dram
render {r} -o {o}.png --kernel . --launch 0-1 --nvtx s --top 2 --gpu 8.0
render {r} -o {o}.png --view time --title T --width 120mm --dpi 200
render {r} -o {o}.pdf --width 5in --height 9in --font 7 --size time
render {r} -o {o}.pdf --view instruction
"""

# Options that no attacked report meets here, and why.
LEFT_OUT = {
    "--dask": "needs a cluster; the workers run the same readers (tests/cli/test_dask.py)",
    **dict.fromkeys(
        ("--operators", "--operators-by", "--board", "--run"), "of traces, which are no reports (tests/analyses/test_run.py)"
    ),
    "--rules": "folders of rules are programs that the user trusts",
}


@dataclass(frozen=True)
class Line:
    """One command line, to be filled in."""

    text: str

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.text.split()[0]

    @property
    def result(self) -> str:
        """The suffix of the file it writes, "" where it has none."""
        return next((word.removeprefix("{o}") for word in self.text.split() if word.startswith("{o}") and word != "{o}"), "")

    @property
    def writes(self) -> bool:
        """Whether it writes a file at all."""
        return "{o}" in self.text

    @property
    def trips(self) -> bool:
        """Whether exit code 1 may stand beside a result: a threshold, nothing in common, or a report left out."""
        return self.command == "compare" or "--keep-going" in self.text

    def words(self, report: str, base: str, result: str) -> list[str]:
        """The words of the command line."""
        named = {"{r}": report, "{b}": base, "{o}": result}
        words = shlex.split(self.text)
        for key, name in named.items():
            words = [word.replace(key, name) for word in words]
        return words


def _lines(text: str) -> tuple[Line, ...]:
    return tuple(Line(line) for line in text.strip().splitlines())


QUICK_LINES, SLOW_LINES, TABLE_LINES = _lines(QUICK), _lines(SLOW), tuple(map(Line, TABLES))
