"""How a report came about: process, machine, versions, command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ncu_roofline.formats.report.command_line import CommandLine, read_command_line
from ncu_roofline.formats.report.schema import text

_NCU = "Nsight Compute"  # provider of the version; in full "Nsight Compute Target"
_DRIVER = "Display Driver Version"
_CUDA = "CUDA Version"


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
    system = message.target if message.HasField("target") else message.host
    command_line = text(message.command_line)
    command = read_command_line(command_line)
    return Session(
        process=process if process != Process() else Process(message.process_id, text(message.executable.path)),
        host=text(system.name) or process.host,
        os=text(system.os),
        created=message.created if message.HasField("created") else None,
        ncu_version=next(iter(_version(versions, _NCU).split()), ""),  # "2024.2.1.0 (build 34372528) (public-release)"
        driver_version=_version(versions, _DRIVER),
        cuda_version=_version(versions, _CUDA),
        versions=versions,
        command_line=command_line,
        clock_control=text(message.settings.clock_control) or command.value("--clock-control"),
        replay=text(message.settings.replay) or command.value("--replay-mode"),
    )


def _version(versions: tuple[tuple[str, str], ...], provider: str) -> str:
    return next((version for name, version in versions if name.startswith(provider)), "")
