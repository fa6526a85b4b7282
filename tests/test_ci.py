"""What continuous integration prints about what it could not do; the mutants that try the tests."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CI = Path(__file__).parents[1] / ".ci"
RESULTS = """<testsuites><testsuite>
<testcase classname="tests.bench.test_sass" name="a"><skipped message="no nvcc"/></testcase>
<testcase classname="tests.bench.test_build" name="b"><skipped message="no nvcc"/></testcase>
<testcase classname="tests.test_readme" name="c"/>
<testcase classname="tests.rendering.test_page_browser" name="d"><skipped message="no Chromium"/></testcase>
</testsuite></testsuites>"""


def table(folder: Path, notes: str, results: str) -> list[str]:
    (folder / "notes").write_text(notes)
    (folder / "a.xml").write_text(results)
    (folder / "b.xml").write_text("<testsuites/>")
    words = [sys.executable, CI / "skipped", folder / "notes", folder / "a.xml", folder / "b.xml"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_was_skipped_is_a_table_of_what_why_and_how_many(tmp_path: Path) -> None:
    lines = table(tmp_path, "oldest versions\tno Python 3.10\n", RESULTS)
    assert [line.split("  ")[0].strip() for line in lines] == ["skipped", "oldest versions", "tests/bench", "tests/rendering"]
    assert [line.split()[-3:] for line in lines[2:]] == [["2", "no", "nvcc"], ["1", "no", "Chromium"]]
    assert lines[1].endswith("no Python 3.10")
    assert table(tmp_path, "", "<testsuites/>") == ["Nothing was skipped."]


SOURCE = """
LIMIT = 2

def answer(a, b, names=(1, 2)):
    if a < b and not b == 4:
        return (a - b) / LIMIT
    return f"{a + 1}"
"""


def test_mutants_are_of_functions_and_switched_on_one_by_one() -> None:
    mutate: Any = SimpleNamespace(**runpy.run_path(str(CI / "mutate")))
    mutator = mutate.Mutator()
    mutator.visit(ast.parse(SOURCE))
    changes = [text.split("  ->  ") for _, text in mutator.places]
    assert ["a < b", "a <= b"] in changes
    assert ["(a - b) / LIMIT", "LIMIT / (a - b)"] in changes
    assert not any("names" in before or before in ("2", "a + 1") for before, _ in changes)  # constants, defaults, texts
    results = {}
    for place, (_, text) in enumerate(mutator.places):
        room: dict[str, Any] = {"__mutant__": lambda number: number == 7}
        exec(compile(mutate.Mutator({place: 7}).visit(ast.parse(SOURCE)), "x", "exec"), room)
        results[text] = [room["answer"](1, 2), room["answer"](2, 2), room["answer"](1, 4)]
    assert results["a < b  ->  a <= b"] == [-0.5, 0.0, "2"]
    assert results["a - b  ->  a + b"] == [1.5, "3", "2"]
    assert results["b == 4  ->  b != 4"] == ["2", "3", -1.5]
    some = mutate.Mutator({0: 7, 2: 8})  # the number of a place is that of it alone, whatever else is chosen
    some.visit(ast.parse(SOURCE))
    assert some.places == mutator.places
