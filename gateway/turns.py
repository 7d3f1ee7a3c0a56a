"""The gateway's turns as one compiled call, over a link that lends its calls.

A turn receives answers, records them, hands over the orders that are due, and sleeps until the next answer or due
time. Python is needed once a second, and for everything besides plain answers and orders. Then the call returns, and
the loop of `service.py`, which can do everything, takes the next turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from exchange import checksum, log_buckets, measurements, messages
from exchange.checksum import State, hash_into
from exchange.compiled import cached_kernel, inlined
from gateway import completion, offering
from gateway.completion import Completion, Rules, Tables, are_free, await_answers, record_answers
from gateway.intake import Intake
from gateway.offering import Offering, OrdersAhead
from transports import lending
from transports.base import Link
from transports.frames import Bytes, Longs
from transports.lending import NOTICE, Lent, idle_calls, lent_by, monotonic_ns

MANY_SAMPLES = 16
"""With so many sampled orders the call returns, so that Python reports them before the second ends."""


class GatewayTurnsTaken(NamedTuple):
    """Result of a call of `take_turns`."""

    sent: int
    """Frames that were handed over."""
    first_handed_ns: int
    last_handed_ns: int
    answered: int
    """Orders that got their first answer."""
    came: int
    """Received frames in memory."""
    read: int
    """Received frames that were recorded; the loop in Python reads the others."""
    samples: int
    """Sampled orders among those answered."""
    came_ns: int
    """Time of the latest frames."""
    answer_ns: int
    """Time of the latest frames that were recorded."""
    heard_ns: int
    """The time from which a silence of the engine counts."""
    goes_on: bool
    """Whether the next turn may be compiled, too; if not, the loop in Python takes it."""


@inlined
def orders_through(ahead: OrdersAhead, frame: int) -> int:
    """Return the number of orders up to the end of this frame."""
    return min((frame + 1) * ahead.packing, len(ahead.due))


@inlined
def frames_that_may_go(ahead: OrdersAhead, sent: int, unanswered: int, now_ns: int) -> int:
    """Return the end of the frames from `sent` on that may go: their orders are all due, and fit into the window."""
    gone = sent * ahead.packing
    end = sent
    while end < ahead.frames:
        orders = orders_through(ahead, end)
        if ahead.due[orders - 1] > now_ns or unanswered + orders - gone > ahead.window:
            break
        end += 1
    return end


@inlined
def next_due_ns(ahead: OrdersAhead, sent: int, unanswered: int, never_ns: int) -> int:
    """Return when the next frame may go; `never_ns` if all frames have gone, or the window is closed."""
    if sent == ahead.frames or unanswered + orders_through(ahead, sent) - sent * ahead.packing > ahead.window:
        return never_ns
    return ahead.due[orders_through(ahead, sent) - 1]


@cached_kernel(checksum, completion, offering, log_buckets, measurements, messages, lending)
def take_turns(  # noqa: PLR0912, PLR0915 - a turn is one compiled call
    receive: Any,
    send: Any,
    sleep: Any,
    numbers: Longs,
    memory: Bytes,
    ahead: OrdersAhead,
    answers: Bytes,
    offsets: Longs,
    largest: int,
    tables: Tables,
    rules: Rules,
    last_id: int,
    unanswered: int,
    heard_ns: int,
    until_ns: int,
    spin_ns: int,
    orders_sum: State,
    answers_sum: State,
    forgets: bool,
) -> GatewayTurnsTaken:
    """Take turns until `until_ns`, or until Python is needed.

    If it `forgets`, the bytes that were sent and received are hashed here, and overwritten later. If not, they stay in
    memory, and Python hashes them.
    """
    timespec = np.empty(2, np.int64)
    sent = 0
    answered = 0
    read = 0
    samples = 0
    first_handed_ns = 0
    handed_ns = 0
    answer_ns = 0
    is_stuck = False
    while True:
        came = receive(numbers, memory, answers, offsets, read, largest)
        now_ns = monotonic_ns(timespec)
        if came > read:
            heard_ns = now_ns
        if now_ns >= until_ns:  # what came now counts in the next second
            break
        if came > read:
            newest = ahead.first_id - 1 + min(sent * ahead.packing, len(ahead.due))
            before = read
            read, fresh, samples = record_answers(
                answers, offsets, read, came, tables, rules, newest, last_id, now_ns, samples
            )
            answered = answered + fresh
            unanswered = unanswered - fresh
            if read > before:
                answer_ns = now_ns
            if forgets and read == came:
                hash_into(answers_sum, answers, 0, offsets[read])
                came = 0
                read = 0
        is_full = came + 1 == len(offsets) or offsets[came] + largest > len(answers)
        if read < came or samples >= MANY_SAMPLES or is_full or numbers[NOTICE]:
            break

        end = frames_that_may_go(ahead, sent, unanswered, now_ns)
        if end > sent:
            gone = sent * ahead.packing
            orders = orders_through(ahead, end - 1)
            if not are_free(tables, ahead.first_id + gone, orders - gone):
                is_stuck = True
                break
            handed_ns = monotonic_ns(timespec)
            taken = send(numbers, memory, ahead.buffer, ahead.offsets, sent, end)
            if taken > sent:
                orders = orders_through(ahead, taken - 1)
                await_answers(tables, ahead.first_id + gone, orders - gone, handed_ns, ahead.due[gone:orders])
                if first_handed_ns == 0:
                    first_handed_ns = handed_ns
                if unanswered == 0:  # the engine owed nothing, so its silence counts from here
                    heard_ns = handed_ns
                unanswered += orders - gone
                if forgets:
                    hash_into(orders_sum, ahead.buffer, ahead.offsets[sent], ahead.offsets[taken])
                sent = taken
            if taken < end or sent == ahead.frames:
                is_stuck = taken < end
                break
            continue  # the send may have consumed the event of an answer, so receive before sleeping

        wake_ns = min(next_due_ns(ahead, sent, unanswered, until_ns + spin_ns) - spin_ns, until_ns)
        if wake_ns > now_ns:
            sleep(numbers, memory, wake_ns)
    goes_on = not is_stuck and numbers[NOTICE] == 0
    return GatewayTurnsTaken(
        sent, first_handed_ns, handed_ns, answered, came, read, samples, now_ns, answer_ns, heard_ns, goes_on
    )


class GatewayTurns:
    """Takes the gateway's turns by compiled code while nothing needs Python."""

    def __init__(
        self, link: Link, offering: Offering, intake: Intake, completion: Completion, spin_ns: int = 0
    ) -> None:
        self._link = link
        self._offering = offering
        self._intake = intake
        self._completion = completion
        self._spin_ns = spin_ns

    def warm(self) -> None:
        """Load the kernel, and take no turn."""
        self._run(idle_calls(), self._offering.orders_ahead(0), 0, 0)

    def take(self, until_ns: int, heard_ns: int) -> GatewayTurnsTaken | None:
        """Take turns, until `until_ns` at most. Returns None at once if the link lends nothing, or has no room."""
        lent = lent_by(self._link)
        ahead = self._offering.look_ahead() if lent else None
        if lent is None or ahead is None:
            return None
        self._intake.batch.clear()
        self._completion.expect(len(self._intake.batch.buffer))
        taken = self._run(lent, ahead, heard_ns, until_ns)
        self._note(taken)
        return taken

    def settle(self) -> None:
        """Do the link's own work that the turns left to Python."""
        if lent := lent_by(self._link):
            lent.settle()

    def _run(self, lent: Lent, ahead: OrdersAhead, heard_ns: int, until_ns: int) -> GatewayTurnsTaken:
        batch = self._intake.batch
        orders = self._completion
        return take_turns(
            lent.receive,
            lent.send,
            lent.sleep,
            lent.numbers,
            lent.memory,
            ahead,
            batch.buffer,
            batch.offsets,
            batch.largest_frame,
            orders.tables,
            orders.rules,
            orders.last_id,
            orders.newest - orders.answered,
            heard_ns,
            until_ns,
            self._spin_ns,
            self._offering.stream.state,
            self._intake.stream.state,
            not self._intake.stream.keeps_bytes,
        )

    def _note(self, taken: GatewayTurnsTaken) -> None:
        """Hash and report what was sent and received, and read the frames that the kernel could not read."""
        self._offering.note_sent_ahead(taken.sent, taken.first_handed_ns, taken.last_handed_ns)
        self._completion.answered += taken.answered
        batch = self._intake.batch
        intake = self._intake
        batch.count = taken.came
        intake.last_answer_ns = taken.answer_ns or intake.last_answer_ns
        intake.note(0, taken.read, self._completion.tables.sampled[: taken.samples], taken.answer_ns)
        if taken.read < taken.came:
            intake.read(taken.read, taken.came_ns)
