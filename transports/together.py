"""Several links of one thread: sleeps until any of them has news, and sums their facts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from transports.base import Link
from transports.facts import sum_of_facts
from transports.waiting import Sleeper

BLIND_SLEEP_NS = 200_000
"""The longest sleep if a link does not say which descriptors show its news."""


class SleepTogether:
    """Sleeps until one of several links has news."""

    def __init__(self) -> None:
        self._watched: list[tuple[int, int]] = []
        """(descriptor, events) of the links of the last call, for which `_sleeper` was made."""
        self._sleeper = Sleeper([])

    def sleep(self, links: Iterable[Link], until_ns: int) -> None:
        """Sleep until a link has news, a signal, or `until_ns` of the monotonic clock.

        Call this only after each link's `wait(0)` and then its `receive` have found nothing, and nothing was sent
        since: a link may hold frames that no descriptor shows.
        """
        watched: list[tuple[int, int]] = []
        for link in links:
            watched_by_link = link.watched()
            if not watched_by_link:
                until_ns = min(until_ns, time.monotonic_ns() + BLIND_SLEEP_NS)
            watched += watched_by_link
        if watched != self._watched:
            self._watched = watched
            self._sleeper = Sleeper(watched)
        self._sleeper.sleep(until_ns)


def sum_of_link_facts(links: Iterable[Link]) -> dict[str, Any]:
    """Return the facts of all links as those of one, as `sum_of_facts` says."""
    return sum_of_facts([link.facts() for link in links])
