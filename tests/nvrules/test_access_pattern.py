"""What the rule about access patterns says, with exact numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factory import Metrics, complete, traffic
from tests.nvrules.running import messages, only

LOADS = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
STORES = "l1tex__t_{}_pipe_lsu_mem_global_op_st.sum"
FEW_LANES: Metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}
"""Makes advice without a number, "Lanes without work", of a kernel that nothing limits."""
USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"


def without(metrics: Metrics, word: str) -> Metrics:
    """The metrics but those with this word in their name."""
    return {name: value for name, value in metrics.items() if word not in name}


# A millisecond at 82 % of what L1 can do, which is 19.5 TB/s; at DRAM and L2 next to nothing.
L1_BOUND: Metrics = {**complete(), **traffic(16 * 10**9, 10**7, 10**7)}
L1_FULL = 16 / 19.49184
# Stores of one kernel, spilled registers, of a report by ``--set full``, which has no sum over all sectors of L1.
SPILLING: Metrics = {
    **without(complete(), "l1tex__t_bytes"),
    LOADS.format("sectors"): 1_000_000,
    LOADS.format("requests"): 250_000,
    STORES.format("sectors"): 4_100_000,
    STORES.format("requests"): 150_000,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum": 0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": 0,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum": 100_000_000,
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum": 94_600_000,
}


@pytest.mark.parametrize("beside", [0, None])
def test_local_memory_belongs_into_shares_of_sectors(tmp_path: Path, beside: int | None) -> None:
    """Of 199.7 million sectors 4.1 million are 2.1 %, whether those of textures were counted, too, or not."""
    textures = ["mem_texture", *(f"mem_surface_op_{op}" for op in ("ld", "st", "atom", "red"))]
    counted: Metrics = {f"l1tex__t_sectors_pipe_tex_{name}.sum": beside for name in textures if beside is not None}
    said = only(tmp_path, {**SPILLING, **counted}, "AccessPattern")
    assert (said.type, said.title) == ("ok", "Global accesses")
    assert said.text.endswith("Global stores: 27.3 sectors per request. They are but 2.1 % of the kernel's sectors.")


@pytest.mark.parametrize(
    ("sectors", "used", "title", "text"),
    [
        (4, None, "Global accesses", "Global loads: 4 sectors per request"),
        (4, 32.0, "Global accesses", "32 of the 32 bytes of a sector are used"),
        (32, None, "Uncoalesced global loads", "at least 50 % of this traffic is waste, at 32 sectors per request"),
        (32, 4.0, "Uncoalesced global loads", "about 88 % of this traffic is waste"),
    ],
)
def test_sectors_per_request(tmp_path: Path, sectors: int, used: float | None, title: str, text: str) -> None:
    """They make 80 % of what L1 is asked for."""
    metrics: Metrics = {**L1_BOUND, LOADS.format("sectors"): 4 * 10**8, LOADS.format("requests"): 4 * 10**8 // sectors}
    if used is not None:
        metrics[USED] = used
    said = only(tmp_path, metrics, "AccessPattern")
    assert said.title == title
    assert text in said.text
    if title == "Global accesses":
        assert (said.type, said.speedup) == ("ok", None)
        return
    waste = 0.5 if used is None else 0.875
    assert (said.type, said.speedup_type) == ("optimization", "global")
    assert said.speedup == pytest.approx(100 * waste * 0.8 * L1_FULL)


@pytest.mark.parametrize(
    ("moved", "gain"),
    [
        (traffic(10**9, 5 * 10**8 // 32, 2 * 10**8), None),  # nothing is full
        (traffic(10**9, 5 * 10**8 // 32, 12 * 10**8), 1 - 0.6 / 1.2),  # DRAM moves twice what L1 needs
        (traffic(16 * 10**8, 5 * 10**8 // 32, 12 * 10**8), None),  # DRAM moves what L1 needs: caches serve the waste
    ],
)
def test_waste_at_l1_is_a_finding_where_what_is_full_has_less_to_do_without_it(
    tmp_path: Path, moved: Metrics, gain: float | None
) -> None:
    """Loads waste half of 800 MB of 1 GB at L1."""
    loads: Metrics = {LOADS.format("sectors"): 25 * 10**6, LOADS.format("requests"): 25 * 10**6 // 32}
    said = only(tmp_path, {**complete(), **loads, **moved}, "AccessPattern")
    assert said.title == "Uncoalesced global loads"
    if gain is None:
        assert (said.type, said.speedup) == ("ok", None)
        assert "As far as is known it is not what limits the kernel (verdict: " in said.text
        return
    assert said.type == "optimization"
    assert said.speedup == pytest.approx(100 * gain * 1.2 / 1.5552)


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


@pytest.mark.parametrize(("ideal", "kind"), [(2 * 10**8, "warning"), (3.96 * 10**8, "ok")])
def test_nothing_is_fine_where_source_counters_say_otherwise(tmp_path: Path, ideal: int, kind: str) -> None:
    """Requests of 14.6 sectors may be of 16 bytes a lane, unless less would do."""
    asked = "memory_l2_theoretical_sectors_global"
    counted: Metrics = {asked: 4 * 10**8, asked + "_ideal": ideal}
    for name in (LOADS, STORES):
        counted |= {name.format("sectors"): 10**8, name.format("requests"): 10**8 // 14.6}
    said = only(tmp_path, {**L1_BOUND, **counted}, "AccessPattern")
    assert (said.title, said.type) == ("Global accesses", kind)
    wasted = "Of the sectors of all accesses to global memory 50 % are more than their bytes need."
    assert said.text.count(wasted) == (kind != "ok")
    assert only(tmp_path, {**complete(), **counted}, "AccessPattern").type == "ok"  # nothing is full


def test_a_quarter_of_idle_lanes_is_divergence(tmp_path: Path) -> None:
    """As the rule on hot spots has it, which names the places."""
    name = "smsp__thread_inst_executed_per_inst_executed.ratio"
    assert only(tmp_path, {**complete(), name: 23.7}, "AccessPattern").title == "Lanes without work"
    assert only(tmp_path, {**complete(), name: 24.3}, "AccessPattern").title == "Lanes"


PIPE = "l1tex__data_pipe_lsu_wavefronts{}.pct_of_peak_sustained_elapsed"
CONFLICTS: Metrics = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": 750_000,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 1_000_000,
    "smsp__inst_executed_op_shared_ld.sum": 250_000,
}


@pytest.mark.parametrize(
    ("full", "gain"),
    [
        ({}, None),
        ({PIPE.format("_mem_shared.sum"): 80.0}, 0.75 * 0.8),
        ({PIPE.format(".avg"): 90.0, PIPE.format("_mem_shared.sum"): 45.0}, 0.75 * 0.45),  # half of what the pipe does
        ({PIPE.format("_mem_shared.sum"): 80.0, "sm__inst_executed.avg.pct_of_peak_sustained_elapsed": 70.0}, 0.3),
    ],
)
def test_bank_conflicts(tmp_path: Path, full: Metrics, gain: float | None) -> None:
    """They save time where what serves shared memory is full, until something else is."""
    said = only(tmp_path, {**complete(), **CONFLICTS, **full}, "AccessPattern")
    assert said.text.startswith("Shared loads: 75 % of 1 M wavefronts are bank conflicts, 4 wavefronts per instruction. Pad")
    assert said.type == ("ok" if gain is None else "optimization")
    assert said.speedup == (None if gain is None else pytest.approx(100 * gain))


@pytest.mark.parametrize(
    ("full", "kind", "gain"),
    [
        ({}, "optimization", None),  # latency: the way of a warp is longer, nobody knows by how much
        ({"sm__inst_executed.avg.pct_of_peak_sustained_elapsed": 80.0}, "optimization", 0.5 * 0.8),
        (traffic(10**9, 10**7, 14 * 10**8), "ok", None),
    ],
)
def test_lanes_without_work(tmp_path: Path, full: Metrics, kind: str, gain: float | None) -> None:
    metrics: Metrics = {
        **complete(),
        "smsp__thread_inst_executed_per_inst_executed.ratio": 24.0,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 16.0,
    }
    said = only(tmp_path, {**metrics, **full}, "AccessPattern")
    assert said.text.startswith(
        "Of 32 lanes 16 work on average: 8 are inactive (divergence, part-filled warps), 8 predicated off. Sort"
    )
    assert said.type == kind
    assert said.speedup == (None if gain is None else pytest.approx(100 * gain))


def test_no_access_metrics(tmp_path: Path) -> None:
    assert only(tmp_path, complete(), "AccessPattern").title == "Metrics missing"


@pytest.mark.parametrize(("per_request", "used", "waste"), [(1, 4.0, False), (1, 1.0, False), (2, 4.0, True), (2, 32.0, False)])
def test_one_address_for_all_lanes_is_no_waste(tmp_path: Path, per_request: int, used: float, waste: bool) -> None:
    """A request of one sector can't be better; one of two whose bytes fit into one can."""
    loads: Metrics = {LOADS.format("sectors"): 10**8 * per_request, LOADS.format("requests"): 10**8, USED: used}
    said = only(tmp_path, {**L1_BOUND, **loads}, "AccessPattern")
    assert said.type == ("optimization" if waste else "ok")


