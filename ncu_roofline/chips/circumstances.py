"""What the counts of a kernel show, as words, and which sentences of `data/stalls.toml` hold where they are shown.

Plain functions over plain numbers: the source view calls them, and the rule generator puts the source of this file, without
annotations, into the rule on hot spots, where Python may be 3.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ncu_roofline.chips.source_counters import WARP
from ncu_roofline.chips.thresholds import FINDING_SHARE, FULL_LANES, SHORT_LAUNCH, UNIT_SHARE
from ncu_roofline.chips.verdict import FEW_WAVES, REACHED, as_percent

# Instructions that are a smaller share of all than this hardly make a tenth of the samples, slow as each may be.
PRESENT = 0.01
# Where an SM holds a smaller share of the warps that it can, more of them would hide more.
MANY_WARPS = 0.75
# Instructions of 16 bytes that fit into the cache nearest to the scheduler: 12 KiB (Jia et al. 2018, of Volta).
NEAR_CODE = 768
# Instructions by the word that tells that there are any.
KINDS = (
    ("shared", ("ATOMS", "LDS", "LDSM", "STS", "STSM")),
    ("shuffles", ("SHFL",)),
    ("special", ("MUFU",)),
    ("conversions", ("F2F", "F2I", "FRND", "I2F", "I2I")),
    ("indices", ("S2R", "S2UR")),
    ("copies", ("LDGSTS",)),
)
# Those by which a lane may move up to 16 bytes at once, and does where this modifier says so.
ACCESSES = (
    ("narrow", ("LD", "LDG", "LDL", "ST", "STG", "STL")),
    ("narrow_stores", ("ST", "STG", "STL")),
    ("narrow_shared", ("LDS", "STS")),
)
WIDEST = "128"
# What answers after tens of cycles, as a sentence calls it.
SLOW = (
    ("shared", "accesses to shared memory"),
    ("shuffles", "shuffles"),
    ("special", "MUFU instructions (reciprocals, roots, exp, sin)"),
    ("conversions", "conversions"),
    ("indices", "reads of threadIdx and blockIdx"),
)
FILLED = ("dram", "warps", "warps_possible")
# Blocks that an SM has room for by what they need, as a sentence calls that.
LIMITS = (
    ("limit_registers", "registers"),
    ("limit_shared", "shared memory"),
    ("limit_blocks", "the size of blocks"),
    ("limit_warps", "the size of blocks"),
)


def circumstances(
    opcodes: Mapping[str, float], amounts: Mapping[str, float], asynchronous: bool
) -> tuple[set[str], dict[str, str]]:
    """The words for what is shown, and what sentences are filled with; what is not known shows nothing.

    ``opcodes``: warp instructions by opcode, with modifiers.  ``amounts``, as far as they are known: sectors ``requested``,
    ``wasted`` by addresses, ``wasted_stores`` of these by stores, ``local``; wavefronts ``shared`` and ``shared_ideal``;
    ``instructions`` of the code that were executed; ``seconds``; ``waves`` of blocks; blocks of an SM by each of `LIMITS`;
    shares ``dram``, ``warps`` and ``warps_possible``.  ``asynchronous``: whether there is cp.async.
    """
    words, times = kinds_of(opcodes), UNIT_SHARE * sum(opcodes.values())
    local, requested, shared = [amounts.get(name, 0.0) for name in ("local", "requested", "shared")]
    least = (
        ("scattered", amounts.get("wasted", 0.0), max(FINDING_SHARE * requested, times)),
        ("scattered_stores", amounts.get("wasted_stores", 0.0), max(FINDING_SHARE * requested, times)),
        ("spills", local, max(FINDING_SHARE * (local + requested), times)),
        ("conflicts", shared - amounts.get("shared_ideal", shared), FINDING_SHARE * shared),
        ("long_code", amounts.get("instructions", 0), NEAR_CODE),
    )
    words |= {word for word, amount, enough in least if amount > 0 and amount >= enough}
    if "dram" in amounts:
        words.add("dram" if amounts["dram"] >= REACHED else "no_dram")
    if 0 < amounts.get("seconds", 0.0) < SHORT_LAUNCH:
        words.add("short")
    if asynchronous and "copies" not in words:
        words.add("asynchronous")
    filled = {name: as_percent(min(amounts[name], 1.0)) for name in FILLED if name in amounts}
    slow = [text for word, text in SLOW if word in words]
    if slow:
        words.add("slow")
        filled["slow"] = in_words(slow)
    holds, room = amounts.get("warps"), amounts.get("warps_possible")
    tight = tightest(amounts)
    if holds is not None and room is not None and holds < MANY_WARPS * room:
        words.add(why_few(amounts, holds / room))
        filled["waves"] = "{:.3g}".format(amounts.get("waves", 0.0))
    elif room is not None and room < MANY_WARPS and tight:
        words.add("capped")
        filled["limits"] = in_words(tight)
    return words, filled


def why_few(amounts: Mapping[str, float], share: float) -> str:
    """The word for why SMs hold a share of the warps that they have room for; ``few_warps`` where that is not known."""
    equal = held_by_equal_blocks(amounts)
    if equal is None:
        return "few_warps"
    if amounts["waves"] < FEW_WAVES:
        return "few_blocks" if equal < MANY_WARPS else "few_warps"
    return "last_wave" if share >= (1 - FINDING_SHARE) * equal else "few_warps"


def held_by_equal_blocks(amounts: Mapping[str, float]) -> float | None:
    """The share of the warps it has room for that an SM with blocks would hold over time, were all to take equally long.

    None where waves of blocks or one of `LIMITS` is not known.
    """
    blocks = [amounts[name] for name, _ in LIMITS if name in amounts]
    if "waves" not in amounts or len(blocks) < len(LIMITS):
        return None
    last = amounts["waves"] % 1
    # Of the last wave each SM gets a block before one gets a second.
    times = amounts["waves"] - last + min(last * min(blocks), 1.0)
    return amounts["waves"] / times if times > 0 else None


def tightest(amounts: Mapping[str, float]) -> list[str]:
    """What keeps more blocks from an SM."""
    known = [amounts[name] for name, _ in LIMITS if name in amounts]
    tight = [text for name, text in LIMITS if name in amounts and amounts[name] == min(known)]
    return sorted(set(tight), key=tight.index)


def in_words(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(([", ".join(texts[:-1])] if len(texts) > 1 else []) + [texts[-1]])


def kinds_of(opcodes: Mapping[str, float]) -> set[str]:
    """What kinds of instructions there are enough of."""
    counts = dict.fromkeys([word for word, _ in KINDS + ACCESSES], 0.0)
    for opcode, count in opcodes.items():
        parts = opcode.split(".")
        kinds = KINDS if WIDEST in parts else KINDS + ACCESSES
        for word in [word for word, names in kinds if parts[0] in names]:
            counts[word] += count
    return {word for word, count in counts.items() if count > 0 and count >= PRESENT * sum(opcodes.values())}


def holding(sentences: Sequence[Sequence[Collection[str]]], words: Collection[str], filled: Mapping[str, str]) -> str:
    """Those sentences (text, words that must be shown, words that must not be), filled."""
    held = [
        str(text)
        for text, where, unless in sentences
        if all(word in words for word in where) and not any(word in words for word in unless)
    ]
    return " ".join(held).format(**filled)


def explained(executed: float, lanes: float, requested: float, ideal: float) -> float:
    """Sectors, of those that an access asks for beyond its need, that gaps between inactive lanes can explain.

    A whole warp of lanes that access neighbouring addresses takes ``ideal`` / ``lanes`` sectors for each lane, whatever part of
    it is active, and no lane takes more than one: what is more than that is wasted by addresses.
    """
    if not 0 < lanes < FULL_LANES * WARP * executed:
        return 0.0
    whole = min(ideal / lanes * WARP * executed, lanes)
    return max(min(requested, whole) - ideal, 0.0)
