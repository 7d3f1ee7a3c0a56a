"""The engine's loop: receive orders, match them, send their answers, wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from exchange.measurements import Meter, RateMeter, Source
from exchange.messages import LAYOUTS, End, Hello, Message, Order, Resume, encode, read
from exchange.results import EngineResult, StreamCounts
from exchange.session import Disagreement, Reporting, Terms
from matching_engine.engine import MatchingEngine, Stop
from matching_engine.turns import Sums, Taken, Turns, warm_turns
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import Outbox
from transports.sockets import counted_since

if TYPE_CHECKING:
    from matching_engine.recovery import Follower, Recent, Recovery

ANSWER_BYTES = 1 << 21
BETWEEN_FRAMES_S = 2.0
"""A gateway sends a frame every second, an empty one where no order is due."""
BEAT_NS = 100_000_000
"""An engine with a journal shows its pulse at least so often."""
ORDER_BYTES = LAYOUTS[Order].size


class EngineService:
    """Serves one gateway over one link, and reports to the stats reporter over another."""

    def __init__(
        self, engine: MatchingEngine, terms: Terms, gateway: Link, reporter: Link,
        sampling_interval: int, timeout_s: float, of_thread: bool = False, recovery: Recovery | None = None,
    ) -> None:  # fmt: skip
        """With a `recovery`, the session may break and go on."""
        self._engine, self._terms, self._gateway = engine, terms, gateway
        self._recovery = recovery
        self._interval, self._timeout_s = sampling_interval, timeout_s
        self._sums = Sums()
        self._turns = self._turns_of(engine)
        self._reporter = reporter
        self._outbox = Outbox(reporter)
        self._reporting = Reporting(self._outbox, terms, Source.ENGINE, of_thread)
        self._orders = FrameBatch(1 << 14)
        self._answers = FrameBatch(ANSWER_BYTES // 5, ANSWER_BYTES)
        self._junk = self._refused = self._sampled = 0
        self._greeted = self._started = False
        self._gateway_end: End | None = None
        self._left_with: End | None = None
        self._stopped: str | None = None
        self._stop_asked = False
        self._sockets_before: list[dict[str, Any]] = []
        self._heard_ns = 0
        self.on_refusal: Callable[[], None] = lambda: None
        """Called when the journal takes no order any more: the gateway need not wait for another engine."""

    def stop(self, reason: str) -> None:
        """End the session early; what was measured still goes to the reporter."""
        self._stopped = self._stopped or reason
        self._stop_asked = True

    def _turns_of(self, engine: MatchingEngine) -> Turns:
        return Turns(self._gateway, engine, self._sums, self._recovery.journal if self._recovery else None)

    def warm(self) -> None:
        """Run every kernel once, so that nothing compiles once the clock runs."""
        self._engine.warm()
        warm_turns(self._engine)
        if self._recovery:
            self._recovery.warm()
            self._recovery.journal.start_syncing()

    def close(self) -> None:
        """Release both links."""
        self._gateway.close()
        self._reporter.close()
        if self._recovery:
            self._recovery.pulse.end()
            self._recovery.journal.close()

    def end_as(self, gateway_end: End) -> None:
        """Take the place of an engine that was killed once its gateway had everything, and left with this word."""
        self._left_with = gateway_end

    def run(self) -> EngineResult:
        """Serve one session, from the gateway's hello to the reporter's confirmation."""
        if self._left_with is not None and self._recovery:
            return self._end_without_gateway(self._left_with, self._recovery)
        try:
            self._await_hello()
            while not self._is_over and self._stopped is None:
                self._step_or_listen_again()
            self._gateway.drain(time.monotonic_ns() + int(self._timeout_s * 1e9))
        except (PeerGone, Disagreement) as error:
            self._stopped = self._stopped or str(error)
        return self._finish()

    def _end_without_gateway(self, end: End, recovery: Recovery) -> EngineResult:
        """Match the journal for the result alone."""
        recovery.owe_nothing()
        self._match_again(recovery)
        self._gateway_end = end
        return self._finish()

    def _step_or_listen_again(self) -> None:
        try:
            self._step(self._deadline_ns)
        except PeerGone:
            if self._stopped is not None or self._recovery is None:
                raise
            self._recovery.link.renew()
            self._await_hello()

    def _await_hello(self) -> None:
        """Expect a hello in time; a gateway that knew another engine, and is reached over a broker, is asked for it."""
        self._deadline_ns = time.monotonic_ns() + int(self._timeout_s * 1e9)
        if self._recovery:
            self._greeted = self._recovery.is_resumed = False
            self._gateway.send(FrameBatch.of(encode(Resume(0, 0, 0))), 0)

    def _step(self, deadline_ns: int) -> None:
        if not self._receive() and self._is_alone(deadline_ns):
            self._give_up_waiting()
        self._report()
        if self._recovery:
            self._check_journal(self._recovery)
        if not self._is_over and self._stopped is None:
            self._wait(deadline_ns)

    def _give_up_waiting(self) -> None:
        """No gateway came in time, or it went silent; one that has ended its session need not come."""
        if self._gateway_end is not None:
            if self._recovery:
                self._recovery.is_confirmed = True
        elif self._greeted:
            patience_s = self._timeout_s + BETWEEN_FRAMES_S
            self._stopped = f"the gateway said nothing for {patience_s:g} s" + self._gateway.excuse()
        else:
            self._stopped = f"no gateway came to {self._gateway.url} within {self._timeout_s:g} s"

    @property
    def _is_over(self) -> bool:
        """Whether the session has ended; one that can be resumed ends once the gateway says that it has the end."""
        return self._gateway_end is not None and (self._recovery is None or self._recovery.is_confirmed)

    def _report(self) -> None:
        """Close the second that has passed, and write one record, or send what was written."""
        now_ns = time.monotonic_ns()
        if self._started and now_ns >= self._reporting.next_second_ns:
            self._reporting.next_second(now_ns)
        if not self._reporting.write_next(now_ns):
            self._outbox.flush()

    def _check_journal(self, recovery: Recovery) -> None:
        """Show that this engine lives. The session ends where the journal cannot be synced."""
        recovery.pulse.beat()
        try:
            recovery.journal.check()
        except OSError as error:
            self._stopped = self._stopped or str(error)

    def _wait(self, deadline_ns: int) -> None:
        """Sleep until there is something to do; over a link that lends its calls, compiled code does most of it."""
        if self._may_take_turns and self._take_turns():
            return
        self._gateway.wait(self._or_beat(self._reporting.next_ns if self._started else deadline_ns))

    def _or_beat(self, until_ns: int) -> int:
        """This time, or earlier, when the engine has to show its pulse."""
        return until_ns if self._recovery is None else min(until_ns, time.monotonic_ns() + BEAT_NS)

    @property
    def _may_take_turns(self) -> bool:
        """Whether every order may be matched and answered as it comes."""
        is_plain = self._recovery is None or (self._recovery.owes_nothing and self._gateway_end is None)
        return self._started and is_plain and self._turns.can_append

    def _take_turns(self) -> bool:
        """Take turns in compiled code, and report in between. False where the link lends nothing now."""
        while taken := self._take_some():
            is_over = self._gateway_end is not None or self._stopped is not None or self._is_unheard
            if is_over or not taken.goes_on or not self._may_take_turns:
                break
            if self._recovery:
                self._recovery.pulse.beat()
            self._report()
        if taken and self._gateway_end is None:
            self._turns.settle()
        return taken is not None

    def _take_some(self) -> Taken | None:
        """Take turns in compiled code until Python is needed, and do what they left to do."""
        self._orders.clear()
        self._answers.clear()
        unsampled = self._interval - self._engine.counts.orders % self._interval
        enough_bytes = unsampled * ORDER_BYTES
        taken = self._turns.take(self._orders, self._answers, enough_bytes, self._or_beat(self._reporting.next_ns))
        if taken is not None:
            self._heard_ns = time.monotonic_ns() if taken.heard else self._heard_ns
            if self._recovery and not self._keep(taken.journaled, taken.matched, self._recovery):
                return taken
            self._sums.orders.update(self._orders.span(0, taken.matched))
            self._send_answers(0, taken.sent)
            self._take(taken.matched, taken.at, taken.byte)
        return taken

    def _receive(self) -> int:
        """Receive once and take what came; the number of frames."""
        self._orders.clear()
        frames = self._gateway.receive(self._orders)
        if frames:
            self._heard_ns = time.monotonic_ns()
            self._take()
        return frames

    def _is_alone(self, deadline_ns: int) -> bool:
        """Whether no gateway came in time, or the one that came went silent."""
        is_waiting = not self._greeted or self._gateway_end is not None
        is_late = time.monotonic_ns() > deadline_ns if is_waiting else self._is_unheard
        return is_late and is_silent(self._gateway, self._receive)

    @property
    def _is_unheard(self) -> bool:
        """Whether the last look at the link found that the gateway has been silent for too long."""
        return time.monotonic_ns() > self._heard_ns + int((self._timeout_s + BETWEEN_FRAMES_S) * 1e9)

    def _take(self, first: int = 0, at: int = 0, byte: int = 0) -> None:
        """Match the frames that came, from `first` on; a frame that is no order goes to `_read_foreign`.

        `at` and `byte` are where the compiled turns stopped within the first frame.
        """
        while first < self._orders.count and not self._is_over:
            if not self._greeted or (self._recovery and not self._recovery.is_resumed):
                self._read_foreign(self._orders[first])
                first += 1
                continue
            if not self._started:
                self._start()
            if not at:
                self._answers.clear()
            answered = self._answers.count
            end, why = self._engine.handle(self._orders, self._answers, first, at, byte)
            if self._recovery and not self._keep(first, end, self._recovery):
                return
            self._send_answers(answered, answered)
            self._sums.orders.update(self._orders.span(first, end))
            first, at, byte = end, 0, 0
            if why is Stop.FOREIGN:
                self._read_foreign(self._orders[first])
                first += 1
        self._sample()

    def _keep(self, first: int, end: int, recovery: Recovery) -> bool:
        """Write orders to the journal. False, and the session ends, where that is impossible: no answer may leave."""
        try:
            if end > first:
                recovery.journal.append(self._orders.span(first, end))
        except OSError as error:
            self._stopped = self._stopped or str(error)
            self.on_refusal()
            return False
        return True

    def _send_answers(self, first: int, unsent: int) -> None:
        """Send the answers from `unsent` on, then hash those from `first` on."""
        if self._recovery:
            unsent = self._recovery.pass_over(self._answers, unsent)
        self._hand_over(unsent)
        self._sums.answers.update(self._answers.span(first, self._answers.count))

    def _hand_over(self, first: int = 0) -> None:
        """Send `_answers` from `first` on; the session ends if the gateway takes none for as long as the timeout."""
        if self._recovery:
            self._recovery.pulse.beat()
        if first == self._answers.count:
            return
        first = self._gateway.send(self._answers, first)
        taken_ns = time.monotonic_ns()
        while first < self._answers.count and self._stopped is None:
            until_ns = taken_ns + int(self._timeout_s * 1e9)
            self._gateway.wait(until_ns, readable=False, writable=True)
            before, first = first, self._gateway.send(self._answers, first)
            if first > before:
                taken_ns = time.monotonic_ns()
            elif time.monotonic_ns() > until_ns:
                self._stopped = f"the gateway took no answer for {self._timeout_s:g} s"

    def _start(self) -> None:
        """Start the clock, with the first frame after the hello."""
        now_ns = time.monotonic_ns()
        self._started = True
        self._reporting.start(now_ns)
        self._orders_received = RateMeter(Meter.ENGINE_ORDERS_RECEIVED, now_ns)
        self._messages_sent = RateMeter(Meter.ENGINE_MESSAGES_SENT, now_ns)

    def _sample(self) -> None:
        """Report meters 2 and 3 after each batch that has a sampled order in it."""
        counts = self._engine.counts
        if counts.orders // self._interval > self._sampled:
            self._sampled = counts.orders // self._interval
            now_ns = time.monotonic_ns()
            self._reporting.message(self._orders_received.sample(counts.orders, now_ns))
            self._reporting.message(self._messages_sent.sample(counts.answers, now_ns))

    def _read_foreign(self, frame: bytes) -> None:
        if not frame:  # an idle gateway is still there
            return
        match read(frame):
            case Hello() as hello if not self._greeted:
                self._greet(hello)
            case Hello() as hello if self._recovery:
                self._recovery.is_resumed = False
                self._greet(hello)
            case Resume() as resume if self._greeted and self._recovery and self._recovery.is_new(resume):
                self._resume(resume, self._recovery)
            case Resume(session) if self._recovery and self._gateway_end and session == self._recovery.journal.session:
                self._recovery.is_confirmed = True
            case End() as end if self._greeted and self._is_in_session:
                self._gateway_end = end
                self._deadline_ns = time.monotonic_ns() + int(self._timeout_s * 1e9)
                self._send_message(self._end())
            case _ if self._recovery and not self._recovery.is_resumed:
                self._recovery.stale_frames += 1
            case _:
                self._junk += 1

    @property
    def _is_in_session(self) -> bool:
        return self._recovery is None or self._recovery.is_resumed

    def _resume(self, theirs: Resume, recovery: Recovery) -> None:
        """Have the book of all orders in the journal, and send the answers that the gateway lacks."""
        self._gateway_end = None
        recovery.begin(theirs)
        self._send_message(Resume(theirs.session, recovery.journal.orders, 0))
        if followed := recovery.take_follower():
            self._go_on_from(*followed, recovery)
        else:
            self._match_again(recovery)
        self._turns = self._turns_of(self._engine)
        self._sampled = self._engine.counts.orders // self._interval

    def _go_on_from(self, follower: Follower, recent: list[Recent], recovery: Recovery) -> None:
        """Go on with the book of a standby, and send the latest of its answers."""
        self._engine = follower.engine
        self._sums = Sums(follower.orders, follower.answers)
        for each in recent:
            each.copy_into(self._answers)
            self._hand_over(recovery.pass_over(self._answers, 0))
        recovery.done(replayed=0)

    def _match_again(self, recovery: Recovery) -> None:
        """Match the journal from its first order, and send the answers that the gateway lacks."""
        self._engine = self._engine.renewed()
        self._sums = Sums()
        for orders in recovery.journal.batches():
            first = 0
            while first < orders.count and self._stopped is None:
                self._answers.clear()
                end, _ = self._engine.handle(orders, self._answers, first)
                self._send_answers(0, 0)
                self._sums.orders.update(orders.span(first, end))
                first = end
        recovery.done(replayed=recovery.journal.orders)

    def _greet(self, hello: Hello) -> None:
        """Answer a hello with ours, so that the gateway, too, sees where the terms differ."""
        self._send_message(self._terms.hello(Source.ENGINE))
        try:
            self._terms.agree(hello)
            self._greeted = True
            self._sockets_before = self._gateway.sockets()
        except Disagreement as error:
            self._refused += 1
            self._stopped = self._stopped or str(error)

    def _send_message(self, message: Message) -> None:
        self._answers.clear()
        self._answers.append(encode(message))
        self._hand_over()

    def _end(self) -> End:
        counts = self._engine.counts
        return End(counts.answers, self._sums.answers.value, counts.records, self._sums.orders.value)

    def _finish(self) -> EngineResult:
        if self._recovery:
            self._recovery.pulse.rest()
        self._reporting.stop()
        result = self._result()
        result.statistics_sent = self._outbox.posted + 1  # the result itself
        self._reporting.close(asdict(result))
        if self._outbox.settle(int(self._timeout_s * 1e9), lambda: self._stop_asked) is None:
            result.stopped = self._stopped or "the reporter did not confirm the statistics"
        return result

    def _result(self) -> EngineResult:
        counts = self._engine.counts
        return EngineResult(
            orders=StreamCounts(messages=counts.records, checksum=self._sums.orders.hex),
            answers=StreamCounts(messages=counts.answers, checksum=self._sums.answers.hex),
            junk_frames=self._junk + self._gateway.junk,
            handshakes_refused=self._refused + self._gateway.refused,
            usage=self._reporting.usage(),
            sockets=counted_since(self._gateway.sockets(), self._sockets_before),
            link=self._gateway.facts(),
            gateway_said=self._gateway_end._asdict() if self._gateway_end else None,
            journal=self._recovery.facts() if self._recovery else None,
            stopped=self._stopped,
        )