def test_a_small_part_of_the_sectors_is_no_finding(tmp_path: Path) -> None:
    metrics: Metrics = {
        **L1_BOUND,
        LOADS.format("sectors"): 4 * 10**8,
        LOADS.format("requests"): 10**8,
        STORES.format("sectors"): 8 * 10**5,
        STORES.format("requests"): 8 * 10**5 // 32,
    }
    few = only(tmp_path, metrics, "AccessPattern")
    assert (few.type, few.title) == ("ok", "Global accesses")
    assert few.text.endswith("They are but 0.16 % of the kernel's sectors.")
    stores: Metrics = {STORES.format("sectors"): 10**8, STORES.format("requests"): 10**8 // 32}
    many, _ = messages(tmp_path, {**metrics, **stores}, "AccessPattern")
    assert (many.type, many.title) == ("optimization", "Uncoalesced global stores")
    assert "They are 20 % of the kernel's sectors." in many.text
    assert many.speedup == pytest.approx(50 * 0.2 * L1_FULL)


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
    full: Metrics = {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 70.0, PIPE.format("_mem_shared.sum"): 75.0}
    full = {name: value for name, value in full.items() if (title == "Shared atomics") == ("shared" in name)}
    found = messages(tmp_path, {**complete(), **counters, **full}, "AccessPattern")
    (said,) = [message for message in found if message.title == title]
    assert said.type == "optimization"
    assert said.text.startswith(text)
    (said,) = [message for message in messages(tmp_path, {**complete(), **counters}, "AccessPattern") if message.title == title]
    assert (said.type, said.text.startswith(text)) == ("ok", True)
    few = {**counters, **{name: 10**9 for name in counters if "_op_" not in name}}
    assert title not in [message.title for message in messages(tmp_path, {**complete(), **few}, "AccessPattern")]
