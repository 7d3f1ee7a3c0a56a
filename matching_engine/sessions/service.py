"""The loop of an engine that several gateways share: it takes orders in turns, and each answer goes to its gateway.

All gateways are greeted together, and their sessions end together. So what a gateway gets depends only on the order in
which the engine took the orders. A gateway that breaks off is dropped, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from exchange.results import EngineResult, HashedStream, MarketResult, StreamCounts
from exchange.session import Terms
from matching_engine.engine import MatchingEngine
from matching_engine.loop import EngineLoop
from matching_engine.service import ANSWER_BYTES, BETWEEN_FRAMES_S
from matching_engine.sessions.routing import OVERRUN, route, stamp
from matching_engine.sessions.session import FRAMES_A_TURN, WAITING_ANSWERS, AnswerQueues, GatewaySession
from matching_engine.sessions.turns import SharedTurns, SharedTurnsTaken
from matching_engine.turns import Sums
from transports.base import LAST_LOOK_NS, Link, PeerGone
from transports.frames import FrameBatch
from transports.lending import NOTICE, lent_by
from transports.sockets import counted_since
from transports.together import SleepTogether, sum_of_link_facts

CROWDED_SLEEP_NS = 1_000_000
"""The longest sleep while answers wait for room on a link."""
STILL_HERE_NS = 1_000_000_000
"""The time between two empty frames to gateways that wait for the others' ends."""


