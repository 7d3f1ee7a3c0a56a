"""How a NATS server carries a link's frames: `CoreCarrier` from memory, laid out and scanned by our own kernels.

jetstream.py has the carrier whose frames the server keeps, nats_py.py the one in which nats-py handles each message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transports.frames import FrameBatch
from transports.nats.connection import Connection
from transports.nats.protocol import FRAME_SUBSCRIPTION

GROUP = "consumers"
"""The queue group of a queue's consumers, and of those that answer requests."""


class CoreCarrier:
    """Frames that the server passes on from memory, over the link's one connection."""

    lends = True
    """Whether compiled calls can do the work of `take` and `send`."""
    mark_is_due = False
    """True while the server may have frames for us that were sent before a peer left."""

    def __init__(self, connection: Connection, base: str) -> None:
        """`base`: the first words of the conversation's subjects."""
        self._connection = connection
        self._base = base

    def subscribe_alone(self, subject: str) -> None:
        """Take the frames that are published to a subject, as its only reader."""
        self.subscribe_with_others([subject])

    def subscribe_with_others(self, subjects: Sequence[str]) -> None:
        """Take the frames that are published to these subjects from now on; other readers get each frame, too."""
        for place, subject in enumerate(subjects):
            self._connection.write(f"SUB {subject} {_frame_number(place)}\r\n".encode())

    def subscribe_in_group(self, subject: str) -> None:
        """Take those frames of a subject that the server deals out to us; others of our group get the rest."""
        self._connection.write(f"SUB {subject} {GROUP} {FRAME_SUBSCRIPTION}\r\n".encode())

    def publish_to(self, subject: str, reply_to: str = "") -> None:
        """Send frames to a subject from now on, as requests whose answers go to `reply_to` if that is given."""
        self._connection.publish_to(f"{subject} {reply_to}" if reply_to else subject)

    def subscribe_to_listener(self, name: str, is_shared: bool) -> None:
        """Take the frames from the listener; `name` is ours, and `is_shared` if it sends to other connectors too."""
        self.subscribe_alone(f"{self._base}.out" if is_shared else f"{self._base}.out.{name}")

    def answer(self, connector: str) -> None:
        """Send frames to this connector of a pair from now on."""
        self.publish_to(f"{self._base}.out.{connector}")

    def come_back(self) -> None:
        """Called when the component asks for more frames: it has handled those that it got."""

    def take(self, batch: FrameBatch) -> int:
        """Append the frames at the front of what has come; returns why that ended: INCOMPLETE, FULL or OTHER."""
        return self._connection.take_frames(batch)

    def send(self, batch: FrameBatch, first: int) -> int:
        """Take frames from `first` on while there is room; returns the first one that was not taken."""
        return self._connection.send_frames(batch, first)

    def ask_for_mark(self) -> None:
        """Ask the server whether it has more frames for us; `mark_is_due` until it has answered no."""

    def serve(self) -> None:
        """Do what is due, at the latest at `next_ns`. PeerGone if the server refuses a frame, or is gone."""

    next_ns = 1 << 62
    """The time at which `serve` is to be called again, monotonic."""

    @property
    def holds_frames(self) -> bool:
        """True if `take` would give a frame without waiting."""
        return self._connection.is_frame_next

    @property
    def has_room(self) -> bool:
        """True if `send` would take a frame."""
        return not self._connection.has_unsent

    def settle(self) -> bool:
        """Do what is due. True if everything that was sent has gone, and the server has kept it if it is to."""
        self.serve()
        return not self._connection.has_unsent

    def events(self) -> list[tuple[int, int]]:
        """Return what to sleep on beside the link's connection."""
        return []

    def descriptors(self) -> list[int]:
        """Return the sockets beside that of the link's connection."""
        return []

    def facts(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """Close what belongs to the carrier alone."""


def _frame_number(place: int) -> int:
    """The number of the subscription at a place; all of them begin with the digit of FRAME_SUBSCRIPTION."""
    return FRAME_SUBSCRIPTION if place == 0 else int(f"{FRAME_SUBSCRIPTION}{place}")
