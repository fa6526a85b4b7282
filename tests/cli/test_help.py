"""What `--help` shows of each command: two examples that parse, a dozen options at most; `--help-all` shows all of them."""

from __future__ import annotations

import re
import shlex

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.cli import COMMANDS, MOST_OPTIONS, Shown, parse
from tests.cli.command import Command

OPTION = re.compile(r"^  (?:-\w(?: \S+)?, )?(--[\w-]+)", re.MULTILINE)


def test_every_command_has_examples_and_few_options_in_sight(run: Command) -> None:
    told = read(DATA / "help.toml", dict[str, Shown])
    assert {name.split()[0] for name in told} == set(COMMANDS)
    for name, (examples, named) in told.items():
        usual, every = (run(*name.split(), option).out for option in ("--help", "--help-all"))
        shown, known = set(OPTION.findall(usual)), set(OPTION.findall(every))
        assert len(shown - {"--help"}) <= MOST_OPTIONS, name
        assert {f"--{one}" for one in named.split()} <= shown <= known, name
        assert ("--help-all" in usual) == (shown < known), name
        assert [line[2:] for line in usual.split("examples:\n")[1].splitlines()] == [f"ncu-roofline {one}" for one in examples]
        for example in examples:
            assert parse(shlex.split(example)[: 99 if name != "mcp" else 1]).command == name.split()[0]