class SharedEngineService(EngineLoop):
    """Serves several gateways, each over a link of its own, and reports to the stats reporter over another link.

    `run` takes turns until every gateway has sent its end or was dropped, and returns the result.
    """

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        gateways: Sequence[Link],
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        reports_thread_usage: bool = False,
        input_stream: HashedStream | None = None,
        sends_quotes: bool = True,
    ) -> None:
        """`gateways` are the links of gateways 1, 2, ...

        `input_stream` takes the orders of all gateways in the engine's order, with market ids; without it they are
        only hashed. `reports_thread_usage`: report the resources that this thread uses, not those of the process.
        `sends_quotes`: each quote goes to every gateway; otherwise to none.
        """
        super().__init__(engine, terms, reporter, sampling_interval, timeout_s, reports_thread_usage)
        self._links = gateways
        self._sends_quotes = sends_quotes
        self._queues = AnswerQueues(len(gateways))
        self._sessions = [
            GatewaySession(number, link, replace(terms, instance=number), self._queues)
            for number, link in enumerate(gateways, start=1)
        ]
        self._together = SleepTogether()
        self._turns = SharedTurns(len(gateways))
        self._orders = FrameBatch(FRAMES_A_TURN)
        """Frames that came from the gateway whose turn it is."""
        self._answers = FrameBatch(ANSWER_BYTES // 5, ANSWER_BYTES)
        """The answers to a gateway's orders, for whichever gateways."""
        self._market = Sums()
        self._input = input_stream or self._market.orders
        self._patience_ns = self._timeout_ns + int(BETWEEN_FRAMES_S * 1e9)
        """The longest silence of a gateway."""
        self._awake_by_ns = 0
        """When the loop looks at its gateways again: now, or at the planned end of its sleep."""
        self._links_are_served = False
        """Whether each link did its own work since the last frame moved, so that the engine may sleep."""
        self._still_here_ns = 0
        """When to show ended gateways next that the engine is there."""
        self.on_dropped: Callable[[int], None] = lambda gateway: None
        """Called with the number of each gateway that was dropped."""
        self._reported_drops: set[int] = set()
        self._sockets_before: list[list[dict[str, Any]]] = [[] for _ in gateways]

    def warm(self) -> None:
        super().warm()
        nothing = FrameBatch(1)
        queues = AnswerQueues(1)
        stamp(nothing.buffer, nothing.offsets, 0, 0, 1, Sums().orders.state)
        self._route(nothing, queues)
        self._turns.warm(self._engine)

    def close(self) -> None:
        """Release all links."""
        for link in self._links:
            link.close(0 if self._stopped else 1.0)
        super().close()

    def _serve_to_the_end(self) -> None:
        """Greet all gateways, serve them, and part from them."""
        self._greet_all()
        if any(session.is_open for session in self._sessions):
            self._trade()
            self._part()

    def _greet_all(self) -> None:
        """Wait for all hellos, then answer them together. A gateway that does not come in time is dropped."""
        first_ns = time.monotonic_ns()
        deadline_ns = first_ns + self._timeout_ns
        while self._stopped is None:
            awaited = [session for session in self._sessions if session.hello is None and session.dropped is None]
            have_any = len(awaited) < len(self._sessions)
            if have_any:
                # The gateways that came wait for the timeout, too: leave them some of it.
                deadline_ns = min(deadline_ns, time.monotonic_ns() + self._timeout_ns // 2)
            if not awaited:
                break
            for session in awaited:
                session.serve_link()
                session.greet()
            is_late = time.monotonic_ns() > deadline_ns
            for session in awaited:
                if is_late and session.hello is None:
                    session.drop(f"no {session.name} came to {session.link.url} in time" + session.link.excuse())
            self._report()
            if not is_late:
                self._together.sleep([], min(deadline_ns, time.monotonic_ns() + CROWDED_SLEEP_NS))
        for session, link in zip(self._sessions, self._links, strict=True):
            if session.is_open:
                self._sockets_before[session.number - 1] = link.sockets()
                session.begin(gets_quotes=self._sends_quotes)
        if not any(session.is_open for session in self._sessions):
            reasons = [session.dropped for session in self._sessions if session.dropped is not None]
            self._stopped = self._stopped or ": ".join(["no gateway came, or stayed", *reasons[:1]])
        now_ns = time.monotonic_ns()
        self._awake_by_ns = now_ns
        self._still_here_ns = now_ns + STILL_HERE_NS
        self._started = True
        self._meters.start(now_ns, now_ns, self._engine.counts)

    def _trade(self) -> None:
        """Take turns until every gateway has ended or was dropped."""
        while self._stopped is None and any(session.trades for session in self._sessions):
            self._step()

    def _step(self) -> None:
        """One turn of the loop: some orders of each gateway, one gateway after the other."""
        moved = 0
        for session in self._sessions:
            if session.has_room and session.receive(self._orders):
                moved += self._orders.count
                self._take_from(session)
                moved += self._send_answers()
        moved += self._send_answers()
        self._drop_lost_gateways()
        self._report()
        if moved:
            self._links_are_served = False
        elif self._links_are_served and not self._take_turns():
            self._sleep()
        elif self._links_are_served:
            self._links_are_served = False
        else:
            self._serve_links()

    def _take_from(self, session: GatewaySession, first: int = 0) -> None:
        """Match the orders that came from a gateway, from frame `first` on, and read its other frames."""
        orders = self._orders
        received = orders.count
        while first < received and session.is_open:
            end = int(stamp(orders.buffer, orders.offsets, first, received, session.number, session.sums.orders.state))
            session.orders_taken += end - first
            self._input.update(orders.span(first, end))
            self._match(first, end)
            if end < received:
                session.read_foreign(orders[end])
                end += 1
            first = end
        self._meters.sample(self._engine.counts)

    def _match(self, first: int, end: int) -> None:
        """Match the orders in frames `first` to `end` - 1, and put each answer into its gateway's queue."""
        received = self._orders.count
        self._orders.count = end
        while first < end:
            self._answers.clear()
            first, _ = self._engine.handle(self._orders, self._answers, first)
            self._market.answers.update(self._answers.span(0, self._answers.count))
            self._route(self._answers, self._queues)
        self._orders.count = received

    @staticmethod
    def _route(answers: FrameBatch, queues: AnswerQueues) -> None:
        route(
            answers.buffer,
            answers.offsets,
            0,
            answers.count,
            queues.buffers,
            queues.ends,
            queues.counts,
            queues.states,
            queues.undelivered,
        )

    def _take_turns(self) -> bool:
        """Take turns in compiled code until Python is needed. Returns False if a link cannot be served by it now."""
        served = [session for session in self._sessions if session.is_open]
        lent_of = []
        for session in served:
            lent = lent_by(session.link)
            if lent is None or lent.pollfds is None or session.waiting:
                return False
            lent_of.append((session.number, lent))
        if not lent_of:
            return False
        until_ns = self._wake_ns
        self._awake_by_ns = until_ns
        taken = self._turns.take(
            lent_of, self._engine, self._queues, self._orders, self._answers, self._meters.turn_samples,
            self._input, self._market.answers, until_ns,
        )  # fmt: skip
        for session, (_number, lent) in zip(served, lent_of, strict=True):
            session.note_turns(*self._turns.progress_of(session.number))
            if lent.numbers[NOTICE] or not taken.goes_on:
                session.settle(lent)
        self._meters.report_turns(taken.samples)
        if taken.gateway:
            self._go_on_after(taken)
        self._drop_lost_gateways()
        return True

    def _go_on_after(self, taken: SharedTurnsTaken) -> None:
        """Match the rest of the batch in which compiled turns stopped, and read what is no order."""
        session = self._sessions[taken.gateway - 1]
        self._orders.count = taken.received
        self._match(taken.first, taken.stamped)
        self._meters.sample(self._engine.counts)
        if taken.stamped < taken.received and session.is_open:
            session.read_foreign(self._orders[taken.stamped])
            self._take_from(session, taken.stamped + 1)

    def _send_answers(self) -> int:
        """Send the answers that wait, to each gateway what its link takes. Returns how many were sent."""
        sent = 0
        for number in self._queues.counts.nonzero()[0]:
            sent += self._sessions[number - 1].send_answers()
        return sent

    def _drop_lost_gateways(self) -> None:
        """Drop the gateways that take no answers, or that have fallen silent.

        If this process itself was stalled, that time does not count: frames may have come meanwhile.
        """
        now_ns = time.monotonic_ns()
        stalled_ns = now_ns - self._awake_by_ns
        self._awake_by_ns = now_ns
        for session in self._sessions:
            if session.dropped is not None and session.number not in self._reported_drops:
                self._reported_drops.add(session.number)
                self.on_dropped(session.number)
            if not session.is_open:
                continue
            if stalled_ns > LAST_LOOK_NS:
                session.times.heard_ns = min(session.times.heard_ns + stalled_ns, now_ns)
                session.times.taken_ns = min(session.times.taken_ns + stalled_ns, now_ns)
            if not session.waiting:
                session.times.taken_ns = now_ns
            if not session.has_room:  # nothing is received from it now, so its silence is no silence of its own
                session.times.heard_ns = now_ns
            self._drop_if_lost(session, now_ns)

    def _drop_if_lost(self, session: GatewaySession, now_ns: int) -> None:
        if self._queues.states[session.number] == OVERRUN:
            session.drop(f"{session.name} did not read: {WAITING_ANSWERS:,} answers waited for it")
        elif now_ns - session.times.taken_ns > self._timeout_ns:
            session.drop(f"{session.name} took no answer for {self._timeout_s:g} s")
        elif session.trades and now_ns - session.times.heard_ns > self._patience_ns:
            patience_s = self._timeout_s + BETWEEN_FRAMES_S
            session.drop(f"{session.name} said nothing for {patience_s:g} s" + session.link.excuse())

    def _part(self) -> None:
        """Send each gateway the answers that wait and the engine's end, and let the links send the rest."""
        until_ns = time.monotonic_ns() + self._timeout_ns
        unparted = [session for session in self._sessions if session.is_open]
        while unparted and self._stopped is None:
            self._send_answers()
            self._drop_lost_gateways()
            unparted = [session for session in unparted if session.is_open and not self._has_parted(session)]
            if unparted:
                self._serve_links()
                self._together.sleep([], time.monotonic_ns() + CROWDED_SLEEP_NS)
        for session in self._sessions:
            if session.is_open:
                _drain(session.link, until_ns)

    @staticmethod
    def _has_parted(session: GatewaySession) -> bool:
        """Send the engine's end once no answers wait. Returns whether it was sent."""
        return not session.waiting and session.send_message(session.engine_end)

    def _serve_links(self) -> None:
        """Let each link do its own work, and show ended gateways now and then that the engine is there."""
        now_ns = time.monotonic_ns()
        if now_ns >= self._still_here_ns:
            self._still_here_ns = now_ns + STILL_HERE_NS
            for session in self._sessions:
                session.show_life()
        for session in self._sessions:
            if session.is_open:
                session.serve_link()
        self._links_are_served = True

    def _sleep(self) -> None:
        """Sleep until a frame comes, or there is other work."""
        until_ns = self._wake_ns
        if any(session.waiting for session in self._sessions):
            until_ns = min(until_ns, time.monotonic_ns() + CROWDED_SLEEP_NS)
        self._awake_by_ns = until_ns
        self._together.sleep([session.link for session in self._sessions if session.has_room], until_ns)
        self._links_are_served = False

    @property
    def _wake_ns(self) -> int:
        """When to go on although no frame comes: for other work, or to drop a gateway that stays silent."""
        wake_ns = min(self._next_ns, self._still_here_ns)
        for session in self._sessions:
            if session.trades:
                wake_ns = min(wake_ns, session.times.heard_ns + self._patience_ns)
        return wake_ns

    def _result(self) -> EngineResult:
        counts = self._engine.counts
        sockets = []
        for link, before in zip(self._links, self._sockets_before, strict=True):
            sockets += counted_since(link.sockets(), before)
        return EngineResult(
            orders=self._sum(lambda session: session.result().orders),
            answers=self._sum(lambda session: session.result().answers),
            junk_frames=sum(session.junk + session.link.junk for session in self._sessions),
            handshakes_refused=sum(session.refused + session.link.refused for session in self._sessions),
            usage=self._reporting.usage(),
            sockets=sockets,
            link=sum_of_link_facts(self._links),
            gateway_said=None,
            sessions=[session.result() for session in self._sessions],
            market=MarketResult(
                orders=StreamCounts(messages=counts.records, checksum=self._input.hex),
                answers=StreamCounts(messages=counts.answers, checksum=self._market.answers.hex),
                quotes=counts.quotes,
                receivers_of_a_quote=len(self._sessions) if self._sends_quotes else 0,
            ),
            stopped=self._stopped,
        )

    def _sum(self, of_session: Callable[[GatewaySession], StreamCounts]) -> StreamCounts:
        """Return the sum of the sessions' counts, and of their checksums modulo 2^64."""
        parts = [of_session(session) for session in self._sessions]
        checksum = sum(int(part.checksum, 16) for part in parts) % 2**64
        return StreamCounts(messages=sum(part.messages for part in parts), checksum=f"{checksum:016x}")


def _drain(link: Link, until_ns: int) -> None:
    """Let a link send the rest; a gateway that has left does not matter any more."""
    try:
        link.drain(until_ns)
    except PeerGone:
        return
