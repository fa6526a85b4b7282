"""Did you mean: the nearest of the known names to a word that is none of them."""

from __future__ import annotations

from collections.abc import Iterable

_LEAST = 0.6  # of the letters of two words that have to agree; difflib's own default
_RUN = 3  # letters side by side: fewer agree by chance in the long names of kernels


def nearest(word: str, known: Iterable[str]) -> str:
    """The name of ``known`` that is most like ``word``, "" where none is."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, n=1, cutoff=_LEAST)
    return names[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question that follows a sentence about an unknown ``word``, "" where no known name is like it."""
    found = nearest(word, known)
    return f"did you mean {found}?" if found else ""


def advice(next_step: str, word: str, known: Iterable[str]) -> str:
    """The last sentence of an error about an unknown ``word``: what to do, which has no full stop yet, and the question."""
    question = did_you_mean(word, known)
    return f"{next_step}; {question}" if question else f"{next_step}."


def by_likeness(pattern: str, kernels: Iterable[str]) -> list[str]:
    """Names of ``kernels`` that hold most of the letters of a regular expression side by side, likest first."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(pattern.lower())  # of this one it remembers most
    least, found = _LEAST * len(pattern), []
    for name in dict.fromkeys(kernels):
        matcher.set_seq1(name.lower())
        alike = sum(block.size for block in matcher.get_matching_blocks() if block.size >= _RUN)
        if alike >= least:
            found.append((alike, name))
    return [name for _, name in sorted(found, key=lambda pair: (-pair[0], len(pair[1])))]
