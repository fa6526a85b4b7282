"""What a notebook shows of a result: its chart where it has one, and the table of the terminal."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

from ncu_roofline.analyses import analysis_of, render


def notebook_html(result: Any) -> str:
    """The svg chart of a Roofline or another view as an image, with its text table folded below; else the table; escaped.

    An image can't run what an inline svg could, and its ids can't meet those of other cells.
    """
    table = f"<pre>{escape(render(result, 'text').decode())}</pre>"
    if "svg" not in analysis_of(result).makers:
        return table
    picture = base64.b64encode(render(result, "svg")).decode()
    image = f'<img alt="roofline chart" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
    return f"{image}<details><summary>table</summary>{table}</details>"
