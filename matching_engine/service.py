"""The engine's loop: receive orders, match them, send their answers, wait. `resuming.py` has the one with a journal."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from exchange.measurements import Meter, RateMeter, Source
from exchange.messages import End, Hello, Message, encode, read
from exchange.results import EngineResult, StreamCounts
from exchange.session import Disagreement, Reporting, Terms
from matching_engine.engine import Counts, MatchingEngine, Stop, counts_in
from matching_engine.turns import NO_JOURNAL, JournalCalls, Samples, Sums, Taken, take_lent, warm_turns
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.lending import lent_by
from transports.outbox import Outbox
from transports.sockets import counted_since

ANSWER_BYTES = 1 << 21
BETWEEN_FRAMES_S = 2.0
"""A gateway sends a frame every second, an empty one where no order is due."""


class EngineService:
    """Serves one gateway over one link, and reports to the stats reporter over another. A break ends the session."""

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        gateway: Link,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        of_thread: bool = False,
    ) -> None:
        self._engine, self._terms, self._gateway = engine, terms, gateway
        self._timeout_s, self._timeout_ns = timeout_s, int(timeout_s * 1e9)
        self._samples = Samples(sampling_interval)
        self._sums = Sums()
        self._reporter = reporter
        self._outbox = Outbox(reporter)
        self._reporting = Reporting(self._outbox, terms, Source.ENGINE, of_thread)
        self._orders = FrameBatch(1 << 14)
        self._answers = FrameBatch(ANSWER_BYTES // 5, ANSWER_BYTES)
        self._junk = self._refused = self._sampled = 0
        self._greeted = self._started = False
        self._gateway_end: End | None = None
        self._stopped: str | None = None
        self._stop_asked = False
        self._sockets_before: list[dict[str, Any]] = []
        self._heard_ns = 0

    def stop(self, reason: str) -> None:
        """End the session early; what was measured still goes to the reporter."""
        self._stopped = self._stopped or reason
        self._stop_asked = True

    def warm(self) -> None:
        """Run every kernel once, so that nothing compiles once the clock runs."""
        self._engine.warm()
        warm_turns(self._engine)

    def close(self) -> None:
        """Release both links."""
        self._gateway.close()
        self._reporter.close()

    def run(self) -> EngineResult:
        """Serve one session, from the gateway's hello to the reporter's confirmation."""
        try:
            self._await_hello()
            while not self._is_over and self._stopped is None:
                self._step()
            self._gateway.drain(time.monotonic_ns() + self._timeout_ns)
        except (PeerGone, Disagreement) as error:
            self._stopped = self._stopped or str(error)
        return self._finish()

    def _await_hello(self) -> None:
        """Expect a hello in time."""
        self._deadline_ns = time.monotonic_ns() + self._timeout_ns

    def _step(self) -> None:
        if not self._receive() and self._is_alone():
            self._give_up_waiting()
        self._report()
        if not self._is_over and self._stopped is None:
            self._wait()

    def _give_up_waiting(self) -> None:
        """No gateway came in time, or it went silent."""
        if self._greeted:
            patience_s = self._timeout_s + BETWEEN_FRAMES_S
            self._stopped = f"the gateway said nothing for {patience_s:g} s" + self._gateway.excuse()
        else:
            self._stopped = f"no gateway came to {self._gateway.url} within {self._timeout_s:g} s"

    @property
    def _is_over(self) -> bool:
        """Whether the session has ended."""
        return self._gateway_end is not None

    def _report(self) -> None:
        """Close the second that has passed, and write one record, or send what was written."""
        now_ns = time.monotonic_ns()
        if self._started and now_ns >= self._reporting.next_second_ns:
            self._reporting.next_second(now_ns)
        if not self._reporting.write_next(now_ns):
            self._outbox.flush()

    def _wait(self) -> None:
        """Sleep until there is something to do; over a link that lends its calls, compiled code does most of it."""
        if self._may_take_turns and self._take_turns():
            return
        self._gateway.wait(self._awake_by(self._reporting.next_ns if self._started else self._deadline_ns))

    def _awake_by(self, until_ns: int) -> int:
        """When to wake at the latest, if there is nothing to do before this time."""
        return until_ns

    def _beat(self) -> None:
        """Show that this engine lives, where a standby looks for that."""

    @property
    def _may_take_turns(self) -> bool:
        """Whether every order may be matched and answered as it comes."""
        return self._started

    @property
    def _journal(self) -> JournalCalls:
        return NO_JOURNAL

    def _take_turns(self) -> bool:
        """Take turns in compiled code, and report in between. False where the link lends nothing now."""
        while taken := self._take_some():
            is_over = self._gateway_end is not None or self._stopped is not None or self._is_unheard
            if is_over or not taken.goes_on or not self._may_take_turns:
                break
            self._report()
        if taken and self._gateway_end is None and (lent := lent_by(self._gateway)):
            lent.settle()
        return taken is not None

    def _take_some(self) -> Taken | None:
        """Take turns in compiled code until Python is needed, and do what they left to do.

        None, at once, where the link lends nothing now.
        """
        if (lent := lent_by(self._gateway)) is None:
            return None
        self._orders.clear()
        self._answers.clear()
        taken = take_lent(
            lent,
            self._engine,
            self._sums,
            self._journal,
            self._orders,
            self._answers,
            self._samples,
            until_ns=self._awake_by(self._reporting.next_ns),
        )
        self._heard_ns = time.monotonic_ns() if taken.heard else self._heard_ns
        for row in self._samples.rows[: taken.samples]:
            self._report_sample(counts_in(row[1:]), int(row[0]))
        if self._write_journal(taken.journaled, taken.matched):
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

    def _is_alone(self) -> bool:
        """Whether no gateway came in time, or the one that came went silent."""
        is_late = time.monotonic_ns() > self._deadline_ns if self._is_waiting else self._is_unheard
        return is_late and is_silent(self._gateway, self._receive)

    @property
    def _is_waiting(self) -> bool:
        """Whether a gateway is still to come, or to come again."""
        return not self._greeted

    @property
    def _is_unheard(self) -> bool:
        """Whether the last look at the link found that the gateway has been silent for too long."""
        return time.monotonic_ns() > self._heard_ns + int((self._timeout_s + BETWEEN_FRAMES_S) * 1e9)

    def _take(self, first: int = 0, at: int = 0, byte: int = 0) -> None:
        """Match the frames that came, from `first` on; a frame that is no order goes to `_read_foreign`.

        `at` and `byte` are where the compiled turns stopped within the first frame.
        """
        while first < self._orders.count and not self._is_over:
            if not self._is_in_session:
                self._read_foreign(self._orders[first])
                first += 1
                continue
            if not self._started:
                self._start()
            if not at:
                self._answers.clear()
            answered = self._answers.count
            end, why = self._engine.handle(self._orders, self._answers, first, at, byte)
            if not self._write_journal(first, end):
                return
            self._send_answers(answered, answered)
            self._sums.orders.update(self._orders.span(first, end))
            first, at, byte = end, 0, 0
            if why is Stop.FOREIGN:
                self._read_foreign(self._orders[first])
                first += 1
        self._sample()

    def _write_journal(self, first: int, end: int) -> bool:  # noqa: ARG002
        """Write the orders of these frames to the journal, if there is one. False if it failed: no answer may leave."""
        return True

    def _send_answers(self, first: int, unsent: int) -> None:
        """Send the answers from `unsent` on, then hash those from `first` on."""
        self._hand_over(unsent)
        self._sums.answers.update(self._answers.span(first, self._answers.count))

    def _hand_over(self, first: int = 0) -> None:
        """Send `_answers` from `first` on; the session ends if the gateway takes none for as long as the timeout."""
        self._beat()
        if first == self._answers.count:
            return
        first = self._gateway.send(self._answers, first)
        taken_ns = time.monotonic_ns()
        while first < self._answers.count and self._stopped is None:
            until_ns = taken_ns + self._timeout_ns
            self._gateway.wait(self._awake_by(until_ns), readable=False, writable=True)
            self._beat()
            before, first = first, self._gateway.send(self._answers, first)
            if first > before:
                taken_ns = time.monotonic_ns()
            elif time.monotonic_ns() > until_ns:
                self._stopped = f"the gateway took no answer for {self._timeout_s:g} s"

    def _start(self) -> None:
        """Start the clock, with the first frame after the hello."""
        now_ns = time.monotonic_ns()
        self._started = True
        self._reporting.start(now_ns, self._clock_start_ns(now_ns))
        counts = self._engine.counts
        self._orders_received = RateMeter(Meter.ENGINE_ORDERS_RECEIVED, now_ns, counts.orders)
        self._messages_sent = RateMeter(Meter.ENGINE_MESSAGES_SENT, now_ns, counts.answers)

    def _clock_start_ns(self, now_ns: int) -> int:
        """When the first second of the session began."""
        return now_ns

    def _sample(self) -> None:
        """Report meters 2 and 3 after each batch that this loop took and that has a sampled order in it."""
        counts = self._engine.counts
        if self._started and counts.orders // self._samples.interval > self._sampled:
            self._report_sample(counts, time.monotonic_ns())

    def _report_sample(self, counts: Counts, now_ns: int) -> None:
        self._sampled = counts.orders // self._samples.interval
        self._reporting.message(self._orders_received.sample(counts.orders, now_ns))
        self._reporting.message(self._messages_sent.sample(counts.answers, now_ns))

    def _read_foreign(self, frame: bytes) -> None:
        if not frame:  # an idle gateway is still there
            return
        match read(frame):
            case Hello() as hello if not self._greeted:
                self._greet(hello)
            case End() as end if self._is_in_session:
                self._gateway_end = end
                self._deadline_ns = time.monotonic_ns() + self._timeout_ns
                self._send_message(self._end())
            case _:
                self._junk += 1

    @property
    def _is_in_session(self) -> bool:
        """Whether a frame may be an order."""
        return self._greeted

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
        self._reporting.stop()
        result = self._result()
        result.statistics_sent = self._outbox.posted + 1  # the result itself
        self._reporting.close(asdict(result))
        if self._outbox.settle(self._timeout_ns, lambda: self._stop_asked) is None:
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
            stopped=self._stopped,
        )
