"""The text of source files: what a report imported, else what folders of the user have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ncu_roofline.formats.inputs.source_text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel

_MOST_FILES, _MOST_LETTERS = 1_000, 64_000_000
"""Files of one report, and letters of all: a template library brings some hundred, a hostile report as many as it has lines."""


class SourceTexts:
    """The lines of source files of a report, by the name that line tables give them."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self.found: dict[str, tuple[str, ...]] = {}
        self._looked: set[str] = set()
        self._letters = 0

    def add(self, kernel: Kernel, names: Iterable[str]) -> None:
        """Look for these files: what the report imported for this kernel's module, then what is in the folders."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._looked]
        imported: dict[str, dict[str, str]] = {}
        for file in kernel.code.files if kernel.code and new else ():
            imported.setdefault(last_part(file.name), {})[file.name] = file.text
        for name in new[: _MOST_FILES - len(self._looked)]:
            if self._letters > _MOST_LETTERS:
                break
            self._looked.add(name)
            alike = imported.get(last_part(name), {})
            best = most_alike(name, alike)
            lines = lines_of_source(alike[best]) if best else find_source(name, self._folders)
            if lines is not None:
                self.found[name] = lines
                self._letters += sum(map(len, lines))
