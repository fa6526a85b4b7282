"""Requests: what a command line becomes before anything runs."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline.cli
from ncu_roofline.cli import main
from ncu_roofline.cli.options import PLACES
from ncu_roofline.cli.parser import COMMANDS, _complete, parse


def request_of(*words: str) -> Any:
    """The request that a command line makes."""
    (request,) = parse(words).args  # type: ignore[attr-defined]
    return request


@pytest.mark.parametrize(
    "words",
    [
        "show a b --kernel x --launch 1,3-5 --ceilings c --ceilings d --view time --launch-latency 4us",
        "render a -o out.png --table points",
        "compare a b --fail-if time>1 --fail-if share<1",
        "portability P=a --level P=l2 --canonical-flops 4 --platforms P,Q",
        "advise a --rules r",
        "check --chip GH100,GA100 --chip H100 x",
        "bench run --only dram --trials 3",
        "bench merge a b",
        "install --no-bench",
        "profile --precision fp64 -- ./app 1",
    ],
)
def test_a_request_can_be_kept_and_compared(words: str) -> None:
    request = request_of(*words.split())
    assert request == request_of(*words.split())
    assert hash(request) == hash(request_of(*words.split()))
    with pytest.raises(AttributeError, match="cannot assign"):
        request.force = True


def test_values() -> None:
    request = request_of("show", "a", "b", "--launch", "1,3-5", "--ceilings", "c", "--ceilings", "d", "--top", "2")
    assert request.reports.reports == ("a", "b")
    assert (request.filters.launches.launch, request.filters.launches.top) == (((1, 1), (3, 5)), 2)
    assert (request.model.roofs.ceilings, request.model.by, request.view.view) == (("c", "d"), None, "roofline")
    assert request_of("check", "--chip", "A,B", "--chip", "C").chip == ("A", "B", "C")
    assert request_of("check").files == ()


def test_only_the_maker_of_requests_sees_what_was_parsed() -> None:
    folder = Path(ncu_roofline.cli.__file__).parent
    seeing = [path.name for path in folder.glob("*.py") if "Namespace" in path.read_text(encoding="utf-8")]
    assert seeing == ["options.py"]


def _place_options(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _place_options(inner, (*words, name))
        elif action.option_strings and action.metavar in PLACES:
            yield words, action.option_strings[-1]


def _all_place_options() -> list[tuple[tuple[str, ...], str]]:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for name in COMMANDS:
        _complete(commands.add_parser(name), importlib.import_module(f"ncu_roofline.cli.{name}"))
    return list(_place_options(parser))


@pytest.mark.parametrize(("words", "option"), [*_all_place_options(), (("profile",), "--output")])
def test_an_empty_name_is_a_usage_error(words: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, option, ""])
    assert ended.value.code == 2
    assert "the name is empty" in capsys.readouterr().err


def test_every_command_that_writes_a_file_is_among_these() -> None:
    found = {words[0] for words, option in _all_place_options() if option in ("--output", "--out")}
    assert found >= {"render", "compare", "annotate", "bench", "demo", "portability", "ranks", "generate"}
