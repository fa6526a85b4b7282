"""The API reference is made from the docstrings (needs the extra `docs`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ncu_roofline

ROOT = Path(ncu_roofline.__file__).parents[1]


@pytest.mark.exhaustive
def test_every_module_and_public_name_has_its_place(tmp_path: Path) -> None:
    pytest.importorskip("pdoc", reason="no pdoc (pip install 'ncu-roofline[docs]'): the API reference was not made")
    done = subprocess.run([sys.executable, ROOT / ".ci" / "api", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "ncu_roofline.html").read_text(encoding="utf-8")
    assert [name for name in ncu_roofline.__all__ if f'id="{name}"' not in page] == []
    guide = (tmp_path / "ncu_roofline" / "guide.html").read_text(encoding="utf-8")
    topics = [path.stem for path in (ROOT / "ncu_roofline" / "guide").glob("*.md")]
    assert [name for name in topics if f'id="guide-{name}"' not in guide or f'href="#guide-{name}"' not in guide] == ["README"]
    assert '.md"' not in guide
    assert guide.count('src="data:image/svg+xml;base64') == 2  # of the tutorial
    modules = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "ncu_roofline").rglob("*.py")]
    public = [path.parent if path.name == "__init__" else path for path in modules if path.name != "__main__"]
    assert [str(path) for path in public if not (tmp_path / f"{path}.html").is_file()] == []
