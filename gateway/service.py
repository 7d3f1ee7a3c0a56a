"""The gateway's loop: take answers, offer the orders that are due, wait for the next answer or due time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from exchange.measurements import Source
from exchange.messages import LAYOUTS, Confirmation, End, Quote, Rejection, Trade, encode
from exchange.results import GatewayResult, Stream, StreamCounts
from exchange.session import Disagreement, Reporting, Terms
from exchange.settings import RunSettings
from gateway.completion import Completion, Intake
from gateway.due_times import NEVER_NS
from gateway.meters import Meters
from gateway.offering import Offering, OrderFlow
from gateway.pacer import Pacer
from gateway.seeds import settings_of_pair
from gateway.turns import Taken, Turns
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.outbox import Outbox
from transports.sockets import counted_since

if TYPE_CHECKING:
    from gateway.recovery import Progress, Recovery

STOPPED_TIMEOUT_NS = 2_000_000_000
"""The longest wait for a silent peer once the gateway was asked to stop."""
STILL_HERE_NS = 1_000_000_000


class Gateway:
    """Offers orders to the engine over one link, and reports over another; `streams` hash orders and answers."""

    def __init__(
        self,
        settings: RunSettings,
        run: int,
        engine: Link,
        reporter: Link,
        streams: tuple[Stream, Stream],
        of_thread: bool = False,
        instance: int = 1,
    ) -> None:
        self._run_settings, settings = settings, settings_of_pair(settings, instance)
        self._settings = settings
        self._terms = Terms(run, settings.policy, settings.packing, settings.max_price, instance)
        self._engine, self._reporter = engine, reporter
        self._outbox = Outbox(reporter)
        self._reporting = Reporting(self._outbox, self._terms, Source.GATEWAY, of_thread)
        self._pacer = Pacer.of(settings)
        self._completion = Completion(self._pacer.scheduled, settings.sampling_interval, packing=settings.packing)
        self._offering = Offering(settings, engine, self._completion, self._pacer, streams[0])
        self._intake = Intake(engine, self._completion, streams[1])
        self._turns = Turns(engine, self._offering, self._intake, self._completion, settings.spin_ns)
        self._meters = Meters(self._reporting, self._completion, self._pacer)
        self._intake.on_sampled = self._meters.note_answered
        self._timeout_ns = int(settings.timeout_s * 1e9)
        self._recovery: Recovery | None = None
        if settings.journals:
            from gateway.recovery import Recovery

            self._recovery = Recovery(engine, self._terms, self._offering, self._intake, self._completion)
        self._before: Progress | None = None
        self._progress: Progress | None = None
        """Progress up to the last whole second."""
        self._stopped: str | None = None
        self._stop_asked = False
        self._end_sent = False
        self._start_ns = self._still_here_ns = self._sent_before = 0
        self._late_backlog: list[int] = []
        self._sockets_before: list[dict[str, Any]] = []
        self._wall_less_monotonic_ns = 0
        self.on_second: Callable[[int, int], None] = lambda sent, answered: None
        self.on_progress: Callable[[Progress], None] | None = None
        """Called each second, if another gateway could go on from this progress."""
        self.unrecorded: Callable[[], Iterable[bytes]] = lambda: ()
        """The frames that were sent to the reporter, and may not be in its spool."""
        self.on_end: Callable[[End], None] = lambda end: None
        """Called once this gateway has every answer: an engine that is started again may then end without a gateway."""

    def stop(self, reason: str) -> None:
        """End the run early, in band, as a partial one."""
        self._stopped = self._stopped or reason
        self._stop_asked = True
        self._timeout_ns = min(self._timeout_ns, STOPPED_TIMEOUT_NS)
        self._offering.stop()

    def go_on_from(self, before: Progress) -> None:
        """Take the place of a gateway that was killed. Its records go again: the reporter may have been killed, too."""
        assert self._recovery is not None
        for record in before.records:
            self._outbox.post(record.encode("latin-1"))
        self._outbox.flush()  # so that no later report repeats them
        self._before, progress = before, self._recovery.go_on_from(before)
        if self.on_progress:
            self.on_progress(progress)

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
        if self._before is not None:
            self._start(self._before)
        if not (self._greet() if self._recovery is None else self._resume(None, lambda: not self._stop_asked)):
            return self._finish()
        if self._before is None:
            self._start()
        try:
            self._serve()
            if self._intake.end is not None and not self._end_sent:
                self._stopped = self._stopped or "the engine ended the session before the gateway did"
            if self._recovery is not None and self._intake.end is not None:
                self.on_end(self._end)
                self._recovery.take_leave()
            self._engine.drain(time.monotonic_ns() + self._timeout_ns)
        except (PeerGone, Disagreement) as error:
            self._stopped = self._stopped or str(error)
        return self._finish()

    def _serve(self) -> None:
        """Take turns until the engine's end comes, or the engine falls silent. PeerGone if it went away for good."""
        is_under_way = True
        while is_under_way and self._intake.end is None and self._is_answered_in_time():
            try:
                self._step()
            except PeerGone as error:
                if self._recovery is None:
                    raise
                is_under_way = self._resume(error, self._keep_reporting)

    def _greet(self) -> bool:
        """Exchange hellos with the engine, whose terms must be the same. Returns False if stopped before."""
        deadline = time.monotonic_ns() + self._timeout_ns
        hello = FrameBatch.of(encode(self._terms.hello(Source.GATEWAY)))
        while not self._stop_asked and self._engine.send(hello, 0) == 0 and time.monotonic_ns() < deadline:
            self._engine.wait(deadline, readable=False, writable=True)
        while self._intake.hello is None:
            if self._stop_asked:
                return False
            if time.monotonic_ns() > deadline and is_silent(self._engine, self._intake.take):
                nobody = f"no engine answered at {self._engine.url} within {self._settings.timeout_s:g} s"
                raise PeerGone(nobody + self._engine.excuse())
            self._intake.take() or self._engine.wait(deadline)
        self._terms.agree(self._intake.hello)
        return True

    def _start(self, before: Progress | None = None) -> None:
        """Start the clock, or go on with that of a gateway before this one."""
        self._sockets_before = self._engine.sockets()
        now_ns = self._received_ns = time.monotonic_ns()
        self._still_here_ns = now_ns + STILL_HERE_NS
        self._wall_less_monotonic_ns = time.time_ns() - now_ns
        start_ns = self._start_ns = before.start_ns if before else now_ns
        self._pacer.start(start_ns)
        self._meters.start(now_ns, before)
        self._note_progress(now_ns)
        duration_s = None if self._pacer.scheduled else self._settings.duration_s  # a schedule ends with its last order
        self._intake.on_received = self._turn_second
        self._deadline_ns = NEVER_NS if duration_s is None else start_ns + int(duration_s * 1e9)
        if self._progress is not None:
            self._report(now_ns)  # before the first order: another gateway must know this clock

    def _step(self) -> None:
        """One turn of the loop. The turn that takes the engine's end is the last."""
        took = self._intake.take()
        now_ns = time.monotonic_ns()
        self._keep_time(now_ns)
        if took or not self._awaiting:
            self._received_ns = now_ns
        if self._recovery is not None:
            self._recovery.look()
        if self._offering.offer(now_ns):
            self._note_backlog()
        if self._offering.done and not self._end_sent and self._intake.end is None:
            self._end_sent = self._engine.send(FrameBatch.of(encode(self._end)), 0) == 1  # or else the next turn does
        self._report(now_ns)
        if self._intake.end is None:
            self._wait()

    def _keep_time(self, now_ns: int) -> None:
        self._turn_second(now_ns)
        self._say_still_here(now_ns)
        if now_ns >= self._deadline_ns:
            self._deadline_ns = NEVER_NS
            self._offering.stop()

    def _report(self, now_ns: int) -> None:
        """Write one record, or send what was written, once the launcher knows what another gateway would need."""
        if self._reporting.write_next(now_ns):
            return
        if self._progress is not None and self.on_progress:
            self.on_progress(self._progress.with_records([*self.unrecorded(), *self._outbox.unsent]))
        self._progress = None
        self._outbox.flush()

    @property
    def _awaiting(self) -> bool:
        """Whether the engine owes an answer."""
        return self._offering.done or self._offering.pending or self._completion.answered < self._offering.sent

    def _is_answered_in_time(self) -> bool:
        if not self._awaiting or time.monotonic_ns() - self._received_ns < self._timeout_ns:
            return True
        if not is_silent(self._engine, self._intake.take):
            self._received_ns = time.monotonic_ns()
            return True
        silence = f"the engine said nothing for {self._settings.timeout_s:g} s"
        self._stopped = self._stopped or silence + self._engine.excuse()
        return False

    def _wait(self) -> None:
        """Sleep until there is something to do; over a link that lends its calls, compiled code does most of it."""
        unsent = self._offering.pending or (self._offering.done and not self._end_sent)
        if not unsent and self._take_turns():
            return
        until_ns = min(self._next_ns, self._offering.next_due_ns() - self._settings.spin_ns)
        if until_ns > time.monotonic_ns():
            self._engine.wait(until_ns, writable=unsent)

    def _resume(self, lost: PeerGone | None, go_on: Callable[[], bool]) -> bool:
        """Agree with the engine, or its successor, on where to go on. False if the gateway is to end instead."""
        assert self._recovery is not None
        is_resumed = self._recovery.resume(lost, go_on, self._timeout_ns)
        self._end_sent = False
        self._received_ns = time.monotonic_ns()
        return is_resumed

    def _keep_reporting(self) -> bool:
        """Report each second while there is no engine. False once the gateway was asked to stop."""
        now_ns = time.monotonic_ns()
        self._turn_second(now_ns)
        self._report(now_ns)
        return not self._stop_asked

    @property
    def _next_ns(self) -> int:
        """Time of the next work that is neither an order nor an answer."""
        return min(self._reporting.next_ns, self._deadline_ns)

    def _take_turns(self) -> bool:
        """Take turns in compiled code, and report in between. False where the link lends nothing now."""
        if self._recovery is not None and self._recovery.awaits_answer:
            return False
        while taken := self._turns.take(min(self._next_ns, self._received_ns + self._timeout_ns), self._received_ns):
            self._received_ns = taken.heard_ns
            if taken.sent:
                self._note_backlog()
            now_ns = time.monotonic_ns()
            if not self._goes_on(taken, now_ns):
                break
            self._keep_time(now_ns)
            self._report(now_ns)
        if taken and self._intake.end is None:
            self._turns.settle()
        return taken is not None

    def _goes_on(self, taken: Taken, now_ns: int) -> bool:
        """Whether the turns go on as they are; else the loop in Python takes the next one."""
        is_over = self._offering.done or self._intake.end is not None or self._recovery is not None
        return taken.goes_on and not is_over and now_ns < self._received_ns + self._timeout_ns

    def _say_still_here(self, now_ns: int) -> None:
        """Send an empty frame after a second without an order: the engine gives up on a silent gateway."""
        if now_ns < self._still_here_ns:
            return
        is_idle, self._sent_before = self._offering.sent == self._sent_before, self._offering.sent
        self._still_here_ns = now_ns + STILL_HERE_NS
        if is_idle and not self._offering.pending and not self._end_sent:
            self._engine.send(FrameBatch.of(b""), 0)

    def _turn_second(self, now_ns: int) -> None:
        """Close the second that has passed, before the next one counts anything."""
        if now_ns < self._reporting.next_second_ns:
            return
        self._meters.close_second()
        self._reporting.next_second(now_ns)
        self.on_second(self._offering.sent, self._completion.answered)
        self._note_progress(now_ns)

    def _note_progress(self, now_ns: int) -> None:
        if self._recovery is not None and self._recovery.before is None:
            self._progress = self._recovery.progress(self._start_ns, now_ns)

    def _note_backlog(self) -> None:
        """During the last quarter of the run, note the first and the latest number of unanswered orders."""
        if 4 * self._offering.sent >= 3 * self._offering.limit:
            self._late_backlog.append(self._offering.sent - self._completion.answered)
            del self._late_backlog[1:-1]

    @property
    def _end(self) -> End:
        return End(self._offering.sent, self._offering.stream.value, 0, 0)

    def _finish(self) -> GatewayResult:
        """Report the last second, and send the result to the reporter, which confirms once it has everything."""
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
        count = {kind: int(by_type[LAYOUTS[kind].code]) for kind in (Trade, Confirmation, Quote, Rejection)}
        orders = StreamCounts(messages=self._offering.sent, checksum=self._offering.stream.hex)
        answers = StreamCounts(messages=self._completion.received, checksum=self._intake.stream.hex)
        return GatewayResult(
            settings=self._run_settings.as_dict(),
            seed=self._settings.seed,
            orders=orders,
            answers=answers,
            orders_answered=self._completion.answered,
            trades=count[Trade],
            confirmations=count[Confirmation],
            quotes=count[Quote],
            rejections=count[Rejection],
            junk_frames=self._intake.junk + self._engine.junk,
            samples=self._meters.samples,
            began_wall_ns=self._offering.first_handed_ns + self._wall_less_monotonic_ns,
            duration_s=_seconds(self._offering.first_handed_ns, self._intake.last_answer_ns),
            handing_over_s=_seconds(self._offering.first_handed_ns, self._offering.last_handed_ns),
            schedule_s=self._pacer.length_s(self._offering.sent),
            due_at_once=self._pacer.at_once,
            backlog_growth=self._late_backlog[-1] - self._late_backlog[0] if self._late_backlog else 0,
            usage=self._reporting.usage(),
            sockets=counted_since(self._engine.sockets(), self._sockets_before),
            link=self._engine.facts(),
            engine_said=self._intake.end._asdict() if self._intake.end else None,
            recovery=self._recovery.facts() if self._recovery else None,
            stopped=self._stopped,
        )


def _seconds(start_ns: int, end_ns: int) -> float | None:
    """Seconds between the two times; None if the end never came."""
    return (end_ns - start_ns) / 1e9 if end_ns else None


def _try_kernels(settings: RunSettings) -> None:
    """Run every kernel on one order, as the run will."""
    pacer, batch = Pacer.of(settings), FrameBatch(16)
    pacer.start(1)
    OrderFlow.of(settings).fill(batch, 1, 1)
    batch.clear()
    batch.append(encode(Confirmation(1)))
    completion = Completion(pacer.scheduled, 1)
    completion.handed_over(1, 1, pacer.due_times(1, 1))
    completion.take(batch, 0, 2)
