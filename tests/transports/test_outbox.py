"""`Outbox.settle` waits for the peer's confirmation: up to its deadline, and only briefly after a stop."""

from __future__ import annotations

import time

import pytest

from transports.base import LAST_LOOK_NS, Link
from transports.frames import FrameBatch
from transports.outbox import LAST_WORDS_NS, Outbox

SECOND = 1_000_000_000


class SilentLink(Link):
    """Takes every frame and sends none. Each wait takes a second."""

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


def test_settle_waits_for_a_silent_peer_until_the_deadline(link: SilentLink) -> None:
    assert Outbox(link).settle(100 * SECOND) is None
    assert link.now_ns == 100 * SECOND + LAST_LOOK_NS


def test_after_a_stop_settle_waits_only_briefly(link: SilentLink) -> None:
    assert Outbox(link).settle(100 * SECOND, lambda: link.now_ns >= 7 * SECOND) is None
    assert link.now_ns == 7 * SECOND + LAST_WORDS_NS


def test_a_stop_never_extends_the_deadline(link: SilentLink) -> None:
    assert Outbox(link).settle(LAST_WORDS_NS // 2, lambda: True) is None
    assert link.now_ns == LAST_WORDS_NS // 2


class WaitingLink(SilentLink):
    """Sends a sign of life every second, and its confirmation after this many seconds."""

    def __init__(self, seconds: int) -> None:
        super().__init__()
        self._confirmation_ns = seconds * SECOND
        self._last_frame_ns = 0

    def receive(self, batch: FrameBatch) -> int:
        if self.now_ns == self._last_frame_ns:
            return 0
        self._last_frame_ns = self.now_ns
        if self.now_ns < self._confirmation_ns:
            batch.append(b"")
        else:
            batch.append(b"confirmation")
        return 1


def test_signs_of_life_extend_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    link = WaitingLink(seconds=100)
    monkeypatch.setattr(time, "monotonic_ns", lambda: link.now_ns)
    assert Outbox(link).settle(3 * SECOND) == b"confirmation"


def test_after_a_stop_signs_of_life_do_not_extend_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    link = WaitingLink(seconds=100)
    monkeypatch.setattr(time, "monotonic_ns", lambda: link.now_ns)
    assert Outbox(link).settle(3 * SECOND, lambda: link.now_ns >= 7 * SECOND) is None
    assert link.now_ns == 7 * SECOND + LAST_WORDS_NS


def test_a_stalled_process_does_not_blame_its_peer(link: SilentLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process stalls in its first wait, and the confirmation comes meanwhile."""

    def stalled(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        link.now_ns += 100 * SECOND
        monkeypatch.setattr(link, "receive", lambda batch: batch.append(b"confirmation") or 1)

    monkeypatch.setattr(link, "wait", stalled)
    assert Outbox(link).settle(3 * SECOND) == b"confirmation"
