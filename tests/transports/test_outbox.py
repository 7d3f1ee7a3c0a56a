"""Settling with a peer who says nothing: for as long as was said, and not much longer than a stop."""

from __future__ import annotations

import time

import pytest

from transports.base import LAST_LOOK_NS, Link
from transports.frames import FrameBatch
from transports.outbox import LAST_WORDS_NS, Outbox

SECOND = 1_000_000_000


class SilentLink(Link):
    """Takes everything and says nothing; a second passes with every wait."""

    url = "silent://"

    def __init__(self) -> None:
        self.now_ns = 0

    def receive(self, batch: FrameBatch) -> int:
        return 0

    def send(self, batch: FrameBatch, first: int) -> int:
        return batch.count

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.now_ns = min(until_ns, self.now_ns + SECOND)

    def close(self, linger_s: float = 1.0) -> None:
        pass


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> SilentLink:
    link = SilentLink()
    monkeypatch.setattr(time, "monotonic_ns", lambda: link.now_ns)
    return link


def test_a_silent_peer_is_waited_for_until_the_time_is_up(link: SilentLink) -> None:
    assert Outbox(link).settle(100 * SECOND) is None
    assert link.now_ns == 100 * SECOND + LAST_LOOK_NS


def test_a_stop_leaves_a_silent_peer_a_short_time(link: SilentLink) -> None:
    assert Outbox(link).settle(100 * SECOND, lambda: link.now_ns >= 7 * SECOND) is None
    assert link.now_ns == 7 * SECOND + LAST_WORDS_NS


def test_a_stop_makes_no_time_longer(link: SilentLink) -> None:
    assert Outbox(link).settle(LAST_WORDS_NS // 2, lambda: True) is None
    assert link.now_ns == LAST_WORDS_NS // 2


class WaitingLink(SilentLink):
    """Says every second that it has to wait itself; its last word comes after so many."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self._last_ns, self._said_ns = seconds * SECOND, 0

    def receive(self, batch: FrameBatch) -> int:
        if self.now_ns == self._said_ns:
            return 0
        self._said_ns = self.now_ns
        batch.append(b"" if self.now_ns < self._last_ns else b"all")
        return 1


def test_a_peer_that_says_that_it_has_to_wait_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    link = WaitingLink(seconds=100)
    monkeypatch.setattr(time, "monotonic_ns", lambda: link.now_ns)
    assert Outbox(link).settle(3 * SECOND) == b"all"


def test_a_stop_waits_for_no_peer_that_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    link = WaitingLink(seconds=100)
    monkeypatch.setattr(time, "monotonic_ns", lambda: link.now_ns)
    assert Outbox(link).settle(3 * SECOND, lambda: link.now_ns >= 7 * SECOND) is None
    assert link.now_ns == 7 * SECOND + LAST_WORDS_NS


def test_a_stall_of_ours_is_no_silence_of_the_peer(link: SilentLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stalled in its first wait, and the last word comes meanwhile."""

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        link.now_ns += 100 * SECOND
        monkeypatch.setattr(link, "receive", lambda batch: batch.append(b"all") or 1)

    monkeypatch.setattr(link, "wait", stalled)
    assert Outbox(link).settle(3 * SECOND) == b"all"
