"""An agent's links: what waits to be sent, what comes, and the broker that may go and come back."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from exchange_simulation.messaging.roles import LinkEnd
from exchange_simulation.messaging.session import OPEN_NS
from transports.base import Link, PeerGone, TransportError
from transports.frames import LARGEST_FRAME, FrameBatch
from transports.registry import listen

RECONNECT_EVERY_S = 0.1
STUCK_NS = 1_000_000
"""Longest wait while a link has no room: deliveries go on meanwhile."""


@runtime_checkable
class WaitsBeside(Protocol):
    """A link whose `wait` can end when another link has something to do: `amqp` has such links."""

    def wait_beside(self, other: Any) -> None: ...


@runtime_checkable
class LooksIntoQueues(Protocol):
    """A link that counts what lies in the queues that it consumes: `amqp` has such links."""

    def left(self, until_ns: int) -> int:
        """Number of messages that nobody has taken."""


class Post:
    """Sends and receives over several links, and waits for all of them together.

    `ends`: the ends to open again once the broker has gone; empty if the run ends with the broker. Frames that an
    assured link took are kept until they are confirmed, and sent again over the new link.
    """

    def __init__(self, links: list[Link], receives: Sequence[int], ends: Sequence[LinkEnd], give_up_ns: int) -> None:
        self._links = links
        self._receives = receives
        self._ends = ends
        self._give_up_ns = give_up_ns
        self._out = [FrameBatch() for _ in links]
        self._gone = [0] * len(links)
        self._unconfirmed: list[deque[bytes]] = [deque() for _ in links]
        self._batch = FrameBatch(4096, 4 * LARGEST_FRAME)
        _wait_together(self._receiving)

    @property
    def _receiving(self) -> list[Link]:
        return [self._links[number] for number in self._receives]

    def add(self, link: int, frame: bytes) -> None:
        """Put a frame behind those that wait to be handed over."""
        self._out[link].append(frame)

    def batches(self) -> Iterator[FrameBatch]:
        """Yield the messages that came over each link; a batch is used again for the next."""
        for link in self._receiving:
            self._batch.clear()
            if link.receive(self._batch):
                yield self._batch

    def hand_over(self) -> None:
        """Give the links what they take; the rest stays for the next time."""
        for number, (link, out) in enumerate(zip(self._links, self._out, strict=True)):
            if not out.count:
                continue
            first = self._gone[number]
            self._gone[number] = link.send(out, self._gone[number])
            if self._ends:
                self._keep_unconfirmed(number, first)
            if self._gone[number] == out.count:
                out.clear()
                self._gone[number] = 0

    def _keep_unconfirmed(self, number: int, first: int) -> None:
        facts = self._links[number].facts()
        unconfirmed = self._unconfirmed[number]
        if facts["confirmed"] is not None:
            unconfirmed.extend(itertools.islice(self._out[number], first, self._gone[number]))
            while len(unconfirmed) > facts["published"] - facts["confirmed"]:
                unconfirmed.popleft()

    def wait(self, until_ns: int) -> None:
        """Sleep until something has come, or a link that had no room may have some."""
        receiving = self._receiving
        stuck = [link for link, out in zip(self._links, self._out, strict=True) if out.count]
        if stuck:
            stuck[0].wait(min(until_ns, time.monotonic_ns() + STUCK_NS), readable=False, writable=True)
        elif receiving:
            receiving[0].wait(until_ns)
        else:
            self._links[0].wait(until_ns, readable=False)

    def reconnect(self, on_wait: Callable[[], None]) -> None:
        """Open the links again once the broker is back. PeerGone if it does not come back in time."""
        for link in self._links:
            link.close(0)
        for number, end in enumerate(self._ends):
            self._links[number] = self._opened(end, on_wait)
            waiting = itertools.islice(self._out[number], self._gone[number], None)
            again = FrameBatch()
            for frame in (*self._unconfirmed[number], *waiting):
                again.append(frame)
            self._out[number] = again
            self._gone[number] = 0
            self._unconfirmed[number].clear()
        _wait_together(self._receiving)

    def _opened(self, end: LinkEnd, on_wait: Callable[[], None]) -> Link:
        """PeerGone if the broker does not come back before the drain is over."""
        while True:
            try:
                return listen(end.url, end.token, end.pattern, end.keys)
            except TransportError as error:
                if time.monotonic_ns() > self._give_up_ns:
                    raise PeerGone(f"the broker did not come back: {error}") from error
                on_wait()
                time.sleep(RECONNECT_EVERY_S)

    def left_in_queues(self) -> int:
        """Messages that lie in the agent's queues."""
        until_ns = time.monotonic_ns() + OPEN_NS
        return sum(link.left(until_ns) for link in self._links if isinstance(link, LooksIntoQueues))


def _wait_together(links: Sequence[Link]) -> None:
    """Make a wait for the first link end for the others, too."""
    for link in links[1:]:
        if isinstance(links[0], WaitsBeside):
            links[0].wait_beside(link)
