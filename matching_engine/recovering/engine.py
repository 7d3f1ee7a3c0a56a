"""An engine whose session survives a break: of the link, of the gateway, or of the engine itself.

The engine runs the loop of `matching_engine/service.py`, and adds four things:

- It writes orders into a journal before it answers them.
- It begins a session only once the gateway has said which answers it has. Then the engine matches the journal again,
  and sends the answers that the gateway lacks.
- It shows its pulse to a standby.
- It ends only once the gateway has confirmed the engine's end.
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

ASK_TO_RESUME = Resume(session=0, messages=0, checksum=0)
"""An engine that was started again asks its gateway to resume the session. No session has the number 0."""


class RecoveringEngine(EngineService):
    """Serves one gateway over a link that can be opened again, and journals every order before it is answered."""

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        session: ResumedSession,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        reports_thread_usage: bool = False,
        work_ns: int = 0,
    ) -> None:
        super().__init__(
            engine, terms, session.link, reporter, sampling_interval, timeout_s, reports_thread_usage, work_ns
        )
        self._session = session
        self._journal = session.journal
        self._end_of_departed_gateway: End | None = None
        """The end of a gateway that has every answer and will not come back."""
        self.on_refusal: Callable[[], None] = lambda: None
        """Called when the journal takes no more orders: the gateway need not wait for another engine."""
        self.while_alone: Callable[[], None] = lambda: None
        """Called often while no gateway is in session. It may call `finish_for_killed_engine`, which ends the wait."""

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

    def finish_for_killed_engine(self, gateway_end: End) -> None:
        """Make the result of an engine that was killed after its gateway had every answer. No gateway will come.

        `gateway_end` is the end that this gateway sent.
        """
        self._end_of_departed_gateway = gateway_end

    def run(self) -> EngineResult:
        """Serve one session, however often it breaks, until the reporter has confirmed the statistics."""
        if self._end_of_departed_gateway is None:
            try:
                self._serve_to_the_end()
            except Disagreement as error:  # the journal does not give the answers that the gateway has
                self._stopped = self._stopped or str(error)
        return self._finish()

    # The session: it begins with hello and resume, also after each break, and ends once the gateway confirms its end.

    def _serve(self) -> None:
        """Take turns until the gateway confirms the end or is given up. PeerGone if no new link can be opened."""
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
        """Expect a hello and a resume from the gateway before the deadline.

        Ask for both: over a broker the gateway does not notice that this engine is a new one.
        """
        self._deadline_ns = time.monotonic_ns() + self._timeout_ns
        self._greeted = False
        self._session.is_resumed = False
        self._gateway.send(FrameBatch.of(encode(ASK_TO_RESUME)), 0)

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
        if self._end_of_departed_gateway is not None:
            return True
        return self._gateway_end is not None and self._session.is_confirmed

    @property
    def _patience_ends_ns(self) -> int:
        """The deadline for the gateway's next sign of life; after its end, for its confirmation of the engine's end."""
        if self._gateway_end is not None:
            return self._deadline_ns
        return super()._patience_ends_ns

    def _give_up_waiting(self) -> None:
        """End the session. After the gateway's end, treat its missing confirmation as given."""
        if self._gateway_end is None:
            super()._give_up_waiting()
        else:
            self._session.is_confirmed = True

    def _read_foreign(self, frame: bytes) -> None:
        if not frame:  # an idle gateway is still there
            return
        message = read(frame)
        if isinstance(message, Hello):  # the gateway begins a session, which its resume has to follow
            self._session.is_resumed = False
            self._greet(message)
            return
        if isinstance(message, Resume) and self._greeted and self._session.is_new(message):
            self._resume(message)
            return
        if isinstance(message, Resume) and self._gateway_end and message.session == self._journal.session:
            self._session.is_confirmed = True  # the same session's resume after the end: the gateway has the end
            return
        if not self._session.is_resumed:  # sent in an earlier session
            self._session.stale_frames += 1
            return
        if isinstance(message, End) and self._is_in_session:
            self._deadline_ns = time.monotonic_ns() + self._timeout_ns  # for the confirmation
        super()._read_foreign(frame)

    # Resuming: rebuild the book from the journal, and send the answers that the gateway lacks.

    def _resume(self, theirs: Resume) -> None:
        """Rebuild the book from the journal, and send the answers that the gateway lacks."""
        self._gateway_end = None
        self._session.begin(theirs)
        self._send_message(Resume(theirs.session, messages=self._journal.orders, checksum=0))
        followed = self._session.take_follower(self._engine, self._show_life)
        if followed is None:
            self._match_again()
        else:
            follower, recent_answers = followed
            self._go_on_with(follower, recent_answers)
        self._meters.skip_to(self._engine.counts)

    def _go_on_with(self, follower: Follower, recent_answers: list[RecentAnswers]) -> None:
        """Go on with the book of a standby or of a snapshot, and send the latest answers."""
        self._engine = follower.engine
        self._sums = follower.sums
        for answers in recent_answers:
            answers.copy_into(self._answers)
            self._hand_over(self._session.skip_known(self._answers, 0))
        self._session.note_replayed(follower.reader.orders - follower.orders_in_snapshot)

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
        """Match one batch of the journal's orders, and send those of its answers that the gateway lacks."""
        first = 0
        while first < orders.count and self._stopped is None:
            self._answers.clear()
            end, _ = self._engine.handle(orders, self._answers, first)
            self._send_answers(0, 0)
            self._sums.orders.update(orders.span(first, end))
            first = end

    def _show_life(self) -> None:
        """Show the gateway and a standby that this engine is at work. They take a long silence for its end."""
        self._session.pulse.beat()
        if self._end_of_departed_gateway is None:
            self._gateway.send(FrameBatch.of(b""), 0)

    # The steps of the loop, with the journal, the pulse, and the answers that the gateway already has.

    def _take(self, first: int = 0, at: int = 0, byte: int = 0) -> None:
        """Match the frames that came. The session ends if the journal cannot take them."""
        try:
            super()._take(first, at, byte)
        except JournalFailed as error:
            self._end_refusing(error)

    def _answer(self, first: int, end: int, answered: int) -> None:
        """Write the orders into the journal, then answer them. JournalFailed if the journal takes none of them."""
        if end > first:
            self._journal.append(self._orders.span(first, end))
        super()._answer(first, end, answered)

    def _send_answers(self, first: int, unsent: int) -> None:
        super()._send_answers(first, self._session.skip_known(self._answers, unsent))

    def _start_clock(self, start_ns: int) -> None:
        """Go on with the clock of the session's first engine."""
        super()._start_clock(self._session.pulse.clock_start_ns(start_ns))

    def _report(self) -> None:
        """Report as a plain engine does, and show that this engine lives.

        The session ends if the journal could not be synced.
        """
        super()._report()
        self._session.pulse.beat()
        if not self._is_in_session:
            self.while_alone()
        elif self._session.skips_nothing and self._stopped is None:
            self._session.keep_snapshot(self._engine, self._sums)
        try:
            self._journal.check()
        except JournalFailed as error:
            self._end_refusing(error)

    def _end_refusing(self, error: JournalFailed) -> None:
        """End the session, since the journal takes no more orders."""
        self._stopped = self._stopped or str(error)
        self.on_refusal()

    @property
    def _next_ns(self) -> int:
        """Time of the next work besides orders, which includes the next beat of the pulse."""
        return min(super()._next_ns, time.monotonic_ns() + BEAT_NS)

    @property
    def _may_take_turns(self) -> bool:
        sends_every_answer = self._session.skips_nothing and self._gateway_end is None
        return super()._may_take_turns and sends_every_answer and self._journal.may_be_written_by_turns

    @property
    def _order_store(self) -> OrderStore:
        return self._journal.order_store

    def _go_on_after(self, taken: EngineTurnsTaken) -> None:
        """Write the orders that the compiled turns matched but could not write, then go on as a plain engine does."""
        try:
            if taken.matched > taken.stored:
                self._journal.append(self._orders.span(taken.stored, taken.matched))
        except JournalFailed as error:
            self._end_refusing(error)
        else:
            super()._go_on_after(taken)

    def _finish(self) -> EngineResult:
        """Stop the pulse, and send the result. If the gateway has left already, first match all orders again."""
        if self._end_of_departed_gateway is not None:
            self._session.skip_every_answer()
            self._match_again()
            self._gateway_end = self._end_of_departed_gateway
        self._session.pulse.rest()
        return super()._finish()

    def _result(self) -> EngineResult:
        return replace(super()._result(), journal=self._session.facts())
