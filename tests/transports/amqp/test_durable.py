"""`durable`: a confirmed message survives a restart of the broker, also after a kill."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.broker import need_rabbitmq
from tests.transports.conftest import deadline_ns, serve_links_until
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq
from transports.base import Link, Pattern, PeerGone
from transports.declaration import RunningBroker
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

RUN = "outlives"
"""A run of these tests only, since its queues stay at the node that all tests share."""
NUMBERED = [number.to_bytes(4, "little") for number in range(3000)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    """A list with a node. A test appends each restarted node: all have the same folder, address and password."""
    need_rabbitmq()
    with contextlib.ExitStack() as stopping, pytest.MonkeyPatch.context() as patch:
        nodes = [Node.start(tmp_path / "node")]
        stopping.callback(_stop_last, nodes)
        patch.setenv(PASSWORD, nodes[0].password)
        yield nodes


def _stop_last(nodes: list[Node]) -> None:
    nodes[-1].stop()


def publish_and_confirm(url: str, frames: FrameBatch) -> None:
    """Publish the frames over a link whose queue nobody reads, and wait until the broker has confirmed them."""
    connector = connect(url, RUN, deadline_ns())
    send_and_confirm(connector, frames)
    assert connector.facts()["returned"] == 0
    assert connector.facts()["refused"] == 0
    connector.close()


def send_and_confirm(link: Link, frames: FrameBatch) -> None:
    sent = 0
    while sent < frames.count or not link.drain(deadline_ns(10)):
        sent = link.send(frames, sent)


def messages_left(url: str, expected: int) -> list[bytes]:
    """Return the messages in the queue of RUN, once there are `expected` of them or more."""
    batch = FrameBatch(1 << 16)
    consumer = listen(url, RUN)
    serve_links_until(lambda: consumer.receive(batch) >= 0 and batch.count >= expected, consumer)
    consumer.close()
    return list(batch)


class Subscription(NamedTuple):
    run: str
    pattern: Pattern
    keys: tuple[str, ...]


SUBSCRIPTIONS = (
    Subscription("all", Pattern.FANOUT, ()),
    Subscription("some", Pattern.TOPIC, ("news.usa",)),
)


@pytest.fixture(scope="module")
def restarted(brokers: Callable[[str], RunningBroker]) -> Iterator[str]:
    """The URL of a node that was killed and restarted with durable messages of a pair, subscribers and requests.

    It is the node that all tests share: later tests get the restarted node.
    """
    server = brokers("amqp").server
    assert isinstance(server, PrivateRabbitMq)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD, server.node.password)
        url = f"{server.node.url}/?delivery=durable"
        publish_and_confirm(url, FrameBatch.of(*NUMBERED))
        links = [*links_with_published_messages(url), client_with_open_requests(url)]
        server.node.process.kill()
        server.node.process.wait()
        for link in links:
            link.close(0)
        server.node = server.node.restart()
        yield url


def links_with_published_messages(url: str) -> list[Link]:
    """Return publishers and subscribers whose messages are confirmed and wait at the node."""
    links: list[Link] = []
    for subscription in SUBSCRIPTIONS:
        run, pattern, keys = subscription
        links.append(connect(f"{url}&subscriber=shop", run, deadline_ns(), pattern, keys))
        publisher = listen(url, run, pattern, keys)
        send_and_confirm(publisher, FrameBatch.of(*NUMBERED))
        links.append(publisher)
    return links


def client_with_open_requests(url: str) -> Link:
    """Return a client whose requests are confirmed and not answered."""
    asker = connect(url, "asked", deadline_ns(), Pattern.REQUESTS)
    send_and_confirm(asker, FrameBatch.of(*NUMBERED))
    return asker


def test_confirmed_messages_survive_a_restart_in_order(restarted: str) -> None:
    assert messages_left(restarted, len(NUMBERED)) == NUMBERED


@pytest.mark.parametrize("subscription", SUBSCRIPTIONS)
def test_a_named_subscriber_gets_messages_from_before_a_restart(subscription: Subscription, restarted: str) -> None:
    url = f"{restarted}&subscriber=shop"
    subscriber = connect(url, subscription.run, deadline_ns(), subscription.pattern, subscription.keys)
    batch = FrameBatch(1 << 16)
    serve_links_until(lambda: subscriber.receive(batch) >= 0 and batch.count >= len(NUMBERED), subscriber)
    subscriber.close()
    assert list(batch) == NUMBERED


def test_unanswered_requests_survive_a_restart(restarted: str) -> None:
    """The queue for their answers does not survive."""
    server = listen(restarted, "asked", pattern=Pattern.REQUESTS)
    requests = FrameBatch(1 << 16)
    serve_links_until(lambda: server.receive(requests) >= 0 and requests.count >= len(NUMBERED), server)
    assert list(requests) == NUMBERED
    server.send(requests, 0)
    server.drain(deadline_ns(10))
    assert server.facts()["returned"] == len(NUMBERED), "not every answer comes back, although its client is gone"
    server.close()


@pytest.mark.long
@pytest.mark.parametrize(("client", "number"), [("compiled", signal.SIGTERM), ("pika", signal.SIGKILL)])
def test_confirmed_messages_survive_every_end_of_the_broker(
    client: str, number: signal.Signals, nodes: list[Node]
) -> None:
    url = f"{nodes[0].url}/?client={client}&delivery=durable"
    publish_and_confirm(url, FrameBatch.of(*NUMBERED))
    nodes[0].process.send_signal(number)
    nodes[0].process.wait()
    nodes.append(nodes[0].restart())
    assert messages_left(url, len(NUMBERED)) == NUMBERED


@pytest.mark.long
def test_confirmed_messages_survive_a_kill_of_the_broker_under_load(nodes: list[Node]) -> None:
    url = f"{nodes[0].url}/?delivery=durable"
    connector = connect(url, RUN, deadline_ns())
    frames = FrameBatch.of(*NUMBERED * 10)
    sent = 0
    while connector.facts()["confirmed"] < 2000:
        sent = connector.send(frames, sent)
    nodes[0].process.kill()
    with pytest.raises(PeerGone, match="went away"):
        serve_links_until(lambda: connector.receive(FrameBatch()) > 0, connector)
    confirmed = connector.facts()["confirmed"]
    connector.close()
    nodes.append(nodes[0].restart())
    left = messages_left(url, confirmed)
    assert left == (NUMBERED * 10)[: len(left)]
    assert len(left) >= confirmed


@pytest.mark.long
def test_messages_that_are_not_durable_do_not_survive_a_restart(nodes: list[Node]) -> None:
    url = f"{nodes[0].url}/?delivery=confirmed"
    publish_and_confirm(url, FrameBatch.of(*NUMBERED))
    nodes.append(nodes[0].restart())
    assert messages_left(url, 0) == []
