"""The loop of a gateway that has a session at each of several engines. It differs from `Gateway` in its links alone.

One schedule, one window and one table of completion times serve the orders of all sessions.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from exchange.messages import encode
from exchange.meters import Source
from exchange.results import GatewayResult, HashedStream, StreamCounts
from exchange.session import Terms
from exchange.settings import RunSettings
from gateway.engines.dividing import EngineChoice
from gateway.engines.intake import DividedIntake
from gateway.engines.offering import DividedOffering
from gateway.engines.sessions import EngineLinks, EngineSession
from gateway.engines.turns import DividedTurns
from gateway.service import STILL_HERE_NS, Gateway
from transports.base import LAST_LOOK_NS, Link, PeerGone
from transports.frames import FrameBatch


class GatewayOfEngines(Gateway):
    """Offers each order to the engine that serves its instrument."""

    offering_class = DividedOffering
    intake_class = DividedIntake
    turns_class = DividedTurns

    _engine: EngineLinks

    def __init__(
        self,
        settings: RunSettings,
        run: int,
        engines: EngineLinks,
        reporter: Link,
        orders: HashedStream,
        reports_thread_usage: bool = False,
        instance: int = 1,
    ) -> None:
        """`orders` hashes the orders for all engines, in the order in which they are due."""
        first_session = engines.sessions[0]
        streams = orders, first_session.answers
        super().__init__(settings, run, engines, reporter, streams, reports_thread_usage, instance)
        self._sessions = engines.sessions

    def warm(self) -> None:
        super().warm()
        engines = EngineChoice(self._settings).engines_of(first_id=1, count=1)
        nothing = FrameBatch(1)
        self._sessions[0].add(nothing, 0, engines)

    def _greet(self) -> bool:
        """Exchange hellos with every engine, each of which must have the same terms. Returns False if stopped before.

        PeerGone, with the engine's number, if one does not answer.
        """
        deadline_ns = time.monotonic_ns() + self._timeout_ns
        while any(session.hello is None for session in self._sessions):
            if self._stop_asked:
                return False
            for session in self._sessions:
                if not session.was_greeted:
                    hello = self._terms_at(session).hello(Source.GATEWAY)
                    session.was_greeted = session.send_frame(encode(hello))
            is_late = time.monotonic_ns() > deadline_ns
            if is_late and self._is_engine_silent():
                raise PeerGone(self._silence_of_first())
            if not self._intake.take():
                self._engine.wait(deadline_ns, writable=True)
        for session in self._sessions:
            if session.hello is not None:
                self._terms_at(session).agree(session.hello)
        return True

    def _terms_at(self, session: EngineSession) -> Terms:
        """Return the terms of the session, which name its engine."""
        return replace(self._terms, engine=session.engine)

    def _silence_of_first(self) -> str:
        """Return the sentence about the first engine that did not answer the hello."""
        for session in self._sessions:
            if session.hello is None:
                where = f"engine {session.engine} answered at {session.link.url}"
                return f"no {where} within {self._settings.timeout_s:g} s{session.link.excuse()}"
        return "an engine did not answer"

    def _serve(self) -> None:
        while self._intake.end is None and not self._early_end() and self._is_answered_in_time():
            self._step()

    def _early_end(self) -> str:
        """Return the sentence about an engine whose end came before the gateway's; empty if there is none."""
        for session in self._sessions:
            if session.end is not None and not session.end_sent:
                return f"engine {session.engine} ended the session before the gateway did"
        return ""

    def _take_leave(self) -> None:
        self._stopped = self._stopped or self._early_end() or None
        self._engine.drain(time.monotonic_ns() + self._timeout_ns)

    def _serve_to_the_end(self) -> None:
        super()._serve_to_the_end()
        if not self._end_sent:
            for session in self._sessions:
                with contextlib.suppress(PeerGone):  # the other engines need not wait for this gateway
                    session.send_end()

    def _send_end(self) -> bool:
        for session in self._sessions:
            session.send_end()
        return all(session.end_sent for session in self._sessions)

    def _say_still_here(self, now_ns: int) -> None:
        if now_ns < self._still_here_ns:
            return
        self._still_here_ns = now_ns + STILL_HERE_NS
        for session in self._sessions:
            session.show_life()

    def _is_engine_silent(self) -> bool:
        until_ns = time.monotonic_ns() + LAST_LOOK_NS
        while time.monotonic_ns() < until_ns:
            self._engine.wait(until_ns)
            if self._intake.take():
                return False
        return True

    def _finish(self) -> GatewayResult:
        for session in self._sessions:
            session.answers.flush()
        return super()._finish()

    def _result(self) -> GatewayResult:
        result = super()._result()
        result.sessions = [session.result() for session in self._sessions]
        checksum = sum(session.answers.value for session in self._sessions) % 2**64
        result.answers = StreamCounts(messages=result.answers.messages, checksum=f"{checksum:016x}")
        return result
