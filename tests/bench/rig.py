"""The driver's measuring around a scripted program: one session, a whole campaign, the entry in the file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ncu_roofline.bench.campaign import Campaign, Candidate
from ncu_roofline.bench.document import ceiling
from ncu_roofline.bench.measuring import FULL, Outcome, Record, Settings
from ncu_roofline.bench.telemetry import Telemetry
from tests.bench.fakes import FakeTelemetry, Scripted, device, kind

FAST = replace(FULL, warm_up=0.1)
ONCE = replace(FAST, sessions=1)
POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80


class Rig:
    """A bench around a scenario; ``spend``: what each job costs beside its trials (s)."""

    def __init__(
        self, content: dict[str, Any], telemetry: Telemetry | None = None, settings: Settings = FAST, spend: float = 0.0
    ) -> None:
        self.source, self.settings = Scripted(content, set_up=spend), settings
        self.clock = self.source.clock
        self.bench = Campaign(self.source, telemetry or FakeTelemetry(), settings, self.clock.timing())

    def session(self, ceiling_id: str, warm_clock: float | None = 1.98e9) -> Record:
        """One session of a ceiling."""
        self.bench._warm_clock = warm_clock
        return self.bench.measure(kind(ceiling_id), "best")

    def outcomes(self, *ceilings: str, budget: float = 1e9) -> list[Outcome]:
        """A whole campaign of ceilings with one variant."""
        return self.campaign([Candidate(kind(one), ("best",)) for one in ceilings], budget)

    def outcome(self, ceiling_id: str, *variants: str, budget: float = 1e9) -> Outcome:
        """A whole campaign for one ceiling."""
        return self.campaign([Candidate(kind(ceiling_id), variants or ("best",))], budget)[0]

    def campaign(self, wanted: list[Candidate], budget: float = 1e9) -> list[Outcome]:
        """A whole campaign; ``budget`` in s from now."""
        return replace(self.bench, deadline=self.clock.now + budget).run(wanted)

    def told(self, outcome: Outcome) -> dict[str, Any]:
        """What the file says about an outcome."""
        return ceiling(outcome, device(), self.settings, None)

    def entry(self, ceiling_id: str, *variants: str, budget: float = 1e9) -> dict[str, Any]:
        """What the file says about a ceiling."""
        return self.told(self.outcome(ceiling_id, *variants, budget=budget))
