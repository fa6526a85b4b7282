"""Why warps wait, in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.facts import SpecError, load_stalls
from ncu_roofline.facts.stalls import read_stalls
from ncu_roofline.report import read_report


def test_what_they_say_fits_a_sentence() -> None:
    for name, stall in load_stalls().items():
        assert name.islower()
        assert not stall.waits.endswith("."), name
        assert all(text.endswith(".") and text[0].isupper() for text in (stall.cause, stall.advice) if text), name
        assert f"{stall}".isascii(), name
    idle = {name for name, stall in load_stalls().items() if not stall.advice}
    assert idle == {"selected", "not_selected", "misc"}


def test_every_reason_of_real_reports_is_known(real_reports: dict[str, Path]) -> None:
    start, end = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"
    seen = set()
    for path in real_reports.values():
        with read_report(path) as report:
            for kernel in report.kernels:
                seen |= {name for name in kernel.metrics.names() if name.startswith(start)}
    if not seen:
        pytest.skip("no report with samples")
    assert {name.removeprefix(start).removesuffix(end) for name in seen} <= load_stalls().keys()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[stalls]]\nid = "a"\nwaits = "b"\ncause = "C."\n' * 2, "a stands there twice"),
        ('[[stalls]]\nid = "a"\nwaits = "b"\n', "cause"),
        ('[[stalls]]\nid = "a"\nwaits = "b"\ncause = "C."\nmore = 1', "more"),
        ("none = 1", "stalls"),
    ],
)
def test_a_wrong_file_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "stalls.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=reason):
        read_stalls(path)
