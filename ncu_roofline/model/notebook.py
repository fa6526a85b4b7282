"""How results get into notebooks although the renderers stand above the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """A result that a notebook shows as a chart and a table.

    ``html`` is filled in by the package when a result is made through it (`from ncu_roofline import roofline`); without it
    notebooks show the plain representation.
    """

    html: ClassVar[Callable[[Any], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Displayed.html is None else Displayed.html(self)
