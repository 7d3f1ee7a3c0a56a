"""Numbers, durations and sizes as a user types them. Every option reads them here.

A number is 8000, 8,000, 8k, 1e4 or 1.5M. A duration is 2, 2s, 500ms, 50us, 1m or 1h; without a unit it is seconds. A
size is 64, 64B, 1kB or 1KiB. Units may have any case; only the millions of a number are a large M.

Only finite numbers are quantities: nan, inf and a number beyond the range of a float are refused.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal, InvalidOperation, Overflow

FACTORS = {"k": Decimal(1_000), "K": Decimal(1_000), "M": Decimal(1_000_000), "G": Decimal(1_000_000_000)}
SECONDS_BY_UNIT = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "m": Decimal(60),
    "h": Decimal(3_600),
}
"""Seconds by a unit in small letters."""
MICROSECONDS_PER_SECOND = Decimal(1_000_000)
BYTES_BY_UNIT = {"": 1, "b": 1, "kb": 1_000, "kib": 1 << 10, "mb": 1_000_000, "mib": 1 << 20}
"""Bytes by a unit in small letters."""
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?[kKMG]?")
"""A number with a comma before every three digits."""
DURATION = re.compile(r"(?P<number>.*?) ?(?P<unit>[a-zA-Zµ]+)")
SIZE = re.compile(r"(?P<number>[\d,]+) ?(?P<unit>[a-zA-Z]*)")
LARGEST = Decimal(sys.float_info.max)
MOST_DIGITS = 20
"""The most digits of a whole number. No bound has more; an error message can still print such a number."""
NUMBER_FORMS = "8000, 8,000, 8k or 1e4"
DURATION_FORMS = "2, 2s, 500ms, 200us, 1m or 1h"
SIZE_FORMS = "64, 1kB, 1KiB or 1MiB"


def number_of(text: str) -> Decimal:
    """Read a number. InvalidOperation if the text is no number, or the number is not finite."""
    stripped = text.strip()
    if "," in stripped:
        if not GROUPED.fullmatch(stripped):
            raise InvalidOperation(text)
        stripped = stripped.replace(",", "")
    factor = FACTORS.get(stripped[-1:])
    if factor is None:
        return _product(Decimal(stripped), Decimal(1))
    return _product(Decimal(stripped[:-1]), factor)


def whole_number_of(text: str) -> int:
    """Read a whole number that is written in digits alone. InvalidOperation if the text is none, or too long."""
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise InvalidOperation(text)
    return int(text)


def seconds_of(text: str) -> float:
    """Read a duration in seconds. InvalidOperation if the text is none."""
    written = DURATION.fullmatch(text.strip())
    if written is None or written["unit"].lower() not in SECONDS_BY_UNIT:
        return float(number_of(text))
    return float(_product(number_of(written["number"]), SECONDS_BY_UNIT[written["unit"].lower()]))


def microseconds_of(text: str) -> float:
    """Read a duration with its unit, in microseconds. InvalidOperation if the text is none, or has no unit."""
    written = DURATION.fullmatch(text.strip())
    if written is None or written["unit"].lower() not in SECONDS_BY_UNIT:
        raise InvalidOperation(text)
    microseconds_per_unit = SECONDS_BY_UNIT[written["unit"].lower()] * MICROSECONDS_PER_SECOND
    return float(_product(number_of(written["number"]), microseconds_per_unit))


def bytes_of(text: str) -> int:
    """Read a size in bytes. InvalidOperation if the text is none."""
    written = SIZE.fullmatch(text.strip())
    if written is None or written["unit"].lower() not in BYTES_BY_UNIT:
        raise InvalidOperation(text)
    return int(number_of(written["number"])) * BYTES_BY_UNIT[written["unit"].lower()]


def _product(number: Decimal, unit: Decimal) -> Decimal:
    """Return the number times the unit. InvalidOperation if this is not finite, or beyond the range of a float."""
    try:
        product = number * unit
    except Overflow as error:
        raise InvalidOperation(str(number)) from error
    if not product.is_finite() or abs(product) > LARGEST:
        raise InvalidOperation(str(number))
    return product
