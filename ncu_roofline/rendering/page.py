"""The shell of an interactive page: one self-contained html file that needs no network and runs from file://."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from ncu_roofline.base.texts import block, one_line, without_folders
from ncu_roofline.base.units import UNITS
from ncu_roofline.rendering.document import Column, Table, text_columns
from ncu_roofline.rendering.frames import optional
from ncu_roofline.version import __version__

_SCRIPTS = ("page_format.js", "page_link.js", "page_theme.js", "page_table.js", "page_menu.js", "page_app.js")  # of all pages
PAGE_THEMES = ("auto", "light", "dark")
_DIGITS = 6  # more than any counter is worth, and less than half the bytes of a full double


def self_contained(
    folder: str,
    scripts: Iterable[str],
    data: Mapping[str, Any],
    *,
    title: str,
    theme: str,
    styles: Iterable[str] = ("page.css",),
    bundle: bool = True,
    **values: Any,
) -> bytes:
    """A page from the template of a folder: plotly (with ``bundle``), ``scripts`` and ``data``, which is JSON.

    Template, styles and scripts are files beside the modules of the package ``folder``, or those that all pages share: the
    template extends shell.html.j2, which says what of ``values`` it takes; subtitle, notes, reports and explanations (as
    `explanations_of`) need not be clean.  Raises ValueError for an unknown theme."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    if theme not in PAGE_THEMES:
        raise ValueError(f"theme {theme!r} is not one of {', '.join(PAGE_THEMES)}")

    def asset(name: str) -> str:
        own = files(folder).joinpath(name)
        return (own if own.is_file() else files(__package__).joinpath(name)).read_text(encoding="utf-8")

    loader = FunctionLoader(asset)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=loader)
    plotly = plotly_js() if bundle else ""
    # Readers of the page need neither indentation nor the lines that are comments.
    lines = (line.strip() for name in (*_SCRIPTS, *scripts) for line in asset(name).splitlines())
    script = "\n".join(line for line in lines if line and not line.startswith(("//", "/*", "*")))
    units = {key: [unit.symbol, unit.prefixed] for key, unit in UNITS.items()}
    given: dict[str, Any] = {"answers": (), "lacking": False, "subtitle": "", **values}
    given |= {name: [one_line(text) for text in values.get(name, ()) if text] for name in ("notes", "reports")}
    given |= {"subtitle": one_line(given["subtitle"]), "explanations": explanations_of(values.get("explanations", ()))}
    # The content security policy: only these scripts run, and nothing is fetched from or sent to anywhere.
    hashes = (hashlib.sha256(text.encode()).digest() for text in (plotly, script) if text)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    given |= {"policy": f"default-src 'none'; script-src {allowed}; {rest}", "style": "\n".join(map(asset, styles))}
    given |= {"data": embed_json({"title": title, "theme": theme, "units": units, **data}), "version": __version__}
    page = environment.get_template("page.html.j2").render(title=title, theme=theme, plotly=plotly, script=script, **given)
    return page.encode()


def plotly_js() -> str:
    """The text of plotly.js that pages carry: its basic bundle, as published, where nothing ends the script element."""
    text = files(__package__).joinpath("plotly-basic.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--").replace("<script", "<\\script")


def texts_of(entries: Iterable[Mapping[str, str]], keys: tuple[str, ...]) -> list[dict[str, str]]:
    """The given keys of each entry as texts for a page, "" for a missing one."""
    return [{key: block(entry.get(key) or "") for key in keys} for entry in entries]


def explanations_of(entries: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """What reports lack, as texts; ``command`` has no folders, and ``folders`` says so where it had."""
    found = texts_of(entries, ("report", "text", "command"))
    for texts in found:
        given, texts["command"] = texts["command"], without_folders(texts["command"])
        texts["folders"] = "Paths stand by their last part: put yours before running it." * (given != texts["command"])
    return found


def embed_json(value: object) -> str:
    """``value`` as JSON for the inside of a script element: plain ASCII without <, > and &."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain_columns(frames: Any, name: str, declared: Iterable[Column], called: Mapping[str, str]) -> dict[str, list[Any]]:
    """Declared columns of a table as cleaned texts and JSON numbers, reports as they are ``called``."""
    found = {}
    for column in declared:
        text = column.dtype == "str"
        values = optional(frames, name, column.name, "" if text else None)
        found[column.name] = [one_line(called.get(v, v)) for v in values] if text else [number(v) for v in values]
    return found


def packed(columns: Mapping[str, list[Any]], declared: Iterable[Column], texts: dict[str, int]) -> dict[str, Any]:
    """Columns with their texts replaced by positions in the pool ``texts``, which grows, and how many ``rows`` they have.  One
    value instead of a list stands in every row, and the name of an earlier column for the values of that one."""
    kept = [one for one in declared if one.name in columns]
    count = max((len(columns[one.name]) for one in kept), default=0)
    packed: dict[str, Any] = {"rows": count, "text_columns": [c.name for c in kept if c.dtype == "str"]}
    for one in kept:
        values = columns[one.name]
        if one.dtype == "str":
            values = [texts.setdefault(v, len(texts)) for v in values]
        twin = next((name for name, other in packed.items() if isinstance(other, list) and other == values), None)
        same = values[0] if values and all(value == values[0] for value in values) else None
        packed[one.name] = same if same is not None or not any(v is not None for v in values) else twin or values
    return packed


def shown_table(table: Table) -> dict[str, Any] | None:
    """Headers and rows for a template, None for a table without rows."""
    columns = list(text_columns(table).values())
    headers = [(column.header, column.left) for column in columns]
    rows = zip(*(column.cells for column in columns), strict=True)
    return {"headers": headers, "rows": list(map(list, rows))} if table.rows else None


def number(value: object) -> float | int | None:
    """A finite number with few digits, or None: NaN and infinities have no place in JSON."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.{_DIGITS}g}")
