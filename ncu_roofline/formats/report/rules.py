"""What the rules of Nsight Compute found, as stored with a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ncu_roofline.formats.report.schema import message, text

MESSAGE_TYPES = ("none", "ok", "warning", "error", "optimization")
# Releases up to 2022.3 refuse the whole report for a type that they don't know.  Of several values of one field the last one
# counts that a reader knows: this one is written first.
_UNDERSTOOD = {"optimization": "warning"}
SPEEDUP_TYPES = ("unknown", "local", "global")
SEVERITIES = ("default", "low", "high")


@dataclass(frozen=True)
class FocusMetric:
    """A metric that made a rule speak; ``severity`` is one of SEVERITIES, ``value`` None where it is not stored."""

    name: str
    value: float | None = None
    severity: str = "default"
    info: str = ""


@dataclass(frozen=True)
class RuleMessage:
    """One message of a rule.  ``type`` is one of MESSAGE_TYPES, or the number that a newer release stored.

    ``speedup`` is the estimated speedup in percent, of the kernel's time if ``speedup_type`` is "global", of the use of one
    unit if it is "local"; None if there is none.
    """

    type: str
    text: str
    title: str = ""
    id: int | None = None
    speedup: float | None = None
    speedup_type: str = ""
    focus: tuple[FocusMetric, ...] = ()


@dataclass(frozen=True)
class RuleResult:
    """What one rule said about one kernel; ``section`` is the identifier of the section it belongs to, or ""."""

    identifier: str
    name: str
    section: str = ""
    messages: tuple[RuleMessage, ...] = ()

    @property
    def speedup(self) -> float | None:
        """The largest estimated speedup among the messages, in percent, or None."""
        return max((m.speedup for m in self.messages if m.speedup is not None), default=None)


def read_rule(result: Any) -> RuleResult:
    """A RuleResult message as a value; tables and charts in its body are left out."""
    messages = tuple(_read_item(item) for item in result.body.items if item.HasField("message"))
    return RuleResult(text(result.identifier), text(result.name), text(result.section), messages)


def _read_item(item: Any) -> RuleMessage:
    said, speedup = item.message, item.speedup
    estimated = item.HasField("speedup") and speedup.HasField("value")
    return RuleMessage(
        type=_word(MESSAGE_TYPES, said.type[-1] if said.type else 0),
        text=text(said.text),
        title=text(said.title),
        id=said.id if said.HasField("id") else None,
        speedup=speedup.value if estimated else None,
        speedup_type=_word(SPEEDUP_TYPES, speedup.type) if estimated else "",
        focus=tuple(
            FocusMetric(
                text(one.name), one.value if one.HasField("value") else None, _word(SEVERITIES, one.severity), text(one.info)
            )
            for one in item.focus
        ),
    )


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def _number(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else int(word)


def encode_rule(rule: RuleResult) -> bytes:
    """``rule`` as a serialized RuleResult message that all releases read.

    Raises ValueError for a type or severity that is neither a known word nor a number.
    """
    result = message("RuleResult")(identifier=rule.identifier.encode(), name=rule.name.encode())
    if rule.section:
        result.section = rule.section.encode()
    for said in rule.messages:
        item = result.body.items.add()
        item.message.text = said.text.encode()
        words = (_UNDERSTOOD[said.type], said.type) if said.type in _UNDERSTOOD else (said.type,)
        item.message.type.extend(_number(MESSAGE_TYPES, word) for word in words)
        if said.title:
            item.message.title = said.title.encode()
        if said.id is not None:
            item.message.id = said.id
        if said.speedup is not None:
            item.speedup.type = _number(SPEEDUP_TYPES, said.speedup_type or "unknown")
            item.speedup.value = said.speedup
        for metric in said.focus:
            focus = item.focus.add(name=metric.name.encode(), severity=_number(SEVERITIES, metric.severity))
            given = {"message_id": said.id, "value": metric.value, "info": metric.info.encode() or None}
            for field, value in given.items():
                if value is not None:
                    setattr(focus, field, value)
    encoded: bytes = result.SerializeToString()
    return encoded
