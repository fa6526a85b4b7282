"""What continuous integration prints about what it could not do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_where_nothing_is_missing_that_is_said(tmp_path: Path) -> None:
    assert table(tmp_path, "", "<testsuites/>") == ["Nothing was skipped."]
