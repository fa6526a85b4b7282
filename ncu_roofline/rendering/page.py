"""The shell of an interactive page: one self-contained html file that needs no network and runs from file://."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.texts import block
from ncu_roofline.version import __version__

EXPLANATION = ("report", "text", "command")
PAGE_THEMES = ("auto", "light", "dark")
_DIGITS = 9  # more than any counter is worth, and half the bytes of a full double


def self_contained(folder: str, template: str, scripts: Iterable[str], data: Mapping[str, Any], **values: Any) -> bytes:
    """A page from a template: style, plotly, our ``scripts`` (one after the other) and ``data`` as JSON all inside it.

    Template and scripts are files beside the modules of the package ``folder``, or the kit's own.

    Raises RooflineError where plotly is not installed.
    """
    plotly, script = plotly_js(), "\n".join(_asset(folder, name) for name in scripts)
    page = _environment().from_string(_asset(folder, template)).render(
        version=__version__,
        policy=_policy(plotly, script),
        style=_asset(folder, "page.css"),
        plotly=plotly,
        script=script,
        data=embed_json(data),
        **values,
    )  # fmt: skip
    return str(page).encode()


def plotly_js() -> str:
    """The text of plotly.min.js of the installed plotly, found without importing it."""
    spec = find_spec("plotly")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = Path(folder, "package_data", "plotly.min.js")
        if path.is_file():
            return _for_script(path.read_text(encoding="utf-8"))
    raise RooflineError(
        "cannot make", "the html page", "plotly is not installed or lacks plotly.min.js", "Run: pip install plotly"
    )


def _for_script(text: str) -> str:
    """``text`` as the inside of a script element: nothing in it may end the element (inside JavaScript texts only)."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("<script", "<\\script")


def _asset(folder: str, name: str) -> str:
    own = files(folder).joinpath(name)
    return (own if own.is_file() else files(__package__).joinpath(name)).read_text(encoding="utf-8")


def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _policy(*scripts: str) -> str:
    """The content security policy: only these scripts run, and nothing is fetched from or sent to anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"


def texts_of(entries: Iterable[Mapping[str, str]], keys: tuple[str, ...]) -> list[dict[str, str]]:
    """The given keys of each entry as texts for a page, "" for a missing one."""
    return [{key: block(entry.get(key) or "") for key in keys} for entry in entries]


def embed_json(value: object) -> str:
    """``value`` as JSON for the inside of a script element: plain ASCII without <, > and &."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def number(value: object) -> float | int | None:
    """A finite number with few digits, or None: NaN and infinities have no place in JSON."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
