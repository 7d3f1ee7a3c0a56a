"""Message sizes and numbers as a user types them."""

from __future__ import annotations

import click
import pytest

from exchange_simulation.messaging.options import numbers_of, sizes_of
from exchange_simulation.messaging.point import size_in_words


def test_a_range_of_sizes_doubles() -> None:
    assert sizes_of("1B..1MiB") == tuple(1 << power for power in range(21))
    assert sizes_of("64..64") == (64,)


def test_a_range_of_numbers_has_every_number() -> None:
    assert numbers_of("1..3", "pairs", 1, 8) == (1, 2, 3)
    assert numbers_of("3..3", "pairs", 1, 8) == (3,)


def test_a_list_may_have_any_size_and_unit() -> None:
    assert sizes_of("6, 100B,1kB,1KiB,1MB") == (6, 100, 1_000, 1_024, 1_000_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "0 is 0 bytes; a message has 1 to 1,048,576"),
        ("2MiB", "2MiB is 2,097,152 bytes"),
        ("1MiB..1B", "goes down: give the smaller size first"),
        ("1..100", "its ends are powers of two, and 100 is none"),
        ("64,8", "not in order"),
        ("8,8", "give each size once"),
        ("1B..", "'' is no size"),
        ("-8", "'-8' is no size"),
        ("8 apples", "'8 apples' is no size: give bytes, as 64, 1kB, 1KiB or 1MiB"),
        ("", "'' is no size"),
    ],
)
def test_a_wrong_size_is_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        sizes_of(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "1 B"), (1_000, "1,000 B"), (1_024, "1 KiB"), (1_536, "1,536 B"), (1 << 20, "1 MiB")],
)
def test_a_size_has_the_largest_unit_that_gives_a_whole_number(size: int, words: str) -> None:
    assert size_in_words(size) == words
