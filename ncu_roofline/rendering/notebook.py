"""What a notebook shows of a result: its chart, and under it the table of the terminal."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

from ncu_roofline.rendering import render


def notebook_html(result: Any) -> str:
    """The svg chart of a Roofline, or of another view, as an image, and its text table; all texts escaped.

    An image can't run what an inline svg could, and its ids can't meet those of other cells.
    """
    picture = base64.b64encode(render(result, "svg")).decode()
    table = escape(render(result, "text").decode())
    image = f'<img alt="roofline chart" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
    return f"{image}<details><summary>table</summary><pre>{table}</pre></details>"
