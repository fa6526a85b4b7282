"""What `--version` prints: the release, and the commit where the package runs from a checkout."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ncu_roofline.cli.outputs import write_text
from ncu_roofline.version import __version__

_CHECKOUT = Path(__file__).parents[2]


class ShowVersion(argparse.Action):
    """Like argparse's own, but git is asked only when somebody wants to know."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, help="show the version and exit", **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it."""
        commit = commit_of(_CHECKOUT)
        write_text(f"ncu-roofline {__version__}{f' (commit {commit})' if commit else ''}")
        parser.exit()


def commit_of(folder: Path) -> str:
    """The short hash of the commit, "" where ``folder`` is no checkout of this very project or git is missing."""
    ours = False
    with suppress(OSError, ValueError):
        ours = 'name = "ncu-roofline"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    if not ours or not (folder / ".git").exists():
        return ""
    import subprocess

    # Hooks of git have variables that would name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    words = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True, timeout=10)
        return done.stdout.strip()
    return ""
