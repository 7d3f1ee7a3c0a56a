"""Sentences name every problem of an answer."""

from __future__ import annotations

from exchange_simulation.messaging.cell import Cell, Counts
from exchange_simulation.messaging.requests import PingPong
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.streams import wrong_with, wrong_with_each


def sender(count: int, checksum: int = 7) -> dict[str, RoleResult]:
    return {"publisher": RoleResult(sent=count, sent_checksum=checksum)}


def receiver(count: int, checksum: int = 7, **more: object) -> dict[str, RoleResult]:
    return {"consumer": RoleResult(received=count, received_checksum=checksum, **more)}  # type: ignore[arg-type]


def test_a_right_answer_has_no_sentence() -> None:
    assert wrong_with(sender(10), receiver(10), 10) == []


def test_a_lost_message_is_reported_with_both_numbers() -> None:
    assert wrong_with(sender(10), receiver(9), 10) == ["the consumer received 9 messages instead of 10"]


def test_different_checksums_are_reported_if_the_numbers_are_right() -> None:
    assert wrong_with(sender(10), receiver(10, checksum=8), 10) == [
        "checksums differ: 0000000000000007 sent, 0000000000000008 received by the consumer"
    ]


def test_a_doubled_message_is_reported() -> None:
    doubled = receiver(10, wrong={"twice, or out of order": 1})
    assert wrong_with(sender(10), doubled, 10) == ["consumer: 1 messages twice, or out of order"]


def test_only_a_sharer_of_a_queue_may_leave_messages_out() -> None:
    with_gaps = receiver(10, wrong={"left out": 4})
    assert wrong_with(sender(10), with_gaps, 10, shared=True) == []
    assert wrong_with(sender(10), with_gaps, 10) == ["consumer: 4 messages left out"]


def test_a_role_that_stopped_early_is_reported_first() -> None:
    stopped = receiver(9, stopped="nothing came for 10 s")
    first_sentence, *_ = wrong_with(sender(10), stopped, 10)
    assert first_sentence == "consumer: nothing came for 10 s"


def test_each_of_several_receivers_must_have_every_message() -> None:
    receivers = {"subscriber 1": receiver(10)["consumer"], "subscriber 2": receiver(9)["consumer"]}
    assert wrong_with_each(sender(10), receivers, 10) == ["the subscriber 2 received 9 messages instead of 10"]


def test_a_sentence_that_holds_for_all_receivers_is_there_once() -> None:
    receivers = {"subscriber 1": receiver(10)["consumer"], "subscriber 2": receiver(10)["consumer"]}
    assert wrong_with_each(sender(9), receivers, 10) == ["9 messages were sent instead of 10"]


PING_PONG = PingPong("here", "there", Counts())
CELL = Cell("memory", {"size_bytes": 8}, {"count": 5})


def test_an_answer_that_differs_from_its_question_is_reported() -> None:
    asker = RoleResult(sent=5, sent_checksum=1, received=5, received_checksum=2)
    answerer = RoleResult(sent=5)

    (sentence,) = PING_PONG.judge(CELL, {"here": asker, "there": answerer})

    assert sentence.startswith("checksums differ")
    assert sentence.endswith("received by the here")


def test_a_missing_answer_is_reported() -> None:
    asker = RoleResult(sent=5, received=5)
    answerer = RoleResult(sent=4, stopped="nothing came for 10 s")

    assert PING_PONG.judge(CELL, {"here": asker, "there": answerer}) == [
        "there: nothing came for 10 s",
        "the there answered 4 messages instead of 5",
    ]
