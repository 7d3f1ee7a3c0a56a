"""Requests of several clients: each answer goes only to the client that asked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, placed, serve_links_until, urls_with
from transports.amqp.broker import RabbitMqProbe
from transports.amqp.left_answers import leave_answers
from transports.base import BadAddress, Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen

REQUESTS = 150
"""Requests of each client: more than a server takes at once, and in all more than a link acknowledges together."""


@pytest.fixture(params=urls_with(Pattern.REQUESTS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return placed(request, tmp_path)


@contextlib.contextmanager
def asking(url: str, askers: int, pattern: Pattern = Pattern.REQUESTS) -> Iterator[tuple[Link, list[Link]]]:
    """Yield a server's link, and the links of this many clients."""
    with contextlib.ExitStack() as closing:
        answering = listen(url, TOKEN, pattern)
        closing.callback(answering.close)
        links = [connect(answering.url, TOKEN, deadline_ns(), pattern) for _ in range(askers)]
        for link in links:
            closing.callback(link.close)
        yield answering, links


def server(link: Link, answer: Callable[[bytes], bytes], largest: int = 1 << 17) -> Callable[[], None]:
    """Return a function that takes requests and sends an answer for each. It has to be called again and again."""
    batch = FrameBatch(100, 4 * largest, largest)
    answers = FrameBatch(100, 4 * largest, largest)
    sent = 0

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


def serve_until(serve: Callable[[], None], condition: Callable[[], bool], *links: Link) -> None:
    """Let a server serve until the condition holds."""

    def serve_and_check() -> bool:
        serve()
        return condition()

    serve_links_until(serve_and_check, *links)


def requests_of(asker: int) -> list[bytes]:
    """Return numbered requests of five sizes, each with the number of its client."""
    return [bytes([asker]) + number.to_bytes(4, "big") * (1 + number % 5) for number in range(REQUESTS)]


def test_every_client_gets_its_answers_in_order(url: str) -> None:
    with asking(url, 3) as (answering, askers):
        serve = server(answering, lambda frame: frame[::-1])
        outgoing = [FrameBatch.of(*requests_of(number)) for number in range(3)]
        sent = [0, 0, 0]
        batches = [FrameBatch() for _ in askers]

        def answered() -> bool:
            serve()
            for number, link in enumerate(askers):
                if sent[number] < REQUESTS:
                    sent[number] = link.send(outgoing[number], sent[number])
                link.receive(batches[number])
            return all(batch.count == REQUESTS for batch in batches)

        serve_links_until(answered, answering, *askers)
        for number, batch in enumerate(batches):
            assert list(batch) == [frame[::-1] for frame in requests_of(number)]


def test_answers_to_a_client_that_left_harm_no_other(url: str) -> None:
    with asking(url, 2) as (answering, (leaves, stays)):
        batch = FrameBatch()
        received = FrameBatch()
        for link in (leaves, stays):
            assert link.send(FrameBatch.of(b"a request"), 0) == 1
        serve_links_until(lambda: answering.receive(batch) >= 0 and batch.count == 2, answering, leaves, stays)
        leaves.close()
        answers = FrameBatch.of(b"one", b"two")
        sent = 0

        def has_its_answer() -> bool:
            nonlocal sent
            if sent < 2:
                sent = answering.send(answers, sent)
            return stays.receive(received) > 0

        serve_links_until(has_its_answer, answering, stays)
        assert list(received) in ([b"one"], [b"two"])
        assert stays.send(FrameBatch.of(b"another"), 0) == 1
        serve = server(answering, lambda frame: b"to " + frame)
        received.clear()
        serve_until(serve, lambda: stays.receive(received) > 0, answering, stays)
        assert list(received) == [b"to another"]


