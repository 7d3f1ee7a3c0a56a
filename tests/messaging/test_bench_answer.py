"""The sentence above a benchmark's table: how far two transports are apart."""

from __future__ import annotations

from typing import Any

import pytest

from messaging.results import answer


def record(amqp: tuple[float | None, float | None], zeromq: tuple[float | None, float | None]) -> dict[str, Any]:
    rows = [
        {"transport": transport, "point": {"size_bytes": 64},
         "figures": {"messages_per_s": {"median": median, "low": ends[0], "high": ends[1]}}}
        for transport, median, ends in (("amqp", 100.0, amqp), ("zeromq", 400.0, zeromq))
    ]  # fmt: skip
    return {"benchmark": "de-spsc", "rows": rows}


@pytest.mark.parametrize(("high", "apart"), [(300.0, 1), (350.0, 0)])
def test_it_says_at_how_many_points_the_intervals_are_apart(high: float, apart: int) -> None:
    assert answer([record((90.0, high), (340.0, 410.0))]) == (
        f"zeromq's rates are 4 times amqp's (1 point). The 95 % intervals of the two are apart at {apart} of 1 point."
    )


def test_of_one_repeat_there_is_no_interval_so_none_is_said_to_overlap() -> None:
    assert answer([record((None, None), (None, None))]) == "zeromq's rates are 4 times amqp's (1 point)."
