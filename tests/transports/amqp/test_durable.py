"""`durable`: a confirmed message outlives the broker's restart, whether the broker was ended or killed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.transports.conftest import deadline_ns, until
from transports.amqp.address import PASSWORD
from transports.amqp.broker import PrivateRabbitMq
from transports.base import Link, Pattern, PeerGone
from transports.declaration import RunningBroker
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

RUN = "outlives"
"""No other tests' run: what is left of it stays at the node that all share."""
NUMBERED = [n.to_bytes(4, "little") for n in range(3000)]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    """A node, and behind it those that followed; one folder, one address, one password."""
    need_rabbitmq()
    with contextlib.ExitStack() as stopping, pytest.MonkeyPatch.context() as patch:
        made = [Node.start(tmp_path / "node")]
        stopping.callback(_stop_last, made)
        patch.setenv(PASSWORD, made[0].password)
        yield made


def _stop_last(nodes: list[Node]) -> None:
    nodes[-1].stop()


def publish_and_confirm(url: str, frames: FrameBatch) -> None:
    """A link of its own, whose queue nobody reads."""
    connector = connect(url, RUN, deadline_ns())
    send_and_confirm(connector, frames)
    assert connector.facts()["returned"] == connector.facts()["refused"] == 0
    connector.close()


def send_and_confirm(link: Link, frames: FrameBatch) -> None:
    sent = 0
    while sent < frames.count or not link.drain(deadline_ns(10)):
        sent = link.send(frames, sent)


def left_at(url: str, expected: int) -> list[bytes]:
    batch, heir = FrameBatch(1 << 16), listen(url, RUN)
    until(lambda: heir.receive(batch) >= 0 and batch.count >= expected, heir)
    heir.close()
    return list(batch)


SUBSCRIBED = (("all", Pattern.FANOUT, ()), ("some", Pattern.TOPIC, ("news.usa",)))
"""Run, pattern and keys."""


@pytest.fixture(scope="module")
def restarted(brokers: Callable[[str], RunningBroker]) -> Iterator[str]:
    """The URL of a node that was killed with durable messages in queues of a pair, of subscribers and of requests.

    It is the node that all tests share: those of other modules get the one that follows it.
    """
    server = brokers("amqp").server
    assert isinstance(server, PrivateRabbitMq)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD, server.node.password)
        url = f"{server.node.url}/?delivery=durable"
        publish_and_confirm(url, FrameBatch.of(*NUMBERED))
        links = [*published_to_subscribers(url), asked(url)]
        server.node.process.kill()
        server.node.process.wait()
        for link in links:
            link.close(0)
        server.node = server.node.restart()
        yield url


def published_to_subscribers(url: str) -> Iterator[Link]:
    """Publishers and subscribers whose messages are confirmed and lie at the node."""
    for run, pattern, keys in SUBSCRIBED:
        yield connect(f"{url}&subscriber=shop", run, deadline_ns(), pattern, keys)
        publisher = listen(url, run, pattern, keys)
        send_and_confirm(publisher, FrameBatch.of(*NUMBERED))
        yield publisher


def asked(url: str) -> Link:
    """An asker whose requests are confirmed, and which nobody answers."""
    asker = connect(url, "asked", deadline_ns(), Pattern.REQUESTS)
    send_and_confirm(asker, FrameBatch.of(*NUMBERED))
    return asker


def test_confirmed_messages_are_there_in_order_after_the_broker_s_restart(restarted: str) -> None:
    assert left_at(restarted, len(NUMBERED)) == NUMBERED


def test_a_durable_subscriber_finds_messages_from_before_a_restart(restarted: str) -> None:
    """It finds them under its name."""
    for run, pattern, keys in SUBSCRIBED:
        heir = connect(f"{restarted}&subscriber=shop", run, deadline_ns(), pattern, keys)
        batch = FrameBatch(1 << 16)
        until(lambda heir=heir, batch=batch: heir.receive(batch) >= 0 and batch.count >= len(NUMBERED), heir)
        heir.close()
        assert list(batch) == NUMBERED


def test_unanswered_requests_outlive_the_broker(
    restarted: str,
) -> None:
    """The queue of their answers does not."""
    server, requests = listen(restarted, "asked", pattern=Pattern.REQUESTS), FrameBatch(1 << 16)
    until(lambda: server.receive(requests) >= 0 and requests.count >= len(NUMBERED), server)
    assert list(requests) == NUMBERED
    server.send(requests, 0)
    server.drain(deadline_ns(10))
    assert server.facts()["returned"] == len(NUMBERED), "each answer comes back, since its asker is gone"
    server.close()


@pytest.mark.long
@pytest.mark.parametrize(("client", "number"), [("compiled", signal.SIGTERM), ("pika", signal.SIGKILL)])
def test_confirmed_messages_outlive_every_end_of_the_broker(
    client: str, number: signal.Signals, nodes: list[Node]
) -> None:
    """However they were sent."""
    url = f"{nodes[0].url}/?client={client}&delivery=durable"
    publish_and_confirm(url, FrameBatch.of(*NUMBERED))
    nodes[0].process.send_signal(number)
    nodes[0].process.wait()
    nodes.append(nodes[0].restart())
    assert left_at(url, len(NUMBERED)) == NUMBERED


@pytest.mark.long
def test_confirmed_messages_outlive_a_broker_that_falls_under_load(
    nodes: list[Node],
) -> None:
    """The publisher was in full swing."""
    url = f"{nodes[0].url}/?delivery=durable"
    connector, frames, sent = connect(url, RUN, deadline_ns()), FrameBatch.of(*NUMBERED * 10), 0
    while connector.facts()["confirmed"] < 2000:
        sent = connector.send(frames, sent)
    nodes[0].process.kill()
    with pytest.raises(PeerGone, match="went away"):
        until(lambda: connector.receive(FrameBatch()) > 0, connector)
    confirmed = connector.facts()["confirmed"]
    connector.close()
    nodes.append(nodes[0].restart())
    left = left_at(url, confirmed)
    assert left == (NUMBERED * 10)[: len(left)]
    assert len(left) >= confirmed


@pytest.mark.long
def test_what_is_not_durable_is_gone_with_the_broker(nodes: list[Node]) -> None:
    url = f"{nodes[0].url}/?delivery=confirmed"
    publish_and_confirm(url, FrameBatch.of(*NUMBERED))
    nodes.append(nodes[0].restart())
    assert left_at(url, 0) == []
