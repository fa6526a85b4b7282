"""How a report came about: process, machine, versions, and the command line of ncu as it was recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from ncu_roofline.chips.fields import table
from ncu_roofline.formats.report.framing import stated, text


class _Options(NamedTuple):
    """Names of ncu's options, as the comments of the file say."""

    switches: frozenset[str]
    values: frozenset[str]
    replaced: frozenset[str]
    short: Mapping[str, str]


ncu_options = table("ncu_options.toml", _Options)
_PROGRAMS = ("ncu", "nv-nsight-cu-cli")
# One quote and the next of its kind with nothing but blanks beside them.  Each search ends at the next quote: time is linear.
_QUOTED = re.compile(r"""(?:"[^"]*"|'[^']*')(?![^ \t\r\n])""")
_WORD = re.compile(rf"{_QUOTED.pattern}|[^ \t\r\n]+")


@dataclass(frozen=True)
class Option:
    """One option of ncu: its full name, and the words in which it was given (name and value, or both in one)."""

    name: str
    words: tuple[str, ...]

    @property
    def value(self) -> str:
        """What was given for it, "" for a switch."""
        if len(self.words) > 1:
            return self.words[1]
        word = self.words[0]
        return word.partition("=")[2] if word.startswith("--") else word[2:]

    @property
    def replaced(self) -> bool:
        """Whether it says what is collected, where results go or how they are printed, which another command says anew."""
        return any(self.name == one or (one.endswith("-") and self.name.startswith(one)) for one in ncu_options().replaced)


@dataclass(frozen=True)
class CommandLine:
    """The options of ncu in their order, and the application with its arguments (empty if that was not recorded)."""

    options: tuple[Option, ...] = ()
    application: tuple[str, ...] = ()

    def value(self, name: str) -> str:
        """What was given for the option of this full name, "" for nothing."""
        return next((option.value for option in self.options if option.name == name), "")


@lru_cache(maxsize=4)  # a report's is asked for again and again
def read_command_line(line: str) -> CommandLine:
    """The words of a recorded command line; "" gives an empty one.

    An option that this version does not know is taken to have a value, unless that begins with a dash or the option brings one
    along (``--new=1``).  Behind ``--`` comes the application.
    """
    # A word is without the quotes around the whole of it.  The record is what ncu got, after the shell: any other quote and
    # every backslash belong to the word.
    words = [word[1:-1] if _QUOTED.fullmatch(word) else word for word in _WORD.findall(line)]
    ahead = list(takewhile(lambda word: not word.startswith("-"), words))  # the path of ncu, which may hold blanks
    position = next((at for at, word in enumerate(words[: len(ahead) + 1], 1) if PureWindowsPath(word).stem in _PROGRAMS), 1)
    switches, values, _, short = ncu_options()
    known, options = switches | values, list[Option]()
    while position < len(words) and words[position].startswith("-"):
        word, following = words[position], words[position + 1 : position + 2]
        if word == "--":
            position += 1
            break
        name, equals, _ = word.partition("=")
        begun = [one for one in known if one.startswith(name)]
        if not word.startswith("--"):
            name, equals = short.get(word[:2], word[:2]), word[2:]
        elif len(begun) == 1:
            name = begun[0]
        valued = following and (name in values or not following[0].startswith("-"))
        alone = equals or name in switches or not valued
        options.append(Option(name, (word,) if alone else (word, following[0])))
        position += len(options[-1].words)
    return CommandLine(tuple(options), tuple(words[position:]))


@dataclass(frozen=True)
class Process:
    """A profiled process; ``name`` is the path of its executable."""

    id: int = 0
    name: str = ""
    host: str = ""


@dataclass(frozen=True)
class Session:
    """What a report says about its making; text is empty and ``created`` None where it says nothing.

    ``process`` is the first one, ``host`` and ``os`` are those of the machine with the GPU, ``versions`` has (provider,
    version) pairs, ``created`` is in seconds since 1970 (UTC), ``clock_control`` and ``replay`` are what the command line of
    ncu asked for.  That line is recorded without its quotes, so words with blanks fall apart.
    """

    process: Process = Process()
    host: str = ""
    os: str = ""
    created: int | None = None
    ncu_version: str = ""
    driver_version: str = ""
    cuda_version: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    command_line: str = ""
    clock_control: str = ""
    replay: str = ""

    @property
    def command(self) -> CommandLine:
        """The command line of ncu, read."""
        return read_command_line(self.command_line)

    @property
    def application(self) -> tuple[str, ...]:
        """The profiled application and its arguments, from the command line of ncu; empty if that was not recorded."""
        return self.command.application


def read_session(message: Any, process: Process) -> Session:
    """The merged Session message of all blocks; ``process`` is the first one named by a block."""
    versions = tuple((text(v.provider), text(v.version)) for v in message.versions)
    # The provider of the first is in full "Nsight Compute Target", its version "2024.2.1.0 (build 34372528) (public-release)".
    ncu, driver, cuda = (
        next((version for name, version in versions if name.startswith(provider)), "")
        for provider in ("Nsight Compute", "Display Driver Version", "CUDA Version")
    )
    system = message.target if message.HasField("target") else message.host
    said, settings = stated(message), stated(message.settings)
    command_line = said.get("command_line", "")
    command = read_command_line(command_line)
    return Session(
        process=process if process != Process() else Process(said.get("process_id", 0), text(message.executable.path)),
        host=text(system.name) or process.host,
        os=text(system.os),
        created=said.get("created"),
        ncu_version=next(iter(ncu.split()), ""),
        driver_version=driver,
        cuda_version=cuda,
        versions=versions,
        command_line=command_line,
        clock_control=settings.get("clock_control") or command.value("--clock-control"),
        replay=settings.get("replay") or command.value("--replay-mode"),
    )
