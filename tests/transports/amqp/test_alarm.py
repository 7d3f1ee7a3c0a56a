"""A broker in memory alarm: publishers pause, say for how long, and lose nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from tests.machine import PATIENCE_S
from tests.transports.conftest import NAMES, deadline_ns, greet, until
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq
from transports.base import Link, PeerGone
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

CLIENTS = ("compiled", "pika")
NUMBERED = [n.to_bytes(4, "little") for n in range(500)]


@pytest.fixture
def node(rabbitmq_node: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    """The node that all tests share; this process runs them one after the other, so an alarm disturbs no other."""
    monkeypatch.setenv(PASSWORD, rabbitmq_node.password)
    return rabbitmq_node


@pytest.fixture
def mark(node: Node) -> Iterator[Callable[[float], None]]:
    """Set the node's memory mark: 0 raises the alarm soon. Afterwards there is none, and frames pass again."""
    yield node.set_memory_mark
    node.set_memory_mark(0.4)
    with two_ends(node.url):
        pass


@contextlib.contextmanager
def two_ends(url: str) -> Iterator[tuple[Link, Link]]:
    """(listener, connector) of a run of their own: what a blocked link leaves at the node is met by nobody."""
    token = f"alarm-{next(NAMES)}"
    with contextlib.ExitStack() as closing:
        listener = closing.enter_context(contextlib.closing(listen(url, token)))
        connector = closing.enter_context(contextlib.closing(connect(url, token, deadline_ns())))
        greet(connector, listener)
        yield listener, connector


def publish_until_paused(connector: Link) -> list[bytes]:
    """Messages that left before the broker reported its alarm, which it does at the next publish.

    Ten leave together: the broker takes the first of them after its alarm, confirms it, and leaves the rest unread.
    """
    sent: list[bytes] = []

    def is_paused() -> bool:
        ten = [b"early %d" % (len(sent) + n) for n in range(10)]
        sent.extend(ten[: connector.send(FrameBatch.of(*ten), 0)])
        connector.wait(deadline_ns(0.01), readable=False, writable=True)
        return is_blocked(connector)

    until(is_paused)
    return sent


def is_blocked(link: Link) -> bool:
    return link._session.blocked_since_ns > 0  # type: ignore[attr-defined]


def carry_all(source: Link, target: Link, frames: FrameBatch, expected: int) -> list[bytes]:
    got, sent = FrameBatch(expected + 1, 1 << 24), 0

    def all_there() -> bool:
        nonlocal sent
        sent = source.send(frames, sent) if sent < frames.count else sent
        target.receive(got)
        return got.count == expected

    until(all_there, target, source)
    return list(got)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("delivery", ["lossy", "confirmed"])
def test_a_publisher_pauses_during_an_alarm_and_loses_nothing(
    client: str, delivery: str, node: Node, mark: Callable[[float], None]
) -> None:
    """Behind the alarm it goes on."""
    with two_ends(f"{node.url}/?client={client}&delivery={delivery}") as (listener, connector):
        mark(0)
        early, late = publish_until_paused(connector), FrameBatch.of(*NUMBERED)
        assert connector.send(late, 0) == 0, "a blocked link takes nothing"
        assert not connector.drain(deadline_ns(0.05)), "what was published last is not at the broker"
        mark(0.4)
        assert carry_all(connector, listener, late, len(early) + late.count) == [*early, *NUMBERED]
        assert connector.drain(deadline_ns())
        assert not is_blocked(connector)
        assert connector.facts()["blocked_s"] >= 0.05
        assert listener.facts()["blocked_s"] == 0, "who only consumes is not blocked"


def test_a_broker_that_closes_every_connection_says_why(node: Node) -> None:
    with two_ends(f"{node.url}/?delivery=lossy") as (listener, connector):
        PrivateRabbitMq(node).close_connections()
        for link in (listener, connector):
            with pytest.raises(PeerGone, match="CONNECTION_FORCED - by the fault matrix"):
                until(lambda link=link: link.receive(FrameBatch()) < 0, link)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_blocked_link_closes_in_its_time(client: str, node: Node, mark: Callable[[float], None]) -> None:
    with two_ends(f"{node.url}/?client={client}&delivery=confirmed") as (_, connector):
        mark(0)
        publish_until_paused(connector)
        began_ns = time.monotonic_ns()
        connector.close(linger_s=0.2)
        assert time.monotonic_ns() - began_ns < PATIENCE_S * 1e9
        with pytest.raises(PeerGone):  # closed, though the broker never answered
            connector.wait(deadline_ns())


def test_in_an_alarm_a_new_link_waits_from_its_first_message_on(node: Node, mark: Callable[[float], None]) -> None:
    with two_ends(node.url) as (_, first):
        mark(0)
        publish_until_paused(first)
        token = f"alarm-{next(NAMES)}"
        listener, connector = listen(node.url, token), connect(node.url, token, deadline_ns())
        publish_until_paused(connector)
        until(lambda: connector.facts()["blocked_s"] > 0.01, connector)
        assert listener.receive(FrameBatch()) == 0
        for link in (listener, connector):
            link.close(linger_s=0.1)
        mark(0.4)
