"""What the rule about access patterns says, with exact numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import Metrics, complete
from tests.nvrules.running import messages, only

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


@pytest.mark.parametrize(("ideal", "kind"), [(50_000, "warning"), (99_000, "ok")])
def test_nothing_is_fine_where_source_counters_say_otherwise(tmp_path: Path, ideal: int, kind: str) -> None:
    """Requests of 14.6 sectors may be of 16 bytes a lane, unless less would do."""
    asked = "memory_l2_theoretical_sectors_global"
    counted: Metrics = {
        LOADS.format("sectors"): 14_600,
        LOADS.format("requests"): 1000,
        asked: 100_000,
        asked + "_ideal": ideal,
    }
    said = only(tmp_path, {**complete(), **counted}, "AccessPattern")
    assert (said.title, said.type) == ("Global loads", kind)
    assert ("Of the sectors of all accesses to global memory 50 % are more than their bytes need." in said.text) is (
        kind != "ok"
    )


def test_a_quarter_of_idle_lanes_is_divergence(tmp_path: Path) -> None:
    """As the rule on hot spots has it, which names the places."""
    name = "smsp__thread_inst_executed_per_inst_executed.ratio"
    assert only(tmp_path, {**complete(), name: 23.7}, "AccessPattern").title == "Lanes without work"
    assert only(tmp_path, {**complete(), name: 24.3}, "AccessPattern").title == "Lanes"


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


@pytest.mark.parametrize(("per_request", "used", "waste"), [(1, 4.0, None), (1, 1.0, None), (2, 4.0, 50), (2, 32.0, None)])
def test_one_address_for_all_lanes_is_no_waste(tmp_path: Path, per_request: int, used: float, waste: float | None) -> None:
    """A request of one sector can't be better; one of two whose bytes fit into one can."""
    metrics: Metrics = {**complete(), LOADS.format("sectors"): 1000 * per_request, LOADS.format("requests"): 1000, USED: used}
    said = only(tmp_path, metrics, "AccessPattern")
    assert (said.type, said.speedup) == ("optimization" if waste else "ok", waste)


def test_a_small_part_of_the_sectors_is_no_finding(tmp_path: Path) -> None:
    stores = LOADS.replace("_ld", "_st")
    metrics: Metrics = {
        **complete(),
        LOADS.format("sectors"): 4_000_000,
        LOADS.format("requests"): 10**6,
        stores.format("sectors"): 8000,
        stores.format("requests"): 250,
    }
    loads, few = messages(tmp_path, metrics, "AccessPattern")
    assert (loads.type, few.type, few.title) == ("ok", "ok", "Global stores")
    assert few.text.endswith("They are but 0.2 % of the kernel's sectors.")
    many = messages(tmp_path, {**metrics, stores.format("sectors"): 10**6, stores.format("requests"): 31250}, "AccessPattern")[
        1
    ]
    assert (many.type, many.title) == ("optimization", "Uncoalesced global stores")
    assert many.text.endswith("They are 20 % of the kernel's sectors.")
    assert many.speedup == pytest.approx(50 * 0.2)


def test_bank_conflicts_of_a_small_part_are_no_finding(tmp_path: Path) -> None:
    metrics: Metrics = {
        **complete(),
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": 30_000,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 40_000,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 960_000,
    }
    said = only(tmp_path, metrics, "AccessPattern")
    assert (said.type, said.title) == ("ok", "Shared stores")
    assert said.text.endswith("are bank conflicts; they are but 4 % of the kernel's.")


@pytest.mark.parametrize(
    ("counters", "title", "text"),
    [
        (
            {"lts__t_sectors_op_atom.sum": 10**6, "lts__t_sectors_op_red.sum": 3 * 10**6, "lts__t_sectors.sum": 5 * 10**6},
            "Global atomics",
            "Global atomics make 80 % of the L2 sectors.",
        ),
        (
            {"lts__t_sectors_srcunit_tex_op_red.sum": 4 * 10**6, "lts__t_sectors_srcunit_tex.sum": 10**7},
            "Global atomics",
            "Global atomics make 40 % of the L2 sectors of the SMs.",
        ),
        (
            {
                "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum": 600,
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 1000,
            },
            "Shared atomics",
            "Shared atomics make 60 % of the wavefronts of shared memory.",
        ),
    ],
)
def test_atomics_are_named_where_they_make_the_traffic(tmp_path: Path, counters: Metrics, title: str, text: str) -> None:
    found = messages(tmp_path, {**complete(), **counters}, "AccessPattern")
    (said,) = [message for message in found if message.title == title]
    assert said.type == "optimization"
    assert said.text.startswith(text)
    few = {**counters, **{name: 10**9 for name in counters if "_op_" not in name}}
    assert title not in [message.title for message in messages(tmp_path, {**complete(), **few}, "AccessPattern")]
