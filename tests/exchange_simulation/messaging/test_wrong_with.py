"""Sentences name what is wrong with an answer."""

from __future__ import annotations

from exchange_simulation.messaging.cell import Cell, Counts
from exchange_simulation.messaging.requests import PingPong
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.streams import wrong_with, wrong_with_each


def sent(many: int, checksum: int = 7) -> dict[str, RoleResult]:
    return {"publisher": RoleResult(sent=many, sent_checksum=checksum)}


def came(many: int, checksum: int = 7, **more: object) -> dict[str, RoleResult]:
    return {"consumer": RoleResult(received=many, received_checksum=checksum, **more)}  # type: ignore[arg-type]


def test_nothing_is_wrong_where_all_came() -> None:
    assert wrong_with(sent(10), came(10), 10) == []


def test_a_lost_message_is_told_with_both_numbers() -> None:
    assert wrong_with(sent(10), came(9), 10) == ["the consumer received 9 messages instead of 10"]


def test_checksums_are_told_where_the_numbers_are_right() -> None:
    assert wrong_with(sent(10), came(10, 8), 10) == [
        "checksums differ: 0000000000000007 sent, 0000000000000008 received by the consumer"
    ]


def test_who_got_something_twice_is_told() -> None:
    assert wrong_with(sent(10), came(10, wrong={"twice, or out of order": 1}), 10) == [
        "consumer: 1 messages twice, or out of order"
    ]


def test_a_sharer_of_a_queue_may_miss_but_gets_nothing_twice() -> None:
    shared = came(10, wrong={"left out": 4})
    assert wrong_with(sent(10), shared, 10, shared=True) == []
    assert wrong_with(sent(10), shared, 10) == ["consumer: 4 messages left out"]


def test_who_stopped_early_is_told_first() -> None:
    assert wrong_with(sent(10), came(9, stopped="nothing came for 10 s"), 10)[0] == "consumer: nothing came for 10 s"


def test_each_of_several_is_to_have_everything() -> None:
    """What is wrong with all of them is said once."""
    several = {"subscriber 1": came(10)["consumer"], "subscriber 2": came(9)["consumer"]}
    assert wrong_with_each(sent(10), several, 10) == ["the subscriber 2 received 9 messages instead of 10"]
    assert wrong_with_each(sent(9), {name: came(10)["consumer"] for name in several}, 10) == [
        "9 messages were sent instead of 10"
    ]


def test_an_answer_that_is_not_what_was_asked_is_told() -> None:
    bounces, cell = PingPong("here", "there", Counts()), Cell("memory", {"size_bytes": 8}, {"count": 5})
    asker = RoleResult(sent=5, sent_checksum=1, received=5, received_checksum=2)
    (differs,) = bounces.judge(cell, {"here": asker, "there": RoleResult(sent=5)})
    assert differs.endswith("received by the here")
    asker, answerer = RoleResult(sent=5, received=5), RoleResult(sent=4, stopped="nothing came for 10 s")
    assert bounces.judge(cell, {"here": asker, "there": answerer}) == [
        "there: nothing came for 10 s",
        "the there answered 4 messages instead of 5",
    ]
