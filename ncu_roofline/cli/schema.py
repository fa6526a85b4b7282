"""`ncu-roofline schema`: JSON Schemas of all documents that commands write as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import Any

from ncu_roofline.analyses import ANALYSES, views
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.texts import advice, shorten
from ncu_roofline.cli.outputs import write_text
from ncu_roofline.version import __version__

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CEILINGS = {"ceilings": ("bench run --json, bench merge --json", "measured or published ceilings of a GPU or CPU")}
_COMMANDS = {
    "comparison": "compare BASELINE NEW...",
    "run": "show TRACE...",
    "counted": "show REPORT... --run TRACE",
    "run-comparison": "compare TRACE TRACE...",
    "budget": "budget check NEW --budget FILE",
    "portability": "portability FILE...",
}
_TYPES = ("string", "integer", "number", "boolean", "null")


@dataclass(frozen=True)
class Written:
    """A kind of document: the command that writes it, what it is, the version of its schema, and its form."""

    command: str
    about: str
    version: int
    document: Any


def add_schema(parser: ArgumentParser) -> None:
    """Which document."""
    parser.epilog = (
        "A column, a key or a word may be added in any release; where one goes or means something else, the version grows."
    )
    about = "the document; without it, a list of all documents and the commands that write them"
    parser.add_argument("document", metavar="NAME", nargs="?", default="", help=about)


def run_schema(args: Namespace) -> int:
    """Print a schema, or the list of documents.  Raises UsageError for one that there is not."""
    from ncu_roofline.rendering.table import listing

    known = documents()
    if not args.document:
        rows = [{"name": name, "written by": by, "holds": about} for name, (by, about) in known.items()]
        write_text("\n".join(listing(rows)))
        return 0
    if args.document not in known:
        next_step = advice(f"There are {', '.join(known)}", args.document, known)
        raise UsageError("Cannot print the schema of", shorten(args.document), "no command writes such a document", next_step)
    write_text(json.dumps(schema(args.document), indent=1))
    return 0


def documents() -> dict[str, tuple[str, str]]:
    """By the names of documents the command that writes each, and what it is."""
    found = {}
    for view, analysis in ANALYSES.items():
        command = f"show REPORT... --view {view}" if view in views("show") else _COMMANDS.get(view, f"{view} REPORT...")
        found[view] = f"{command} --json", analysis.about
    return found | {name: (one.command, one.about) for name, one in _stated().items()} | _CEILINGS


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document, whose "$id" ends in its version.  Raises KeyError for an unknown name."""
    command, about = documents()[name]
    if name in ANALYSES:
        from ncu_roofline.rendering.frames import json_schema

        head = ANALYSES[name].head
        found, version = json_schema(ANALYSES[name].tables, head), head["schema_version"]
    elif name in _CEILINGS:
        from ncu_roofline.formats import ceilings

        found, version = ceilings.json_schema(), ceilings.SCHEMA_VERSION
    else:
        stated = _stated()[name]
        found, version = _schema(stated.document), stated.version
    identity = {"$schema": _DIALECT, "$id": f"urn:ncu-roofline:{name}:{version}", "$comment": f"ncu-roofline {__version__}"}
    return {**identity, "title": f"{about} ({command})", **found}


def _stated() -> dict[str, Written]:
    from ncu_roofline.chips.fields import DATA, read

    return read(DATA / "documents.toml", dict[str, Written])


def _schema(stated: Any) -> dict[str, Any]:
    """What a value of `data/documents.toml` says of a value of JSON."""
    if isinstance(stated, list):
        return {"type": "array", "items": _schema(stated[0])}
    if isinstance(stated, dict):
        properties = {}
        for key, inner in stated.items():
            found = _schema(inner)
            properties[key.rstrip("?")] = {"anyOf": [found, {"type": "null"}]} if key.endswith("??") else found
        rest = properties.pop("*", False)
        required = [key.rstrip("?") for key in stated if key[0] != "*" and (key[-1] != "?" or key.endswith("??"))]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": rest}
    words, _, meaning = str(stated).partition(": ")
    if not meaning:
        return {"const": stated}
    kinds = words.split("|")
    form = {"type": kinds[0] if len(kinds) == 1 else kinds} if set(kinds) <= set(_TYPES) else {"enum": kinds}
    return {**form, "description": meaning}
