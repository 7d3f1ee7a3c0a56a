"""A gateway whose session survives a break: of the link, of the engine, or of the gateway itself.

The gateway runs the loop of `gateway/service.py`, and adds three things:

- It begins with a resumed session in place of a plain hello, and resumes the session after each break.
- Before it offers orders, it checks whether an engine that was started again asks to resume.
- It tells the launcher its progress each second, so that another gateway can take its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from exchange.messages import End
from exchange.results import GatewayResult, HashedStream
from exchange.session import Disagreement
from exchange.settings import RunSettings
from gateway.recovering.completion import RecoveringCompletion, RecoveringIntake
from gateway.recovering.meters import RecoveringMeters
from gateway.recovering.offering import ResendingOffering
from gateway.recovering.progress import GatewayProgress
from gateway.recovering.resumption import SessionResumer
from gateway.service import Gateway
from gateway.turns import GatewayTurnsTaken
from transports.base import Link, PeerGone
from transports.renewable import RenewableLink


class RecoveringGateway(Gateway):
    """A gateway for an engine that keeps a journal, over a link that can be opened again."""

    completion_class = RecoveringCompletion
    offering_class = ResendingOffering
    intake_class = RecoveringIntake
    meters_class = RecoveringMeters
    _completion: RecoveringCompletion
    _offering: ResendingOffering
    _intake: RecoveringIntake
    _meters: RecoveringMeters

    def __init__(
        self,
        settings: RunSettings,
        run: int,
        engine: RenewableLink,
        reporter: Link,
        streams: tuple[HashedStream, HashedStream],
        reports_thread_usage: bool = False,
        instance: int = 1,
    ) -> None:
        super().__init__(settings, run, engine, reporter, streams, reports_thread_usage, instance)
        self._resumer = SessionResumer(engine, self._terms, self._offering, self._intake, self._completion)
        self._predecessor: GatewayProgress | None = None
        """Progress of the killed gateway that this one replaces; None for the first gateway of a run."""
        self._progress: GatewayProgress | None = None
        """Progress up to the last whole second; None once the launcher knows it."""
        self._start_ns = 0
        self.on_progress: Callable[[GatewayProgress], None] | None = None
        """Called each second with the progress from which another gateway could go on."""
        self.unrecorded: Callable[[], Iterable[bytes]] = lambda: ()
        """Returns the frames that were sent to the reporter but may not be in its spool."""
        self.on_end: Callable[[End], None] = lambda end: None
        """Called once this gateway has every answer: an engine that is started again may then end without a gateway."""

    def go_on_from(self, predecessor: GatewayProgress) -> None:
        """Take the place of a gateway that was killed. Send its records again, since the reporter may lack them."""
        for record in predecessor.records:
            self._outbox.post(record.encode("latin-1"))
        self._outbox.flush()  # so that no later report repeats them
        self._predecessor = predecessor
        self._meters.go_on_from(predecessor)
        progress = self._resumer.go_on_from(predecessor)
        if self.on_progress:
            self.on_progress(progress)

    def run(self) -> GatewayResult:
        """Run the session until the reporter has confirmed the statistics. PeerGone if no engine comes at the start.

        A first gateway starts the run's clock once an engine is there. Another goes on with that clock, so the break
        between both counts.
        """
        if self._predecessor is not None:
            self._sockets_before = self._engine.sockets()
            self._start_clock(self._predecessor.start_ns)
        if not self._resume(None, lambda: not self._stop_asked):
            return self._finish()
        if self._predecessor is None:
            self._sockets_before = self._engine.sockets()
            self._start_clock(time.monotonic_ns())
        try:
            self._serve_to_the_end()
        except Disagreement as error:  # another engine came, with other settings
            self._stopped = self._stopped or str(error)
        return self._finish()

    def _start_clock(self, start_ns: int) -> None:
        super()._start_clock(start_ns)
        self._start_ns = start_ns
        now_ns = time.monotonic_ns()
        self._note_progress(now_ns)
        if self._progress is not None:
            self._report(now_ns)  # before the first order: another gateway must know this clock

    def _serve(self) -> None:
        """Take turns until the engine's end comes; resume the session after each break."""
        is_under_way = True
        while is_under_way and self._intake.end is None and self._is_answered_in_time():
            try:
                self._step()
            except PeerGone as lost:
                is_under_way = self._resume(lost, self._keep_reporting)

    def _resume(self, lost: PeerGone | None, may_go_on: Callable[[], bool]) -> bool:
        """Agree with the engine, or its successor, on where to go on. Returns False if the gateway has to end."""
        is_resumed = self._resumer.resume(lost, may_go_on, self._timeout_ns)
        self._end_sent = False
        self._received_ns = time.monotonic_ns()
        return is_resumed

    def _keep_reporting(self) -> bool:
        """Report each second while there is no engine. Returns False once the gateway was asked to stop."""
        now_ns = time.monotonic_ns()
        self._close_second_if_over(now_ns)
        self._report(now_ns)
        return not self._stop_asked

    def _take_leave(self) -> None:
        """Let the launcher and the engine know that this gateway has every answer."""
        if self._intake.end is not None:
            self.on_end(self._end)
            self._resumer.take_leave()
        super()._take_leave()

    def _offer(self, now_ns: int) -> None:
        """Offer orders, unless another engine asks to resume the session first."""
        self._resumer.check_engine()
        super()._offer(now_ns)

    def _take_turns(self) -> bool:
        """Take compiled turns, but not before the first answer after a break, whose time `check_engine` has to note."""
        return not self._resumer.awaits_answer and super()._take_turns()

    def _goes_on(self, taken: GatewayTurnsTaken, now_ns: int) -> bool:  # noqa: ARG002
        """Come back to the loop in Python after each call of compiled turns: it looks for another engine."""
        return False

    def _close_second(self, now_ns: int) -> None:
        super()._close_second(now_ns)
        self._note_progress(now_ns)

    def _note_progress(self, now_ns: int) -> None:
        """Note progress for the next report. A gateway that has yet to take over the killed one's orders has none."""
        if self._resumer.predecessor is None:
            self._progress = self._resumer.progress(self._start_ns, now_ns)

    def _report(self, now_ns: int) -> None:
        """Write one record. Once none is left, tell the launcher the progress, then send the written records."""
        if self._reporting.write_next(now_ns):
            return
        if self._progress is not None and self.on_progress:
            self.on_progress(self._progress.with_records([*self.unrecorded(), *self._outbox.unsent]))
        self._progress = None
        self._outbox.flush()

    def _result(self) -> GatewayResult:
        return replace(super()._result(), recovery=self._resumer.facts())