def test_a_request_that_is_too_long_is_skipped(url: str) -> None:
    with asking(url, 2) as (answering, (one, other)):
        serve = server(answering, lambda frame: frame, largest=1000)
        one.send(FrameBatch.of(b"1", bytes(5000), b"2"), 0)
        other.send(FrameBatch.of(b"3", bytes(5000), b"4"), 0)
        for _ in range(20):  # the requests arrive during waits for room
            answering.wait(deadline_ns(0.01), readable=False)
        received_by_one = FrameBatch()
        received_by_other = FrameBatch()

        def answered() -> bool:
            serve()
            one.receive(received_by_one)
            other.receive(received_by_other)
            return received_by_one.count == 2 and received_by_other.count == 2

        serve_links_until(answered, answering, one, other)
        assert list(received_by_one) == [b"1", b"2"]
        assert list(received_by_other) == [b"3", b"4"]
        assert answering.junk == 2


@pytest.fixture
def at_broker(broker_place: str) -> str:
    return f"amqp://{broker_place}"


@pytest.mark.parametrize("delivery", ["lossy", "acked", "confirmed", "durable"])
def test_each_client_finds_its_answer_in_the_shared_queue(delivery: str, at_broker: str) -> None:
    with asking(f"{at_broker}?delivery={delivery}", 3, Pattern.SCAN) as (answering, askers):
        serve = server(answering, lambda frame: b"to " + frame)
        for turn in range(5):
            batches = [FrameBatch() for _ in askers]
            for number, link in enumerate(askers):
                assert link.send(FrameBatch.of(b"%d of %d" % (turn, number)), 0) == 1

            def have_answers(batches: list[FrameBatch] = batches) -> bool:
                for link, batch in zip(askers, batches, strict=True):
                    link.receive(batch)
                return all(batch.count > 0 for batch in batches)

            serve_until(serve, have_answers, answering, *askers)
            for number, batch in enumerate(batches):
                assert list(batch) == [b"to %d of %d" % (turn, number)]


def test_a_scan_leaves_the_answers_of_other_clients_in_the_queue(at_broker: str) -> None:
    with asking(at_broker, 2, Pattern.SCAN) as (answering, (absent, present)):
        serve = server(answering, lambda frame: frame)
        absent.send(FrameBatch.of(*requests_of(0)[:20]), 0)
        probe = RabbitMqProbe(at_broker, TOKEN)
        serve_until(serve, lambda: probe.depth()["responses"] == 20, answering, absent)
        probe.close()
        for _ in range(2):
            received = FrameBatch()
            present.send(FrameBatch.of(b"mine"), 0)
            serve_until(serve, lambda received=received: present.receive(received) > 0, answering, present)
        assert present.facts()["looked_at"] >= 2 * 21, "20 answers of the other client and its own, twice"
        received_by_absent = FrameBatch()
        serve_links_until(
            lambda: absent.receive(received_by_absent) >= 0 and received_by_absent.count == 20, answering, absent
        )
        assert sorted(received_by_absent) == sorted(requests_of(0)[:20])


@pytest.mark.parametrize("pattern", [Pattern.REQUESTS, Pattern.SCAN])
def test_answers_to_an_absent_client_stay_in_the_queue(pattern: Pattern, at_broker: str) -> None:
    leave_answers(at_broker, TOKEN, pattern, bytes(100), 30)
    with asking(at_broker, 1, pattern) as (answering, (asker,)):
        serve = server(answering, lambda frame: frame)
        received = FrameBatch()
        asker.send(FrameBatch.of(b"mine"), 0)
        serve_until(serve, lambda: asker.receive(received) > 0, answering, asker)
        assert list(received) == [b"mine"]
        probe = RabbitMqProbe(at_broker, TOKEN)
        name = "responses" if pattern is Pattern.SCAN else "absent"
        serve_links_until(lambda: probe.depth()[name] == 30, asker)
        probe.close()


def test_a_brokerless_transport_has_no_scan() -> None:
    with pytest.raises(BadAddress, match="zeromq has no pattern 'scan'"):
        listen("zeromq://127.0.0.1:0", TOKEN, Pattern.SCAN)


def test_only_the_compiled_client_has_a_scan(at_broker: str) -> None:
    with pytest.raises(BadAddress, match="with client=compiled only"):
        connect(f"{at_broker}?client=pika", TOKEN, deadline_ns(), Pattern.SCAN)
