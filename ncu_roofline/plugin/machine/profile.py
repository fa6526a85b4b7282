"""The ncu command that profiles an application for rooflines: made, run, as a job of Slurm, and what its failures mean."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError, Terminated, explained
from ncu_roofline.base.files import temporary_folder
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability_text, table
from ncu_roofline.chips.ncu import default_clocks
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION
from ncu_roofline.plugin.machine.install import Pack
from ncu_roofline.plugin.machine.machine import Gpu, Machine, Ncu

SUFFIXES = (".ncu-rep", ".ncu-repz")
COMPRESSED_SINCE = (2025, 4)
"""The first release of ncu that writes .ncu-repz; from 2026.3 on it does where no suffix is named."""
SLURM_RANK = "SLURM_PROCID"
"""The variable with the number of a task among all of its step."""
ELSEWHERE = "Choose a place that you may write to with -o NAME."
_LOOK_SECONDS, _END_SECONDS = 0.2, 5.0
# Launchers tell a process its number among all and how many there are, first one set wins.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_NRANKS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class Failure(NamedTuple):
    """A kind of failure, what to do, and how it shows in what ncu says."""

    id: str
    reason: str
    next_step: str
    pattern: str = ""


class _Failures(NamedTuple):
    failures: tuple[Failure, ...]


load_failures = table("ncu_failures.toml", _Failures)


def application_code(log: str) -> int | None:
    """The application's exit code if ncu says that it failed."""
    match = re.search(r"The application returned an error code \((-?\d+)\)", log)
    return int(match[1]) if match else None


def find_failure(log: str) -> Failure | None:
    """The failure that shows in what ncu said, if it is one that is known."""
    return next((failure for failure in load_failures().failures if re.search(failure.pattern, log)), None)


def failure_of(kind: str) -> Failure:
    return next(failure for failure in load_failures().failures if failure.id == kind)


def explain(machine: Machine, log: str, code: int, kernel: str, application: str) -> Failure:
    """Why there is no report."""
    found = find_failure(log)
    if found is None and machine.which(application) is None:  # ncu says so beside its log
        found = failure_of("program")
    if not machine.has_driver() and (found is None or found.id == "driver"):
        return failure_of("driver")._replace(reason="there is no CUDA driver on this machine")
    if found:
        return found
    ended = application_code(log)
    said = [line.removeprefix("==ERROR==").strip() for line in log.splitlines() if line.startswith("==ERROR==")]
    if ended is not None:
        reason = f"the application failed with exit code {ended}"
        return Failure("application", reason, "Make it run without the profiler first; its own messages are above")
    if code < 0:
        return Failure("killed", f"ncu was ended by signal {-code}", "Look at the memory of the machine, and try again")
    if said or (code and "No kernels were profiled" not in log):
        reason = said[-1] if said else f"ncu ended with exit code {code}; what it said is above"
        return Failure("unknown", reason, "`ncu-roofline doctor` checks this machine; --dry-run prints the command of ncu")
    why = f"none has a name that matches {kernel}, or none was launched" if kernel else "the application launched none"
    next_step = "Leave out --kernel to see the names" if kernel else "Check that it runs on the GPU, to its first kernel"
    return Failure("no kernel", f"no kernel was profiled: {why}", next_step)


class Wanted(NamedTuple):
    """What to profile: ``sections``, ``folders`` to find them in (none: where ncu looks), ``kernel`` a regular expression.

    ``output`` is the report's path without its suffix, ``suffix`` the one that the user named,
    ``clocks`` what ncu is to do with them ("none", "base", "boost"); "" for either: as this ncu does by itself.
    ``rank`` is the environment variable whose value ncu puts into the name, "" for none.
    """

    application: tuple[str, ...]
    output: str
    sections: tuple[str, ...]
    folders: tuple[Path, ...] = ()
    kernel: str = ""
    clocks: str = ""
    force: bool = False
    suffix: str = ""
    rank: str = ""


def sections_for(precisions: Sequence[str], light: bool) -> tuple[str, ...]:
    """Identifiers of the sections that count some precisions (none: all); ``light`` counts one tensor type instead of all."""
    sections = {**load_spec().sections, **({"tensor": LIGHT_TENSOR_SECTION} if light else {})}
    families = dict.fromkeys(sections if not precisions else (precision.partition(".")[0] for precision in precisions))
    return tuple(sections[family] for family in families)


def light_type(precisions: Sequence[str]) -> str:
    """The tensor type for the section of few passes ("bf16" of tensor.bf16); "" where none is named."""
    named = [precision.split(".")[1] for precision in precisions if precision.startswith("tensor.")]
    return named[0] if named else ""


def rank_of(environ: Mapping[str, str]) -> str:
    """The MPI rank of this process, "" where it runs alone."""
    for rank, size in _RANKS:
        if environ.get(rank, "").isdecimal() and (size in environ or not size.startswith("SLURM_STEP")):
            return "" if environ.get(size) == "1" else environ[rank]
    return ""


