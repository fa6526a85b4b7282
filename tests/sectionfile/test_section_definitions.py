"""Expressions of derived metrics."""

from __future__ import annotations

import math

import pytest

from ncu_roofline.formats.sectionfile.charts import Value, parse_expression

VALUES: dict[str, Value] = {
    "a.sum": 6.0,
    "b": 4,
    "n": 7,
    "zero": 0,
    "fzero": 0.0,
    "text": "hello",
    "nan": math.nan,
    "big": 2**63,
}


def value(text: str) -> Value:
    return parse_expression(text).evaluate(VALUES.get)


@pytest.mark.parametrize("digits", [20, 401, 5_000, 9_999])
def test_numbers_larger_than_64_bits_are_doubles(digits: int) -> None:
    expected = float("9" * digits)  # of 401 digits: infinite
    assert value("9" * digits) == expected
    for text in ("{} * a.sum", "a.sum * {}", "b - {}", "n / {}", "-{}", "{} + {}"):
        result = value(text.format("9" * digits, "9" * digits)[:9_999])
        assert result is None or isinstance(result, (int, float))


@pytest.mark.parametrize(
    "text", ["b * 1e999", "n - 1e400", "1e400 * 0 + b", "n * nan", "b * (0.0 / fzero)", "big * big", "1 - 2"]
)
def test_what_overflows_is_no_whole_number(text: str) -> None:
    result = value(text)
    assert result is None or not math.isfinite(result)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.sum * 2", 12.0),
        ("a.sum + b", 10.0),
        ("a.sum - 10", -4.0),
        ("a.sum / b", 1.5),
        ("2 * 3", 6),
        (" 5. * 2 ", 10.0),
        ("0.5 * b", 2.0),
        ("1e3 * 2", 2000.0),
        ("b", 4),
        ("a.sum*2", 12.0),
        # kind of the left operand
        ("n / b", 1),
        ("n * 1.87", 7),
        ("b * 2.9", 8),
        ("n / a.sum", 1),
        # division by zero
        ("n / 0", 7),
        ("n / zero", 7),
        ("a.sum / 0", 6.0),
        ("a.sum / zero", 6.0),
        ("n / 0.5", 7),
        ("a.sum / fzero", math.inf),
        ("-a.sum / fzero", -math.inf),
        # several operators
        ("( a.sum * 100 ) / b", 150.0),
        ("a.sum + b * 2", 14.0),
        ("a.sum - b - 1", 1.0),
        ("a.sum / 2 / 3", 1.0),
        ("a.sum - (b - 1)", 3.0),
        ("((((b))))", 4),
        ("-a.sum * 2", -12.0),
        ("2.0 * -(b + 1)", -10.0),
        ("nan_as_zero(nan) + 3", 3.0),
        ("nan_as_zero(a.sum) + 3", 9.0),
        ("nan_as_zero ( nan * 2 )", 0.0),
        # text
        ("text * 2", "hello"),
    ],
)
def test_value_and_kind(text: str, expected: Value) -> None:
    result = value(text)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "missing",
        "missing * 2",
        "2 * missing",
        "a.sum + (b * missing)",
        "nan_as_zero(missing)",
        "2 * text",
        "text * missing",
        "b - 10",
        "big * 2",
        "n * nan",
    ],
)
def test_no_value(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize("text", ["nan * 2", "a.sum * nan", "fzero / fzero"])
def test_nan(text: str) -> None:
    result = value(text)
    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a +",
        "* 2",
        "a b",
        "a + * b",
        "(a",
        "a)",
        "()",
        "a ^ 2",
        "a % b",
        "f(a)",
        "nan_as_zero(a",
        "nan_as_zero()",
        "1 2",
        "a;b",
        "(" * 5000 + "a" + ")" * 5000,
        "-" * 5000 + "1",
        "a + " * 3000 + "a",
        "nan_as_zero(" * 200 + "a" + ")" * 200,
        "\N{ARABIC-INDIC DIGIT ONE} + 1",
    ],
)
def test_not_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="expression"):
        parse_expression(text)


def test_nan_as_zero_alone_is_a_metric_name() -> None:
    assert parse_expression("nan_as_zero * 2").names == ("nan_as_zero",)


def test_names_once_in_order() -> None:
    assert parse_expression("b + a.x__y:z.sum * b - 2").names == ("b", "a.x__y:z.sum")


def test_long_chain_does_not_recurse() -> None:
    assert value("1" + " + 1" * 2000) == 2001
