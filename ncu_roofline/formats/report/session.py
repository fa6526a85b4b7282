"""How a report came about: process, machine, versions, and the command line of ncu as it was recorded.

Source of ncu's options: ``ncu --help`` of 2020.3, 2022.3, 2024.1 and 2024.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import PureWindowsPath
from typing import Any

from ncu_roofline.formats.report.framing import text

_SHORT = {
    "-c": "--launch-count",
    "-f": "--force-overwrite",
    "-h": "--help",
    "-i": "--import",
    "-k": "--kernel-name",
    "-o": "--export",
    "-p": "--port",
    "-s": "--launch-skip",
    "-v": "--version",
}
_NAMES = {
    # Options without a value.  Any other is taken to have one, also where this version does not know it.
    "switch": """
    --call-stack --csv --details-all --disable-extra-suffixes --disable-profiler-start-stop --force-overwrite --help
    --list-chips --list-metrics --list-rules --list-sections --list-sets --null-stdin --nvtx --open-in-ui --print-fp
    --print-rule-details --query-metrics --quiet --section-folder-restore --support-32bit --verbose --version
    """,
    # What is collected, where results go and how they are printed; whole names or, with a dash at the end, how names begin.
    "replaced": """
    --apply-rules --chips --csv --details-all --disable-extra-suffixes --export --force-overwrite --help --import --list-
    --log-file --metrics --open-in-ui --page --print- --query- --quiet --resolve-source-file --rule --section --section-
    --set --verbose --version
    """,
    # With values: ncu takes the beginning of a name for the name where no other begins so (``--target-p all``).
    "value": """
    --app-replay-buffer --app-replay-match --app-replay-mode --cache-control --call-stack-type --check-exit-code
    --clock-control --config-file --config-file-path --devices --filter-mode --graph-profiling --hostname --import-source
    --injection-path-32 --injection-path-64 --kernel-id --kernel-name --kernel-name-base --kernel-regex --kernel-regex-base
    --kill --launch-count --launch-skip --launch-skip-before-match --max-connections --mode --nvtx-exclude --nvtx-include
    --pm-sampling-buffer-size --pm-sampling-interval --pm-sampling-max-passes --port --preload-library --print-details
    --print-kernel-base --print-metric-instances --print-metric-name --print-nvtx-rename --print-source --print-summary
    --print-units --profile-from-start --query-metrics-collection --query-metrics-mode --range-filter --range-replay-options
    --rename-kernels --rename-kernels-export --rename-kernels-path --replay-mode --sampling-buffer-size --sampling-interval
    --sampling-max-passes --section-folder --section-folder-recursive --source-folders --target-processes
    --target-processes-filter --warp-sampling-buffer-size --warp-sampling-interval --warp-sampling-max-passes
    """,
}
_SWITCHES, _REPLACED, _OTHERS = (frozenset(names.split()) for names in _NAMES.values())
_WITH_VALUE = _OTHERS | {name for name in _REPLACED if not name.endswith("-")} - _SWITCHES
_KNOWN = _SWITCHES | _WITH_VALUE
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
        return any(self.name == one or (one.endswith("-") and self.name.startswith(one)) for one in _REPLACED)


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
    options = []
    while position < len(words) and words[position].startswith("-"):
        word, following = words[position], words[position + 1 : position + 2]
        if word == "--":
            position += 1
            break
        name, equals, _ = word.partition("=")
        begun = [known for known in _KNOWN if known.startswith(name)]
        if not word.startswith("--"):
            name, equals = _SHORT.get(word[:2], word[:2]), word[2:]
        elif len(begun) == 1:
            name = begun[0]
        valued = following and (name in _WITH_VALUE or not following[0].startswith("-"))
        alone = equals or name in _SWITCHES or not valued
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


def read_process(message: Any) -> Process:
    """A Process message as a value."""
    return Process(message.id, text(message.name), text(message.host))


def read_session(message: Any, process: Process) -> Session:
    """The merged Session message of all blocks; ``process`` is the first one named by a block."""
    versions = tuple((text(v.provider), text(v.version)) for v in message.versions)
    # The provider of the first is in full "Nsight Compute Target", its version "2024.2.1.0 (build 34372528) (public-release)".
    ncu, driver, cuda = (
        next((version for name, version in versions if name.startswith(provider)), "")
        for provider in ("Nsight Compute", "Display Driver Version", "CUDA Version")
    )
    system = message.target if message.HasField("target") else message.host
    command_line = text(message.command_line)
    command = read_command_line(command_line)
    return Session(
        process=process if process != Process() else Process(message.process_id, text(message.executable.path)),
        host=text(system.name) or process.host,
        os=text(system.os),
        created=message.created if message.HasField("created") else None,
        ncu_version=next(iter(ncu.split()), ""),
        driver_version=driver,
        cuda_version=cuda,
        versions=versions,
        command_line=command_line,
        clock_control=text(message.settings.clock_control) or command.value("--clock-control"),
        replay=text(message.settings.replay) or command.value("--replay-mode"),
    )
