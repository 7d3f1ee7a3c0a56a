"""Resumes the session after the engine went away: find it again, agree on what each end has, send the rest again.

    gateway ── hello, resume(session, answers that it has) ──▶ engine, which matches its journal again
    gateway ◀── resume(session, orders that it has), the answers that the gateway lacks ── engine
    gateway ── the orders that the engine lacks, then new ones ──▶ engine

Orders need not be kept: they are made again from seed or tape. Whatever comes before the engine's resume is of an
earlier session and is dropped, so no answer counts twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from exchange.measurements import Source
from exchange.messages import Hello, Resume, encode, read
from exchange.session import Disagreement, Terms
from gateway.completion import Completion
from gateway.recovering.completion import RecoveringIntake
from gateway.recovering.offering import ResendingOffering
from gateway.recovering.progress import GatewayProgress
from transports.base import PeerGone, TransportError, is_silent
from transports.frames import FrameBatch
from transports.renewable import RenewableLink

LOOK_NS = 10_000_000
"""Between two attempts to find the engine."""
ASK_AGAIN_NS = 5_000_000_000
"""Longest wait for a hello on an open link. Then another link is opened, since this one may have lost messages."""
SESSIONS_SINCE_S = 1_700_000_000
"""Session numbers count tenths of a second from here, so they fit until 2037."""
FURTHER_SESSIONS = 1000
"""A gateway resumes less often than this between two reports: one that adds it has higher numbers."""


class EngineIsBack(PeerGone):
    """Another engine has taken the place of the one before, over a link that stands, as a broker's does."""


