"""What Nsight Compute does with the clocks of a GPU while it profiles."""

from __future__ import annotations

from ncu_roofline.chips.fields import parse_release

# Both from NVIDIA's release notes.
BOOST_SINCE = (2026, 1)
"""The first release that locks to the boost clock by default; those before lock to base."""

BOOST_OPTION_SINCE = (2025, 4)
"""The first release that knows ``--clock-control boost``."""

BY_RELEASE = "ncu before {}.{} locks to base, later ones to boost, unless told otherwise".format(*BOOST_SINCE)
"""For texts that don't know the release."""

SM_DOMAIN = ("sm", "smsp", "l1tex", "gpc")
"""Units that run at the clock of the SMs, by the names that begin their counters."""


def default_clocks(version: str) -> str:
    """The clock to which a release ("2024.2.1.0") locks unless told otherwise: "base" or "boost"; "" if it is not known."""
    release = parse_release(version)
    if not release:
        return ""
    return "boost" if release >= BOOST_SINCE else "base"


def clocks_text(version: str, control: str = "") -> str:
    """What ncu did with the clocks in a run of a release; ``control`` is its ``--clock-control``, "" where nobody said."""
    if control.lower() == "none":
        return "ncu left the clocks free"
    known = default_clocks(version)
    return f"ncu {version} locks to the {known} clock unless told --clock-control none" if known else BY_RELEASE
