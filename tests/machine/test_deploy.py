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
NEXT = Pack({"A.section": b"a2", "C.py": b"c"}, "2024.2.0.0", "")
EMPTY = {"schema": SCHEMA, "schema_version": 1, "version": "", "ncu": "", "ceilings": ""}
STOCK = {"Stock.section"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Sections"
    made.mkdir()
    (made / "Stock.section").write_bytes(b"NVIDIA's")
    return made


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_of_another_pack_what_is_ours_goes(machine: Machine, folder: Path) -> None:
    assert deploy(machine, folder, PACK).written == ("A.section", "B.py")
    assert known_folders(machine) == recorded_folders(machine) == [folder]
    first = (folder / MANIFEST).read_bytes()
    (folder / "B.py").unlink()
    assert deploy(machine, folder, PACK).written == ("B.py",)
    assert (folder / MANIFEST).read_bytes() == first
    change = deploy(machine, folder, NEXT)
    assert (change.written, change.removed) == (("A.section", "C.py"), ("B.py",))
    (folder / "A.section").write_bytes(b"tuned")
    assert deploy(machine, folder, PACK).kept == ("A.section",)
    (folder / "B.py").write_bytes(b"changed")  # and no part of the next one
    assert set(deploy(machine, folder, NEXT).kept) == {"A.section", "B.py"}
    forced = deploy(machine, folder, NEXT, force=True)
    assert (forced.written, forced.removed) == (("A.section",), ("B.py",))
    assert set(remove(machine, folder).removed) == {"A.section", "C.py"}
    assert (names(folder), tree(machine.home or folder)) == (STOCK, {})


def test_a_changed_rule_keeps_the_helper_that_it_imports(machine: Machine, folder: Path) -> None:
    one, other = f"{HELPER}_1.py", f"{HELPER}_2.py"
    deploy(machine, folder, Pack({"R.py": f"import {HELPER}_1".encode(), "S.py": b"s", one: b"1"}))
    (folder / "R.py").write_bytes(f"import {HELPER}_1  # changed".encode())
    following = Pack({"R.py": f"import {HELPER}_2".encode(), "S.py": b"s", other: b"2"})
    change = deploy(machine, folder, following)
    assert (change.kept, change.needed, change.removed) == (("R.py",), (one,), ())
    assert deploy(machine, folder, following, force=True).removed == (one,)
    assert names(folder) == {*STOCK, "R.py", "S.py", other, MANIFEST}


@pytest.mark.parametrize("before", [None, NEXT])
def test_after_an_error_at_any_step_nothing_of_ours_is_there(
    machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch, before: Pack | None
) -> None:
    """The manifest and two files (where the folder is new, first the list of folders), and the proof."""
    real, steps = os.replace, 4 if before is None else 3

    def refuse() -> None:
        raise RooflineError("Cannot install", "A.section", "No space left on device", "It was taken away.")

    for step in range(1, steps + 2):
        if before:
            deploy(machine, folder, before)
        calls = 0

        def failing(source: Path, target: Path, step: int = step) -> None:
            nonlocal calls
            calls += 1
            if calls == step:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", failing)
            with pytest.raises(RooflineError, match="No space left on device"):
                deploy(machine, folder, PACK, refuse)
        assert calls == min(step, steps)
        assert names(folder) == STOCK
    assert tree(machine.home or folder) == {}


# Ends like SIGKILL would, without a chance to clean up, before the given renaming.
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


@pytest.mark.parametrize(("step", "then"), [(1, PACK), (2, NEXT), (3, None)])
def test_killed_at_any_step_and_repaired(machine: Machine, folder: Path, step: int, then: Pack | None) -> None:
    deploy(machine, folder, PACK)
    environ = {**machine.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(step)], check=False, env=environ)
    assert done.returncode == 9
    # Nothing half-written has a name that ncu would load.
    loaded = {path.name for path in folder.iterdir() if path.suffix in (".section", ".py")}
    assert loaded <= {*STOCK, *PACK.files, *NEXT.files}
    if then:
        deploy(machine, folder, then)
        assert {name: (folder / name).read_bytes() for name in names(folder) - {*STOCK, MANIFEST}} == then.files
    assert remove(machine, folder).kept == ()
    assert names(folder) == STOCK
    assert tree(machine.home or folder) == {}


NAMES = ("", ".", "..", "../x", "/x", "own/x", ".x", "a\0b", "\ud800", "C:x")
NO_MANIFESTS = [
    *("", "{half", "[]", "{}", "[" * 100_000, json.dumps({**EMPTY, "files": ["A"]})),
    json.dumps({**EMPTY, "schema_version": 2, "files": {}}),
    json.dumps({**EMPTY, "files": {"own": "no ordinary file"}}),
    *(json.dumps({**EMPTY, "files": {name: digest(b"own")}}) for name in NAMES),
]


def test_manifest_that_is_none(machine: Machine, folder: Path) -> None:
    (folder / "own").mkdir()
    (folder / "own" / "x").write_bytes(b"own")
    for text in NO_MANIFESTS:
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        before = tree(folder)
        for action in (lambda: plan(folder, PACK), lambda: remove(machine, folder)):
            with pytest.raises(RooflineError, match="Cannot read the manifest"):
                action()
        assert tree(folder) == before, text[:90]


def test_links_and_pipes(machine: Machine, folder: Path, tmp_path: Path) -> None:
    """Links are neither followed nor removed, also where a stranger's manifest says that they are ours."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"the user's")
    hashes = {"A.section": digest(b"the user's"), "B.py": digest(b"b")}
    (folder / "A.section").symlink_to(precious)
    (folder / f".{MANIFEST}.ncu-roofline.part").symlink_to(precious)
    (folder / MANIFEST).write_text(json.dumps({**EMPTY, "files": hashes}))
    assert deploy(machine, folder, PACK, force=True).kept == ("A.section",)
    remove(machine, folder)
    assert (folder / "A.section").is_symlink()
    assert precious.read_bytes() == b"the user's"
    for make in (lambda path: path.symlink_to(tmp_path / "absent"), os.mkfifo):
        strange = tmp_path / make.__name__
        strange.mkdir()
        make(strange / MANIFEST)
        for action in (lambda at: deploy(machine, at, PACK), read_manifest):
            with pytest.raises(RooflineError, match="it is no ordinary file"):
                action(strange)
    assert not (tmp_path / "absent").exists()
