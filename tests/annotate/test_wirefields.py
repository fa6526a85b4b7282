"""Messages taken apart into fields and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.formats.report.framing import message
from ncu_roofline.formats.wire import bytes_field, number_field, split, varint

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
