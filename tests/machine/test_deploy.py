"""What is ours and what is not: deploying, deploying again, taking away."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import HELPER
from ncu_roofline.plugin.machine.install import (
    MANIFEST,
    SCHEMA,
    Pack,
    deploy,
    digest,
    known_folders,
    plan,
    read_manifest,
    recorded_folders,
    remove,
)
from ncu_roofline.plugin.machine.machine import Machine
from tests.machine.fakes import tree

PACK = Pack({"A.section": b"a", "B.py": b"b"}, "2024.2.0.0", "")
EMPTY = {"schema": SCHEMA, "schema_version": 1, "version": "", "ncu": "", "ceilings": ""}
NEXT = Pack({"A.section": b"a2", "C.py": b"c"}, "2024.2.0.0", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Sections"
    made.mkdir()
    (made / "Stock.section").write_bytes(b"NVIDIA's")
    return made


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_deploy_and_remove(machine: Machine, folder: Path) -> None:
    assert machine.home
    change = deploy(machine, folder, PACK)
    assert change.written == ("A.section", "B.py")
    assert names(folder) == {"Stock.section", "A.section", "B.py", MANIFEST}
    assert known_folders(machine) == recorded_folders(machine) == [folder]
    removal = remove(machine, folder)
    assert set(removal.removed) == {"A.section", "B.py"}
    assert names(folder) == {"Stock.section"}
    assert tree(machine.home) == {}


def test_next_version_replaces_and_removes(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    change = deploy(machine, folder, NEXT)
    assert (change.written, change.removed) == (("A.section", "C.py"), ("B.py",))
    assert names(folder) == {"Stock.section", "A.section", "C.py", MANIFEST}
    remove(machine, folder)
    assert names(folder) == {"Stock.section"}


def test_foreign_file_is_never_overwritten(machine: Machine, folder: Path) -> None:
    (folder / "A.section").write_bytes(b"the user's own")
    before = tree(folder)
    with pytest.raises(RooflineError, match="not one that was installed"):
        deploy(machine, folder, PACK)
    assert tree(folder) == before


def test_link_is_never_overwritten(machine: Machine, folder: Path) -> None:
    (folder / "A.section").symlink_to(folder / "Stock.section")
    with pytest.raises(RooflineError, match="not one that was installed"):
        deploy(machine, folder, PACK)
    assert (folder / "Stock.section").read_bytes() == b"NVIDIA's"


def test_equal_file_of_the_user_stays_the_users(machine: Machine, folder: Path) -> None:
    (folder / "A.section").write_bytes(b"a")
    assert deploy(machine, folder, PACK).unchanged == ("A.section",)
    remove(machine, folder)
    assert names(folder) == {"Stock.section", "A.section"}


def test_changed_file_of_ours_is_kept(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    (folder / "A.section").write_bytes(b"tuned")
    assert deploy(machine, folder, PACK).kept == ("A.section",)
    assert deploy(machine, folder, NEXT).kept == ("A.section",)
    removal = remove(machine, folder)
    assert (removal.kept, removal.removed) == (("A.section",), ("C.py",))
    assert (folder / "A.section").read_bytes() == b"tuned"
    assert names(folder) == {"Stock.section", "A.section"}


def test_force_replaces_a_changed_file_of_ours_but_no_foreign_one(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    (folder / "A.section").write_bytes(b"tuned")
    deploy(machine, folder, PACK, force=True)
    assert (folder / "A.section").read_bytes() == b"a"
    (folder / "C.py").write_bytes(b"the user's own")
    with pytest.raises(RooflineError, match="not one that was installed"):
        deploy(machine, folder, NEXT, force=True)


def test_deleted_file_of_ours_comes_back(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    (folder / "B.py").unlink()
    assert deploy(machine, folder, PACK).written == ("B.py",)


def test_after_a_failed_proof_nothing_of_ours_is_there(machine: Machine, folder: Path) -> None:
    assert machine.home

    def refuse() -> None:
        raise RooflineError("Cannot install", "A.section", "ncu does not list it", "It was taken away.")

    for _ in range(2):
        with pytest.raises(RooflineError, match="does not list"):
            deploy(machine, folder, NEXT, refuse)
        assert (names(folder), tree(machine.home)) == ({"Stock.section"}, {})
        deploy(machine, folder, PACK)


def test_a_new_folder_disappears_with_ours(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    deploy(machine, folder, PACK)
    deploy(machine, folder, NEXT)
    remove(machine, folder)
    assert names(tmp_path / "x") == set()


def test_new_folder_stays_with_a_file_of_the_user(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    deploy(machine, folder, PACK)
    (folder / "Own.section").write_bytes(b"own")
    remove(machine, folder)
    assert names(folder) == {"Own.section"}


def test_below_a_file(machine: Machine, tmp_path: Path) -> None:
    assert machine.home
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RooflineError, match=r"Cannot install into .*file.*Sections: .*--dest"):
        deploy(machine, tmp_path / "file" / "Sections", PACK)
    assert tree(machine.home) == {}


@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("before", [None, NEXT])
def test_an_error_at_any_step_leaves_nothing(
    machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, before: Pack | None
) -> None:
    """The manifest and two files; where the folder is new, first the list of folders."""
    if before:
        deploy(machine, folder, before)
    calls, real = 0, os.replace

    def failing(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        if step <= (3 if before else 4):
            with pytest.raises(RooflineError, match="No space left on device"):
                deploy(machine, folder, PACK)
            assert names(folder) == {"Stock.section"}
    deploy(machine, folder, PACK)
    remove(machine, folder)
    assert names(folder) == {"Stock.section"}


# Kills itself like SIGKILL would, without a chance to clean up, before the given renaming.
KILLED = """
import os, sys
from pathlib import Path
from ncu_roofline.plugin.machine.install import Pack, deploy
from ncu_roofline.plugin.machine.machine import this_machine
real, calls = os.replace, 0
def deadly(*args):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os._exit(9)
    real(*args)
