"""Chips that came after this version are read as the nearest older one, without its peaks."""

from __future__ import annotations

import pytest

from ncu_roofline.chips import load_spec

NEWEST_10 = max(a.compute_capability for a in load_spec().architectures if a.compute_capability[0] == 10)


@pytest.mark.parametrize(
    ("capability", "nearest"),
    [
        ((7, 3), (7, 0)),  # not 7.2: systems on a chip stand for no other
        ((8, 8), (8, 6)),
        ((9, 9), (9, 0)),
        ((10, 9), NEWEST_10),
        ((11, 5), NEWEST_10),
        ((12, 2), (12, 0)),
        ((13, 0), (12, 0)),
        ((99, 9), (12, 0)),
    ],
)
def test_the_nearest_older_chip_stands_in(capability: tuple[int, int], nearest: tuple[int, int]) -> None:
    spec = load_spec()
    found = spec.read_as(capability)
    assert found is not None
    assert found.compute_capability == nearest
    assert spec.read_as(capability) == found
    assert spec.architecture(capability) is None
    assert (
        "{}.{} is not known to this version and was read with the counters of {}.{}".format(*capability, *nearest)
        in found.caveat
    )


@pytest.mark.parametrize("capability", [(0, 0), (3, 5), (6, 0), (6, 1), (6, 2)])
def test_nothing_stands_in_for_chips_before_volta(capability: tuple[int, int]) -> None:
    assert load_spec().read_as(capability) is None
    assert load_spec().read_as(capability) is None


def test_a_stand_in_has_no_figures_of_a_data_sheet() -> None:
    spec = load_spec()
    found = spec.read_as((13, 0))
    assert found is not None
    assert not found.boards
    assert all(found.peak(roof, "NVIDIA GeForce RTX 9999") is None for p in spec.precisions for roof in p.roof_ids())
    assert not found.bandwidth


def test_known_chips_are_read_as_themselves() -> None:
    spec = load_spec()
    for one in spec.architectures:
        assert spec.read_as(one.compute_capability) is one


def test_only_what_nobody_has_seen_is_unproven() -> None:
    unproven = {a.compute_capability: a for a in load_spec().architectures if a.caveat}
    assert set(unproven) == {(10, 7)}
    rubin = unproven[10, 7]
    assert (rubin.name, rubin.chips) == ("Rubin", ("GR100",))
    assert not rubin.peaks  # none is published per SM; no figure is invented
    assert not rubin.bandwidth
