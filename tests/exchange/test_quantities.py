"""Numbers, durations and sizes as a user types them."""

from __future__ import annotations

from decimal import InvalidOperation

import pytest

from exchange.quantities import bytes_of, microseconds_of, number_of, seconds_of, whole_number_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8000", 8000),
        ("8,000", 8000),
        ("8k", 8000),
        ("8K", 8000),
        ("1,234,567", 1_234_567),
        ("1.5M", 1_500_000),
        ("1e4", 10_000),
    ],
)
def test_a_number_has_many_forms(text: str, number: int) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize("text", ["", "fast", "8,00", "8,0000", ",800", "1,000,00", "8kk", "k"])
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperation):
        number_of(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2", 2.0),
        ("2s", 2.0),
        ("2 s", 2.0),
        ("500ms", 0.5),
        ("50us", 50e-6),
        ("1m", 60.0),
        ("1min", 60.0),
        ("1.5h", 5400.0),
        ("1,000ms", 1.0),
        ("1e3", 1000.0),
        ("2S", 2.0),
        ("500MS", 0.5),
        ("200Us", 200e-6),
        ("2M", 120.0),
    ],
)
def test_a_duration_may_have_a_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "2x", "2 weeks", "ms2"])
def test_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperation):
        seconds_of(text)


def test_microseconds_need_a_unit() -> None:
    assert microseconds_of("1ms") == pytest.approx(1000.0)
    with pytest.raises(InvalidOperation):
        microseconds_of("1")


@pytest.mark.parametrize(
    ("text", "size"), [("64", 64), ("64B", 64), ("1kB", 1000), ("1KiB", 1024), ("1kib", 1024), ("1,024", 1024)]
)
def test_a_size_has_a_unit_in_any_case(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "B", "1TB", "-1", "1.5kB"])
def test_text_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperation):
        bytes_of(text)


NOT_FINITE = ["nan", "NaN", "sNaN", "-sNaN", "inf", "-inf", "Infinity", "1e309", "-1e309", "1e9999999", "9" * 5_000]


@pytest.mark.parametrize("text", [*NOT_FINITE, "infk", "sNaNM", "1e306G", "1e9999999G"])
def test_a_number_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperation):
        number_of(text)


@pytest.mark.parametrize("text", [*NOT_FINITE, "sNaNs", "infms", "1e306h", "1e9999999h", "1e999999999s"])
def test_a_duration_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(InvalidOperation):
        seconds_of(text)


@pytest.mark.parametrize("text", ["1e303s", "nanms", "sNaNs", "1e9999999h", "infus"])
def test_microseconds_that_are_not_finite_are_refused(text: str) -> None:
    assert seconds_of("1e303s") == 1e303
    with pytest.raises(InvalidOperation):
        microseconds_of(text)


def test_a_size_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InvalidOperation):
        bytes_of("9" * 5_000)


@pytest.mark.parametrize("text", ["", "-1", "1.5", " 1", "1k", "9" * 21, "9" * 5_000])
def test_text_that_is_no_whole_number_in_digits_is_refused(text: str) -> None:
    assert whole_number_of("0450") == 450
    with pytest.raises(InvalidOperation):
        whole_number_of(text)