os.replace = deadly
deploy(this_machine(), Path(sys.argv[1]), Pack({"A.section": b"a2", "C.py": b"c"}, "2024.2.0.0", ""))
"""


@pytest.mark.parametrize("step", range(1, 4))
@pytest.mark.parametrize("then", [PACK, NEXT, None])
def test_killed_at_any_step_and_repaired(machine: Machine, folder: Path, step: int, then: Pack | None) -> None:
    deploy(machine, folder, PACK)
    environ = {**machine.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(step)], check=False, env=environ)
    assert done.returncode == 9
    # Nothing half-written has a name that ncu would load.
    assert {path.name for path in folder.iterdir() if path.suffix in (".section", ".py")} <= {
        "Stock.section", "A.section", "B.py", "C.py",
    }  # fmt: skip
    if then:
        deploy(machine, folder, then)
        assert names(folder) == {"Stock.section", MANIFEST, *then.files}
        assert {name: (folder / name).read_bytes() for name in then.files} == then.files
        assert remove(machine, folder).kept == ()
    else:
        remove(machine, folder)
    assert names(folder) == {"Stock.section"}
    assert tree(machine.home or folder) == {}


def test_links_are_neither_followed_nor_removed(machine: Machine, folder: Path) -> None:
    """Whose manifest says that they are ours: a stranger's."""
    precious = folder.parent / "precious"
    precious.write_bytes(b"the user's")
    hashes = {"A.section": digest(b"the user's"), "B.py": digest(b"b")}
    (folder / "A.section").symlink_to(precious)
    (folder / f".{MANIFEST}.ncu-roofline.part").symlink_to(precious)
    (folder / MANIFEST).write_text(json.dumps({**EMPTY, "files": hashes}))
    assert deploy(machine, folder, PACK, force=True).kept == ("A.section",)
    remove(machine, folder)
    assert (folder / "A.section").is_symlink()
    assert precious.read_bytes() == b"the user's"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{half",
        "[]",
        "{}",
        '{"schema": "ncu-roofline-install", "schema_version": 2}',
        '{"schema": "ncu-roofline-install", "schema_version": 1, "version": "", "ncu": "", "ceilings": "", "files": ["A"]}',
        '{"schema": "ncu-roofline-install", "schema_version": 1, "version": "", "ncu": "", "ceilings": "", "files": {"/": ""}}',
        json.dumps({**EMPTY, "files": {"own": "no ordinary file"}}),
        "[" * 100_000,
        *(
            json.dumps({**EMPTY, "files": {name: digest(b"own")}})
            for name in ("", ".", "..", "../x", "/x", "own/x", ".x", "a\0b", "\ud800", "C:x")
        ),
    ],
)
def test_manifest_that_is_none(machine: Machine, folder: Path, text: str) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "x").write_bytes(b"own")
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    before = tree(folder)
    for action in (lambda: read_manifest(folder), lambda: plan(folder, PACK), lambda: remove(machine, folder)):
        with pytest.raises(RooflineError, match="Cannot read the manifest"):
            action()  # type: ignore[no-untyped-call]
    assert tree(folder) == before


def test_manifest_is_the_same_every_time(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    first = (folder / MANIFEST).read_bytes()
    remove(machine, folder)
    deploy(machine, folder, PACK)
    assert (folder / MANIFEST).read_bytes() == first


def test_a_changed_rule_keeps_the_helper_that_it_imports(machine: Machine, folder: Path) -> None:
    one, other = f"{HELPER}_1.py", f"{HELPER}_2.py"
    deploy(machine, folder, Pack({"R.py": f"import {HELPER}_1".encode(), "S.py": b"s", one: b"1"}))
    (folder / "R.py").write_bytes(f"import {HELPER}_1  # changed".encode())
    following = Pack({"R.py": f"import {HELPER}_2".encode(), "S.py": b"s", other: b"2"})
    change = deploy(machine, folder, following)
    assert (change.kept, change.needed, change.removed) == (("R.py",), (one,), ())
    assert deploy(machine, folder, following, force=True).removed == (one,)
    assert names(folder) == {"Stock.section", "R.py", "S.py", other, MANIFEST}
    remove(machine, folder)
    assert names(folder) == {"Stock.section"}


def test_a_changed_file_that_is_no_part_any_more_is_told(machine: Machine, folder: Path) -> None:
    deploy(machine, folder, PACK)
    (folder / "B.py").write_bytes(b"changed")
    assert deploy(machine, folder, NEXT).kept == ("B.py",)
    assert remove(machine, folder).kept == ("B.py",)
    assert names(folder) == {"Stock.section", "B.py"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names there")
def test_a_manifest_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    """Nobody writes to it: whoever opened it would wait for ever."""
    os.mkfifo(tmp_path / MANIFEST)
    with pytest.raises(RooflineError, match="it is no ordinary file"):
        read_manifest(tmp_path)


def test_a_manifest_that_is_a_link_is_refused(machine: Machine, tmp_path: Path) -> None:
    """It would be written where it leads to."""
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / MANIFEST).symlink_to(tmp_path / "precious")
    with pytest.raises(RooflineError, match="it is no ordinary file"):
        deploy(machine, tmp_path / "strange", PACK)
    assert not (tmp_path / "precious").exists()
