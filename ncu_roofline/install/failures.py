"""What ncu's own failures mean, and what to do about them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncu_roofline.install.machine import Machine

PERMISSION_ADVICE = (
    "Ask the administrator to put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/ and to "
    "reload the driver or restart; or run as root; a container needs --cap-add SYS_ADMIN"
)
_DRIVER_ADVICE = "Run on a machine with an NVIDIA GPU and driver; `ncu-roofline doctor` says what is missing"


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
        r"failed to connect to the CUDA driver|Failed to load (the )?driver|CUDA driver .*not (found|loaded)",
        "the CUDA driver could not be reached",
        _DRIVER_ADVICE,
    ),
    Failure(
        "old driver", r"Insufficient driver version", "the driver is too old for this ncu", "Use an older ncu with --ncu PATH"
    ),
    Failure(
        "busy",
        r"driver resource was unavailable|InterprocessLockFailed|Failed to (create|open) .*lock",
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
        "program", r"does not exist or is not an executable", "the application can't be started", "Give its path, as ./app"
    ),
    Failure(
        "section",
        r"[Nn]o (sections|metrics) (were )?(found|to collect)|Could not find section",
        "it found no section to collect",
        "Install again with `ncu-roofline install`",
    ),
    Failure(
        "output",
        r"Failed to (save|write|open|create) .*(report|file)|already exists",
        "it could not write the report",
        "Choose a place that you may write to with -o NAME, or add --force",
    ),
)
_APPLICATION = re.compile(r"The application returned an error code \((-?\d+)\)")
_PROFILED = re.compile(r"^==PROF== Profiling ", re.MULTILINE)


def application_code(log: str) -> int | None:
    """The application's exit code if ncu says that it failed."""
    match = _APPLICATION.search(log)
    return int(match[1]) if match else None


def find_failure(log: str) -> Failure | None:
    """The failure that shows in what ncu said, if it is one that is known."""
    return next((one for one in FAILURES if re.search(one.pattern, log)), None)


def explain(machine: Machine, log: str, code: int, kernel: str) -> Failure:
    """Why there is no report."""
    found = find_failure(log)
    if found:
        return found
    if not machine.has_driver():
        return Failure("driver", "", "there is no CUDA driver on this machine", _DRIVER_ADVICE)
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