def placed(folder: Path, output: str, force: bool) -> Path | None:
    """The report that ncu wrote into ``folder``, now at ``output``; None if it wrote none.

    What appeared there meanwhile is not replaced without ``force``: the report gets a number.  Raises RooflineError.
    """
    written = next((path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}")), None)
    if written is None:
        return None
    targets = (Path(f"{output}{f'.{number}' if number > 1 else ''}{written.suffix}") for number in count(1))
    target = next(one for one in targets if force or not os.path.lexists(one))
    with explained("Cannot write", target, ELSEWHERE):
        shutil.move(written, os.path.realpath(target))
    return target


def command(ncu: Ncu, wanted: Wanted) -> list[str]:
    """The command line, the application's last."""
    words = [os.fspath(ncu.path)]
    words += [word for folder in wanted.folders for word in ("--section-folder", os.fspath(folder))]
    words += [word for section in wanted.sections for word in ("--section", section)]
    words += ["--kernel-name", f"regex:{wanted.kernel}"] if wanted.kernel else []
    words += ["--clock-control", wanted.clocks] if wanted.clocks not in ("", default_clocks(ncu.version)) else []
    # A release that knows one suffix only adds it by itself.
    suffix = wanted.suffix if ncu.release >= COMPRESSED_SINCE else ""
    rank = f".rank%q{{{wanted.rank}}}" if wanted.rank else ""
    words += ["--target-processes", "all", "-o", f"{wanted.output.replace('%', '%%')}{rank}{suffix}"]
    words += ["-f"] if wanted.force else []
    return [*words, *wanted.application]


def as_text(words: Sequence[str], system: str = "linux") -> str:
    """A command line as a shell takes it: cmd.exe, or bash, for which what can't be printed is spelled out."""
    if system == "windows":
        return subprocess.list2cmdline(words)
    parts = []
    for word in words:
        spelled = (chr(one) if 32 <= one < 127 and one not in b"\\'" else f"\\{one:03o}" for one in os.fsencode(word))
        parts.append(shlex.quote(word) if word.isprintable() else f"$'{''.join(spelled)}'")
    return " ".join(parts)


def step(words: Sequence[str], application: Sequence[str], rank: int | None) -> str:
    """A line of srun that runs the command ``words`` in every task, or in one, while the others run the application alone."""
    if rank is None:
        return as_text(["srun", *words])
    inside = f'if [ "${SLURM_RANK}" = {rank} ]; then exec {as_text(words)}; else exec {as_text(application)}; fi'
    return as_text(["srun", "bash", "-c", inside])


def passes_text(pack: Pack, sections: Sequence[str], gpu: Gpu | None, light: Sequence[str] = ()) -> str:
    """How often each kernel will run, and why; ``light`` are the sections that --light would collect instead."""
    from ncu_roofline.formats.sectionfile.text import SectionSyntaxError, parse_document
    from ncu_roofline.plugin.check.chips import targets_of
    from ncu_roofline.plugin.check.section_rules import Content, section_passes

    capability = capability_text(gpu.compute_capability) if gpu and gpu.compute_capability else ""
    found = []
    with suppress(RooflineError, SectionSyntaxError):
        for names in (sections, light) if capability else ():
            contents = [Content(name, parse_document(pack.files[f"{name}.section"].decode())) for name in names]
            found.append(section_passes(contents, targets_of([capability])[0]))
    if not found or found[0] is None:
        why = f"no metric library here knows {capability}" if capability else "no GPU here to say how many"
        return f"Each kernel is run several times, once per group of counters ({why})."
    parts = [f"{found[0].hardware} for hardware counters"] if found[0].hardware else []
    parts += [f"{found[0].sass} with instrumented instructions"] if found[0].sass else []
    runs, fewer = (
        one.hardware + one.sass + 1 if one else 0 for one in (*found, None)[:2]
    )  # ncu prints one more than the library schedules
    saved = f" --light: {fewer} times." if light and 0 < fewer < runs else ""
    return f"Each kernel is run {runs} times (replay passes): {', '.join(parts)}, 1 of ncu's own.{saved}"


class Run(NamedTuple):
    """How it went: the exit code of ncu, its log, and whether the user ended it."""

    code: int
    log: str
    interrupted: bool = False


def run(machine: Machine, words: Sequence[str], say: Callable[[str], None]) -> Run:
    """Run ncu with the application's input and outputs left alone; ncu's log goes line by line to ``say``.

    Ctrl-C is for ncu and the application to answer; a second one, and any other exception, ends ncu.  Raises OSError where
    ncu can't be started, RooflineError where there is no place for its log.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    lines: list[str] = []
    with temporary_folder() as folder:
        log, place, rest = folder / "ncu.log", 0, b""
        process = subprocess.Popen([words[0], "--log-file", os.fspath(log), *words[1:]], env=dict(machine.environ))

        def follow(last: bool = False) -> None:
            """Say the lines that were added; at last also one without an end."""
            nonlocal place, rest
            data = b""
            with suppress(OSError), log.open("rb") as stream:
                stream.seek(place)
                data = stream.read()
            place += len(data)
            *added, rest = (rest + data).split(b"\n")
            for line in [*added, *([rest] if last else [])]:
                lines.append(line.decode("utf-8", errors="replace").rstrip("\r"))
                if line.strip():
                    say(lines[-1])

        interrupted = False
        try:
            while process.poll() is None:
                try:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_SECONDS)
                    follow()
                except KeyboardInterrupt as error:  # noqa: PERF203 - five times a second
                    if interrupted or isinstance(error, Terminated):
                        raise
                    interrupted = True
                    if not _in_foreground():
                        process.send_signal(signal.SIGINT)
        except BaseException:
            process.terminate()  # it gives the clocks of the GPU back
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            process.kill()
            process.wait()
            raise
        finally:
            follow(last=True)
    return Run(process.returncode, "\n".join(lines), interrupted)


def _in_foreground() -> bool:
    """Whether Ctrl-C in a terminal reaches all that we started as well; else it came as a signal to this process only."""
    if os.name != "posix":
        return True
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
