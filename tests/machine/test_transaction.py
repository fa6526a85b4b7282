"""All of a change or none of it, whatever kills it when."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.plugin.machine import manifest as transaction
from ncu_roofline.plugin.machine.manifest import STAGE, changing, recover
from tests.machine.fakes import tree

OLD = {"kept.section": b"user's", "a.section": b"old a", "gone.section": b"old"}
NEW = {"a.section": b"new a", "b.section": b"new b", "c.py": b"new c"}
AFTER = {"kept.section": b"user's", **NEW}
RENAMES = 6
"""Of one change as above: the journal, two for the file replaced, one for each added or removed."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Sections"
    made.mkdir()
    for name, data in OLD.items():
        (made / name).write_bytes(data)
    return made


def test_change(folder: Path) -> None:
    with changing(folder, NEW, ["gone.section"]):
        assert {name: data for name, data in tree(folder).items() if not name.startswith(STAGE)} == AFTER
    assert tree(folder) == AFTER


def test_an_exception_undoes_it(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt), changing(folder, NEW, ["gone.section"]):
        raise KeyboardInterrupt
    assert tree(folder) == OLD


@pytest.mark.parametrize("step", range(1, RENAMES + 1))
def test_an_error_at_any_rename_undoes_it(folder: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="Input/output"), changing(folder, NEW, ["gone.section"]):
        pass
    assert tree(folder) == OLD


@pytest.mark.parametrize("count", range(4))
def test_a_full_disk_leaves_nothing(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    sync = os.fsync

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > count:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"), changing(folder, NEW, ["gone.section"]):
        pass
    assert tree(folder) == OLD


# Kills itself like SIGKILL would, without a chance to clean up, before the given call of a function of os.
KILLED = """
import os, sys
from pathlib import Path
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.plugin.machine import manifest as transaction
folder, name, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls, real = 0, getattr(os, name)
def deadly(*args, **kwargs):
    global calls
    calls += 1
    if calls == step:
        os._exit(9)
    return real(*args, **kwargs)
setattr(os, name, deadly)
with transaction.changing(folder, {"a.section": b"new a", "b.section": b"new b", "c.py": b"new c"}, ["gone.section"]):
    pass
"""


@pytest.mark.parametrize(("name", "step"), [("fsync", 1), ("fsync", 4), *(("replace", step) for step in range(1, RENAMES + 1))])
def test_killed_at_any_step_and_recovered(folder: Path, name: str, step: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), name, str(step)], check=False)
    assert done.returncode == 9
    assert (folder / STAGE).is_dir()
    # Nothing in the stage has a name that ncu, which searches folders within folders, would load.
    assert not [path for path in (folder / STAGE).rglob("*") if path.suffix in (".section", ".py", ".chart")]
    assert recover(folder)
    assert tree(folder) == OLD
    assert not recover(folder)


@pytest.mark.parametrize("step", range(1, 4))
def test_recovering_can_itself_be_killed(folder: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), "unlink", "1"], check=False)
    assert killed.returncode == 9
    assert (folder / "c.py").exists()
    calls, replace = 0, os.replace

    def dying(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying)
        if step <= 2:
            with pytest.raises(KeyboardInterrupt):
                recover(folder)
        else:
            recover(folder)
    recover(folder)
    assert tree(folder) == OLD


def test_folders_that_were_missing_are_taken_away_again(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), changing(tmp_path / "x" / "y", NEW):
        raise ValueError("no")
    assert tree(tmp_path) == {}


def test_a_new_folder_that_was_killed_is_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder), "replace", "3"], check=False).returncode == 9
    assert recover(folder)
    assert tree(tmp_path) == {}


