"""The NVTX part of NvRules, as far as our reader keeps it: the names of the ranges around a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class INvtxRange:
    """A range of which only the name is known."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """The name."""
        return self._name

    def has_attributes(self) -> bool:
        """Always false."""
        return False


class INvtxDomainInfo:
    """The one domain that stands for all."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._ranges = tuple(ranges)

    def __str__(self) -> str:
        return self.name()

    def name(self) -> str:
        """The name of the default domain."""
        return "<default domain>"

    def push_pop_ranges(self) -> tuple[str, ...]:
        """Names, outermost first."""
        return self._ranges

    def push_pop_range(self, idx: int) -> INvtxRange | None:
        """A range by position."""
        return INvtxRange(self._ranges[idx]) if 0 <= idx < len(self._ranges) else None

    def start_end_ranges(self) -> tuple[str, ...]:
        """Always empty: our reader counts them to the other kind."""
        return ()

    def start_end_range(self, _idx: int) -> None:
        """Always None."""
        return


class INvtxState:
    """The ranges around a kernel."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._domain = INvtxDomainInfo(ranges)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return iter(self.domains())

    def __getitem__(self, key: int) -> INvtxDomainInfo:
        domain = self.domain_by_id(key)
        if domain is None:
            raise KeyError(key)
        return domain

    def domains(self) -> tuple[int, ...]:
        """The ids of the domains."""
        return (0,)

    def domain_by_id(self, domain_id: int) -> INvtxDomainInfo | None:
        """The domain, or None."""
        return self._domain if domain_id == 0 else None
