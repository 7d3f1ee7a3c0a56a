"""Resumes the session after the engine went away: find the engine, agree on what each end has, send the rest again.

    gateway ── hello, resume(session, number of its answers) ──▶ engine, which matches its journal again
    gateway ◀── resume(session, number of its orders), then the answers that the gateway lacks ── engine
    gateway ── the orders that the engine lacks, then new ones ──▶ engine

Orders need not be kept, since they can be made again from seed or tape. Frames that come before the engine's resume
belong to an earlier session and are dropped, so no answer counts twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from exchange.messages import Hello, Resume, encode, read
from exchange.meters import Source
from exchange.session import Disagreement, Terms
from gateway.completion import Completion
from gateway.recovering.completion import RecoveringIntake
from gateway.recovering.offering import ResendingOffering
from gateway.recovering.progress import GatewayProgress
from transports.base import PeerGone, TransportError, is_silent
from transports.frames import FrameBatch
from transports.renewable import RenewableLink

LOOK_NS = 10_000_000
"""The time between two attempts to find the engine."""
ASK_AGAIN_NS = 5_000_000_000
"""The longest wait for a hello on an open link. Then the link is opened again, since it may have lost messages."""
SESSIONS_SINCE_S = 1_700_000_000
"""Session numbers count tenths of a second from here, so they fit until 2037."""
FURTHER_SESSIONS = 1000
"""A gateway resumes fewer sessions than this between two reports. Its successor adds this, to have higher numbers."""


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
        self._handshake = FrameBatch()
        """The hello and the resume of this session."""
        self._first_unsent = 0
        """The first frame of `_handshake` that the link has not taken."""
        self._asked_ns = 0
        """When the handshake began; 0 once the engine's hello has come."""
        self._silent_since_ns = 0
        """The last answer before the break; 0 if an answer has come since."""
        self._without_service_ns = 0
        self.sessions = 0
        self._session = max(int((time.time() - SESSIONS_SINCE_S) * 10), 1)
        """The number of the session, higher than that of any gateway before: no process starts within 0.1 s."""
        self.predecessor: GatewayProgress | None = None
        """Progress of the killed gateway that this one replaces."""

    def go_on_from(self, predecessor: GatewayProgress) -> GatewayProgress:
        """Take the place of a gateway that was killed. All answers come again, since it is unknown which ones it had.

        Returns the progress from which a successor goes on if this gateway is killed before its first report.
        """
        self.predecessor = predecessor
        self.sessions = predecessor.sessions
        self._without_service_ns = predecessor.without_service_ns
        self._session = max(self._session, predecessor.session + FURTHER_SESSIONS)
        self._silent_since_ns = predecessor.at_ns
        return predecessor._replace(session=self._session)

    def progress(self, start_ns: int, at_ns: int) -> GatewayProgress:
        """Return the progress of this gateway, whose clock started at `start_ns`, as of `at_ns`."""
        return GatewayProgress(
            start_ns=start_ns,
            at_ns=at_ns,
            first_handed_ns=self._offering.first_handed_ns,
            sent=self._offering.sent,
            answered=self._completion.answered,
            received=self._completion.received,
            session=self._session,
            sessions=self.sessions,
            resent=self._offering.resent,
            without_service_ns=self._without_service_ns,
        )

    def resume(self, lost: PeerGone | None, may_go_on: Callable[[], bool], timeout_ns: int) -> bool:
        """Resume the session. Returns True once it is resumed, and False once `may_go_on` returns False.

        `lost` is the reason why the session broke, None for the first session. `may_go_on` is called often meanwhile.
        PeerGone if no engine comes within `timeout_ns`.
        """
        until_ns = time.monotonic_ns() + timeout_ns
        if lost is not None:
            self._silent_since_ns = self._intake.last_answer_ns
        is_open = lost is None or isinstance(lost, EngineIsBack)
        if is_open:
            self._ask()
        while may_go_on():
            is_late = time.monotonic_ns() > until_ns
            try:
                if not is_open:
                    self._link.renew()
                    is_open = True
                    self._ask()
                if self._try_resume() or (is_late and not is_silent(self._link, self._try_resume)):
                    return True
                awaits_hello = self._asked_ns > 0
                if awaits_hello and time.monotonic_ns() - self._asked_ns > ASK_AGAIN_NS:
                    is_open = False  # the next round opens the link again
                else:
                    self._link.wait(time.monotonic_ns() + LOOK_NS, writable=self._first_unsent < self._handshake.count)
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
        self._handshake = FrameBatch.of(encode(self._terms.hello(Source.GATEWAY)), encode(self._resume_message()))
        self._first_unsent = 0
        self._asked_ns = time.monotonic_ns()

    def take_leave(self) -> None:
        """Tell the engine that this gateway has its end, so that it may end, too, without waiting for some time."""
        with contextlib.suppress(PeerGone):
            self._link.send(FrameBatch.of(encode(self._resume_message())), 0)

    def _resume_message(self) -> Resume:
        """Return the message that says which answers this gateway has."""
        return Resume(self._session, self._completion.received, self._intake.stream.value)

    def _try_resume(self) -> bool:
        """Send the rest of the handshake, and look for the engine's resume. Returns True once it has come.

        The answers behind the engine's resume are read, too.
        """
        self._first_unsent = self._link.send(self._handshake, self._first_unsent)
        batch = self._intake.batch
        batch.clear()
        self._link.receive(batch)
        for index, frame in enumerate(batch):
            match read(frame):
                case Hello() as hello:
                    self._terms.agree(hello)
                    self._asked_ns = 0
                case Resume(session, orders) if session == self._session:
                    self._continue_after(orders)
                    self._intake.read(index + 1, time.monotonic_ns())
                    return True
                case Resume(session=0):  # an engine that was started again asks for the handshake
                    self._ask()
        return False

    def _continue_after(self, orders: int) -> None:
        """Go on with an engine that has this many orders. Disagreement if it has more than were sent."""
        self.sessions += 1
        if self.predecessor is not None:
            self._offering.take_over(
                orders,
                reported=self.predecessor.answered,
                first_handed_ns=self.predecessor.first_handed_ns,
                since_ns=self.predecessor.at_ns,
            )
            self._offering.resent = self.predecessor.resent
            self.predecessor = None
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

    def check_engine(self) -> None:
        """Note when the first answers after a break have come. EngineIsBack if an engine asks to resume the session."""
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
