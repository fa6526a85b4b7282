"""The ncu command that profiles an application for rooflines, where its report goes, and what its failures mean."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.temporary import folder_in
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.clocks import default_clocks
from ncu_roofline.chips.precisions import LIGHT_TENSOR_SECTION
from ncu_roofline.plugin.machine.machine import Machine
from ncu_roofline.plugin.machine.ncu import Ncu

PERMISSION_ADVICE = (
    "Ask the administrator to put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/ and to "
    "reload the driver or restart; or run as root; a container needs --cap-add SYS_ADMIN"
)
_DRIVER_ADVICE = "Run on a machine with an NVIDIA GPU and driver; `ncu-roofline doctor` says what is missing"
_APPLICATION = re.compile(r"The application returned an error code \((-?\d+)\)")
_PROFILED = re.compile(r"^==PROF== Profiling ", re.MULTILINE)
SUFFIXES = (".ncu-rep", ".ncu-repz")
COMPRESSED_SINCE = (2025, 4)
"""The first release of ncu that writes .ncu-repz; from 2026.3 on it does where no suffix is named."""
# Launchers tell a process its number among all and how many there are, first one set wins.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_NRANKS"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


@dataclass(frozen=True)
class Failure:
    """A kind of failure: how it shows in what ncu says, what it is, and what to do."""

    id: str
    pattern: str
    reason: str
    next_step: str


FAILURES = (
    Failure(
        "permission",
        r"ERR_NVGPUCTRPERM|does not have permission to access NVIDIA GPU Performance Counters",
        "the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM)",
        PERMISSION_ADVICE,
    ),
    Failure(
        "driver",
        r"failed to connect to the CUDA driver|Failed to load (the )?driver|CUDA driver .{0,99}not (found|loaded)",
        "the CUDA driver could not be reached",
        _DRIVER_ADVICE,
    ),
    Failure(
        "old driver", r"Insufficient driver version", "the driver is too old for this ncu", "Use an older ncu with --ncu PATH"
    ),
    Failure(
        "busy",
        r"driver resource was unavailable|InterprocessLockFailed|Failed to (create|open) .{0,99}lock",
        "something else holds the performance counters, or another user holds the lock file of ncu",
        "End other profilers (`dcgmi profile --pause` for DCGM); set TMPDIR to a folder of your own",
    ),
    Failure(
        "unsupported",
        r"ERR_NVCMPGPU|not supported on (device|this device|the underlying)|Unsupported GPU|is not supported on the NVIDIA",
        "this ncu can't profile this GPU",
        "Use a newer or older ncu with --ncu PATH",
    ),
    Failure(
        "program",
        r"does not exist or is not an executable|is not an executable binary",
        "the application can't be started",
        "Give its path, as ./app; for a script name the interpreter first, as python3 app.py",
    ),
    Failure(
        "section",
        r"[Nn]o (sections|metrics) (were )?(found|to collect)|Could not find section",
        "it found no section to collect",
        "Install again with `ncu-roofline install`",
    ),
    Failure(
        "output",
        r"Failed to (save|write|open|create) .{0,99}(report|file)|already exists",
        "it could not write the report",
        "Choose a place that you may write to with -o NAME, or add --force",
    ),
)


def application_code(log: str) -> int | None:
    """The application's exit code if ncu says that it failed."""
    match = _APPLICATION.search(log)
    return int(match[1]) if match else None


def find_failure(log: str) -> Failure | None:
    """The failure that shows in what ncu said, if it is one that is known."""
    return next((failure for failure in FAILURES if re.search(failure.pattern, log)), None)


def explain(machine: Machine, log: str, code: int, kernel: str) -> Failure:
    """Why there is no report."""
    found = find_failure(log)
    if found and found.id != "driver":
        return found
    if not machine.has_driver():
        return Failure("driver", "", "there is no CUDA driver on this machine", _DRIVER_ADVICE)
    if found:
        return found
    ended = application_code(log)
    if ended is not None:
        reason = f"the application failed with exit code {ended}"
        return Failure("application", "", reason, "Make it run without the profiler first; its own messages are above")
    if code < 0:
        return Failure("killed", "", f"ncu was ended by signal {-code}", "Look at the memory of the machine, and try again")
    said = [line.removeprefix("==ERROR==").strip() for line in log.splitlines() if line.startswith("==ERROR==")]
    if said or (code and "No kernels were profiled" not in log):
        reason = said[-1] if said else f"ncu ended with exit code {code}"
        next_step = "`ncu-roofline doctor` checks this machine; --dry-run prints the command of ncu"
        return Failure("unknown", "", reason, next_step)
    if kernel:
        reason = f"no kernel was profiled: none has a name that matches {kernel}, or none was launched"
        return Failure("no kernel", "", reason, "Leave out --kernel to see the names")
    reason = "no kernel was profiled: the application launched none"
    return Failure("no kernel", "", reason, "Check that it runs on the GPU, and that it ran to its first kernel")


def profiled_kernels(log: str) -> int:
    """How many kernel launches ncu says it profiled."""
    return len(_PROFILED.findall(log))


@dataclass(frozen=True)
class Wanted:
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


def output_name(output: str, application: str, rank: str) -> tuple[str, str]:
    """(path of the report without its suffix: as given, or after the application, with the MPI rank behind it; that suffix)."""
    suffix = next((one for one in SUFFIXES if output.endswith(one)), "")
    name = output.removesuffix(suffix) or f"{Path(application).stem}-roofline"
    return f"{name}.rank{rank}" if rank else name, suffix


def possible(ncu: Ncu, wanted: Wanted) -> tuple[str, ...]:
    """Suffixes that the report may get; without a name for it that depends on the release."""
    if ncu.release < COMPRESSED_SINCE:
        return SUFFIXES[:1]
    return (wanted.suffix,) if wanted.suffix else SUFFIXES


@contextmanager
def apart(output: str) -> Iterator[Path]:
    """A new, empty folder beside ``output`` for what ncu writes: a file that was there before can't pass for its own.

    Raises RooflineError where none can be made.
    """
    with ExitStack() as stack:
        try:  # beside it, so that a report of any size can be moved at once
            folder = stack.enter_context(folder_in(Path(os.path.realpath(output)).parent, hidden=True))
        except OSError as error:
            raise _not_written(output, error) from error
        yield folder


def placed(folder: Path, output: str, force: bool) -> Path | None:
    """The report that ncu wrote into ``folder``, now at ``output``; None if it wrote none.

    What appeared there meanwhile is not replaced without ``force``: the report gets a number.  Raises RooflineError.
    """
    written = next((path for suffix in SUFFIXES for path in folder.glob(f"*{suffix}")), None)
    if written is None:
        return None
    for number in count(1):
        target = Path(f"{output}{f'.{number}' if number > 1 else ''}{written.suffix}")
        if force or not os.path.lexists(target):
            break
    try:
        shutil.move(written, os.path.realpath(target))
    except OSError as error:
        raise _not_written(target, error) from error
    return target


def _not_written(path: str | Path, error: OSError) -> RooflineError:
    return RooflineError(
        "Cannot write", path, error.strerror or str(error), "Choose a place that you may write to with -o NAME."
    )


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
    """A command line as a shell takes it."""
    return subprocess.list2cmdline(words) if system == "windows" else " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """A word as bash takes it; what can't be printed is spelled out."""
    if word.isprintable():
        return shlex.quote(word)
    spelled = (chr(one) if 32 <= one < 127 and one not in b"\\'" else f"\\{one:03o}" for one in os.fsencode(word))
    return f"$'{''.join(spelled)}'"
