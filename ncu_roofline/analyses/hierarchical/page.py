"""The interactive page: one self-contained html file, drawn by plotly.js, that needs no network and runs from file://."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ncu_roofline import __version__
from ncu_roofline.analyses.hierarchical.captions import name_of
from ncu_roofline.analyses.hierarchical.chart import Frames
from ncu_roofline.analyses.hierarchical.page_data import clean, clean_block, embed_json, payload
from ncu_roofline.analyses.hierarchical.page_facts import facts
from ncu_roofline.errors import RooflineError

EXPLANATION = ("report", "text", "command")
_ADVICE = ("kernel", "rule", "type", "title", "text")
THEMES = ("auto", "light", "dark")
# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = (
    "page_format.js",
    "page_state.js",
    "page_labels.js",
    "page_sweep.js",
    "page_chart.js",
    "page_table.js",
    "page_controls.js",
    "page_usage.js",
    "page.js",
)


def render_html(
    roofline: Frames,
    *,
    title: str = "",
    theme: str = "auto",
    explanations: Iterable[Mapping[str, str]] = (),
    advice: Iterable[Mapping[str, str]] = (),
) -> bytes:
    """The page of a Roofline as UTF-8 bytes.

    ``explanations`` are dicts with report, text and command (what the report lacks and the ncu command that adds it),
    ``advice`` dicts with kernel, rule, type, title and text.  Nothing of the frames is trusted: it reaches the page escaped
    or as JSON.
    Raises ValueError for an unknown theme and RooflineError where plotly is not installed.
    """
    if theme not in THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(THEMES)}")
    heading = clean(title) or _default_title(roofline)
    return self_contained(
        "page.html.j2",
        _SCRIPTS,
        payload(roofline, title=heading, theme=theme),
        title=heading,
        theme=theme,
        facts=facts(roofline),
        explanations=texts_of(explanations, EXPLANATION),
        advice=texts_of(advice, _ADVICE),
    )


def self_contained(template: str, scripts: Iterable[str], data: Mapping[str, Any], **values: Any) -> bytes:
    """A page from a template: style, plotly, our ``scripts`` (one after the other) and ``data`` as JSON all inside it.

    Raises RooflineError where plotly is not installed.
    """
    plotly, script = plotly_js(), "\n".join(_asset(name) for name in scripts)
    page = _environment().from_string(_asset(template)).render(
        version=__version__,
        policy=_policy(plotly, script),
        style=_asset("page.css"),
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


def _asset(name: str) -> str:
    return files("ncu_roofline.analyses").joinpath(name).read_text(encoding="utf-8")


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
    """The given keys of each entry as clean texts, "" for a missing one."""
    return [{key: clean_block(entry.get(key) or "") for key in keys} for entry in entries]


def _default_title(roofline: Frames) -> str:
    """The device, or the only report."""
    names = [clean(name) for name in dict.fromkeys(roofline.kernels["report"]) if name]
    if len(names) == 1:
        return f"{name_of(roofline)} of {names[0]}"
    return f"{name_of(roofline)} of {len(names)} reports" if names else name_of(roofline)
