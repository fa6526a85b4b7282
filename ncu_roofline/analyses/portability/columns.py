"""The columns of the tables of performance portability, declared once."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.style import level_style, precision_label
from ncu_roofline.rendering.document import Column

_NAMED = {"no": "not supported", **{name: name for name in ("missing", "not run", "unread", "compute", "stated")}}


def _bound(bound: str) -> str:
    """What limits a run, by the name of its level, or why it did not run."""
    return _NAMED.get(bound) or level_style(bound).label


PORTABILITY_PLATFORMS = (
    Column("application", "str", "", "application, '' where no input names one"),
    Column("variant", "str", "", "label or parameter of the run, with --by kernel also the kernel; '' if there is one"),
    Column("platform", "str", "", "platform: as the user, the table, or else the GPU is called"),
    Column("device", "str", "", "name of the GPU or machine"),
    Column("source", "str", "", "file the row comes from: its name, with folders only where they tell files apart"),
    Column("status", "str", "", "yes, no (not supported), missing (no input has it), not run, or unread (left out, both)"),
    Column(
        "precision", "str", "", "precision id of the work; fp where the file does not say", priority=5, words=precision_label
    ),
    Column("flops", "str", "", "executed or canonical: which operations count"),
    Column("work", "float", "flop", "these operations"),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("seconds", "float", "second", "run time"),
    Column("performance", "float", "flop/s", "P: work / seconds", "P", 2, digits=4),
    Column("level", "str", "", "memory level id of intensity and bandwidth"),
    Column("intensity", "float", "flop/byte", "I: work / bytes of this level", "I", 3, digits=4),
    Column("ceiling", "str", "", "which compute ceiling: fma, nofma, divide, divide_nofma or mix"),
    Column("compute_roof", "float", "flop/s", "F: that ceiling", "F", 4, digits=4),
    Column("compute_origin", "str", "", "measured, published, theoretical, or stated (the table gives what is attainable)"),
    Column("bandwidth_roof", "float", "byte/s", "B: bandwidth ceiling of the level", "B", 4, digits=4),
    Column("bandwidth_origin", "str", "", "measured, published, theoretical or stated"),
    Column("attainable", "float", "flop/s", "min(F, B * I)"),
    Column("bound", "str", "", "compute, the level id, or stated", "bound by", words=_bound),
    Column(
        "efficiency",
        "float",
        "ratio",
        "e: performance / attainable; 0 where not supported, NaN where left out",
        "e",
        form="percent",
    ),
    Column("portability", "float", "ratio", "PP of this application and variant", "PP", form="percent"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)


PORTABILITY_SUMMARY = (
    Column("application", "str", "", "application, '' where no input names one"),
    Column("variant", "str", "", "label or parameter of the runs"),
    Column("portability", "float", "ratio", "PP: harmonic mean of the efficiencies, 0 unless all platforms are supported"),
    Column("platforms", "int", "", "|H|: platforms that count"),
    Column("names", "str", "", "these platforms, separated by ', '"),
    Column("lowest", "str", "", "platform with the lowest efficiency"),
    Column("unsupported", "str", "", "platforms that make it 0"),
    Column("not_run", "str", "", "platforms left out because nobody ran it there, or no input that could be read says so"),
)

TABLES = {"platforms": PORTABILITY_PLATFORMS, "summary": PORTABILITY_SUMMARY}

# What people see, in this order.
SHOWN = (
    "application", "variant", "platform", "precision", "performance", "intensity", "compute_roof", "bandwidth_roof", "bound",
    "efficiency", "portability",
)  # fmt: skip
