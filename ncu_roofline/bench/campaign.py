"""All ceilings of one device within a time budget: everything once, then again in fresh contexts; into its ceilings file."""

from __future__ import annotations

import math
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import check_target, write_atomically
from ncu_roofline.base.records import number
from ncu_roofline.base.units import percent
from ncu_roofline.bench import measuring
from ncu_roofline.bench.build import Built
from ncu_roofline.bench.catalogue import is_quick, kinds_of, select
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.document import Origin, as_text, ceiling, document, link_of
from ncu_roofline.bench.measuring import LIMITS, NOT_HERE, Measured, Record, Settings
from ncu_roofline.bench.runner import Job, Runner, RunnerFailed, Session, Trial, Variant
from ncu_roofline.bench.telemetry import Telemetry, Watch, open_telemetry
from ncu_roofline.formats.ceilings import CPU, GPU, Ceiling

CLOCK = time.monotonic
Words = tuple[str, ...]
_OTHER_BUILD = "Choose other ceilings, or build again with another compiler (--nvcc, for a CPU CXX)."
OUT_OF_TIME = "not measured: out of time"


class Progress:
    """Who is told how far it is; this one says nothing."""

    def start(self, steps: int) -> None:
        """Before the first step."""

    def begin(self, ceiling: str) -> None:
        """Before a step that measures."""

    def step(self) -> None:
        """After each step, also one that was left out."""

    def found(self, entry: Mapping[str, Any]) -> None:
        """A ceiling has been measured once: what its entry in the file would be if this were all."""


def candidates(kinds: Sequence[Ceiling], variants: Sequence[Variant], capability: str, quick: bool) -> list[Measured]:
    """Which variants apply to a GPU; a ceiling without any says so: emulated, unsupported, or left out of a quick run."""
    found = []
    for kind in kinds:
        here = [variant for variant in variants if variant.ceiling == kind.id and variant.on(capability)]
        usable, absent = tuple(dict.fromkeys(variant.name for variant in here if not variant.reason)), ""
        if not usable:
            absent = "emulated" if any(variant.reason == "emulated" for variant in here) else "unsupported"
        elif quick and not is_quick(kind):
            absent = "not measured: left out of a quick run"
        found.append(Measured(kind, () if absent else usable, absent))
    return found


