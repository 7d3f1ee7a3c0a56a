"""The gateway's loop: take answers, offer the orders that are due, wait for the next answer or due time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from exchange.messages import (
    ANSWER_TYPES,
    LAYOUTS,
    QUOTE_TYPES,
    Cancelled,
    Confirmation,
    End,
    Rejection,
    Replaced,
    Trade,
    encode,
)
from exchange.meters import Source
from exchange.results import GatewayResult, HashedStream, StreamCounts
from exchange.session import Reporting, Terms
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.due_times import NEVER_NS
from gateway.intake import Intake
from gateway.meters import Meters
from gateway.offering import Offering, OrderFlow
from gateway.pacer import Pacer
from gateway.seeds import settings_of_gateway
from gateway.turns import GatewayTurns, GatewayTurnsTaken
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import Outbox
from transports.sockets import counted_since

STOPPED_TIMEOUT_NS = 2_000_000_000
"""The longest wait for a silent peer once the gateway was asked to stop."""
STILL_HERE_NS = 1_000_000_000
"""The time between two empty frames of an idle gateway."""


class Gateway:
    """Offers orders to the engine over one link, and reports to the stats reporter over another.

    `run` says hello, starts the clock, takes turns until the engine's end, and returns the result.
    """

    completion_class: type[Completion] = Completion
    offering_class: type[Offering] = Offering
    intake_class: type[Intake] = Intake
    meters_class: type[Meters] = Meters
    turns_class: type[GatewayTurns] = GatewayTurns

    def __init__(
        self,
        settings: RunSettings,
        run: int,
        engine: Link,
        reporter: Link,
        streams: tuple[HashedStream, HashedStream],
        reports_thread_usage: bool = False,
        instance: int = 1,
    ) -> None:
        """`streams` hash the orders and the answers, `instance` is the number of the pair.

        `reports_thread_usage`: report the resources that this thread uses, not those of the process.
        """
        self._run_settings = settings
        self._settings = settings_of_gateway(settings, instance)
        engine_number = 1 if settings.is_market else instance
        self._terms = Terms.of_settings(run, settings, instance=instance, engine=engine_number)
        self._engine = engine
        self._reporter = reporter
        self._outbox = Outbox(reporter)
        self._reporting = Reporting(self._outbox, self._terms, Source.GATEWAY, reports_thread_usage)
        order_stream, answer_stream = streams
        self._pacer = Pacer.of(self._settings)
        self._completion = self.completion_class(
            self._pacer.scheduled, self._settings.sampling_interval, packing=self._settings.packing
        )
        self._offering = self.offering_class(self._settings, engine, self._completion, self._pacer, order_stream)
        self._intake = self.intake_class(engine, self._completion, answer_stream)
        self._turns = self.turns_class(engine, self._offering, self._intake, self._completion, self._settings.spin_ns)
        self._meters = self.meters_class(self._reporting, self._completion, self._pacer)
        self._intake.on_sampled = self._meters.note_answered
        self._timeout_ns = int(self._settings.timeout_s * 1e9)
        self._stopped: str | None = None
        """Why the run ends early."""
        self._stop_asked = False
        self._end_sent = False
        self._received_ns = 0
        """The time from which a silence of the engine counts."""
        self._deadline_ns = NEVER_NS
        """When the run's duration is over, so that no more orders are offered."""
        self._still_here_ns = 0
        """When to check next whether any order was sent since the last check."""
        self._sent_before = 0
        """Orders that were sent by the last check."""
        self._first_late_backlog: int | None = None
        """The number of unanswered orders as the last quarter of the run began; None before."""
        self._latest_backlog = 0
        """The latest number of unanswered orders in the last quarter of the run."""
        self._sockets_before: list[dict[str, Any]] = []
        self._wall_minus_monotonic_ns = 0
        self.on_second: Callable[[int, int], None] = lambda sent, answered: None
        """Called at the end of each second, with the numbers of orders sent and answered so far."""

    def stop(self, reason: str) -> None:
        """End the run early, in band, as a partial one."""
        self._stopped = self._stopped or reason
        self._stop_asked = True
        self._timeout_ns = min(self._timeout_ns, STOPPED_TIMEOUT_NS)
        self._offering.stop()

    def warm(self) -> None:
        """Run every kernel once, so that nothing compiles once the clock runs."""
        _try_kernels(self._settings)
        self._turns.warm()

    def close(self) -> None:
        """Release both links."""
        self._engine.close()
        self._reporter.close()

    def run(self) -> GatewayResult:
        """Run the session from hello to the reporter's confirmation. PeerGone if the engine never answers the hello."""
        if self._greet():
            self._sockets_before = self._engine.sockets()
            self._start_clock(time.monotonic_ns())
            self._serve_to_the_end()
        return self._finish()

    def _greet(self) -> bool:
        """Exchange hellos with the engine, which must have the same terms. Returns False if stopped before."""
        deadline_ns = time.monotonic_ns() + self._timeout_ns
        hello = FrameBatch.of(encode(self._terms.hello(Source.GATEWAY)))
        while not self._stop_asked and self._engine.send(hello, 0) == 0 and time.monotonic_ns() < deadline_ns:
            self._engine.wait(deadline_ns, readable=False, writable=True)
        while self._intake.hello is None:
            if self._stop_asked:
                return False
            if time.monotonic_ns() > deadline_ns and is_silent(self._engine, self._intake.take):
                reason = f"no engine answered at {self._engine.url} within {self._settings.timeout_s:g} s"
                raise PeerGone(reason + self._engine.excuse())
            if not self._intake.take():
                self._engine.wait(deadline_ns)
        self._terms.agree(self._intake.hello)
        return True

    def _start_clock(self, start_ns: int) -> None:
        """Start the clocks that count from the run's start: due times, seconds, duration."""
        now_ns = time.monotonic_ns()
        self._received_ns = now_ns
        self._still_here_ns = now_ns + STILL_HERE_NS
        self._wall_minus_monotonic_ns = time.time_ns() - now_ns
        self._pacer.start(start_ns)
        self._meters.start(now_ns, start_ns)
        self._intake.on_received = self._close_second_if_over
        duration_s = self._settings.duration_s
        if duration_s is not None and not self._pacer.scheduled:  # with a schedule, the run ends with its last order
            self._deadline_ns = start_ns + int(duration_s * 1e9)

    def _serve_to_the_end(self) -> None:
        """Offer the orders, and take their answers and the engine's end. Note the reason if the engine went away."""
        try:
            self._serve()
            self._take_leave()
        except PeerGone as error:
            self._stopped = self._stopped or str(error)

    def _serve(self) -> None:
        """Take turns until the engine's end comes, or the engine falls silent. PeerGone if it went away."""
        while self._intake.end is None and self._is_answered_in_time():
            self._step()

    def _take_leave(self) -> None:
        """Note a reason if the engine's end came too early, and let the link send the rest."""
        if self._intake.end is not None and not self._end_sent:
            self._stopped = self._stopped or "the engine ended the session before the gateway did"
        self._engine.drain(time.monotonic_ns() + self._timeout_ns)

    def _step(self) -> None:
        """One turn of the loop. The turn that takes the engine's end is the last."""
        frames = self._intake.take()
        now_ns = time.monotonic_ns()
        self._keep_time(now_ns)
        if frames or not self._awaits_answer:
            self._received_ns = now_ns
        self._offer(now_ns)
        self._report(now_ns)
        if self._intake.end is None:
            self._wait()

    def _offer(self, now_ns: int) -> None:
        """Hand over the orders that are due. After the last order, send the end."""
        if self._offering.offer(now_ns):
            self._note_backlog()
        if self._offering.done and not self._end_sent and self._intake.end is None:
            self._end_sent = self._send_end()  # if the link had no room, the next turn sends it

    def _send_end(self) -> bool:
        """Send the gateway's end. Returns False if the link had no room."""
        return self._engine.send(FrameBatch.of(encode(self._end)), 0) == 1

    def _keep_time(self, now_ns: int) -> None:
        """Do what is due by the clock: close the second, show that the gateway lives, end after the duration."""
        self._close_second_if_over(now_ns)
        self._say_still_here(now_ns)
        if now_ns >= self._deadline_ns:
            self._deadline_ns = NEVER_NS
            self._offering.stop()

    def _report(self, now_ns: int) -> None:
        """Write one record of the second that ended. Once none is left, send the written records."""
        if not self._reporting.write_next(now_ns):
            self._outbox.flush()

    @property
    def _awaits_answer(self) -> bool:
        """Whether the engine owes an answer."""
        return self._offering.done or self._offering.pending or self._completion.answered < self._offering.sent

    def _is_answered_in_time(self) -> bool:
        """Return False, and note why the run ends, if the engine owes an answer and was silent for the timeout."""
        silent_ns = time.monotonic_ns() - self._received_ns
        if not self._awaits_answer or silent_ns < self._timeout_ns:
            return True
        if not self._is_engine_silent():
            self._received_ns = time.monotonic_ns()
            return True
        silence = f"the engine said nothing for {self._settings.timeout_s:g} s"
        self._stopped = self._stopped or silence + self._engine.excuse()
        return False

    def _is_engine_silent(self) -> bool:
        """Look for frames a last time. Returns True if none has come."""
        return is_silent(self._engine, self._intake.take)

    def _wait(self) -> None:
        """Sleep until there is something to do. Over a link that lends its calls, take compiled turns instead."""
        must_send_end = self._offering.done and not self._end_sent
        must_send = self._offering.pending or must_send_end
        if not must_send and self._take_turns():
            return
        until_ns = min(self._next_ns, self._offering.next_due_ns() - self._settings.spin_ns)
        if until_ns > time.monotonic_ns():
            self._engine.wait(until_ns, writable=must_send)

    @property
    def _next_ns(self) -> int:
        """Time of the next work that is neither an order nor an answer."""
        return min(self._reporting.next_ns, self._deadline_ns)

    def _take_turns(self) -> bool:
        """Take turns in compiled code, and report in between. Returns False if the link lends nothing now."""
        while True:
            silence_ends_ns = self._received_ns + self._timeout_ns
            taken = self._turns.take(min(self._next_ns, silence_ends_ns), self._received_ns)
            if taken is None:
                return False
            self._received_ns = taken.heard_ns
            if taken.sent_frames:
                self._note_backlog()
            now_ns = time.monotonic_ns()
            if not self._goes_on(taken, now_ns):
                break
            self._keep_time(now_ns)
            self._report(now_ns)
        if self._intake.end is None:
            self._turns.settle()
        return True

    def _goes_on(self, taken: GatewayTurnsTaken, now_ns: int) -> bool:
        """Return whether compiled code takes the next turn, too. If not, the loop in Python takes it."""
        is_over = self._offering.done or self._intake.end is not None
        return taken.goes_on and not is_over and now_ns < self._received_ns + self._timeout_ns

    def _say_still_here(self, now_ns: int) -> None:
        """Send an empty frame after a second without an order: the engine gives up on a silent gateway."""
        if now_ns < self._still_here_ns:
            return
        is_idle = self._offering.sent == self._sent_before
        self._sent_before = self._offering.sent
        self._still_here_ns = now_ns + STILL_HERE_NS
        if is_idle and not self._offering.pending and not self._end_sent:
            self._engine.send(FrameBatch.of(b""), 0)

    def _close_second_if_over(self, now_ns: int) -> None:
        """Close the second if it is over, before anything is counted in the next second."""
        if now_ns >= self._reporting.next_second_ns:
            self._close_second(now_ns)

    def _close_second(self, now_ns: int) -> None:
        """Report the second, and begin the next one."""
        self._meters.close_second()
        self._reporting.next_second(now_ns)
        self.on_second(self._offering.sent, self._completion.answered)

    def _note_backlog(self) -> None:
        """During the last quarter of the run, note the first and the latest number of unanswered orders."""
        is_last_quarter = 4 * self._offering.sent >= 3 * self._offering.limit
        if not is_last_quarter:
            return
        self._latest_backlog = self._offering.sent - self._completion.answered
        if self._first_late_backlog is None:
            self._first_late_backlog = self._latest_backlog

    @property
    def _end(self) -> End:
        return End(
            sent=self._offering.sent,
            sent_checksum=self._offering.stream.value,
            received=0,
            received_checksum=0,
        )

    def _finish(self) -> GatewayResult:
        """Report the last second, and send the result to the reporter, which confirms once it has everything."""
        for stream in (self._offering.stream, self._intake.stream):
            stream.flush()  # the result is not to know more than the recorded streams, even if we are killed next
        self._meters.close()
        self._reporting.stop()
        result = self._result()
        result.statistics_sent = self._outbox.posted + 1  # the result itself
        self._reporting.close(asdict(result))
        if self._outbox.settle(self._timeout_ns, lambda: self._stop_asked) is None:
            result.stopped = self._stopped or "the reporter did not confirm the statistics"
        return result

    def _result(self) -> GatewayResult:
        by_type = self._completion.tables.by_type
        count = {kind: int(by_type[LAYOUTS[kind].code]) for kind in ANSWER_TYPES}
        orders = StreamCounts(messages=self._offering.sent, checksum=self._offering.stream.hex)
        answers = StreamCounts(messages=self._completion.received, checksum=self._intake.stream.hex)
        backlog_growth = 0
        if self._first_late_backlog is not None:
            backlog_growth = self._latest_backlog - self._first_late_backlog
        return GatewayResult(
            settings=self._run_settings.as_dict(),
            seed=self._settings.seed,
            orders=orders,
            answers=answers,
            orders_answered=self._completion.answered,
            trades=count[Trade],
            confirmations=count[Confirmation],
            quotes=sum(count[kind] for kind in QUOTE_TYPES),
            rejections=count[Rejection],
            cancelled=count[Cancelled],
            replaced=count[Replaced],
            junk_frames=self._intake.junk + self._engine.junk,
            samples=self._meters.samples,
            began_wall_ns=self._offering.first_handed_ns + self._wall_minus_monotonic_ns,
            duration_s=_seconds(self._offering.first_handed_ns, self._intake.last_answer_ns),
            handing_over_s=_seconds(self._offering.first_handed_ns, self._offering.last_handed_ns),
            schedule_s=self._pacer.length_s(self._offering.sent),
            due_at_once=self._pacer.at_once,
            backlog_growth=backlog_growth,
            usage=self._reporting.usage(),
            sockets=counted_since(self._engine.sockets(), self._sockets_before),
            link=self._engine.facts(),
            engine_said=self._intake.end._asdict() if self._intake.end else None,
            stopped=self._stopped,
        )


def _seconds(start_ns: int, end_ns: int) -> float | None:
    """Return the seconds between the two times; None if the end never came."""
    return (end_ns - start_ns) / 1e9 if end_ns else None


def _try_kernels(settings: RunSettings) -> None:
    """Run every kernel on one order, as the run will."""
    pacer = Pacer.of(settings)
    pacer.start(1)
    batch = FrameBatch(16)
    OrderFlow.of(settings).fill(batch, first_id=1, count=1)
    batch.clear()
    batch.append(encode(Confirmation(1)))
    completion = Completion(pacer.scheduled, sampling_interval=1)
    completion.handed_over(count=1, now_ns=1, due=pacer.due_times(first_id=1, count=1))
    completion.take(batch, first=0, now_ns=2)
