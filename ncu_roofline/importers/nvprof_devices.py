"""What nvprof's names of devices say: the GPU, its compute capability, and the tensor peak of V100 boards."""

from __future__ import annotations

import re

from ncu_roofline.spec import load_spec

# GPUs before those of the specification: they have no bindings here, and only their generation matters.
_OLDER = (
    (re.compile(r"\bP100|GP100"), (6, 0)),
    (re.compile(r"\bP(4|6|40)\b|GTX 10\d\d|TITAN X[pP]|P[2456]000\b"), (6, 1)),
    (re.compile(r"\bM(4|6|10|40|60)\b|GTX 9\d\d|GTX TITAN X"), (5, 2)),
    (re.compile(r"\bK80"), (3, 7)),
    (re.compile(r"\bK(20|40)[a-z]*\b|GTX TITAN"), (3, 5)),
)
# SMs and boost clock (Hz) of the boards whose tensor peak is known; the papers use 125 TFLOP/s for the SXM2 board.
_TENSOR_BOARDS = {"V100-SXM2": (80, 1.53e9), "V100-PCIE": (80, 1.38e9)}


def device_name(cell: str) -> str:
    """ "Tesla V100-SXM2-16GB (0)" without the number of the device."""
    return re.sub(r"\s*\(\d+\)\s*$", "", cell.strip())


def capability_of(device: str) -> tuple[int, int]:
    """The compute capability that a GPU's name tells, (0, 0) where it tells none."""
    older = next((capability for pattern, capability in _OLDER if pattern.search(device)), None)
    if older:
        return older
    known = load_spec().architectures
    found = (one.compute_capability for one in known if any(_names(product, device) for product in one.products))
    return next(found, (0, 0))


def _names(product: str, device: str) -> bool:
    return re.search(rf"\b{re.escape(product)}\b", device, re.IGNORECASE) is not None


def tensor_peak(device: str) -> float | None:
    """FLOP/s of the tensor cores at boost clock, None for GPUs whose number of SMs and clock are not known here."""
    board = next((facts for name, facts in _TENSOR_BOARDS.items() if name in device), None)
    architecture = load_spec().architecture(capability_of(device))
    if board is None or architecture is None:
        return None
    per_cycle = architecture.peak("tensor.fp16", device)
    return board[0] * board[1] * per_cycle if per_cycle else None
