"""`ncu-roofline guide`."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

import ncu_roofline
from tests.cli.command import Command

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (Path(ncu_roofline.__file__).parent / "guide").glob("*.md")}
TOPICS = sorted(set(PAGES) - {"README"})


def test_without_a_topic_all_are_listed(run: Command) -> None:
    done = run("guide")
    assert done.code == 0
    assert sorted(re.findall(r"^(\w+) {2,}\S", done.out, flags=re.MULTILINE)) == sorted([*TOPICS, "topic"])


def test_a_page_is_printed_for_reading(run: Command) -> None:
    for topic in TOPICS:
        done = run("guide", topic.upper())
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(PAGES[topic].splitlines()[0])
        assert not [mark for mark in ("<!--", ".md)", "|---", "```") if mark in done.out], topic


def words(text: str) -> list[str]:
    """What a page says, whatever its lines and tables look like."""
    plain = re.sub(r"^```\w*$|<!--.*?-->|^[-| :]+$|\[(\w+)\]\(\w+\.md\)", r" \1", text, flags=re.MULTILINE)
    return re.findall(r"\w+", plain)


@pytest.mark.parametrize("topic", ["readme", *TOPICS])
def test_a_page_is_complete_and_fits_at_every_width(run: Command, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal but for single words and files."""
    page = PAGES.get(topic, "")
    heads = {word for line in re.findall(r"^\|.*\n(?=\|--)", page, re.MULTILINE) for word in words(line)}
    blocks = re.findall(r"^```(?!sh)\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    files = {line for block in blocks for line in block.splitlines()}
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        out = run("guide", topic).out
        assert set(Counter(words(page)) - Counter(words(out))) <= heads
        wide = [line for line in out.splitlines() if len(line) > width and line not in files]
        assert width != 80 or [line for line in wide if len(line.split()) > 1] == []


def test_commands_of_a_page_can_be_copied(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    page = PAGES["compare"].replace(" \\\n    ", " ")
    (long,) = re.findall(r"^ncu-roofline compare .* --fail-if .*$", page, re.MULTILINE)
    out = run("guide", "compare").out
    assert max(map(len, re.findall(r"^ +ncu-roofline .*", out, re.MULTILINE))) <= 60
    printed = out.replace("\\\n", "")
    assert shlex.split(long) in [shlex.split(line) for line in printed.splitlines() if "--fail-if" in line and line[0] == " "]


def test_another_topic_is_refused_with_what_there_is(run: Command) -> None:
    there = ", ".join(TOPICS)
    for topic, meant in (("countres", "; did you mean counters?"), ("zzz", "."), ("../views", "; did you mean views?")):
        done = run("guide", topic)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"ncu-roofline: Cannot print {topic}: the guide has no such page. There are {there}{meant}\n"
    done = run("guide", "x" * 100_000)
    assert (done.code, len(done.err) < 2000) == (2, True)
