"""A broker in memory alarm: publishers pause, report how long, and lose nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from tests.machine import PATIENCE_S
from tests.transports.conftest import NAMES, deadline_ns, greet, serve_links_until
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

CLIENTS = ("compiled", "pika")
NUMBERED = [number.to_bytes(4, "little") for number in range(500)]


@pytest.fixture
def node(rabbitmq_node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """The node that all tests share. They run one after the other, so an alarm disturbs no other test."""
    monkeypatch.setenv(PASSWORD, rabbitmq_node.password)
    return rabbitmq_node


@pytest.fixture
def mark(node: Node) -> Iterator[Callable[[float], None]]:
    """Yield a function that sets the node's memory mark: 0 raises the alarm soon. The alarm ends with the test."""
    yield node.set_memory_mark
    node.set_memory_mark(0.4)
    with two_ends(node.url):
        pass


@contextlib.contextmanager
def two_ends(url: str) -> Iterator[tuple[Link, Link]]:
    """Yield the two links of a new run: no other test meets what a blocked link leaves at the node."""
    token = f"alarm-{next(NAMES)}"
    with contextlib.ExitStack() as closing:
        listener = closing.enter_context(contextlib.closing(listen(url, token)))
        connector = closing.enter_context(contextlib.closing(connect(url, token, deadline_ns())))
        greet(connector, listener)
        yield listener, connector


def publish_until_paused(connector: Link) -> list[bytes]:
    """Publish until the broker reports its alarm, which it does at the next publish. Returns the sent messages.

    Ten messages leave together: the broker takes the first one after the alarm began, and leaves the rest unread.
    """
    sent: list[bytes] = []

    def is_paused() -> bool:
        ten = [b"early %d" % (len(sent) + number) for number in range(10)]
        taken = connector.send(FrameBatch.of(*ten), 0)
        sent.extend(ten[:taken])
        connector.wait(deadline_ns(0.01), readable=False, writable=True)
        return is_blocked(connector)

    serve_links_until(is_paused)
    return sent


def is_blocked(link: Link) -> bool:
    return link._session.blocked_since_ns > 0  # type: ignore[attr-defined]


def carry_all(source: Link, target: Link, frames: FrameBatch, expected: int) -> list[bytes]:
    """Send all frames; return the `expected` number of frames that the target received."""
    received = FrameBatch(expected + 1, 1 << 24)
    sent = 0

    def have_all() -> bool:
        nonlocal sent
        if sent < frames.count:
            sent = source.send(frames, sent)
        target.receive(received)
        return received.count == expected

    serve_links_until(have_all, target, source)
    return list(received)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("delivery", ["lossy", "confirmed"])
def test_a_publisher_pauses_during_an_alarm_and_loses_nothing(
    client: str, delivery: str, node: Node, mark: Callable[[float], None]
) -> None:
    with two_ends(f"{node.url}/?client={client}&delivery={delivery}") as (listener, connector):
        mark(0)
        early = publish_until_paused(connector)
        late = FrameBatch.of(*NUMBERED)
        assert connector.send(late, 0) == 0, "a blocked link takes a frame"
        assert not connector.drain(deadline_ns(0.05)), "a blocked link drains"
        mark(0.4)
        assert carry_all(connector, listener, late, len(early) + late.count) == [*early, *NUMBERED]
        assert connector.drain(deadline_ns())
        assert not is_blocked(connector)
        assert connector.facts()["blocked_s"] >= 0.05
        assert listener.facts()["blocked_s"] == 0, "a consumer was blocked"


def test_links_report_the_reason_of_a_closed_connection(node: Node) -> None:
    with two_ends(f"{node.url}/?delivery=lossy") as (listener, connector):
        PrivateRabbitMq(node).close_connections()
        for link in (listener, connector):
            with pytest.raises(PeerGone, match="CONNECTION_FORCED - by the fault matrix"):
                serve_links_until(lambda link=link: link.receive(FrameBatch()) < 0, link)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_blocked_link_closes_within_its_linger(client: str, node: Node, mark: Callable[[float], None]) -> None:
    with two_ends(f"{node.url}/?client={client}&delivery=confirmed") as (_, connector):
        mark(0)
        publish_until_paused(connector)
        began_ns = time.monotonic_ns()
        connector.close(linger_s=0.2)
        assert time.monotonic_ns() - began_ns < PATIENCE_S * 1e9
        with pytest.raises(PeerGone):  # the link is closed although the broker never answered
            connector.wait(deadline_ns())


def test_a_link_opened_during_an_alarm_waits_from_its_first_message_on(
    node: Node, mark: Callable[[float], None]
) -> None:
    with two_ends(node.url) as (_, first):
        mark(0)
        publish_until_paused(first)
        token = f"alarm-{next(NAMES)}"
        listener = listen(node.url, token)
        connector = connect(node.url, token, deadline_ns())
        publish_until_paused(connector)
        serve_links_until(lambda: connector.facts()["blocked_s"] > 0.01, connector)
        assert listener.receive(FrameBatch()) == 0
        for link in (listener, connector):
            link.close(linger_s=0.1)
        mark(0.4)