# What no process of ours leaves, and why it is refused.  {around} is the folder that the folder is in.
REFUSED = {
    "damaged": ("{{half", "Expecting"),
    "nested": ("[" * 100_000, "recursion|lists of texts"),
    "list": ("[]", "lists of texts"),
    "nothing": ("{{}}", "lists of texts"),
    "text for names": ('{{"names": "ab", "added": [], "created": []}}', "lists of texts"),
    "number among names": ('{{"names": [1], "added": [], "created": []}}', "lists of texts"),
    "number for added": ('{{"names": ["a.section"], "added": 1, "created": []}}', "lists of texts"),
    "no added": ('{{"names": ["a.section"], "created": []}}', "lists of texts"),
    "parent": ('{{"names": ["../precious"], "added": [], "created": []}}', "no file inside"),
    "parent to delete": (
        '{{"names": ["a.section", "../precious"], "added": ["../precious"], "created": []}}',
        "no file inside",
    ),
    "absolute": ('{{"names": ["{around}/precious"], "added": ["{around}/precious"], "created": []}}', "no file inside"),
    "below": ('{{"names": ["inner/precious"], "added": ["inner/precious"], "created": []}}', "no file inside"),
    "the folder": ('{{"names": ["."], "added": [], "created": []}}', "no file inside"),
    "no name": ('{{"names": [""], "added": [], "created": []}}', "no file inside"),
    "its stage": ('{{"names": [".ncu-roofline.part"], "added": [], "created": []}}', "no file inside"),
    "zero byte": ('{{"names": ["a\\u0000b"], "added": [], "created": []}}', "no file inside"),
    "half a letter": ('{{"names": ["\\ud800"], "added": [], "created": []}}', "no file inside"),
    "a folder beside": ('{{"names": [], "added": [], "created": ["{around}/empty"]}}', "another folder"),
    "a folder inside": ('{{"names": [], "added": [], "created": ["{around}/Sections/inner"]}}', "another folder"),
    "zero byte in a folder": ('{{"names": [], "added": [], "created": ["a\\u0000b"]}}', "null"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_journal_of_somebody_else_touches_nothing(folder: Path, case: str) -> None:
    (folder.parent / "empty").mkdir()
    (folder / "inner").mkdir()
    for place in (folder.parent, folder / "inner"):
        (place / "precious").write_bytes(b"the user's")
    (folder / STAGE).mkdir()
    (folder / STAGE / "0.old").write_bytes(b"a stranger's")
    (folder / STAGE / "1.old").symlink_to(folder.parent / "precious")
    text, reason = REFUSED[case]
    (folder / STAGE / "journal.json").write_text(text.format(around=folder.parent.as_posix()))
    before = tree(folder.parent)
    for action in (lambda: recover(folder), lambda: changing(folder, NEW).__enter__()):
        with pytest.raises(RooflineError, match=rf"Cannot undo .*journal\.json: .*(?:{reason}).*Nothing was changed; remove "):
            action()
        assert tree(folder.parent) == before


@pytest.mark.parametrize("journal", [True, False])
def test_a_stage_that_is_a_link_is_not_followed(folder: Path, journal: bool) -> None:
    other = folder.parent / "other"
    other.mkdir()
    (other / "0.old").write_bytes(b"the user's")
    if journal:
        (other / "journal.json").write_text('{"names": ["a.section"], "added": [], "created": []}')
    (folder / STAGE).symlink_to(other)
    before = tree(folder.parent)
    with pytest.raises(RooflineError, match="is a link"):
        recover(folder)
    assert tree(folder.parent) == before


def test_links_inside_the_stage_are_moved_and_not_followed(folder: Path) -> None:
    """What was a link before it was replaced is one again; what it leads to stays as it is."""
    precious = folder.parent / "precious"
    precious.write_bytes(b"the user's")
    (folder / STAGE).mkdir()
    (folder / STAGE / "0.old").symlink_to(precious)
    (folder / STAGE / "more").symlink_to(folder.parent)
    (folder / "b.section").symlink_to(precious)
    journal = '{"names": ["a.section", "b.section"], "added": ["b.section"], "created": []}'
    (folder / STAGE / "journal.json").write_text(journal)
    assert recover(folder)
    assert (folder / "a.section").is_symlink()
    assert not os.path.lexists(folder / "b.section")
    assert precious.read_bytes() == b"the user's"


def test_digest_is_sha256() -> None:
    assert transaction.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
