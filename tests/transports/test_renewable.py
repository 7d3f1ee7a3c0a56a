"""A link that is opened again: its counts are those of all links so far."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from transports.base import Link, PeerGone
from transports.facts import sum_of_facts
from transports.frames import FrameBatch
from transports.renewable import RenewableLink


class Counting(Link):
    """A link that carries nothing and has these facts."""

    url = "counting://peer"

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def facts(self) -> dict[str, Any]:
        return self._facts

    def receive(self, batch: FrameBatch) -> int:
        return 0

    def send(self, batch: FrameBatch, first: int) -> int:
        return first

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        pass

    def close(self, linger_s: float = 1.0) -> None:
        pass


def facts_of_link(published: int, blocked_s: float, confirms: dict[int, int]) -> dict[str, Any]:
    """Return facts as an AMQP link has them. `confirms`: the number of publishes by confirm time, ns."""
    return {
        "published": published,
        "confirmed": None,
        "blocked_s": blocked_s,
        "confirm_ns": list(confirms),
        "confirm_counts": list(confirms.values()),
        "knobs": {"queue": "classic"},
        "max_payload_bytes": 1024,
    }


def test_the_counts_of_a_link_that_was_opened_again_are_those_of_all_its_connections() -> None:
    links = deque([Counting(facts_of_link(70, 0.5, {100: 4, 300: 2})), Counting(facts_of_link(1, 0.0, {200: 1}))])
    attempts = 0

    def open_link(_until_ns: int) -> Link:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise PeerGone("the broker is not back yet")
        return links.popleft()

    link = RenewableLink(Counting(facts_of_link(5, 0.25, {100: 1, 200: 6})), open_link)
    with pytest.raises(PeerGone):
        link.renew()
    assert link.facts() == facts_of_link(5, 0.25, {100: 1, 200: 6})
    link.renew()
    link.renew()
    assert link.facts() == facts_of_link(76, 0.75, {100: 5, 200: 7, 300: 2})


def test_links_without_confirms_have_no_confirm_times_together() -> None:
    assert sum_of_facts([{"published": 3}, {"published": 4}]) == {"published": 7}
