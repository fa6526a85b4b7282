"""Nsight Compute itself: what it does with clocks, since when it knows metrics, and names of metrics."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ncu_roofline.chips.fields import parse_release

# By NVIDIA's release notes: the first release that locks to the boost clock by default, those before lock to base; the first
# that knows ``--clock-control boost``; what texts say that don't know the release.
BOOST_SINCE, BOOST_OPTION_SINCE = (2026, 1), (2025, 4)
BY_RELEASE = "ncu before {}.{} locks to base, later ones to boost, unless told otherwise".format(*BOOST_SINCE)
# The first releases whose metric library knows operation counts of the tensor path, sm__ops_path_tensor_* (CUDA 12.3), and
# tells what DRAM read from what it wrote on GB202, GB203 and GB205 (CUDA 12.9).
OPS_PATH_SINCE, DRAM_OP_SINCE = (2023, 3), (2025, 2)


def default_clocks(version: str) -> str:
    """The clock to which a release ("2024.2.1.0") locks unless told otherwise: "base" or "boost"; "" if it is not known."""
    release = parse_release(version)
    return ("boost" if release >= BOOST_SINCE else "base") if release else ""


def clocks_text(version: str, control: str = "") -> str:
    """What ncu did with the clocks in a run of a release; ``control`` is its ``--clock-control``, "" where nobody said."""
    if control.lower() == "none":
        return "ncu left the clocks free"
    known = default_clocks(version)
    return f"ncu {version} locks to the {known} clock unless told --clock-control none" if known else BY_RELEASE


def braced(names: Sequence[str], marks: tuple[str, str, str] = ("{", ",", "}")) -> str:
    """Names that differ in the middle only, written once with braces as a shell would: a__{ld,st}.sum.  ``marks`` are the
    opening one, the one between and the closing one."""
    before = os.path.commonprefix(names)  # noqa: RUF071
    after = os.path.commonprefix([name[len(before) :][::-1] for name in names])[::-1]  # noqa: RUF071
    if len(names) < 2 or len(before) < 4:
        return ", ".join(names)
    middles = (name[len(before) : len(name) - len(after)] for name in names)
    opening, between, closing = marks
    return f"{before}{opening}{between.join(middles)}{closing}{after}"


def compact(metrics: str) -> str:
    """`braced` on each of the lists that "; " separates, their names separated by ", "."""
    return "; ".join(braced(group.split(", ")) for group in metrics.split("; "))


# Metrics of `annotate`: made here, and understood again where their charts are read.  After the prefix, which nobody else's
# have, follows what they say, then what they are of.  ncu 2024.2 sees no bytes in names that contain "l1".
PREFIX, WORK_RATE, TRAFFIC_RATE, PEAK = "rl__", "work_rate_", "bytes_rate_", "peak_"


def slug(identifier: str) -> str:
    """An id of the spec as part of a metric name: tensor.fp16.wgmma is tensor_fp16_wgmma, l1 is tex."""
    return "tex" if identifier == "l1" else identifier.replace(".", "_")


def subject(metric: str) -> str:
    """The id of the precision, compute roof or level that a metric of a chart is of; "" for all other metrics."""
    for start in (WORK_RATE, TRAFFIC_RATE, PEAK):
        if metric.startswith(PREFIX + start):
            name = metric.removeprefix(PREFIX + start)
            return "l1" if name == "tex" else name.replace("_", ".")
    return ""
