"""The names of the queues of a run with several pairs and reporters."""

from __future__ import annotations

import pytest

from transports.amqp import broker
from transports.amqp.session import BrokerSession
from transports.amqp.topology import LinkSide
from transports.base import Address, Pattern


def side(url: str, pattern: Pattern, listens: bool) -> LinkSide:
    return LinkSide.of(Address.parse(url, "run", pattern), listens)


@pytest.mark.parametrize(("url", "prefix"), [("amqp://host", ""), ("amqp://host?pair=2", "2.")])
def test_each_pair_has_its_own_queues_and_keys(url: str, prefix: str) -> None:
    engine = side(url, Pattern.PAIR, listens=True)
    reporter = side(url, Pattern.FAN_IN, listens=True)
    assert [queue.name for queue in engine.consumes] == [f"run.{prefix}order"]
    assert engine.publishes_to is not None
    assert engine.publishes_to.name == f"run.{prefix}trade"
    assert [queue.name for queue in reporter.consumes] == [f"run.{prefix}statistics"]
    [replies] = side(url, Pattern.FAN_IN, listens=False).consumes
    assert replies.name == "", "the broker names this queue"
    assert replies.key == f"{prefix}reply"
    assert reporter.publishes_to is not None
    assert reporter.publishes_to.key == f"{prefix}reply"


def test_a_look_at_the_queues_asks_for_none_without_a_name(at_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue for the replies of subscribers has a name that the broker chooses."""
    asked: list[str] = []

    def note(_session: BrokerSession, queue: str, _until_ns: int) -> int:
        asked.append(queue)
        return 0

    monkeypatch.setattr(broker, "queue_length", note)
    probe = broker.RabbitMq().probe(at_broker, [Address.parse(at_broker, "run", Pattern.FANOUT)])
    probe.depth()
    probe.close()
    assert "run.order" in asked
    assert "run." not in asked
