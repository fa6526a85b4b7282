"""The roofline.json of the Empirical Roofline Toolkit (ERT): ceilings of one machine, no kernels.

``empirical`` holds ``gflops`` and ``gbytes``, each with ``data``: a list of [name, value] in GFLOP/s and GB/s.  Version 1 calls
its one compute ceiling GFLOPs (its kernels are in double precision), later ones FP64, FP32 and FP16 GFLOPs.
"""

from __future__ import annotations

import math
from datetime import datetime, timezone
from os import PathLike
from typing import Any, NoReturn

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.records import document_of, inside, number
from ncu_roofline.formats.ceilings import Ceiling, Ceilings
from ncu_roofline.formats.inputs.spelling import Named, bandwidth_roofs, compute_roofs
from ncu_roofline.formats.inputs.tables import ANY_PRECISION
from ncu_roofline.formats.inputs.text import text_of

_NEXT = "Give the roofline.json as the toolkit wrote it."
_DOUBLE = "ERT's kernels are in double precision where it names none"
_SEEN_AS_L1 = "ERT calls it L1: it numbers the levels that it can tell apart, and on GPUs the innermost of them is L2"


def recognises(head: str) -> bool:
    """Whether a file begins like one."""
    return head.lstrip().startswith("{") and all(f'"{word}"' in head for word in ("empirical", "gflops", "gbytes", "data"))


def read(path: str | PathLike[str]) -> NoReturn:
    """It holds no kernels: raises RooflineError that tells what it is for."""
    reason = "it is a roofline.json of the Empirical Roofline Toolkit, which holds ceilings and no kernels"
    raise RooflineError("Cannot read", path, reason, "Give it with --ceilings, beside a report.")


def read_ceilings(path: str | PathLike[str]) -> Ceilings:
    """Its measured ceilings: ``fp64.fma`` and the like in FLOP/s, levels in B/s.  Raises RooflineError with the place."""
    try:
        document = document_of(text_of(path))
    except (ValueError, RecursionError) as error:
        raise _error(path, str(error)) from error
    empirical = _inside(path, document, "empirical")
    memory, _ = bandwidth_roofs(_named(path, empirical, "gbytes"))
    compute, _ = compute_roofs(_named(path, empirical, "gflops"))
    # On a GPU, ERT's L1 is L2: the toolkit can't see the L1 of each SM (Yang, Kurth, Williams 2019, section II-A).
    config = inside(empirical, "metadata", "CONFIG")
    gpu = config.get("ERT_GPU") if isinstance(config, dict) else None
    on_gpu = str(gpu[0] if isinstance(gpu, list) and gpu else gpu).lower() == "true"
    l1_is_l2 = on_gpu and "l2" not in {roof.id for roof in memory}
    by_id = {}
    for roof in [*memory, *compute]:
        name, unit, note = roof.id, "FLOP/s" if roof.kind == "compute" else "B/s", ""
        if l1_is_l2 and name == "l1":
            name, note = "l2", _SEEN_AS_L1
        elif name.startswith(f"{ANY_PRECISION}."):
            name, note = f"fp64{name[len(ANY_PRECISION) :]}", _DOUBLE
        by_id[name] = Ceiling(name, roof.value, unit, math.nan, "", source=note)
    if not by_id:
        raise _error(path, 'both "gflops" and "gbytes" are empty')
    stamp = number(inside(empirical["gflops"], "metadata", "TIMESTAMP_DB"))  # when the toolkit wrote its results
    date = datetime.fromtimestamp(stamp, timezone.utc).date().isoformat() if 0 < stamp < 4e9 else ""
    return Ceilings(str(path), "", "", (0, 0), date, by_id)


def _error(path: str | PathLike[str], reason: str) -> RooflineError:
    return RooflineError("Cannot read ceilings", path, reason, _NEXT)


def _inside(path: str | PathLike[str], document: Any, key: str) -> dict[str, Any]:
    inner = document.get(key) if isinstance(document, dict) else None
    if not isinstance(inner, dict):
        raise _error(path, f'"{key}" is no object')
    return inner


def _named(path: str | PathLike[str], empirical: dict[str, Any], kind: str) -> list[Named]:
    data = _inside(path, empirical, kind).get("data")
    if not isinstance(data, list):
        raise _error(path, f'"empirical"."{kind}"."data" is no list')
    result = []
    for position, pair in enumerate(data):
        where = f'"empirical"."{kind}"."data"[{position}]'
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise _error(path, f"{where} is no pair of name and value")
        if not 0 < number(pair[1]) < 1e12:
            raise _error(path, f"{where} ({pair[0][:40]}) has no positive number of G per second")
        result.append(Named(pair[0], pair[1] * 1e9))
    return result
