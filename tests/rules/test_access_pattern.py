"""What the rule about access patterns says, with exact numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import Metrics, complete
from tests.rules.running import messages, only

LOADS = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"


@pytest.mark.parametrize(
    ("sectors", "used", "title", "speedup", "text"),
    [
        (4000, None, "Global loads", None, "Global loads: 4 sectors per request"),
        (4000, 32.0, "Global loads", None, "32 of the 32 bytes of a sector are used"),
        (32000, None, "Uncoalesced global loads", 50, "At least 50 % of this traffic is waste"),
        (32000, 4.0, "Uncoalesced global loads", 87.5, "About 88 % of this traffic is waste"),
    ],
)
def test_sectors_per_request(
    tmp_path: Path, sectors: int, used: float | None, title: str, speedup: float | None, text: str
) -> None:
    metrics: Metrics = {**complete(), LOADS.format("sectors"): sectors, LOADS.format("requests"): 1000}
    if used is not None:
        metrics[USED] = used
    said = only(tmp_path, metrics, "AccessPattern")
    assert (said.title, said.speedup) == (title, speedup)
    assert text in said.text


def test_sectors_per_request_by_instruction_patching(tmp_path: Path) -> None:
    """What our instruction section collects."""
    metrics: Metrics = {
        **complete(),
        "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum.per_second": 8e9,
        "smsp__sass_inst_executed_op_global_ld.sum.per_second": 1e9,
    }
    said = only(tmp_path, metrics, "AccessPattern")
    assert said.text.startswith("Global loads: 8 sectors per request")
    assert said.focus[0].name == "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum.per_second"


def test_bank_conflicts_and_lanes(tmp_path: Path) -> None:
    metrics: Metrics = {
        **complete(),
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 750_000,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 1_000_000,
        "smsp__inst_executed_op_shared_ld.sum": 250_000,
        "smsp__thread_inst_executed_per_inst_executed.ratio": 24.0,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 16.0,
    }
    shared, lanes = messages(tmp_path, metrics, "AccessPattern")
    assert shared.text.startswith("Shared loads: 75 % of 1 M wavefronts are bank conflicts, 4 wavefronts per instruction. Pad")
    assert (shared.speedup, lanes.speedup) == (75, 50)
    assert lanes.text.startswith(
        "Of 32 lanes 16 work on average: 8 are inactive (divergence, part-filled warps), 8 predicated off. Sort"
    )


def test_no_access_metrics(tmp_path: Path) -> None:
    assert only(tmp_path, complete(), "AccessPattern").title == "Metrics missing"
