"""A routed, durable link acknowledges a message only after the broker confirmed the messages that it caused."""

from __future__ import annotations

import pytest

from tests.machine import until
from tests.transports.conftest import TOKEN, deadline_ns, serve_links_until
from transports.amqp import link as amqp_link
from transports.amqp.address import PASSWORD
from transports.base import CannotListen, Link, Pattern
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

# Each begins with the number of its key, 0.
ORDER = b"\0\0order"
BILL = b"\0\0bill"


@pytest.fixture
def url(rabbitmq_node: Node, monkeypatch: pytest.MonkeyPatch) -> str:
    """A broker's address for durable messages. Links acknowledge as early as they may."""
    monkeypatch.setenv(PASSWORD, rabbitmq_node.password)
    monkeypatch.setattr(amqp_link, "ACK_AFTER_NS", 0)
    return f"{rabbitmq_node.url}?delivery=durable"


def routed(url: str, name: str, *keys: str) -> Link:
    return listen(url, f"{TOKEN}-{name}", Pattern.ROUTED, keys)


def routed_unless_taken(url: str, name: str, *keys: str) -> Link | None:
    """Return the link; None if the broker has not noticed yet that the queue's owner is disconnected."""
    try:
        return routed(url, name, *keys)
    except CannotListen:
        return None


def worker_with_a_bill_sent(url: str, name: str) -> tuple[Link, FrameBatch]:
    """Return a link that has received an order and sent a bill, and has not received since; and its batch."""
    worker = routed(url, name, "<orders", "<bills", "bills")
    batch = FrameBatch()
    customer = connect(url, f"{TOKEN}-{name}", deadline_ns(), Pattern.ROUTED, ("orders",))
    customer.send(FrameBatch.of(ORDER), 0)
    serve_links_until(lambda: worker.receive(batch) >= 0 and batch.count == 1, customer, worker)
    customer.close()
    assert worker.send(FrameBatch.of(BILL), 0) == 1
    return worker, batch


def orders_left(worker: Link, url: str, name: str, expected: int) -> list[bytes]:
    """Disconnect the worker; return the orders that the next consumer of the queue gets."""
    worker.left(deadline_ns())  # type: ignore[attr-defined]  # its answer shows that the broker has read all before it
    worker._loop.release()  # type: ignore[attr-defined]
    successor = until(lambda: routed_unless_taken(url, name, "<orders"), "the broker frees the queue")
    batch = FrameBatch()
    if expected:
        serve_links_until(lambda: successor.receive(batch) >= 0 and batch.count >= expected, successor)
    assert successor.left(deadline_ns()) == 0, "more orders in the queue"  # type: ignore[attr-defined]
    successor.close()
    return list(batch)


def test_a_message_is_redelivered_if_its_answer_is_not_confirmed(url: str) -> None:
    worker, _ = worker_with_a_bill_sent(url, "early")
    for _ in range(3):  # without receiving, so that the confirm of the bill is not read
        worker._acknowledge()  # type: ignore[attr-defined]
    assert orders_left(worker, url, "early", 1) == [ORDER]


def test_a_message_is_acknowledged_once_its_answer_is_confirmed(url: str) -> None:
    worker, batch = worker_with_a_bill_sent(url, "late")
    serve_links_until(lambda: worker.receive(batch) >= 0 and worker.facts()["confirmed"] == 1, worker)
    serve_links_until(lambda: worker.receive(batch) >= 0 and worker._acknowledged >= 1, worker)  # type: ignore[attr-defined]
    assert worker.drain(deadline_ns())
    assert orders_left(worker, url, "late", 0) == []
