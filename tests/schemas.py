"""Whether what a command printed as JSON is what `ncu-roofline schema` says of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from ncu_roofline.cli.schema import schema


@cache
def _validator(name: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def assert_fits(name: str, text: str) -> Any:
    """The document in a text, which the schema of this name fits."""
    document = json.loads(text)
    wrong = [f"{error.json_path}: {error.message[:200]}" for error in _validator(name).iter_errors(document)]
    assert wrong == [], name
    return document
