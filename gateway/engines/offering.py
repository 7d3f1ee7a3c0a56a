"""Offers one stream of orders to several engines: one schedule and one window, and a queue for each engine's link."""

from __future__ import annotations

import numpy as np

from exchange.results import HashedStream
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.engines.dividing import EngineChoice
from gateway.engines.sessions import EngineLinks
from gateway.offering import Offering
from gateway.pacer import Pacer
from transports.frames import Longs


class DividedOffering(Offering):
    """Hands each order over to the session of its engine.

    If a link has no room, the orders for its engine wait in its session, and no further ones are handed over.
    """

    _link: EngineLinks

    def __init__(
        self, settings: RunSettings, links: EngineLinks, completion: Completion, pacer: Pacer, stream: HashedStream
    ) -> None:
        super().__init__(settings, links, completion, pacer, stream)
        self._choice = EngineChoice(settings)
        self._engines_of_batch: Longs = np.zeros(0, np.int64)
        """The engine of each frame of `_batch`."""
        self._engines_ahead: Longs = np.zeros(0, np.int64)
        """The engine of each frame of `_ahead`."""
        self._first_id_ahead = 0
        """The id of the order in the first of these frames."""

    @property
    def pending(self) -> bool:
        return super().pending or any(session.has_waiting for session in self._link.sessions)

    def _fill_batch(self, first_id: int, count: int) -> None:
        super()._fill_batch(first_id, count)
        self._engines_of_batch = self._choice.engines_of(first_id, count)

    def _send(self, first: int) -> int:
        """Give the batch's frames from `first` on to their sessions; none while orders wait for room on a link.

        Returns the first frame that no session took: `first`, or the number of frames. Frames for which a link has no
        room wait in their session.
        """
        sessions = self._link.sessions
        for session in sessions:
            session.send_waiting()
        if any(session.has_waiting for session in sessions):
            return first
        for session in sessions:
            session.add(self._batch, first, self._engines_of_batch)
            session.send_waiting()
        return self._batch.count

    def _refill_ahead(self, wanted: int) -> int:
        """Prepare orders anew if too few are left, and note their engines. Returns how many are prepared now.

        The orders *ahead* are those that Offering has prepared in `_ahead` for compiled turns: the ids after
        `_ahead_after`, up to `_ahead_until`.
        """
        left = super()._refill_ahead(wanted)
        first_id = self._ahead_after + 1
        if first_id != self._first_id_ahead:
            self._first_id_ahead = first_id
            self._engines_ahead = self._choice.engines_of(first_id, self._ahead_until - self._ahead_after)
        return left

    @property
    def engines_ahead(self) -> Longs:
        """The engine of each frame of `orders_ahead`."""
        return self._engines_ahead[self._frames_sent_ahead :]
