"""What a check says about a place of a section file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

ERROR, WARNING, INFO = "error", "warning", "info"
"""Severities: Nsight Compute drops something; it may, or the numbers mislead; good to know."""


CODES = {
    "syntax": "no text format of protobuf",
    "encoding": "a byte order mark (error), or bytes that are not UTF-8 (warning)",
    "unknown-field": "a field that no release knows",
    "unknown-value": "a value of an enum that no release knows",
    "bad-value": "a value of the wrong type",
    "duplicate-field": "a field given twice, or two that exclude each other",
    "required-field": "a required field is absent",
    "release": "a field or value that the release asked for, or some release, does not know",
    "no-release": "no release knows everything that the file uses",
    "file-name": "a name that Nsight Compute does not load",
    "empty-identifier": "the identifier is empty",
    "identifier-space": "an identifier with a space",
    "stock-identifier": "an identifier of Nsight Compute's own sections",
    "duplicate-identifier": "two files with one identifier",
    "definition-conflict": "two files that define one metric in two ways",
    "expression": "no expression of a derived metric",
    "expression-release": "an expression that old releases can't compute",
    "derived-of-derived": "a derived metric made of a derived metric",
    "uncollected-input": "an input of a derived metric that the section does not collect",
    "undefined-derived": "a derived metric in a chart without its definition",
    "unknown-metric": "a metric that no chip has",
    "metric-missing": "a metric that some chip lacks",
    "metric-suffix": "a metric with a wrong suffix, or without one",
    "no-clock": "a value per cycle without cycles per second",
    "pattern-metric": "a pattern or group in a roofline",
    "no-chart": "a chip on which no roofline chart is shown",
    "no-roof": "a chip on which a chart has no roof",
    "no-dot": "a chip on which a chart has no dot",
    "constant-roofs": "a chart without collected roof, which ncu-ui 2024 refuses",
    "counter-family": "a dot counted by other counters than its roof",
    "dot-without-roof": "a dot whose memory level has no roof",
}
"""Every rule."""


@dataclass(frozen=True)
class Finding:
    """One remark: line and column count from 1; `code` names the rule; `path` is "" for a text without file."""

    severity: str
    line: int
    column: int
    code: str
    message: str
    path: str = ""

    def as_dict(self) -> dict[str, str | int]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.path or 'section'}:{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


def has_error(findings: Iterable[Finding]) -> bool:
    """Whether any of them is an error."""
    return any(one.severity == ERROR for one in findings)
