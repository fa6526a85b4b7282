"""What is appended, where, and that it comes off again; messages taken apart into fields and put together again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.report import RuleMessage, RuleResult, read_report
from ncu_roofline.formats.report.framing import KINDS, message, open_raw
from ncu_roofline.formats.wire import bytes_field, number_field, split, varint
from ncu_roofline.plugin.annotate import Addition, appended, is_annotated, stripped
from tests.annotate.helpers import OWN, assert_kept
from tests.report.factory import block, encoded, file_of, result, saxpy, write
from tests.sectionfile.section_factory import section

SECTION = section(Identifier=f"{OWN}Overview".encode())
RULE = RuleResult(f"{OWN}Rule", "Rule", f"{OWN}Overview", (RuleMessage("ok", "Said."),))
VALUES = {"rl__a": 1.5, "rl__b": 7, "rl__c": "text"}
ADDITION = Addition(list(VALUES.items()), [SECTION], [RULE])


def append(path: Path, *additions: Addition) -> Path:
    raw = open_raw(path)
    return write(path.parent, b"".join(appended(raw, list(VALUES), additions)), f"{path.stem}+.ncu-rep")


def strip(path: Path) -> bytes:
    return b"".join(stripped(open_raw(path)))


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_all_kinds_of_results(kind: str, tmp_path: Path) -> None:
    own = RuleResult("Stock", "Stock", "", (RuleMessage("ok", "Before."),))
    data = encoded([saxpy(kind=kind, sections=(section(Identifier=b"Stock"),), rule_results=(own,))])
    path = write(tmp_path, data)
    done = append(path, ADDITION)
    assert_kept(path, done)
    assert is_annotated(open_raw(done))
    assert not is_annotated(open_raw(path))
    with read_report(done) as report, read_report(path) as before:
        (kernel,), (old,) = report.kernels, before.kernels
        assert dict(kernel.metrics) == {**old.metrics, **VALUES}
        assert kernel.sections == (*old.sections, SECTION)
        assert kernel.rule_results == ((*old.rule_results, RULE) if kind in ("kernel", "cmdlist") else ())
    assert strip(done) == data


_UNKNOWN = result([(0, 2.0)], function=b"k") + b"\xc0\x3e\x01\xca\x3e\x03new" + result([(1, 3)])
_BLOCKS = (
    block([result([(0, 1.0)])], ["first"], kernels=1),
    block([result([(0, 2.0), (1, 3.0)])], ["second"], kernels=1),
    block([result([(1, 4.0)])], kernels=1),
    block(),
)
_RECORDS = [result([(0, float(number))]) for number in range(3)]


@pytest.mark.parametrize(
    ("data", "additions", "expected"),
    [
        pytest.param(
            file_of(block(strings=["x", "y"]), block([b"source", _UNKNOWN], sources=1, kernels=1)),
            [ADDITION],
            [{"x": 2.0, "y": 3, **VALUES}],
            id="unknown fields, damage of order",
        ),
        pytest.param(  # no other name's number changes, also where later blocks bring names and the last ones bring none
            file_of(*_BLOCKS),
            [Addition([("rl__a", 10.0)]), Addition([("rl__b", 20.0)]), Addition([("rl__c", 30.0)])],
            [{"first": 1.0, "rl__a": 10.0}, {"first": 2.0, "second": 3.0, "rl__b": 20.0}, {"second": 4.0, "rl__c": 30.0}],
            id="names go behind the last ones",
        ),
        pytest.param(
            file_of(block(strings=["x"]), block(_RECORDS[:2], kernels=2), block([b"s", _RECORDS[2]], sources=1, kernels=1)),
            [Addition([("rl__a", -float(number))]) for number in range(3)],
            [{"x": 0.0, "rl__a": 0.0}, {"x": 1.0, "rl__a": -1.0}, {"x": 2.0, "rl__a": -2.0}],
            id="several blocks, and results in one",
        ),
    ],
)
def test_where_it_goes(tmp_path: Path, data: bytes, additions: list[Addition], expected: list[dict[str, Any]]) -> None:
    path = write(tmp_path, data)
    done = append(path, *additions)
    assert_kept(path, done)
    with read_report(done) as report:
        assert [dict(kernel.metrics) for kernel in report.kernels] == expected
    assert strip(done) == data


def test_names_that_another_program_left_are_used_again(tmp_path: Path) -> None:
    """A viewer that saves an annotated report may put its names elsewhere."""
    path = write(tmp_path, file_of(block([result([(1, 1.0), (0, 5.0)])], ["rl__b", "x"], kernels=1)))
    rest = write(tmp_path, strip(path), "rest.ncu-rep")
    with read_report(rest) as report:
        assert dict(report.kernels[0].metrics) == {"x": 1.0}
    done = append(rest, ADDITION)
    with read_report(done) as report:
        assert dict(report.kernels[0].metrics) == {"x": 1.0, **VALUES}
    assert strip(done) == rest.read_bytes()
    with pytest.raises(RooflineError, match="no table of metric names"):
        append(write(tmp_path, file_of(block([result([])], kernels=1)), "bare.ncu-rep"), ADDITION)


NUMBER, VALUE = st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1)
FIXED = [st.builds(lambda n, data, kind=kind: varint(n << 3 | kind) + data, NUMBER, st.binary(min_size=size, max_size=size))
         for kind, size in ((1, 8), (5, 4))]  # fmt: skip
FIELDS = st.one_of(st.builds(number_field, NUMBER, VALUE), st.builds(bytes_field, NUMBER, st.binary(max_size=300)), *FIXED)


@given(st.lists(FIELDS), VALUE)
def test_fields_are_found_where_they_are(fields: list[bytes], value: int) -> None:
    """Numbers are written as protobuf writes them."""
    data = b"".join(fields)
    assert [data[one.start : one.end] for one in split(data)] == fields
    assert message("Value")(uint64=value).SerializeToString() == number_field(5, value)


def test_no_message() -> None:
    """Numbers that are missing or without end, too few bytes, wire type 7, a group, field 0."""
    for data in (b"\x08", b"\x0a\x05abc", b"\x09abc", b"\x0f", b"\x0b\x08\x01\x0c", b"\x00\x01", b"\x08" + b"\xff" * 11):
        with pytest.raises(ValueError, match="byte"):
            list(split(data))
