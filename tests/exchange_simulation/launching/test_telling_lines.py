"""Which lines of a failed program's output are quoted."""

from __future__ import annotations

import pytest

from exchange_simulation.launching.errors import telling_lines


@pytest.mark.parametrize(
    ("output", "quoted"),
    [
        ("", "it said nothing"),
        ("\n \n", "it said nothing"),
        ("no such container\n", "no such container"),
        ("denied\n\n  See --help\n", "denied | See --help"),
        ("first\nsecond\nthird", "first | second | third"),
        ("first\nsecond\nthird\nfourth\nfifth", "first | ... | fourth | fifth"),
        ("red \x1b[31m", "red \\x1b[31m"),
    ],
)
def test_a_short_output_is_quoted_whole_and_a_long_one_by_its_first_and_last_two_lines(
    output: str, quoted: str
) -> None:
    assert telling_lines(output) == quoted
