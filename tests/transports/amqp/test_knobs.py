"""Options of an amqp address: numbers of messages, heartbeat, kind of queue."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.transports.conftest import TOKEN, deadline_ns, joined, serve_links_until
from transports.amqp.address import BrokerAddress
from transports.amqp.topology import check_kind
from transports.base import Address, BadAddress, Link, Pattern
from transports.frames import FrameBatch
from transports.registry import connect, listen

TEN = FrameBatch.of(*[bytes([number]) for number in range(10)])


def broker_at(options: str, pattern: Pattern = Pattern.PAIR) -> BrokerAddress:
    return BrokerAddress.of(Address.parse(f"amqp://somewhere?{options}", TOKEN, pattern))


def test_prefetch_limits_the_unacknowledged_messages_of_a_consumer(broker_place: str) -> None:
    """A consumer gets three of ten messages, and two more once it has acknowledged two."""
    url = f"amqp://{broker_place}?delivery=confirmed&prefetch=3&ack_batch=2"
    with closing(connect(url, TOKEN, deadline_ns())) as connector, closing(listen(url, TOKEN)) as listener:
        assert connector.send(TEN, 0) == 10
        assert connector.drain(deadline_ns())
        batch = FrameBatch(2)
        receive_until(listener, batch, 2)
        assert left(listener) == 10 - 3
        batch = FrameBatch(20)
        receive_until(listener, batch, 8)
        assert listener.facts()["knobs"] == {
            "queue": "classic",
            "prefetch": 3,
            "ack_batch": 2,
            "confirm_window": 4_096,
            "heartbeat_s": 30,
        }


def test_one_acknowledgement_settles_ack_batch_messages(broker_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of ten messages are delivered. The fourth received message, not the third, brings the other four."""
    monkeypatch.setattr("transports.amqp.link.ACK_AFTER_NS", 1 << 62)
    url = f"amqp://{broker_place}?delivery=acked&prefetch=6&ack_batch=4"
    with closing(connect(url, TOKEN, deadline_ns())) as connector, closing(listen(url, TOKEN)) as listener:
        assert connector.send(TEN, 0) == 10
        assert connector.drain(deadline_ns())
        first_three = FrameBatch(3)
        receive_until(listener, first_three, 3)
        receive_until_left(listener, first_three, 10 - 6)
        fourth = FrameBatch(1)
        receive_until(listener, fourth, 1)
        receive_until_left(listener, fourth, 0)


def receive_until(receiver: Link, batch: FrameBatch, count: int, *others: Link) -> None:
    """Receive until the batch has this many frames; serve the other links meanwhile."""

    def has_all() -> bool:
        receiver.receive(batch)
        return batch.count == count

    serve_links_until(has_all, receiver, *others)


def receive_until_left(receiver: Link, full_batch: FrameBatch, count: int) -> None:
    """Call `receive`, which acknowledges and takes nothing into the full batch, until this many messages are left."""

    def are_left() -> bool:
        receiver.receive(full_batch)
        return left(receiver) == count

    serve_links_until(are_left, receiver)


def left(link: Link) -> int:
    """Return the number of messages in the link's queue."""
    return int(link.left(deadline_ns()))  # type: ignore[attr-defined]


def test_confirm_window_limits_the_unconfirmed_messages_of_a_publisher(broker_place: str) -> None:
    url = f"amqp://{broker_place}?delivery=confirmed&confirm_window=4&heartbeat=7"
    with joined(url) as (_, connector):
        assert connector.drain(deadline_ns())
        assert connector.send(TEN, 0) == 4
        assert connector.drain(deadline_ns())
        assert connector.send(TEN, 4) == 8
        assert connector._loop.connection.params.heartbeat == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_each_subscriber_of_a_fanout_has_a_queue_of_the_given_kind(kind: str, broker_place: str) -> None:
    url = f"amqp://{broker_place}?delivery=acked&queue={kind}"
    with closing(listen(url, TOKEN, Pattern.FANOUT)) as publisher:
        subscribers = [connect(url, TOKEN, deadline_ns(), Pattern.FANOUT) for _ in range(2)]
        assert publisher.send(TEN, 0) == 10
        for subscriber in subscribers:
            assert receive_ten(subscriber, publisher) == list(TEN)
            assert subscriber.facts()["knobs"]["queue"] == kind
            subscriber.close()


def receive_ten(subscriber: Link, publisher: Link) -> list[bytes]:
    batch = FrameBatch(20)
    receive_until(subscriber, batch, 10, publisher)
    return list(batch)


@pytest.mark.parametrize(
    ("options", "pattern", "message"),
    [
        ("prefetch=9", Pattern.PAIR, "prefetch is of acknowledgements, and delivery lossy has none: take acked or"),
        ("delivery=acked&confirm_window=9", Pattern.PAIR, "delivery acked has none: take confirmed or durable"),
        ("delivery=acked&prefetch=5&ack_batch=6", Pattern.PAIR, "ack_batch is 6, and only 5 deliveries"),
        ("queue=stream", Pattern.PAIR, "a stream needs acknowledgements: take acked, confirmed or durable"),
        ("client=pika&sndbuf=9000", Pattern.PAIR, "pika opens its sockets itself"),
        ("queue=stream&delivery=acked", Pattern.QUEUE, "none can share it: take queue classic or quorum"),
    ],
)
def test_an_option_without_an_effect_is_refused(options: str, pattern: Pattern, message: str) -> None:
    with pytest.raises(BadAddress, match=message):
        broker_at(options, pattern)


@pytest.mark.parametrize(("prefetch", "ack_batch"), [(1, 1), (10, 5), (1_000, 200)])
def test_the_default_ack_batch_is_half_of_prefetch_at_most(prefetch: int, ack_batch: int) -> None:
    """With a larger one the broker would have to stop before each acknowledgement."""
    assert broker_at(f"delivery=acked&prefetch={prefetch}").delivery.ack_batch == ack_batch


@pytest.mark.parametrize(
    ("kind", "product", "version", "message"),
    [
        ("stream", "RabbitMQ", "3.8.9", "the broker is RabbitMQ 3.8.9, which has classic and quorum"),
        ("quorum", "RabbitMQ", "3.7", "which has classic$"),
        ("quorum", "LavinMQ", "4.1.0", "the broker is LavinMQ 4.1.0, which has classic$"),
    ],
)
def test_a_kind_of_queue_that_the_broker_lacks_is_refused(kind: str, product: str, version: str, message: str) -> None:
    with pytest.raises(BadAddress, match=message):
        check_kind(kind, {"product": product, "version": version}, broker_at(""))
    check_kind(kind, {"product": "RabbitMQ", "version": "3.10.8"}, broker_at(""))
