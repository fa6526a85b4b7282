"""The default run's sample of a matrix, and that the exhaustive run has the rest."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests import conftest
from tests.sampling import covering, fitting

ROOT = Path(__file__).parents[1]


def test_covering_has_every_value_of_every_parameter_in_few_cases() -> None:
    cases = [{"command": a, "damage": b} for a, b in itertools.product(range(28), range(25))]
    kept = [cases[number] for number in covering(cases)]
    assert {case["command"] for case in kept} == set(range(28))
    assert {case["damage"] for case in kept} == set(range(25))
    assert len(kept) == 28
    assert covering([{"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 0, "b": 1}]) == {0, 1}
    assert covering([]) == set()


def test_fitting() -> None:
    assert fitting(["2024.2-own", "2024.1-own", "base"], ["2024.2*", "base"]) == {0, 2}


MATRIX = """
import pytest

@pytest.mark.sampled()
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", range(4))
def test_covered(a, b): ...

@pytest.mark.sampled("x")
@pytest.mark.parametrize("name", ["x", "y"])
def test_named(name): ...

@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("number", range(5))
def test_third(number): ...

@pytest.mark.exhaustive
def test_long(): ...
"""


class Chosen:
    """A plugin that remembers what was left to run."""

    names: tuple[str, ...] = ()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = tuple(item.name for item in session.items)


def chosen(folder: Path, *words: str) -> set[str]:
    """The names of the tests in ``folder`` that these words run, with the options of this project."""
    plugin = Chosen()
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-n", "0", "-p", "no:cacheprovider", "-q"]
    code = pytest.main([*options, "--collect-only", *words, str(folder)], plugins=[plugin, conftest])
    assert code == pytest.ExitCode.OK
    assert len(set(plugin.names)) == len(plugin.names)
    return set(plugin.names)


@pytest.mark.exhaustive
def test_nothing_is_lost_and_nothing_runs_twice(tmp_path: Path) -> None:
    (tmp_path / "test_matrix_of_all.py").write_text(MATRIX)
    usual, rest = chosen(tmp_path), chosen(tmp_path, "-m", "exhaustive")
    assert len(usual) == 4 + 1 + 2
    assert "test_named[x]" in usual
    assert {"test_third[0]", "test_third[3]"} < usual
    assert {"test_named[y]", "test_long"} < rest
    assert not usual & rest
    assert usual | rest == chosen(tmp_path, "-m", "")
    assert len(usual | rest) == 12 + 2 + 5 + 1


def test_a_pattern_that_fits_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_matrix_with_a_mistake.py").write_text(MATRIX.replace('"x")', '"z")'))
    with pytest.raises(AssertionError):
        chosen(tmp_path)
    assert "test_named: none of x, y fits ('z',)" in capsys.readouterr().err
