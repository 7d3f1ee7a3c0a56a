"""Offers orders over a link that may break: sends again what the engine lacks, before any new order."""

from __future__ import annotations

import time

import numpy as np

from exchange.results import HashedStream
from exchange.settings import RunSettings
from gateway.offering import Offering, OrdersAhead
from gateway.pacer import Pacer
from gateway.recovering.completion import RecoveringCompletion
from transports.base import Link


class ResendingOffering(Offering):
    """An offering that can go back to the first order that the engine lacks. It makes the orders from seed or tape."""

    _completion: RecoveringCompletion

    def __init__(
        self, settings: RunSettings, link: Link, completion: RecoveringCompletion, pacer: Pacer, stream: HashedStream
    ) -> None:
        super().__init__(settings, link, completion, pacer, stream)
        self._next_again = 1
        """The id of the next order to send again."""
        self._last_again = 0
        """The id of the last order to send again."""
        self.resent = 0
        """Orders that had to be sent again, over the whole run."""

    @property
    def _sends_again(self) -> bool:
        return self._next_again <= self._last_again

    @property
    def done(self) -> bool:
        return super().done and not self._sends_again

    @property
    def unsure(self) -> int:
        """Number of orders that a broken link may have taken without confirming them."""
        return self._prepared - self.sent

    def resume(self, received: int) -> None:
        """Prepare to send every order after the first `received` again, before any new order."""
        now_ns = time.monotonic_ns()
        if received > self.sent:  # the link took these orders, but broke before it confirmed them
            self._fill_batch(self.sent + 1, received - self.sent)
            self._first_unsent = self._batch.count
            self._note_handed_over(0, now_ns)
        self._batch.clear()
        self._first_unsent = 0
        self._prepared = self.sent
        if self._is_stopped:  # orders that were prepared, but are not sent, are offered no more
            self._limit_to_prepared()
        self._next_again = received + 1
        self._last_again = self.sent
        self.resent += self._last_again - received

    def take_over(self, orders: int, reported: int, first_handed_ns: int, since_ns: int) -> None:
        """Count the orders that a killed gateway sent as sent by this gateway.

        The killed gateway reported the completion times of the first `reported` orders. It is unknown when it handed
        over the others: their due times are taken for that, or `since_ns` if there is no schedule.
        """
        self.first_handed_ns = first_handed_ns
        self._completion.skip(min(reported, orders))
        while self.sent < orders:
            is_reported = self.sent < reported
            until = min(reported, orders) if is_reported else orders  # no batch holds orders of both kinds
            count = min(until - self.sent, self._batch_orders)
            self._fill_batch(self.sent + 1, count)
            due = self._pacer.due_times(self.sent + 1, count)
            handed = due if len(due) else np.full(count, since_ns)
            if not is_reported:
                self._completion.take_over(handed, due)
            self._note_sent(self._batch.span(0, self._batch.count), count, int(handed[0]), int(handed[-1]))

    def next_due_ns(self) -> int:
        if self._sends_again and not self.pending:
            return 0  # at once; while orders wait for room in the link, the room wakes the gateway
        return super().next_due_ns()

    def offer(self, now_ns: int) -> int:
        """Hand over what is due and allowed. Returns how many orders the link took for the first time."""
        if self._sends_again:
            self._offer_again()
            return 0
        return super().offer(now_ns)

    def look_ahead(self) -> OrdersAhead | None:
        return None if self._sends_again else super().look_ahead()

    def _offer_again(self) -> None:
        """Send some orders again. The time of their first hand-over stays."""
        if not self.pending:
            count = min(self._batch_orders, self._last_again - self._next_again + 1)
            self._fill_batch(self._next_again, count)
        first = self._first_unsent
        self._first_unsent = self._link.send(self._batch, first)
        self._next_again += self._orders_in_frames(first, self._first_unsent)
        if not self.pending:
            self._batch.clear()
            self._first_unsent = 0
