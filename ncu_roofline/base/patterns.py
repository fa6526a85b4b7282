"""Regular expressions that users give, searched in texts that reports give: within a time limit.

Python's own `re` has none: an expression such as ``(\\w+:*)+<`` looks harmless, and never ends on a name made for it.  `regex`
takes the same expressions, has fewer slow ones, and can be told to stop.
"""

from __future__ import annotations

import time
from typing import Any

from ncu_roofline.base.errors import RooflineError

SECONDS = 10.0
"""Of processor time, for all texts together that one expression is searched in; a hundred thousand names take less than one."""
_NEXT = "Change it so that no repetition can take over what another beside it or inside it may match, unlike (\\w+:*)+."


class UserPattern:
    """An expression that a user gave with ``option``, and the time that is left to it."""

    def __init__(self, text: str, option: str) -> None:
        """Raises ValueError for what is no regular expression."""
        import regex  # takes as long to import as half the rest of the program, and few commands need it

        try:
            self._compiled: Any = regex.compile(text)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{text!r} is not a regular expression: {error}") from None
        self.text, self._option, self._left = text, option, SECONDS

    def search(self, text: str) -> Any:
        """The first match, as of `re.search`, or None.  Raises RooflineError where the time is used up."""
        start = time.process_time()
        try:
            found = self._compiled.search(text, timeout=max(self._left, 0.001))
        except TimeoutError:
            reason = f"it took more than {SECONDS:g} seconds, the last of them on a text of {len(text):,} characters"
            raise RooflineError(f"Cannot use {self._option}", self.text, reason, _NEXT) from None
        self._left -= time.process_time() - start
        return found

    def found(self, text: str) -> str:
        """What `search` finds: the first group that took part and is not empty, else all of it; "" for nothing."""
        match = self.search(text)
        return str(next(filter(None, match.groups()), match.group())) if match else ""