@dataclass
class Campaign:
    """The work on one device.

    ``source`` is the program, ``telemetry`` the driver's view, ``device`` "gpu" or "cpu".  Nothing is begun after ``deadline``
    (of ``now``).  ``told`` gets each ceiling when it has been measured once.
    """

    source: Session
    telemetry: Telemetry
    settings: Settings
    now: Callable[[], float]
    deadline: float = math.inf
    device: str = GPU
    progress: Progress = field(default_factory=Progress)
    told: Callable[[Measured], None] = lambda _measured: None
    _warm_clock: float | None = field(default=None, init=False)

    def run(self, wanted: Sequence[Measured]) -> None:
        """Measure what can be, within the time."""
        # What a quick run measures comes first: if time runs out, the others are missing.
        usable = sorted((c for c in wanted if c.variants), key=lambda candidate: not is_quick(candidate.kind))
        quick, sessions = self.settings.quick, self.settings.sessions
        more = 0 if quick else sum(len(c.variants) - 1 for c in usable)
        self.progress.start(len(usable) * sessions + more)
        if usable:  # plain arithmetic warms the GPU up: its clock is the highest there is
            warmer = min(usable, key=lambda candidate: (candidate.kind.id != "fp32.fma", candidate.kind.domain != "sm"))
            rounds = max(int(self.settings.warm_up / self.settings.min_time), 1)
            try:
                trials, _ = self.source.run(self._job(warmer.kind, warmer.variants[0], rounds), self.settings.silence)
                self._warm_clock = max((trial.sm_clock for trial in trials if trial.sm_clock), default=None)
            except RunnerFailed:
                pass  # the ceiling itself will tell
        # Every ceiling by its preferred variant, then what makes the numbers better: other variants, sessions.
        for place in range(1 if quick else max((len(one.variants) for one in usable), default=0)):
            for one in usable:
                if place < len(one.variants):
                    self._add(one, one.variants[place])
                    self.progress.step()
                if place == 0:
                    one.absent = "" if one.records else OUT_OF_TIME
                    self.told(one)
        for session in range(1, sessions):
            self.source.renew()
            # Each session goes the other way, so that what drifts with time does not always hit the same ceilings.
            for one in usable if session % 2 == 0 else reversed(usable):
                own = one.sessions
                # What was begun, did not end for good, and did not crash twice.
                if own and not any(record.final for record in own) and sum(bool(record.failure) for record in own) < 2:
                    self._add(one, one.best, session)
                self.progress.step()
            if session == 1:  # repeats of repeats come last
                self._beside_the_limit(usable)
        if sessions == 1:
            self._beside_the_limit(usable)
        for one in usable:
            own = one.sessions
            if own and len(own) < sessions and not any(record.failure or record.final for record in own):
                one.notes = (f"out of time: {len(own)} of {sessions} sessions",)

    def _beside_the_limit(self, usable: Sequence[Measured]) -> None:
        """What arithmetic under the power limit does before the limit acts; if that is more, what when it has settled."""
        for one in usable if self.settings.bursts else ():
            own = one.sessions
            if one.kind.kind == "compute" and any(record.capped for record in own):
                burst = self._add(one, one.best, role="burst")
                if burst and burst.value > measuring.best_of([record for record in own if record.values]).value:
                    self._add(one, one.best, role="limit")

    def _add(self, one: Measured, variant: str, session: int = 0, role: str = "session") -> Record | None:
        """A run, while there is time."""
        if self.now() > self.deadline:
            return None
        self.progress.begin(one.kind.id)
        record = self.measure(one.kind, variant, session, role)
        one.records.append(record)
        return record

    def _job(self, kind: Ceiling, variant: str, trials: int) -> Job:
        return Job(kind.id, variant, trials, self.settings.min_time, self.settings.data, self.settings.seed)

    def measure(self, kind: Ceiling, variant: str, session: int = 0, role: str = "session") -> Record:
        """The trials of one session: as many as it takes until they can stand, at most ``most`` times as many as count.

        As "burst" and "limit" see `Settings`.
        """
        settings, record = self.settings, Record(kind, variant, role, session)
        enough: Callable[[Sequence[Trial]], bool] | None = None
        count = {"burst": settings.bursts, "limit": (settings.holds + 1) // 2}.get(role, settings.trials)
        if role == "burst":
            job = self._job(kind, variant, settings.bursts)._replace(min_time=settings.burst, pause=settings.rest)
        elif role == "limit":
            job = self._job(kind, variant, settings.holds)._replace(min_time=settings.hold)
        else:
            job = self._job(kind, variant, settings.trials * settings.most)

            def enough(trials: Sequence[Trial]) -> bool:
                return measuring.settled(kind, trials, settings, self.device)

        with Watch(self.telemetry) as watch:
            try:
                trials, launch = self.source.run(job, settings.silence, enough)
            except RunnerFailed as error:
                return replace(record, failure=next((word for word in NOT_HERE if word in str(error)), str(error)))
            used = [trial for trial in trials if measuring.timers_agree(trial)][-count:]
            if not used:
                disagree = "the clocks of GPU and host disagree about how long its trials lasted"
                return replace(record, failure=disagree if trials else "it measured nothing")
            observed = watch.seen_in([(trial.begin, trial.end) for trial in used])
        values, clocks = measuring.values_of(kind, used), [trial.sm_clock for trial in used if trial.sm_clock]
        driver_tells = self.telemetry.available
        rejections, notes = measuring.judge(kind, values, clocks, observed, self._warm_clock, driver_tells, self.device)
        taken = number(launch.get("disturbed")) if self.device == CPU else 0.0
        others = f"other programs took {percent(taken)} of the CPU"
        if taken > LIMITS.taken:
            rejections = [f"disturbed: {others}: measure again where nothing else runs", *rejections]
        elif taken > LIMITS.disturbed:
            notes.append(others)
        checks = [trial.checksum_ok for trial in used if trial.checksum_ok is not None]
        if not all(checks):
            rejections = ["wrong result: the checksum differs from the CPU's", *rejections]
        seconds, work = [trial.seconds for trial in used], measuring.median([trial.work for trial in used])
        verified, discarded = all(checks) if checks else None, len(trials) - len(used)
        told = (values, seconds, clocks, work, discarded, verified, rejections, notes, "", launch, observed)
        return Record(kind, variant, role, session, *told)


def file_name(device: Device) -> str:
    """The name of a GPU's ceilings file: one per host and GPU, so that ranks never share one."""
    node = re.sub(r"[^A-Za-z0-9.-]+", "-", platform.node().partition(".")[0]) or "host"
    return f"ceilings.{node}.{re.sub(r'[^A-Za-z0-9-]+', '-', device.uuid)}.json"


def measure_device(
    built: Built, device: Device, output: Path, settings: Settings, *, only: Words, skip: Words, force: bool, progress: Progress
) -> dict[str, Any]:
    """Measure a GPU and write its file; what it says is returned, too.

    Raises RooflineError where nothing could be measured or written.
    """
    check_target(output, force)
    runner = Runner(built.path, device.kind)
    variants = runner.variants()
    kinds = select(kinds_of(variants), only, skip)
    # What is named is measured, in a quick run, too.
    wanted = candidates(kinds, variants, device.capability_text, settings.quick and not only)
    with _alone(device):
        telemetry = open_telemetry(device)
        identity = telemetry.identity()
        if identity.get("mig_enabled"):  # then a program sees nothing but instances, whatever their names are
            device = replace(device, mig=True)
        source = Session(runner, device.index)

        def told(measured: Measured) -> None:
            progress.found(ceiling(measured, device, link_of(identity)))

        try:
            deadline = CLOCK() + settings.budget
            Campaign(source, telemetry, settings, CLOCK, deadline, device.kind, progress, told).run(wanted)
        finally:
            source.renew()
    content = document(device, wanted, settings, Origin(built.facts(), identity, telemetry.reason))
    entries = content["ceilings"]
    if all(entry["value"] is None for entry in entries):
        failed = [(entry, _OTHER_BUILD) for entry in entries if entry["verdict"] == "failed"]
        late = [(entry, "Give it more time with --budget.") for entry in entries if OUT_OF_TIME in entry["reasons"]]
        first, next_step = (failed or late or [(entries[0], "Choose other ceilings.")])[0]
        reason = f"no ceiling could be measured; {first['id']}: {'; '.join(first['reasons'])}"
        raise RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step)
    write_atomically(output, [as_text(content).encode()], overwrite=force)
    return content


@contextmanager
def _alone(device: Device) -> Iterator[None]:
    """Nobody else measures this GPU now: two ranks on one GPU would both see half of it."""
    try:
        import fcntl

        path = Path(tempfile.gettempdir()) / f"ncu-roofline-{os.getuid()}-{file_name(device)}.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (ImportError, OSError):  # Windows; a full, read-only or missing folder is no reason not to measure
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        reason = "another `ncu-roofline bench run` is measuring it"
        next_step = "Wait for it; under MPI start as many ranks per node as there are GPUs."
        raise RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step) from error
    finally:
        os.close(handle)
