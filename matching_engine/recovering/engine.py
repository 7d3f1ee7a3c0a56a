"""An engine whose session survives a break: of the link, of the gateway, or of the engine itself.

It runs the loop of `matching_engine/service.py`, and adds four things. It writes orders into a journal before it
answers them. It begins a session only once the gateway has said which answers it has; then it matches the journal
again, and sends those that the gateway lacks. It shows its pulse to a standby. And it ends once the gateway has said
that it has the engine's end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from exchange.messages import End, Hello, Resume, encode, read
from exchange.results import EngineResult
from exchange.session import Disagreement, Terms
from matching_engine.engine import MatchingEngine
from matching_engine.recovering.follower import Follower, RecentAnswers
from matching_engine.recovering.journal import JournalFailed, JournalRefused
from matching_engine.recovering.pulse import BEAT_NS
from matching_engine.recovering.resumed_session import ResumedSession
from matching_engine.service import EngineService
from matching_engine.turns import EngineTurnsTaken, OrderStore, Sums
from transports.base import Link, PeerGone, TransportError
from transports.frames import FrameBatch


class RecoveringEngine(EngineService):
    """Serves one gateway over a link that can be opened again, and keeps every order before it is answered."""

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        session: ResumedSession,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        of_thread: bool = False,
    ) -> None:
        super().__init__(engine, terms, session.link, reporter, sampling_interval, timeout_s, of_thread)
        self._session = session
        self._journal = session.journal
        self._left_with: End | None = None
        """The end of a gateway that has left for good."""
        self.on_refusal: Callable[[], None] = lambda: None
        """Called when the journal takes no order any more: the gateway need not wait for another engine."""
        self.while_alone: Callable[[], None] = lambda: None
        """Called often as long as no gateway is in session. It may call `end_as`, which ends the wait."""

    def warm(self) -> None:
        """Run every kernel once, and start the thread that syncs the journal."""
        super().warm()
        self._session.warm()
        self._journal.start_syncing()

    def close(self) -> None:
        """Release both links and the journal; no standby takes this engine's place."""
        super().close()
        self._session.pulse.end()
        self._journal.close()

    def end_as(self, gateway_end: End) -> None:
        """Take the place of an engine that was killed after its gateway had every answer; this is the gateway's end."""
        self._left_with = gateway_end

    def run(self) -> EngineResult:
        """Serve one session, however often it breaks, to the reporter's confirmation."""
        if self._left_with is None:
            try:
                self._serve_to_the_end()
            except Disagreement as error:  # the gateway has other answers than the journal gives
                self._stopped = self._stopped or str(error)
        return self._finish()

    # The session: it begins with hello and resume, after each break once more, and ends once the gateway confirms it.

    def _serve(self) -> None:
        """Take turns until the gateway has confirmed the end, or is given up. PeerGone if no new link can be opened."""
        self._await_gateway()
        while not self._is_over and self._stopped is None:
            try:
                self._step()
            except PeerGone as gone:
                if self._stopped is not None:
                    raise
                self._renew(gone)
                self._await_gateway()

    def _await_gateway(self) -> None:
        """Expect hello and resume in time. A gateway at a broker, which knew another engine, is asked for them."""
        self._deadline_ns = time.monotonic_ns() + self._timeout_ns
        self._greeted = False
        self._session.is_resumed = False
        self._gateway.send(FrameBatch.of(encode(Resume(0, 0, 0))), 0)

    def _renew(self, gone: PeerGone) -> None:
        """Open the link again. Where that fails, the session ends with the reason why the link broke."""
        try:
            self._session.link.renew()
        except TransportError as error:
            raise gone from error

    @property
    def _is_in_session(self) -> bool:
        return self._greeted and self._session.is_resumed

    @property
    def _is_over(self) -> bool:
        return self._left_with is not None or (self._gateway_end is not None and self._session.is_confirmed)

    @property
    def _patience_ends_ns(self) -> int:
        """When a gateway is given up from which nothing has come, or from which no confirmation of the end has come."""
        if self._gateway_end is not None:
            return self._deadline_ns
        return super()._patience_ends_ns

    def _give_up_waiting(self) -> None:
        """End the session. A gateway that has ended it need not come again."""
        if self._gateway_end is None:
            super()._give_up_waiting()
        else:
            self._session.is_confirmed = True

    def _read_foreign(self, frame: bytes) -> None:
        match read(frame) if frame else None:
            case Hello() as hello:
                self._session.is_resumed = False
                self._greet(hello)
            case Resume() as theirs if self._greeted and self._session.is_new(theirs):
                self._resume(theirs)
            case Resume(number) if self._gateway_end and number == self._journal.session:
                self._session.is_confirmed = True
            case _ if frame and not self._session.is_resumed:
                self._session.stale_frames += 1
            case End() if self._is_in_session:
                self._deadline_ns = time.monotonic_ns() + self._timeout_ns
                super()._read_foreign(frame)
            case _:
                super()._read_foreign(frame)

    # Resuming: the book of all orders in the journal, and the answers that the gateway lacks.

    def _resume(self, theirs: Resume) -> None:
        """Have the book of all orders in the journal, and send the answers that the gateway lacks."""
        self._gateway_end = None
        self._session.begin(theirs)
        self._send_message(Resume(theirs.session, self._journal.orders, 0))
        if followed := self._session.take_follower(self._engine, self._show_life):
            self._go_on_from(*followed)
        else:
            self._match_again()
        self._meters.pass_over(self._engine.counts)

    def _go_on_from(self, follower: Follower, recent: list[RecentAnswers]) -> None:
        """Go on with the book of a standby or of a snapshot, and send the latest answers."""
        self._engine = follower.engine
        self._sums = follower.sums
        for answers in recent:
            answers.copy_into(self._answers)
            self._hand_over(self._session.pass_over(self._answers, 0))
        self._session.note_replayed(follower.reader.orders - follower.begun_behind)

    def _match_again(self) -> None:
        """Match the journal from its first order, and send the answers that the gateway lacks."""
        self._engine = self._engine.renewed()
        self._sums = Sums()
        try:
            for orders in self._journal.batches():
                self._show_life()
                self._match_batch_again(orders)
        except JournalRefused as damage:
            self._stopped = self._stopped or str(damage)
        self._session.note_replayed(self._journal.orders)

    def _match_batch_again(self, orders: FrameBatch) -> None:
        first = 0
        while first < orders.count and self._stopped is None:
            self._answers.clear()
            end, _ = self._engine.handle(orders, self._answers, first)
            self._send_answers(0, 0)
            self._sums.orders.update(orders.span(first, end))
            first = end

    def _show_life(self) -> None:
        """Tell the gateway and a standby that this engine matches: they take a long silence for its end."""
        self._session.pulse.beat()
        if self._left_with is None:
            self._gateway.send(FrameBatch.of(b""), 0)

    # The loop's steps, with the journal, the pulse, and the answers that the gateway has already.

    def _take(self, first: int = 0, at: int = 0, byte: int = 0) -> None:
        """Match the frames that came. The session ends if the journal cannot take them."""
        try:
            super()._take(first, at, byte)
        except JournalFailed as error:
            self._end_refusing(error)

    def _answer(self, first: int, end: int, answered: int) -> None:
        """Write the orders into the journal, then answer them. JournalFailed, and no answer leaves, if that fails."""
        if end > first:
            self._journal.append(self._orders.span(first, end))
        super()._answer(first, end, answered)

    def _send_answers(self, first: int, unsent: int) -> None:
        super()._send_answers(first, self._session.pass_over(self._answers, unsent))

    def _start_clock(self, start_ns: int) -> None:
        """Go on with the clock of the session's first engine."""
        super()._start_clock(self._session.pulse.clock_start_ns(start_ns))

    def _report(self) -> None:
        """Show that this engine lives, too. The session ends where the journal cannot be synced."""
        super()._report()
        self._session.pulse.beat()
        if not self._is_in_session:
            self.while_alone()
        elif self._session.sends_all and self._stopped is None:
            self._session.keep_snapshot(self._engine, self._sums)
        try:
            self._journal.check()
        except JournalFailed as error:
            self._end_refusing(error)

    def _end_refusing(self, error: JournalFailed) -> None:
        """End the session, since the journal takes nothing any more."""
        self._stopped = self._stopped or str(error)
        self.on_refusal()

    @property
    def _next_ns(self) -> int:
        """Time of the next work that is no order; the next beat of the pulse is such work."""
        return min(super()._next_ns, time.monotonic_ns() + BEAT_NS)

    @property
    def _may_take_turns(self) -> bool:
        is_plain = self._session.sends_all and self._gateway_end is None
        return super()._may_take_turns and is_plain and self._journal.is_compiled

    @property
    def _order_store(self) -> OrderStore:
        return self._journal.order_store

    def _go_on_after(self, taken: EngineTurnsTaken) -> None:
        """Write the orders that the compiled turns could not write, then go on."""
        try:
            if taken.matched > taken.stored:
                self._journal.append(self._orders.span(taken.stored, taken.matched))
        except JournalFailed as error:
            self._end_refusing(error)
        else:
            super()._go_on_after(taken)

    def _finish(self) -> EngineResult:
        """Let the pulse rest, and send the result. If the gateway left before, all orders are matched again first."""
        if self._left_with is not None:
            self._session.send_none()
            self._match_again()
            self._gateway_end = self._left_with
        self._session.pulse.rest()
        return super()._finish()

    def _result(self) -> EngineResult:
        return replace(super()._result(), journal=self._session.facts())
