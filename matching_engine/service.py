"""The engine's loop: receive orders, match them, send their answers, wait."""

from __future__ import annotations

import time
from typing import Any

from exchange.messages import End, Hello, Message, encode, read
from exchange.meters import Source
from exchange.results import EngineResult, StreamCounts
from exchange.session import Disagreement, Terms
from matching_engine.engine import HandleStop, MatchingEngine
from matching_engine.loop import EngineLoop
from matching_engine.turns import NO_STORE, EngineTurnsTaken, OrderStore, Sums, take_lent, warm_turns
from matching_engine.work import work_for
from transports.base import Link, PeerGone, is_silent
from transports.frames import FrameBatch
from transports.lending import lent_by
from transports.sockets import counted_since

ANSWER_BYTES = 1 << 21
BETWEEN_FRAMES_S = 2.0
"""The longest time between two frames of a live gateway: it sends one every second, empty if no order is due."""


class EngineService(EngineLoop):
    """Serves one gateway over one link, and reports to the stats reporter over another.

    `run` takes turns from the gateway's hello to its end, and returns the result.
    """

    def __init__(
        self,
        engine: MatchingEngine,
        terms: Terms,
        gateway: Link,
        reporter: Link,
        sampling_interval: int,
        timeout_s: float,
        reports_thread_usage: bool = False,
        work_ns: int = 0,
    ) -> None:
        """`reports_thread_usage`: report the resources that this thread uses, not those of the process.

        `work_ns`: how long the engine computes on each order before it answers.
        """
        super().__init__(engine, terms, reporter, sampling_interval, timeout_s, reports_thread_usage)
        self._gateway = gateway
        self._sums = Sums()
        self._work_ns = work_ns
        frames_a_turn = 1 if work_ns else 1 << 14
        self._orders = FrameBatch(frames_a_turn)
        """Received frames: orders, and others. An engine that works takes one at a time, and leaves the others."""
        self._answers = FrameBatch(ANSWER_BYTES // 5, ANSWER_BYTES)
        self._greeted = False
        self._heard_ns = 0
        """When the last frame came."""
        self._deadline_ns = 0
        """When to give up waiting for the gateway's hello."""
        self._gateway_end: End | None = None
        self._junk = 0
        self._refused = 0
        self._sockets_before: list[dict[str, Any]] = []

    def warm(self) -> None:
        super().warm()
        warm_turns(self._engine)

    def close(self) -> None:
        """Release both links."""
        self._gateway.close()
        super().close()

    def _serve_to_the_end(self) -> None:
        """Serve the gateway, and let the link send the rest. Note the reason if the gateway went away."""
        try:
            self._serve()
            self._gateway.drain(time.monotonic_ns() + self._timeout_ns)
        except PeerGone as error:
            self._stopped = self._stopped or str(error)

    def _serve(self) -> None:
        """Take turns until the gateway's end comes, or the gateway is given up. PeerGone if it went away."""
        self._deadline_ns = time.monotonic_ns() + self._timeout_ns
        while not self._is_over and self._stopped is None:
            self._step()

    def _step(self) -> None:
        """One turn of the loop."""
        frames = self._receive()
        if frames == 0 and self._is_alone():
            self._give_up_waiting()
        self._report()
        if not self._is_over and self._stopped is None:
            self._wait()

    @property
    def _is_over(self) -> bool:
        """Whether the session has ended."""
        return self._gateway_end is not None

    def _receive(self) -> int:
        """Receive once, and match or read the frames that came. Returns their number."""
        self._orders.clear()
        frames = self._gateway.receive(self._orders)
        if frames:
            self._heard_ns = time.monotonic_ns()
            self._take()
        return frames

    def _take(self, first: int = 0, at: int = 0, byte: int = 0) -> None:
        """Match the frames that came, from `first` on. Frames that are no orders go to `_read_foreign`.

        `at` and `byte` say where the compiled turns stopped within the first frame, as in EngineTurnsTaken.
        """
        while first < self._orders.count and not self._is_over:
            if self._is_in_session:
                first = self._match(first, at, byte)
                at = 0
                byte = 0
            else:
                self._read_foreign(self._orders[first])
                first += 1
        if self._started:
            self._meters.sample(self._engine.counts)

    @property
    def _is_in_session(self) -> bool:
        """Whether a frame may be an order."""
        return self._greeted

    def _match(self, first: int, at: int, byte: int) -> int:
        """Match frames from `first` on and send their answers. A foreign frame ends this, and is read.

        Returns the next frame.
        """
        if not self._started:
            self._start_clock(time.monotonic_ns())
        is_at_frame_begin = at == 0
        if is_at_frame_begin:
            self._answers.clear()
        answered = self._answers.count
        matched_before = self._engine.counts.records if self._work_ns else 0
        end, stop = self._engine.handle(self._orders, self._answers, first, at, byte)
        if self._work_ns:
            work_for((self._engine.counts.records - matched_before) * self._work_ns)
        self._answer(first, end, answered)
        if stop is HandleStop.FOREIGN:
            self._read_foreign(self._orders[end])
            end += 1
        return end

    def _answer(self, first: int, end: int, answered: int) -> None:
        """Send the answers to the orders in frames `first` to `end`, then hash orders and answers.

        The answers are the frames of `_answers` from `answered` on.
        """
        self._send_answers(answered, answered)
        self._sums.orders.update(self._orders.span(first, end))

    def _send_answers(self, first: int, unsent: int) -> None:
        """Send the answers from `unsent` on, then hash those from `first` on."""
        self._hand_over(unsent)
        self._sums.answers.update(self._answers.span(first, self._answers.count))

    def _hand_over(self, first: int = 0) -> None:
        """Send `_answers` from `first` on. The session ends if the gateway takes no answer for the timeout."""
        if first == self._answers.count:
            return
        first = self._gateway.send(self._answers, first)
        taken_ns = time.monotonic_ns()
        while first < self._answers.count and self._stopped is None:
            until_ns = taken_ns + self._timeout_ns
            self._gateway.wait(until_ns, readable=False, writable=True)
            before = first
            first = self._gateway.send(self._answers, first)
            if first > before:
                taken_ns = time.monotonic_ns()
            elif time.monotonic_ns() > until_ns:
                self._stopped = f"the gateway took no answer for {self._timeout_s:g} s"

    def _start_clock(self, start_ns: int) -> None:
        """Start the clock, at the first frame after the hello. Seconds count from `start_ns`."""
        self._started = True
        self._meters.start(time.monotonic_ns(), start_ns, self._engine.counts)

    def _read_foreign(self, frame: bytes) -> None:
        """Take a frame that is no order."""
        if not frame:  # an idle gateway is still there
            return
        match read(frame):
            case Hello() as hello if not self._greeted:
                self._greet(hello)
            case End() as end if self._is_in_session:
                self._gateway_end = end
                self._send_message(self._end())
            case _:
                self._junk += 1

    def _greet(self, hello: Hello) -> None:
        """Answer a hello with this engine's hello, so that the gateway, too, sees which terms differ."""
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

    def _is_alone(self) -> bool:
        """Return whether no gateway came in time, or the gateway went silent."""
        is_late = time.monotonic_ns() > self._patience_ends_ns
        return is_late and is_silent(self._gateway, self._receive)

    @property
    def _patience_ends_ns(self) -> int:
        """When to give up on a gateway from which nothing has come."""
        if not self._greeted:
            return self._deadline_ns
        return self._heard_ns + int((self._timeout_s + BETWEEN_FRAMES_S) * 1e9)

    def _give_up_waiting(self) -> None:
        """End the session: no gateway came in time, or it went silent."""
        if self._greeted:
            patience_s = self._timeout_s + BETWEEN_FRAMES_S
            self._stopped = f"the gateway said nothing for {patience_s:g} s" + self._gateway.excuse()
        else:
            self._stopped = f"no gateway came to {self._gateway.url} within {self._timeout_s:g} s"

    def _wait(self) -> None:
        """Sleep until there is something to do. Over a link that lends its calls, take compiled turns instead."""
        if self._may_take_turns and self._take_turns():
            return
        self._gateway.wait(self._next_ns)

    @property
    def _next_ns(self) -> int:
        return super()._next_ns if self._started else self._deadline_ns

    @property
    def _may_take_turns(self) -> bool:
        """Whether compiled code may match and answer the orders. It does no work on them."""
        return self._started and not self._work_ns

    def _take_turns(self) -> bool:
        """Take turns in compiled code, and report in between. Returns False if the link lends nothing now."""
        while taken := self._take_some():
            is_over = self._gateway_end is not None or self._stopped is not None
            is_silent_for_too_long = time.monotonic_ns() > self._patience_ends_ns
            needs_python = not taken.goes_on or not self._may_take_turns
            if is_over or is_silent_for_too_long or needs_python:
                break
            self._report()
        if taken is None:
            return False
        if self._gateway_end is None:
            lent = lent_by(self._gateway)
            if lent is not None:
                lent.settle()
        return True

    def _take_some(self) -> EngineTurnsTaken | None:
        """Take turns in compiled code until Python is needed, and do what the turns left to Python.

        Returns None at once if the link lends nothing now.
        """
        lent = lent_by(self._gateway)
        if lent is None:
            return None
        self._orders.clear()
        self._answers.clear()
        taken = take_lent(
            lent,
            self._engine,
            self._sums,
            self._order_store,
            self._orders,
            self._answers,
            self._meters.turn_samples,
            until_ns=self._next_ns,
        )
        if taken.has_received:
            self._heard_ns = time.monotonic_ns()
        self._meters.report_turns(taken.samples)
        self._go_on_after(taken)
        return taken

    @property
    def _order_store(self) -> OrderStore:
        """The function that compiled turns call with orders before their answers are sent."""
        return NO_STORE

    def _go_on_after(self, taken: EngineTurnsTaken) -> None:
        """Send the answers that the compiled turns did not send, and take the frames that they did not match."""
        self._sums.orders.update(self._orders.span(0, taken.matched))
        self._send_answers(first=0, unsent=taken.sent)
        self._take(first=taken.matched, at=taken.at, byte=taken.byte)

    def _end(self) -> End:
        counts = self._engine.counts
        return End(
            sent=counts.answers,
            sent_checksum=self._sums.answers.value,
            received=counts.records,
            received_checksum=self._sums.orders.value,
        )

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
