"""What the registry of measured ceilings keeps of a file: no names of hosts, GPUs and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench.document import as_text
from ncu_roofline.formats.ceilings import MEASURED

# Of the machine that a GPU sits in, what its numbers depend on.
_HOST = ("cpu", "container", "time_utc")
# Names of one GPU, machine or file among others; of merged files also the lists of them.
_TELLING = ("uuid", "serial", "pci_bus_id", "index", "gpus", "values", "slow", "slow_gpus", "file", "path", "hostname")


def scrubbed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same document of `bench run` or `bench merge` without names of hosts, GPUs and files, with "status" measured.

    Raises RooflineError if a name that was taken out stands elsewhere, in a warning for instance.
    """
    host = content.get("host") or {}
    result = {key: content[key] for key in ("schema", "schema_version")}
    result |= {"status": MEASURED, **{key: _without(value) for key, value in content.items() if key not in result}}
    result["host"] = {key: host[key] for key in _HOST if key in host}
    result["device"]["uuid"] = ""
    text = as_text(result)
    for name in sorted(set(_names(content))):
        if name in text:
            reason = f"{name!r} is the name of a machine or GPU, and stands in it where it can't be taken out"
            raise RooflineError("Cannot publish", "ceilings", reason, "Take it out by hand.")
    return result


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        # A variant's "values" are its trials; a merged ceiling's are GPUs by name.
        return {key: _without(inner) for key, inner in value.items() if key not in _TELLING or _is_trials(key, inner)}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def _is_trials(key: str, value: Any) -> bool:
    return key == "values" and isinstance(value, list) and not any(isinstance(one, Mapping) for one in value)


def _names(content: Mapping[str, Any]) -> Iterator[str]:
    """Names of hosts and GPUs that a document holds."""
    host, device = content.get("host") or {}, content.get("device") or {}
    places = [device, *(device.get("gpus") or [])]
    found = [host.get("name"), *(host.get("names") or []), *(place.get("host") for place in places)]
    found += [place.get(key) for place in places for key in ("uuid", "serial", "pci_bus_id")]
    yield from (name for name in found if isinstance(name, str) and name)
