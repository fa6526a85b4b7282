"""The picture of a machine: a ceilings file's roofs as png, svg or pdf.

Output is deterministic: the same content and matplotlib give the same bytes.  Measuring goes without matplotlib and numpy, so
that they are imported where something is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import write_atomically
from ncu_roofline.bench.tables import device_name
from ncu_roofline.rendering.chart import THEMES

FORMATS = ("png", "svg", "pdf")
_WHAT = "Cannot draw the roofline of"


def draw(content: Mapping[str, Any], path: str | os.PathLike[str], theme: str = "light", *, overwrite: bool = False) -> str:
    """Draw the content of a ceilings file into a png, svg or pdf, as its suffix says; return a sentence on what came of it.

    Where there is nothing to draw, or nothing to draw it with, the sentence says that.  Raises RooflineError where the file
    can't be written, ValueError for another suffix or theme.
    """
    try:
        data = render(content, os.fspath(path).rpartition(".")[2].lower(), theme)
    except RooflineError as error:
        return str(error)
    write_atomically(path, [data], overwrite=overwrite)
    return f"Wrote {path}"


def render(content: Mapping[str, Any], suffix: str, theme: str = "light") -> bytes:
    """The picture as a png, svg or pdf.

    Raises RooflineError where no bandwidth or compute ceiling was accepted or the packages that draw are missing, ValueError
    for another ``suffix`` or theme.
    """
    for name, known in ((suffix, FORMATS), (theme, tuple(THEMES))):
        if name not in known:
            raise ValueError(f"{name!r} is not one of {', '.join(known)}")
    try:
        from ncu_roofline.bench.drawing import figure, machine_roofs
        from ncu_roofline.rendering.picture import saved

        if not machine_roofs(content).standing:
            reason = "no ceiling of a memory level or of arithmetic was accepted"
            raise RooflineError(_WHAT, device_name(content), reason, "See the reasons in the ceilings file.")
        return saved(lambda: figure(content, theme), suffix)
    except ImportError as error:
        reason = f"the packages that draw can't be imported ({error})"
        next_step = "Install them with pip install matplotlib numpy, then draw with `ncu-roofline bench draw`."
        raise RooflineError(_WHAT, device_name(content), reason, next_step) from error
