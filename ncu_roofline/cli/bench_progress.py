"""The progress bar of `bench run`: the ceiling being measured and the value just found."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from ncu_roofline.bench.tables import value_text

if TYPE_CHECKING:
    from ncu_roofline.bench.measuring import Record


class Bar:
    """A tqdm bar on standard error; with ``shown`` false it says nothing."""

    def __init__(self, title: str, shown: bool) -> None:
        self._title, self._shown = title, shown
        self._bar: Any = None
        self._last = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def start(self, steps: int) -> None:
        """Show an empty bar of so many steps."""
        if self._shown:
            from tqdm import tqdm

            self._bar = tqdm(total=steps, desc=self._title, leave=False, unit="run", dynamic_ncols=True)

    def begin(self, ceiling: str) -> None:
        """What is being measured now, beside the last value."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self._last}; {ceiling} ..." if self._last else f"{ceiling} ...")

    def step(self, ceiling: str, record: Record | None) -> None:
        """One step on; ``record`` None where the step was left out."""
        if self._bar is None:
            return
        if record is not None:
            found = value_text(record.value, record.unit) if record.values else record.failure[:40]
            self._last = f"{ceiling} {found}"
            self._bar.set_postfix_str(self._last, refresh=False)
        self._bar.update()
