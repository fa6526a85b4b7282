"""Running `ncu-roofline` inside the test, and what every refusal looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ncu_roofline.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Command:
    """Runs commands; fixtures named ``run`` return one."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Outcome:
        """``ncu-roofline WORDS``."""
        self._capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as error:  # argparse: --help, --version, usage
            code = int(error.code or 0)
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)


def assert_refused(outcome: Outcome, about: object, code: int = 1) -> None:
    """Exit code 1 and one line on standard error: what failed, ``about`` what, why, and what to do; nothing else."""
    assert outcome.code == code, outcome
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert len(lines) == 1, lines
    shown = re.escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(about)))
    assert re.fullmatch(rf"ncu-roofline: Cannot [\w -]+ {shown}: \S.*[^.]\. \S.*[.?]", lines[0]), lines[0]
    assert lines[0].isprintable()


def assert_no_leftovers(folder: Path, *expected: str) -> None:
    """Nothing but the ``expected`` files is in ``folder``."""
    assert sorted(path.name for path in folder.iterdir()) == sorted(expected)
