"""`durable`: a confirmed message outlives the broker's restart, whether the broker was ended or killed."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import need_rabbitmq
from tests.transports.conftest import TOKEN, deadline_ns, until
from transports.amqp.address import PASSWORD
from transports.base import Pattern, PeerGone
from transports.frames import FrameBatch
from transports.rabbitmq import Node
from transports.registry import connect, listen

NUMBERED = [n.to_bytes(4, "little") for n in range(3000)]


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Node]]:
    """A node, and behind it those that followed; one folder, one address, one password."""
    need_rabbitmq()
    with contextlib.ExitStack() as stopping:
        made = [Node.start(tmp_path / "node")]
        stopping.callback(_stop_last, made)
        monkeypatch.setenv(PASSWORD, made[0].password)
        yield made


def _stop_last(nodes: list[Node]) -> None:
    nodes[-1].stop()


def publish_and_confirm(url: str, frames: FrameBatch) -> None:
    """A link of its own, whose queue nobody reads."""
    connector, sent = connect(url, TOKEN, deadline_ns()), 0
    while sent < frames.count or not connector.drain(deadline_ns(10)):
        sent = connector.send(frames, sent)
    assert connector.facts()["returned"] == connector.facts()["refused"] == 0
    connector.close()


def left_at(url: str, expected: int) -> list[bytes]:
    batch, heir = FrameBatch(1 << 16), listen(url, TOKEN)
    until(lambda: heir.receive(batch) >= 0 and batch.count >= expected, heir)
    heir.close()
    return list(batch)


@pytest.mark.parametrize(
    ("client", "number"),
    [
        ("compiled", signal.SIGKILL),
        pytest.param("compiled", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param("joined", signal.SIGKILL, marks=pytest.mark.long),
        pytest.param("pika", signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_confirmed_messages_are_there_in_order_after_the_broker_s_restart(
    client: str, number: signal.Signals, nodes: list[Node]
) -> None:
    url = f"{nodes[0].url}/?client={client}&delivery=durable"
    publish_and_confirm(url, FrameBatch.of(*NUMBERED))
    nodes[0].process.send_signal(number)
    nodes[0].process.wait()
    nodes.append(nodes[0].restart())
    assert left_at(url, len(NUMBERED)) == NUMBERED


@pytest.mark.long
def test_what_was_confirmed_before_the_broker_fell_is_there_though_its_publisher_was_in_full_swing(
    nodes: list[Node],
) -> None:
    url = f"{nodes[0].url}/?delivery=durable"
    connector, frames, sent = connect(url, TOKEN, deadline_ns()), FrameBatch.of(*NUMBERED * 10), 0
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


def test_a_durable_subscriber_finds_under_its_name_what_came_before_the_restart(nodes: list[Node]) -> None:
    url, links = f"{nodes[0].url}/?delivery=durable", []
    kinds = (("all", Pattern.FANOUT, ()), ("some", Pattern.TOPIC, ("news.usa",)))
    for run, pattern, keys in kinds:
        links.append(connect(f"{url}&subscriber=shop", run, deadline_ns(), pattern, keys))
        publisher, frames, sent = listen(url, run, pattern, keys), FrameBatch.of(*NUMBERED), 0
        while sent < frames.count or not publisher.drain(deadline_ns(10)):
            sent = publisher.send(frames, sent)
        links.append(publisher)
    nodes[0].process.kill()
    nodes[0].process.wait()
    for link in links:
        link.close(0)
    nodes.append(nodes[0].restart())
    for run, pattern, keys in kinds:
        heir, batch = connect(f"{url}&subscriber=shop", run, deadline_ns(), pattern, keys), FrameBatch(1 << 16)
        until(lambda heir=heir, batch=batch: heir.receive(batch) >= 0 and batch.count >= len(NUMBERED), heir)
        heir.close()
        assert list(batch) == NUMBERED
