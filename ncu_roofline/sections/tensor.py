"""Tensor work that a chart counts by instructions: right for one shape of instruction only."""

from __future__ import annotations

import re

_COUNTED = re.compile(r"__inst_executed_pipe_(tensor|fp64\w*_dmma)")
_WEIGHT = re.compile(r"_x(\d+)(\.|$)")
# HMMA.884, the tensor instruction of V100, is 8 x 8 x 4 multiply-adds x 2; so is DMMA.884, which only Hopper has larger kin of.
_OF_884 = 512
_V100, _HOPPER = (7, 0), 9


def tensor_caveat(metrics: tuple[str, ...], capability: tuple[int, int]) -> str:
    """What is wrong with work (or a roof) of these metrics on a chip: "" for work that is not counted by instructions.

    Stock charts of 2021.3 to 2024.1 count 512 operations for every tensor instruction; later chips have instructions of 512 to
    16384.  Instructions without any weight, as charts of others may have them, are not operations at all.
    """
    counted = [name for name in metrics if _COUNTED.search(name)]
    if not counted:
        return ""
    found = _WEIGHT.search(counted[0])
    weight = int(found[1]) if found else counted.count(counted[0])  # old sections list a metric as often as it counts
    dmma = all("dmma" in name for name in counted)
    if weight == _OF_884 and (capability[0] != _HOPPER if dmma else capability == _V100):
        return ""
    holds = ", which holds for V100 only" if weight == _OF_884 and not dmma else " whatever its shape"
    operations = f"{weight} operation{'' if weight == 1 else 's'}"
    return f"counts {operations} per tensor instruction{holds}; here the real work differs by shape and type"
