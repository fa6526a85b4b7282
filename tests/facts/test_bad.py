"""Each rule of validation refuses its small wrong file, naming the file and the key."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ncu_roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec, read_spec
from ncu_roofline.chips.fields import SpecError

DATA = Path(ncu_roofline.__file__).parent / "data"
BAD = sorted((Path(__file__).parent / "bad").glob("*.toml"))
FOLDERS = {"architecture": "architectures", "precision": "precisions", "level": "levels"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in FOLDERS.values():
        shutil.copytree(DATA / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_refused(path: Path, data: Path) -> None:
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    folder = FOLDERS[path.stem.partition("-")[0]]
    shutil.copy(path, data / folder / f"zz-{path.name}")
    with pytest.raises(SpecError) as caught:
        read_spec(data)
    assert expected in str(caught.value)
    assert f"{folder}/zz-{path.name}" in str(caught.value)
    assert isinstance(caught.value, RooflineError)
    assert isinstance(caught.value, ValueError)


def test_no_text_at_all(data: Path) -> None:
    (data / "levels" / "zz.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match=r"levels/zz\.toml"):
        read_spec(data)


def test_good_copy_is_accepted(data: Path) -> None:
    (data / "levels" / "README.md").write_text("not data", encoding="utf-8")
    assert read_spec(data) == load_spec()
