"""Messages taken apart into fields and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.formats.report.framing import message
from ncu_roofline.formats.wire import bytes_field, number_field, split, varint

FIELDS = st.one_of(
    st.builds(number_field, st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1)),
    st.builds(bytes_field, st.integers(1, 2**29 - 1), st.binary(max_size=300)),
    st.builds(lambda number, data: varint(number << 3 | 1) + data, st.integers(1, 99), st.binary(min_size=8, max_size=8)),
    st.builds(lambda number, data: varint(number << 3 | 5) + data, st.integers(1, 99), st.binary(min_size=4, max_size=4)),
)


@given(st.lists(FIELDS))
def test_fields_are_found_where_they_are(fields: list[bytes]) -> None:
    data = b"".join(fields)
    assert [data[one.start : one.end] for one in split(data)] == fields


@given(st.integers(0, 2**64 - 1))
def test_numbers_are_written_as_protobuf_writes_them(value: int) -> None:
    assert message("Value")(uint64=value).SerializeToString() == number_field(5, value)


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # a number is missing
        b"\x0a\x05abc",  # shorter than it says
        b"\x09abc",  # fixed size, cut
        b"\x0f",  # wire type 7
        b"\x0b\x08\x01\x0c",  # a group
        b"\x00\x01",  # field 0
        b"\x08" + b"\xff" * 11,  # a number without end
    ],
)
def test_no_message(data: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        list(split(data))
