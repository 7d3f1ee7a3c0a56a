"""The names of the queues of a run with several pairs and reporters."""

from __future__ import annotations

import pytest

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