class SessionResumer:
    """Resumes the session of one gateway with its engine, and knows what the breaks cost."""

    def __init__(
        self,
        link: RenewableLink,
        terms: Terms,
        offering: ResendingOffering,
        intake: RecoveringIntake,
        completion: Completion,
    ) -> None:
        self._link = link
        self._terms = terms
        self._offering = offering
        self._intake = intake
        self._completion = completion
        self._words = FrameBatch()
        """The hello and the resume of this session."""
        self._first = 0
        """The first frame of `_words` that the link has not taken."""
        self._asked_ns = 0
        """When these were said; 0 once the engine's hello has come."""
        self._silent_since_ns = 0
        """The last answer before the break; 0 if an answer has come since."""
        self._without_service_ns = 0
        self.sessions = 0
        self._session = max(int((time.time() - SESSIONS_SINCE_S) * 10), 1)
        """The number of the session, higher than that of any gateway before: no process starts within 0.1 s."""
        self.before: GatewayProgress | None = None
        """Progress of the killed gateway that this one replaces."""

    def go_on_from(self, before: GatewayProgress) -> GatewayProgress:
        """Take the place of a gateway that was killed. Which answers it had is not known: all of them come again.

        Returns what a gateway has to know that takes the place of this one before it reports.
        """
        self.before = before
        self.sessions = before.sessions
        self._without_service_ns = before.without_service_ns
        self._session = max(self._session, before.session + FURTHER_SESSIONS)
        self._silent_since_ns = before.at_ns
        return before._replace(session=self._session)

    def progress(self, start_ns: int, at_ns: int) -> GatewayProgress:
        """Progress of this gateway."""
        return GatewayProgress(
            start_ns,
            at_ns,
            self._offering.first_handed_ns,
            self._offering.sent,
            self._completion.answered,
            self._completion.received,
            self._session,
            self.sessions,
            self._offering.resent,
            self._without_service_ns,
        )

    def resume(self, lost: PeerGone | None, go_on: Callable[[], bool], timeout_ns: int) -> bool:
        """Return True once the session goes on; False once `go_on`, which is called all the while, returns False.

        `lost` is why it broke, None for the first session. PeerGone if no engine comes within `timeout_ns`.
        """
        until_ns = time.monotonic_ns() + timeout_ns
        if lost is not None:
            self._silent_since_ns = self._intake.last_answer_ns
        is_open = lost is None or isinstance(lost, EngineIsBack)
        if is_open:
            self._ask()
        while go_on():
            is_late = time.monotonic_ns() > until_ns
            try:
                if not is_open:
                    self._link.renew()
                    is_open = True
                    self._ask()
                if self._is_resumed() or (is_late and not is_silent(self._link, self._is_resumed)):
                    return True
                is_open = not 0 < self._asked_ns < time.monotonic_ns() - ASK_AGAIN_NS
                if is_open:
                    self._link.wait(time.monotonic_ns() + LOOK_NS, writable=self._first < self._words.count)
            except TransportError:
                is_open = False
                time.sleep(LOOK_NS / 1e9)
            if is_late:
                gone = f"no engine answered at {self._link.url}" if lost is None else f"{lost}, and did not come back"
                raise PeerGone(f"{gone} within {timeout_ns / 1e9:g} s") from lost
        return False

    def _ask(self) -> None:
        """Say hello and resume, in a new session."""
        self._session += 1
        self._words = FrameBatch.of(encode(self._terms.hello(Source.GATEWAY)), encode(self._has()))
        self._first = 0
        self._asked_ns = time.monotonic_ns()

    def take_leave(self) -> None:
        """Let the engine end: this gateway has its end. An engine that does not hear it waits for some time."""
        with contextlib.suppress(PeerGone):
            self._link.send(FrameBatch.of(encode(self._has())), 0)

    def _has(self) -> Resume:
        """Say which answers this gateway has."""
        return Resume(self._session, self._completion.received, self._intake.stream.value)

    def _is_resumed(self) -> bool:
        """Send the rest of hello and resume, and look for the engine's resume. Answers behind that are read."""
        self._first = self._link.send(self._words, self._first)
        batch = self._intake.batch
        batch.clear()
        self._link.receive(batch)
        for index, frame in enumerate(batch):
            match read(frame):
                case Hello() as hello:
                    self._terms.agree(hello)
                    self._asked_ns = 0
                case Resume(session, orders) if session == self._session:
                    self._go_on(orders)
                    self._intake.read(index + 1, time.monotonic_ns())
                    return True
                case Resume(session=0):
                    self._ask()
        return False

    def _go_on(self, orders: int) -> None:
        """Go on with an engine that has so many orders. Disagreement if it has more than were sent."""
        self.sessions += 1
        if self.before is not None:
            self._offering.take_over(orders, self.before.answered, self.before.first_handed_ns, self.before.at_ns)
            self._offering.resent = self.before.resent
            self.before = None
        elif orders > self._offering.sent + self._offering.unsure:
            raise Disagreement(
                f"the engine's journal has {orders:,} orders, and this gateway sent {self._offering.sent:,}: "
                "it is the journal of an earlier run; give another folder with --journal, or remove that file"
            )
        self._intake.asked_to_resume = False
        self._intake.end = None
        self._offering.resume(orders)

    @property
    def awaits_answer(self) -> bool:
        """Whether the first answer after a break has not come yet."""
        return self._silent_since_ns > 0

    def look(self) -> None:
        """Note the first answers after a break. EngineIsBack if another engine asks to go on."""
        if self._intake.asked_to_resume:
            raise EngineIsBack("the engine was started again")
        if self.awaits_answer and self._intake.last_answer_ns > self._silent_since_ns:
            self._without_service_ns += self._intake.last_answer_ns - self._silent_since_ns
            self._silent_since_ns = 0

    def facts(self) -> dict[str, Any]:
        """Return the breaks, for a result.

        Time without service counts from the last answer before a break to the first one after it. If the gateway was
        killed, it counts from the last second that it reported.
        """
        return {
            "sessions": self.sessions,
            "orders_resent": self._offering.resent,
            "without_service_s": self._without_service_ns / 1e9,
        }
