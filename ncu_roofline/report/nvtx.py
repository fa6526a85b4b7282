"""NVTX ranges around a kernel launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncu_roofline.report.schema import message, text

_REGISTERED = 3  # type of an NVTX message whose text is in the string table of its domain


def range_names(state: Any, thread_id: int) -> tuple[str, ...]:
    """Names of the ranges of an Nvtx message that enclose a launch by thread ``thread_id``, outermost first.

    Ranges that were started and ended (on any thread) come before those that the thread pushed, which nest inside a function.
    """
    strings = {(domain.id, string.id): text(string.value) for domain in state.domains for string in domain.strings}
    names = [_name(entry, domain.id, strings) for domain in state.start_end for entry in domain.ranges]
    for thread in state.threads:
        if thread.id == thread_id:
            names += [_name(entry, domain.id, strings) for domain in thread.domains for entry in domain.stack]
    return tuple(names)


def _name(entry: Any, domain_id: int, strings: dict[tuple[int, int], str]) -> str:
    said = entry.attributes.message
    if not entry.name and said.type == _REGISTERED:
        return strings.get((domain_id, said.handle), "")
    return text(entry.name) or text(said.text)


def pushed(names: Sequence[str], thread_id: int) -> Any:
    """An Nvtx message that says that thread ``thread_id`` has pushed the ranges ``names``, outermost first."""
    state = message("Nvtx")()
    state.domains.add(id=0, name=b"<default domain>")
    stack = state.threads.add(id=thread_id).domains.add(id=0).stack
    for name in names:
        stack.add(name=name.encode())
    return state
