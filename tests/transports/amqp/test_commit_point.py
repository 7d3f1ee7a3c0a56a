"""A routed, durable link acknowledges a message once the broker has confirmed all that was sent because of it."""

from __future__ import annotations

import pytest

from tests.machine import until as eventually
from tests.transports.conftest import TOKEN, deadline_ns, until
from transports.amqp import link as amqp_link
from transports.amqp.address import PASSWORD
from transports.base import CannotListen, Link, Pattern
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

ORDER, BILL = b"\0\0order", b"\0\0bill"


@pytest.fixture
def url(rabbitmq_node: Node, monkeypatch: pytest.MonkeyPatch) -> str:
    """A broker with an order in its queue; acknowledgements are sent as soon as they may be."""
    monkeypatch.setenv(PASSWORD, rabbitmq_node.password)
    monkeypatch.setattr(amqp_link, "ACK_AFTER_NS", 0)
    return f"{rabbitmq_node.url}?delivery=durable"


def routed(url: str, name: str, *keys: str) -> Link:
    return listen(url, f"{TOKEN}-{name}", Pattern.ROUTED, keys)


def unless_taken(url: str, name: str, *keys: str) -> Link | None:
    """The link, or None while the broker has not noticed that the queue's owner is cut off."""
    try:
        return routed(url, name, *keys)
    except CannotListen:
        return None


def answered_once(url: str, name: str) -> tuple[Link, FrameBatch]:
    """A link that has received an order and sent a bill, and has not yet looked again."""
    worker, batch = routed(url, name, "<orders", "<bills", "bills"), FrameBatch()
    customer = connect(url, f"{TOKEN}-{name}", deadline_ns(), Pattern.ROUTED, ("orders",))
    customer.send(FrameBatch.of(ORDER), 0)
    until(lambda: worker.receive(batch) >= 0 and batch.count == 1, customer, worker)
    customer.close()
    assert worker.send(FrameBatch.of(BILL), 0) == 1
    return worker, batch


def left_behind(worker: Link, url: str, name: str, expected: int) -> list[bytes]:
    """What the next one gets from the orders, after the worker was cut off."""
    worker.left(deadline_ns())  # type: ignore[attr-defined]  # the broker has read what was written before
    worker._loop.release()  # type: ignore[attr-defined]
    heir, batch = eventually(lambda: unless_taken(url, name, "<orders"), "the broker lets the queue go"), FrameBatch()
    if expected:
        until(lambda: heir.receive(batch) >= 0 and batch.count >= expected, heir)
    left = [*batch, *[b"more"] * heir.left(deadline_ns())]  # type: ignore[attr-defined]
    heir.close()
    return left


def test_what_was_caused_is_not_confirmed_so_the_message_comes_again(url: str) -> None:
    worker, _ = answered_once(url, "early")
    for _ in range(3):  # looks without reading, so the confirm of the bill cannot have come
        worker._acknowledge()  # type: ignore[attr-defined]
    assert left_behind(worker, url, "early", 1) == [ORDER]


def test_what_was_caused_is_confirmed_so_the_message_is_done(url: str) -> None:
    worker, batch = answered_once(url, "late")
    until(lambda: worker.receive(batch) >= 0 and worker.facts()["confirmed"] == 1, worker)
    until(lambda: worker.receive(batch) >= 0 and worker._acknowledged >= 1, worker)  # type: ignore[attr-defined]
    assert worker.drain(deadline_ns())
    assert left_behind(worker, url, "late", 0) == []
