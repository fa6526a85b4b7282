"""`ncu-roofline generate` on the pack itself, and broken templates; the rest is in a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.base.files import pack_folder
from ncu_roofline.plugin.generate import rules
from tests.cli.command import Command


def test_the_committed_pack_is_up_to_date_and_stays_general(run: Command, tmp_path: Path) -> None:
    assert "are as generated" in run("generate", "--check").out
    for extra in (["--ncu", "2024.2"], ["--tensor", "bf16"], ["--ceilings", "x.json"]):
        outcome = run("generate", *extra)
        assert outcome.code == 2
        assert "--out" in outcome.err
    assert run("generate", "--out", tmp_path).code == 0
    for name in ("sections", "rules"):
        made, committed = (sorted(path.name for path in folder.iterdir()) for folder in (tmp_path / name, pack_folder(name)))
        assert made == [one for one in committed if one != "__pycache__"]
    (tmp_path / "sections" / "RooflineOverview.section").unlink()
    outcome = run("generate", "--out", tmp_path, "--check")
    assert outcome.code == 1
    assert "RooflineOverview.section: is missing" in outcome.err


def test_broken_templates(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, names = tmp_path / "templates" / "rules", [path.name for path in (rules.TEMPLATES / "rules").iterdir()]
    monkeypatch.setattr(rules, "TEMPLATES", tmp_path / "templates")
    for content in (None, b"{% if %}", b"\xff\xfe"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names if content is not None else ():
            (folder / name).write_bytes(content or b"")
        outcome = run("generate", "--out", tmp_path / "out")
        assert outcome.code == 1
        assert "Cannot use the template" in outcome.err
        assert not (tmp_path / "out").exists()
