"""Requests of many and their answers: each goes to who asked, and nobody sees another's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, placed, until, urls_with
from transports.amqp.broker import RabbitMqProbe, leave_answers
from transports.base import BadAddress, Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen

EACH = 150
"""More than a server takes at once, and together more than a link acknowledges together."""


@pytest.fixture(params=urls_with(Pattern.REQUESTS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def asking(url: str, askers: int, pattern: Pattern = Pattern.REQUESTS) -> Iterator[tuple[Link, list[Link]]]:
    with contextlib.ExitStack() as closing:
        answering = listen(url, TOKEN, pattern)
        closing.callback(answering.close)
        links = [connect(answering.url, TOKEN, deadline_ns(), pattern) for _ in range(askers)]
        for link in links:
            closing.callback(link.close)
        yield answering, links


def server(link: Link, answer: Callable[[bytes], bytes], largest: int = 1 << 17) -> Callable[[], None]:
    """To be called again and again: takes requests, and sends an answer for each."""
    batch, answers, sent = FrameBatch(100, 4 * largest, largest), FrameBatch(100, 4 * largest, largest), 0

    def serve() -> None:
        nonlocal sent
        if sent < answers.count:
            sent = link.send(answers, sent)
        elif link.receive(batch):
            answers.clear()
            for frame in batch:
                answers.append(answer(frame))
            batch.clear()
            sent = link.send(answers, 0)

    return serve


def requests_of(asker: int) -> list[bytes]:
    return [bytes([asker]) + n.to_bytes(4, "big") * (1 + n % 5) for n in range(EACH)]


def test_every_answer_goes_to_who_asked_in_order(url: str) -> None:
    with asking(url, 3) as (answering, askers):
        serve = server(answering, lambda frame: frame[::-1])
        outgoing, sent = [FrameBatch.of(*requests_of(n)) for n in range(3)], [0, 0, 0]
        batches = [FrameBatch() for _ in askers]

        def answered() -> bool:
            serve()
            for n, link in enumerate(askers):
                sent[n] = link.send(outgoing[n], sent[n]) if sent[n] < EACH else EACH
                link.receive(batches[n])
            return all(batch.count == EACH for batch in batches)

        until(answered, answering, *askers)
        for n, batch in enumerate(batches):
            assert list(batch) == [frame[::-1] for frame in requests_of(n)]


def test_answers_to_who_has_gone_harm_nobody(url: str) -> None:
    with asking(url, 2) as (answering, (leaves, stays)):
        batch, heard = FrameBatch(), FrameBatch()
        for link in (leaves, stays):
            assert link.send(FrameBatch.of(b"a request"), 0) == 1
        until(lambda: answering.receive(batch) >= 0 and batch.count == 2, answering, leaves, stays)
        leaves.close()
        answers, sent = FrameBatch.of(b"one", b"two"), 0

        def heard_it() -> bool:
            nonlocal sent
            sent = answering.send(answers, sent) if sent < 2 else sent
            return stays.receive(heard) > 0

        until(heard_it, answering, stays)
        assert list(heard) in ([b"one"], [b"two"])
        assert stays.send(FrameBatch.of(b"another"), 0) == 1
        serve = server(answering, lambda frame: b"to " + frame)
        heard.clear()
        until(lambda: serve() or stays.receive(heard) > 0, answering, stays)
        assert list(heard) == [b"to another"]


def test_a_request_that_is_too_long_has_no_answer_and_shifts_no_other(url: str) -> None:
    with asking(url, 2) as (answering, (one, other)):
        serve = server(answering, lambda frame: frame, largest=1000)
        one.send(FrameBatch.of(b"1", bytes(5000), b"2"), 0)
        other.send(FrameBatch.of(b"3", bytes(5000), b"4"), 0)
        for _ in range(20):  # what comes now is set aside
            answering.wait(deadline_ns(0.01), readable=False)
        heard = [FrameBatch(), FrameBatch()]

        def answered() -> bool:
            serve()
            one.receive(heard[0])
            other.receive(heard[1])
            return heard[0].count == heard[1].count == 2

        until(answered, answering, one, other)
        assert [list(batch) for batch in heard] == [[b"1", b"2"], [b"3", b"4"]]
        assert answering.junk == 2


@pytest.fixture
def at_broker(broker_place: str) -> str:
    return f"amqp://{broker_place}"


@pytest.mark.parametrize("delivery", ["lossy", "acked", "confirmed", "durable"])
def test_each_finds_its_own_answer_in_the_queue_that_all_share(delivery: str, at_broker: str) -> None:
    with asking(f"{at_broker}?delivery={delivery}", 3, Pattern.SCAN) as (answering, askers):
        serve = server(answering, lambda frame: b"to " + frame)
        for turn in range(5):
            heard = [FrameBatch() for _ in askers]
            for n, link in enumerate(askers):
                assert link.send(FrameBatch.of(b"%d of %d" % (turn, n)), 0) == 1

            def all_have(heard: list[FrameBatch] = heard) -> bool:
                serve()
                for link, batch in zip(askers, heard, strict=True):
                    link.receive(batch)
                return all(batch.count for batch in heard)

            until(all_have, answering, *askers)
            assert [list(batch) for batch in heard] == [[b"to %d of %d" % (turn, n)] for n in range(3)]


def test_who_scans_looks_past_what_is_another_s_and_leaves_it_there(at_broker: str) -> None:
    with asking(at_broker, 2, Pattern.SCAN) as (answering, (absent, present)):
        serve = server(answering, lambda frame: frame)
        absent.send(FrameBatch.of(*requests_of(0)[:20]), 0)
        probe = RabbitMqProbe(at_broker, TOKEN)
        until(lambda: serve() or probe.depth()["responses"] == 20, answering, absent)
        probe.close()
        heard = FrameBatch()
        for turn in (1, 2):
            present.send(FrameBatch.of(b"mine"), 0)
            until(
                lambda turn=turn: serve() or (present.receive(heard) >= 0 and heard.count == turn), answering, present
            )
        assert present.facts()["looked_at"] >= 2 * 21
        late = FrameBatch()
        until(lambda: absent.receive(late) >= 0 and late.count == 20, answering, absent)
        assert sorted(late) == sorted(requests_of(0)[:20])


@pytest.mark.parametrize("pattern", [Pattern.REQUESTS, Pattern.SCAN])
def test_answers_to_an_absent_client_stay_where_they_are(pattern: Pattern, at_broker: str) -> None:
    leave_answers(at_broker, TOKEN, pattern, bytes(100), 30)
    with asking(at_broker, 1, pattern) as (answering, (asker,)):
        serve, heard = server(answering, lambda frame: frame), FrameBatch()
        asker.send(FrameBatch.of(b"mine"), 0)
        until(lambda: serve() or asker.receive(heard) > 0, answering, asker)
        assert list(heard) == [b"mine"]
        probe = RabbitMqProbe(at_broker, TOKEN)
        name = "responses" if pattern is Pattern.SCAN else "absent"
        until(lambda: probe.depth()[name] == 30, asker)
        probe.close()


def test_there_is_no_scan_without_a_queue() -> None:
    with pytest.raises(BadAddress, match="zeromq has no pattern 'scan'"):
        listen("zeromq://127.0.0.1:0", TOKEN, Pattern.SCAN)


def test_a_scan_is_the_compiled_client_s(at_broker: str) -> None:
    with pytest.raises(BadAddress, match="with client=compiled only"):
        connect(f"{at_broker}?client=pika", TOKEN, deadline_ns(), Pattern.SCAN)
