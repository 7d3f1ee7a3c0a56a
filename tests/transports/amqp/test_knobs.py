"""What an address of amqp can turn: numbers of messages, heartbeat, kind of queue."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, joined, until
from transports.amqp.address import BrokerAddress
from transports.amqp.topology import check_kind
from transports.base import Address, BadAddress, Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen

TEN = FrameBatch.of(*[bytes([number]) for number in range(10)])


def broker_at(options: str, pattern: Pattern = Pattern.PAIR) -> BrokerAddress:
    return BrokerAddress.of(Address.parse(f"amqp://somewhere?{options}", TOKEN, pattern))


def test_a_consumer_has_as_many_unacknowledged_messages_as_prefetch_says(broker_place: str) -> None:
    """Ten are sent: three are given to it, and two more once it has acknowledged two."""
    url = f"amqp://{broker_place}?delivery=confirmed&prefetch=3&ack_batch=2"
    with closing(connect(url, TOKEN, deadline_ns())) as connector, closing(listen(url, TOKEN)) as listener:
        assert connector.send(TEN, 0) == 10
        assert connector.drain(deadline_ns())
        batch = FrameBatch(2)
        until(lambda: listener.receive(batch) >= 0 and batch.count == 2, listener)
        assert left(listener) == 10 - 3
        batch = FrameBatch(20)
        until(lambda: listener.receive(batch) >= 0 and batch.count == 8, listener)
        assert listener.facts()["knobs"] == {
            "queue": "classic",
            "prefetch": 3,
            "ack_batch": 2,
            "confirm_window": 4_096,
            "heartbeat_s": 30,
        }


def test_one_acknowledgement_settles_as_many_messages_as_ack_batch_says(
    broker_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six of ten are given; three that are taken bring no more, and four bring the other four."""
    monkeypatch.setattr("transports.amqp.link.ACK_AFTER_NS", 1 << 62)
    url = f"amqp://{broker_place}?delivery=acked&prefetch=6&ack_batch=4"
    with closing(connect(url, TOKEN, deadline_ns())) as connector, closing(listen(url, TOKEN)) as listener:
        assert connector.send(TEN, 0) == 10
        assert connector.drain(deadline_ns())
        batch, more = FrameBatch(3), FrameBatch(1)
        until(lambda: listener.receive(batch) >= 0 and batch.count == 3, listener)
        until(lambda: listener.receive(batch) >= 0 and left(listener) == 10 - 6, listener)
        until(lambda: listener.receive(more) >= 0 and more.count == 1, listener)
        until(lambda: listener.receive(more) >= 0 and left(listener) == 0, listener)


def left(link: Link) -> int:
    return int(link.left(deadline_ns()))  # type: ignore[attr-defined]


def test_a_publisher_has_as_many_unconfirmed_messages_as_its_window_says(broker_place: str) -> None:
    url = f"amqp://{broker_place}?delivery=confirmed&confirm_window=4&heartbeat=7"
    with joined(url) as (_, connector):
        assert connector.drain(deadline_ns())
        assert connector.send(TEN, 0) == 4
        assert connector.drain(deadline_ns())
        assert connector.send(TEN, 4) == 8
        assert connector._loop.connection.params.heartbeat == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_a_fanout_reaches_each_subscriber_by_its_own_queue_of_the_kind(kind: str, broker_place: str) -> None:
    url = f"amqp://{broker_place}?delivery=acked&queue={kind}"
    with closing(listen(url, TOKEN, Pattern.FANOUT)) as publisher:
        ends = [connect(url, TOKEN, deadline_ns(), Pattern.FANOUT) for _ in range(2)]
        assert publisher.send(TEN, 0) == 10
        for end in ends:
            batch = FrameBatch(20)
            until(lambda: end.receive(batch) >= 0 and batch.count == 10, end, publisher)  # noqa: B023
            assert list(batch) == list(TEN)
            assert end.facts()["knobs"]["queue"] == kind
            end.close()


@pytest.mark.parametrize(
    ("options", "pattern", "why"),
    [
        ("prefetch=9", Pattern.PAIR, "prefetch is of acknowledgements, and delivery lossy has none: take acked or"),
        ("delivery=acked&confirm_window=9", Pattern.PAIR, "delivery acked has none: take confirmed or durable"),
        ("delivery=acked&prefetch=5&ack_batch=6", Pattern.PAIR, "ack_batch is 6, and only 5 deliveries"),
        ("queue=stream", Pattern.PAIR, "a stream needs acknowledgements: take acked, confirmed or durable"),
        ("client=pika&sndbuf=9000", Pattern.PAIR, "pika opens its sockets itself"),
        ("queue=stream&delivery=acked", Pattern.QUEUE, "none can share it: take queue classic or quorum"),
    ],
)
def test_what_would_turn_nothing_is_refused(options: str, pattern: Pattern, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        broker_at(options, pattern)


def test_an_acknowledgement_waits_for_at_most_half_of_what_may_be_given() -> None:
    """Or the broker would have to stop before each acknowledgement."""
    batches = [broker_at(f"delivery=acked&prefetch={most}").delivery.ack_batch for most in (1, 10, 1_000)]
    assert batches == [1, 5, 200]


@pytest.mark.parametrize(
    ("kind", "product", "version", "why"),
    [
        ("stream", "RabbitMQ", "3.8.9", "the broker is RabbitMQ 3.8.9, which has classic and quorum"),
        ("quorum", "RabbitMQ", "3.7", "which has classic$"),
        ("quorum", "LavinMQ", "4.1.0", "the broker is LavinMQ 4.1.0, which has classic$"),
    ],
)
def test_a_kind_of_queue_that_the_broker_lacks_is_refused(kind: str, product: str, version: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why):
        check_kind(kind, {"product": product, "version": version}, broker_at(""))
    check_kind(kind, {"product": "RabbitMQ", "version": "3.10.8"}, broker_at(""))
