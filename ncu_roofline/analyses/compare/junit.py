"""Thresholds of a comparison as JUnit XML: a suite per report, a test case per kernel and threshold.

Elements and attributes are those that the XSD junit-10 of Jenkins' xUnit plugin and GitLab's unit test reports have in common.
GitLab knows a case by class name and name, and takes the first of equal ones; so names are made unique.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence

from ncu_roofline.analyses.compare.text import NOTHING, ComparisonFrames, Row, names_of, rows_of
from ncu_roofline.base.texts import clean

_ELEMENTS = {"tripped": "failure", "not evaluated": "skipped", "not judged": "skipped"}
_DISJOINT = "nothing in common"
_NO_CASE = {
    "kernel": "kernels",
    "configuration": "",
    "threshold": "in both reports",
    "result": _DISJOINT,
    "reason": NOTHING,
    "seconds": math.nan,
}


def render_junit(comparison: ComparisonFrames, *, strict: bool = False) -> bytes:
    """JUnit XML: what tripped is a failure; what was not judged or evaluated is skipped, the latter with ``strict`` an error.

    Of reports without a common kernel that is an error of its own: a suite of skipped cases would pass.
    """
    elements = {**_ELEMENTS, _DISJOINT: "error", **({"not evaluated": "error"} if strict else {})}
    names, rows = names_of(comparison), rows_of(comparison, "thresholds")
    disjoint = {(one["step"], one["against"]) for one in rows_of(comparison, "summary") if not one["matched"]}
    firsts = {(row["step"], row["against"]): row for row in reversed(rows)}
    rows += [{**row, **_NO_CASE} for key, row in firsts.items() if key in disjoint]
    root = ElementTree.Element("testsuites", {"name": "ncu-roofline compare", **_counts(rows, elements, ("failure", "error"))})
    for step in dict.fromkeys(row["step"] for row in rows):
        mine = [row for row in rows if row["step"] == step]
        report, baseline = names[mine[0]["report"]], names[mine[0]["baseline"]]
        counts = _counts(mine, elements, ("failure", "error", "skipped"))
        suite = ElementTree.SubElement(root, "testsuite", {"name": f"{report} against {baseline}", **counts})
        _cases(suite, mine, report, elements)
    ElementTree.indent(root)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _counts(rows: Sequence[Row], elements: dict[str, str], kinds: tuple[str, ...]) -> dict[str, str]:
    found = Counter(elements.get(row["result"], "") for row in rows)
    plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    return {"tests": str(len(rows)), **{plural[kind]: str(found[kind]) for kind in kinds}}


def _cases(suite: ElementTree.Element, rows: Sequence[Row], report: str, elements: dict[str, str]) -> None:
    seen: Counter[str] = Counter()
    for row in rows:
        kernel = f"{clean(row['kernel'])} {clean(row['configuration'])}".strip()
        name = f"{kernel}: {clean(row['threshold'])}"
        seen[name] += 1
        numbered = name if seen[name] == 1 else f"{name} ({seen[name]})"
        case = ElementTree.SubElement(suite, "testcase", {"name": numbered, "classname": report})
        if math.isfinite(row["seconds"]):
            case.set("time", f"{row['seconds']:.9f}")
        if kind := elements.get(row["result"], ""):
            said = f"{row['result']}: {clean(row['reason'])}"
            inner = ElementTree.SubElement(case, kind, {"message": said, "type": row["result"]})
            inner.text = f"{kernel}: {clean(row['threshold'])} is {said}"
