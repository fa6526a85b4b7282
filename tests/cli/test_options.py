"""What a command line becomes before anything runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from ncu_roofline.cli import COMMANDS, declare, main, parse
from ncu_roofline.cli.outputs import PLACES


def test_values() -> None:
    words = "show a b --launch 1,3-5 --ceilings c --ceilings d --top 2 --precision FP64,tensor"
    args = parse(words.split())
    assert (args.reports, args.launch, args.top) == (["a", "b"], ((1, 1), (3, 5)), 2)
    assert (args.ceilings, args.by, args.view, args.precision) == (["c", "d"], None, "roofline", ("fp64", "tensor"))
    assert parse(["show", "a"]).ceilings == []


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
        declare(commands.add_parser(name), name)
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
