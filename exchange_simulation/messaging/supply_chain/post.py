"""An agent's links: messages to be sent, messages received, and new links after a restart of the broker."""

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
"""The longest wait while a link has no room, since messages may come over other links meanwhile."""


@runtime_checkable
class WaitsBeside(Protocol):
    """A link whose `wait` can end when another link has something to do: `amqp` has such links."""

    def wait_beside(self, other: Any) -> None:
        """Let `wait` end, too, when `other` has something to do."""


@runtime_checkable
class LooksIntoQueues(Protocol):
    """A link that counts the messages in the queues that it consumes: `amqp` has such links."""

    def left(self, until_ns: int) -> int:
        """The number of messages that nobody has taken; waits until `until_ns` at most."""


class Post:
    """Sends and receives over several links, and waits for all of them together.

    If the links can be opened again, frames that an assured link took are kept until they are confirmed, and are sent
    again over the new link.
    """

    def __init__(
        self, links: list[Link], receiving_indexes: Sequence[int], ends: Sequence[LinkEnd], give_up_ns: int
    ) -> None:
        """`receiving_indexes`: indexes of the links to receive from. `ends`: the ends to open again; empty for none."""
        self._links = links
        self._receiving_indexes = receiving_indexes
        self._ends = ends
        self._give_up_ns = give_up_ns
        self._out = [FrameBatch() for _ in links]
        """The frames to be sent over each link."""
        self._handed_over = [0] * len(links)
        """The number of frames in `_out` that each link has taken."""
        self._unconfirmed: list[deque[bytes]] = [deque() for _ in links]
        self._batch = FrameBatch(4096, 4 * LARGEST_FRAME)
        _wait_for_all(self._receiving)

    @property
    def _receiving(self) -> list[Link]:
        return [self._links[index] for index in self._receiving_indexes]

    def add(self, link: int, frame: bytes) -> None:
        """Add a frame to those that will be handed over to a link."""
        self._out[link].append(frame)

    def batches(self) -> Iterator[FrameBatch]:
        """Yield a batch of the messages that came over each link; the same batch is used for the next link."""
        for link in self._receiving:
            self._batch.clear()
            if link.receive(self._batch):
                yield self._batch

    def hand_over(self) -> None:
        """Hand over frames, as many as the links take; the rest stays for the next call."""
        for number, (link, out) in enumerate(zip(self._links, self._out, strict=True)):
            if not out.count:
                continue
            first = self._handed_over[number]
            self._handed_over[number] = link.send(out, self._handed_over[number])
            if self._ends:
                self._keep_unconfirmed(number, first)
            if self._handed_over[number] == out.count:
                out.clear()
                self._handed_over[number] = 0

    def _keep_unconfirmed(self, number: int, first: int) -> None:
        """Keep the frames that an assured link took from `first` on, and drop those that are confirmed by now."""
        facts = self._links[number].facts()
        unconfirmed = self._unconfirmed[number]
        if facts["confirmed"] is not None:
            unconfirmed.extend(itertools.islice(self._out[number], first, self._handed_over[number]))
            while len(unconfirmed) > facts["published"] - facts["confirmed"]:
                unconfirmed.popleft()

    def wait(self, until_ns: int) -> None:
        """Sleep until `until_ns`, until a message has come, or until a link without room may have room."""
        receiving = self._receiving
        full_links = [link for link, out in zip(self._links, self._out, strict=True) if out.count]
        if full_links:
            full_links[0].wait(min(until_ns, time.monotonic_ns() + STUCK_NS), readable=False, writable=True)
        elif receiving:
            receiving[0].wait(until_ns)  # `_wait_for_all` lets other links end this wait, too
        else:
            self._links[0].wait(until_ns, readable=False)

    def reconnect(self, on_wait: Callable[[], None]) -> None:
        """Open the links again once the broker is back; calls `on_wait` meanwhile. PeerGone if it stays away."""
        for link in self._links:
            link.close(0)
        for number, end in enumerate(self._ends):
            self._links[number] = self._open(end, on_wait)
            not_handed_over = itertools.islice(self._out[number], self._handed_over[number], None)
            frames = FrameBatch()
            for frame in (*self._unconfirmed[number], *not_handed_over):
                frames.append(frame)
            self._out[number] = frames
            self._handed_over[number] = 0
            self._unconfirmed[number].clear()
        _wait_for_all(self._receiving)

    def _open(self, end: LinkEnd, on_wait: Callable[[], None]) -> Link:
        """Open a link once the broker is back. PeerGone if it does not come back before `give_up_ns`."""
        while True:
            try:
                return listen(end.url, end.token, end.pattern, end.keys)
            except TransportError as error:
                if time.monotonic_ns() > self._give_up_ns:
                    raise PeerGone(f"the broker did not come back: {error}") from error
                on_wait()
                time.sleep(RECONNECT_EVERY_S)

    def left_in_queues(self) -> int:
        """The number of messages that nobody has taken from the agent's queues."""
        until_ns = time.monotonic_ns() + OPEN_NS
        return sum(link.left(until_ns) for link in self._links if isinstance(link, LooksIntoQueues))


def _wait_for_all(links: Sequence[Link]) -> None:
    """Let a wait for the first link end, too, when another link has something to do.

    A link that is no WaitsBeside cannot do this: messages of the other links would lie until its wait ends. The supply
    chain runs over amqp alone, and each amqp link with routes is a WaitsBeside.
    """
    for link in links[1:]:
        if isinstance(links[0], WaitsBeside):
            links[0].wait_beside(link)
