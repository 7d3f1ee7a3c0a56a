"""The loop of an engine with a journal: its session may break, and go on with this engine or with another process.

The gateway says how many answers it has. The engine matches its journal from the first order and sends the answers
that the gateway lacks; `recovery.py` knows which these are. A session ends once the gateway says that it has the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from exchange.messages import End, Hello, Resume, encode, read
from exchange.results import EngineResult
from exchange.session import Terms
from matching_engine.engine import MatchingEngine
from matching_engine.follower import Follower, Recent
from matching_engine.journal import JournalRefused
from matching_engine.recovery import Recovery
from matching_engine.service import EngineService
from matching_engine.turns import JournalCalls, Sums
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch

BEAT_NS = 100_000_000
"""The engine shows its pulse at least so often."""


class ResumingEngine(EngineService):
    """Serves one gateway over a link that can be opened again, and keeps every order before it is answered."""

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        recovery: Recovery,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        of_thread: bool = False,
    ) -> None:
        super().__init__(engine, terms, recovery.link, reporter, sampling_interval, timeout_s, of_thread)
        self._recovery = recovery
        self._left_with: End | None = None
        self.on_refusal: Callable[[], None] = lambda: None
        """Called when the journal takes no order any more: the gateway need not wait for another engine."""
        self.while_alone: Callable[[], None] = lambda: None
        """Called often as long as no gateway is in session. It may call `end_as`, which ends the wait."""

    def warm(self) -> None:
        super().warm()
        self._recovery.warm()
        self._recovery.journal.start_syncing()

    def close(self) -> None:
        super().close()
        self._recovery.pulse.end()
        self._recovery.journal.close()

    def end_as(self, gateway_end: End) -> None:
        """Take the place of an engine that was killed after its gateway had every answer; this is the gateway's end."""
        self._left_with = gateway_end

    def run(self) -> EngineResult:
        return super().run() if self._left_with is None else self._finish()

    def _await_hello(self) -> None:
        """A gateway that knew another engine, and is reached over a broker, is asked for its hello."""
        super()._await_hello()
        self._greeted = self._recovery.is_resumed = False
        self._gateway.send(FrameBatch.of(encode(Resume(0, 0, 0))), 0)

    def _step(self) -> None:
        try:
            super()._step()
        except PeerGone as gone:
            if self._stopped is not None:
                raise
            self._renew(gone)
            self._await_hello()

    def _renew(self, gone: PeerGone) -> None:
        """Open the link again. Where that fails, the session ends with the reason why the link broke."""
        try:
            self._recovery.link.renew()
        except TransportError as error:
            raise gone from error

    def _give_up_waiting(self) -> None:
        """A gateway that has ended its session need not come again."""
        if self._gateway_end is None:
            super()._give_up_waiting()
        else:
            self._recovery.is_confirmed = True

    @property
    def _is_over(self) -> bool:
        return self._left_with is not None or (self._gateway_end is not None and self._recovery.is_confirmed)

    @property
    def _is_waiting(self) -> bool:
        return not self._greeted or self._gateway_end is not None

    @property
    def _is_in_session(self) -> bool:
        return self._greeted and self._recovery.is_resumed

    def _report(self) -> None:
        """Show that this engine lives, too. The session ends where the journal cannot be synced."""
        super()._report()
        self._beat()
        if not self._is_in_session:
            self.while_alone()
        elif self._recovery.sends_all and self._stopped is None:
            self._recovery.keep_snapshot(self._engine, self._sums)
        try:
            self._recovery.journal.check()
        except OSError as error:
            self._end_refusing(error)

    def _end_refusing(self, error: OSError) -> None:
        """End the session, since the journal takes nothing any more."""
        self._stopped = self._stopped or str(error)
        self.on_refusal()

    def _clock_start_ns(self, now_ns: int) -> int:
        return self._recovery.pulse.clock_start_ns(now_ns)

    def _beat(self) -> None:
        self._recovery.pulse.beat()

    def _awake_by(self, until_ns: int) -> int:
        return min(until_ns, time.monotonic_ns() + BEAT_NS)

    @property
    def _may_take_turns(self) -> bool:
        is_plain = self._recovery.sends_all and self._gateway_end is None
        return self._started and is_plain and self._recovery.journal.is_compiled

    @property
    def _journal(self) -> JournalCalls:
        return self._recovery.journal.calls

    def _write_journal(self, first: int, end: int) -> bool:
        """Write the orders to the journal; the session ends where that is impossible."""
        try:
            if end > first:
                self._recovery.journal.append(self._orders.span(first, end))
        except OSError as error:
            self._end_refusing(error)
            return False
        return True

    def _send_answers(self, first: int, unsent: int) -> None:
        super()._send_answers(first, self._recovery.pass_over(self._answers, unsent))

    def _read_foreign(self, frame: bytes) -> None:
        match read(frame) if frame else None:
            case Hello() as hello:
                self._recovery.is_resumed = False
                self._greet(hello)
            case Resume() as resume if self._greeted and self._recovery.is_new(resume):
                self._resume(resume)
            case Resume(session) if self._gateway_end and session == self._recovery.journal.session:
                self._recovery.is_confirmed = True
            case _ if frame and not self._recovery.is_resumed:
                self._recovery.stale_frames += 1
            case _:
                super()._read_foreign(frame)

    def _resume(self, theirs: Resume) -> None:
        """Have the book of all orders in the journal, and send the answers that the gateway lacks."""
        self._gateway_end = None
        try:
            self._recovery.begin(theirs)
        except OSError as error:
            self._end_refusing(error)
            return
        self._send_message(Resume(theirs.session, self._recovery.journal.orders, 0))
        if followed := self._recovery.take_follower(self._engine, self._show_life):
            self._go_on_from(*followed)
        else:
            self._match_again()
        self._sampled = self._engine.counts.orders // self._samples.interval

    def _go_on_from(self, follower: Follower, recent: list[Recent]) -> None:
        """Go on with the book of a standby or of a snapshot, and send the latest answers."""
        self._engine, self._sums = follower.engine, follower.sums
        for each in recent:
            each.copy_into(self._answers)
            self._hand_over(self._recovery.pass_over(self._answers, 0))
        self._recovery.done(replayed=follower.reader.orders - follower.begun_behind)

    def _match_again(self) -> None:
        """Match the journal from its first order, and send the answers that the gateway lacks."""
        self._engine = self._engine.renewed()
        self._sums = Sums()
        try:
            for orders in self._recovery.journal.batches():
                self._show_life()
                self._match_once_more(orders)
        except JournalRefused as damage:
            self._stopped = self._stopped or str(damage)
        self._recovery.done(replayed=self._recovery.journal.orders)

    def _show_life(self) -> None:
        """Tell the gateway and a standby that this engine matches: they take a long silence for its end."""
        self._beat()
        if self._left_with is None:
            self._gateway.send(FrameBatch.of(b""), 0)

    def _match_once_more(self, orders: FrameBatch) -> None:
        first = 0
        while first < orders.count and self._stopped is None:
            self._answers.clear()
            end, _ = self._engine.handle(orders, self._answers, first)
            self._send_answers(0, 0)
            self._sums.orders.update(orders.span(first, end))
            first = end

    def _finish(self) -> EngineResult:
        if self._left_with is not None:
            self._recovery.send_none()
            self._match_again()
            self._gateway_end = self._left_with
        self._recovery.pulse.rest()
        return super()._finish()

    def _result(self) -> EngineResult:
        return replace(super()._result(), journal=self._recovery.facts())
