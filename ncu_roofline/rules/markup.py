"""The links in messages of rules, as text."""

from __future__ import annotations

import re

_LINK = re.compile(r"@(?:(?:section|source|sass):(?:[^@:\n]*:)+(?P<text>[^@:\n]*)|url:(?P<label>[^@:\n]*):(?P<url>[^@\s]+))@")


def plain_text(message: str) -> str:
    """The message without ``@section:id:text@`` and the like: the texts stay, web addresses follow theirs in parentheses."""
    return _LINK.sub(lambda link: f"{link['label']} ({link['url']})" if link["url"] else link["text"], message)
