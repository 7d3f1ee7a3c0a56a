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
from gateway.completion import Completion, Rules, Tables, await_answers, have_free_slots, record_answers
from gateway.intake import Intake
from gateway.offering import Offering, OrdersAhead
from transports import lending
from transports.base import Link
from transports.frames import Bytes, Longs
from transports.lending import NOTICE, Lent, idle_calls, lent_by, monotonic_ns

MANY_SAMPLES = 16
"""With this many sampled orders the call returns, so that Python reports them before the second ends."""


class GatewayTurnsTaken(NamedTuple):
    """Result of a call of `take_turns`."""

    sent_frames: int
    """Frames of orders that were handed over."""
    first_handed_ns: int
    last_handed_ns: int
    answered_orders: int
    """Orders that got their first answer."""
    received_frames: int
    """Received frames in memory."""
    recorded_frames: int
    """Received frames that were recorded; the loop in Python reads the others."""
    samples: int
    """Sampled orders among those answered."""
    received_ns: int
    """Time of the latest frames."""
    recorded_ns: int
    """Time of the latest frames that were recorded."""
    heard_ns: int
    """The time from which a silence of the engine counts."""
    goes_on: bool
    """Whether the next turn may be compiled, too; if not, the loop in Python takes it."""


@inlined
def orders_in(ahead: OrdersAhead, frames: int) -> int:
    """Return the number of orders in the first `frames` frames."""
    return min(frames * ahead.packing, len(ahead.due))


@inlined
def newest_sent_id(ahead: OrdersAhead, sent_frames: int) -> int:
    """Return the id of the last order in the first `sent_frames` frames."""
    return ahead.first_id - 1 + orders_in(ahead, sent_frames)


@inlined
def may_be_full(answers: Bytes, answer_offsets: Longs, received_frames: int, largest_answer: int) -> bool:
    """Return whether the memory of answers may have no room for one more frame."""
    has_no_offset_left = received_frames + 1 == len(answer_offsets)
    has_no_bytes_left = answer_offsets[received_frames] + largest_answer > len(answers)
    return has_no_offset_left or has_no_bytes_left


@inlined
def have_slots_for(tables: Tables, ahead: OrdersAhead, first_frame: int, end_frame: int) -> bool:
    """Return whether the tables have a free slot for each order of the frames from `first_frame` to before the end."""
    orders_before = orders_in(ahead, first_frame)
    orders = orders_in(ahead, end_frame) - orders_before
    return have_free_slots(tables, ahead.first_id + orders_before, orders)


@inlined
def await_answers_to(tables: Tables, ahead: OrdersAhead, first_frame: int, end_frame: int, handed_ns: int) -> int:
    """Await an answer to each order of the frames from `first_frame` to before the end. Returns how many orders."""
    orders_before = orders_in(ahead, first_frame)
    end_order = orders_in(ahead, end_frame)
    orders = end_order - orders_before
    await_answers(tables, ahead.first_id + orders_before, orders, handed_ns, ahead.due[orders_before:end_order])
    return orders


@inlined
def frames_that_may_go(ahead: OrdersAhead, sent_frames: int, unanswered: int, now_ns: int) -> int:
    """Return the end of the frames after the sent ones that may go: all their orders are due and fit the window."""
    sent_orders = orders_in(ahead, sent_frames)
    end = sent_frames
    while end < ahead.frames:
        orders = orders_in(ahead, end + 1)
        is_due = ahead.due[orders - 1] <= now_ns
        fits_window = unanswered + orders - sent_orders <= ahead.window
        if not (is_due and fits_window):
            break
        end += 1
    return end


@inlined
def wake_time_ns(ahead: OrdersAhead, sent_frames: int, unanswered: int, spin_ns: int, until_ns: int) -> int:
    """Return when to wake: `spin_ns` before the next frame is due, or at `until_ns` if that comes first.

    It is `until_ns` also if all frames have gone, or if the window has no room for the next frame.
    """
    if sent_frames == ahead.frames:
        return until_ns
    orders = orders_in(ahead, sent_frames + 1)
    orders_of_frame = orders - orders_in(ahead, sent_frames)
    if unanswered + orders_of_frame > ahead.window:
        return until_ns
    due_ns = ahead.due[orders - 1]
    return min(due_ns - spin_ns, until_ns)


@cached_kernel(checksum, completion, offering, log_buckets, measurements, messages, lending)
def take_turns(  # noqa: PLR0912, PLR0915 - a turn is one compiled call
    receive: Any,
    send: Any,
    sleep: Any,
    link_numbers: Longs,
    link_memory: Bytes,
    ahead: OrdersAhead,
    answers: Bytes,
    answer_offsets: Longs,
    largest_answer: int,
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

    The link lends `receive`, `send` and `sleep`, and `link_numbers` and `link_memory`, which these three calls need.
    Received frames lie in `answers`, frame by frame as `answer_offsets` has it. `tables` and `rules` are those of the
    gateway's `Completion`; `last_id` is the id of the run's last order, and `unanswered` the orders without an answer.

    If it `forgets`, the bytes that were sent and received are hashed here, and overwritten later. If not, they stay in
    memory, and Python hashes them.
    """
    timespec = np.empty(2, np.int64)
    sent_frames = 0  # frames of `ahead` that were handed over: the first ones
    answered_orders = 0  # orders that got their first answer in this call
    recorded_frames = (
        0  # frames in `answers` that were recorded: the first ones. A turn begins with all of them recorded
    )
    samples = 0  # filled rows of `tables.sampled`
    first_handed_ns = 0  # when the first frame was handed over; 0 before
    handed_ns = 0  # when the latest frame was handed over; 0 before
    recorded_ns = 0  # when the latest recorded frame was received; 0 before
    is_stuck = False  # whether the tables have no slots for the next orders, or the link no room for the next frames
    while True:
        # The frames in `answers`, of which those from `recorded_frames` on came just now.
        received_frames = receive(link_numbers, link_memory, answers, answer_offsets, recorded_frames, largest_answer)
        now_ns = monotonic_ns(timespec)
        has_received = received_frames > recorded_frames
        # A frame may have found no room. No descriptor becomes ready for it, so the gateway must not sleep.
        is_full = may_be_full(answers, answer_offsets, received_frames, largest_answer)
        if has_received:
            heard_ns = now_ns
        if now_ns >= until_ns:  # the received frames count in the next second
            break
        if has_received:
            newest_id = newest_sent_id(ahead, sent_frames)
            recorded_before = recorded_frames
            recorded_frames, newly_answered, samples = record_answers(
                answers,
                answer_offsets,
                recorded_frames,
                received_frames,
                tables,
                rules,
                newest_id,
                last_id,
                now_ns,
                samples,
            )
            answered_orders = answered_orders + newly_answered
            unanswered = unanswered - newly_answered
            if recorded_frames > recorded_before:
                recorded_ns = now_ns
            if forgets and recorded_frames == received_frames:
                hash_into(answers_sum, answers, 0, answer_offsets[recorded_frames])
                received_frames = 0
                recorded_frames = 0
        has_unrecorded = recorded_frames < received_frames
        if has_unrecorded or is_full or samples >= MANY_SAMPLES or link_numbers[NOTICE]:
            break

        end_frame = frames_that_may_go(ahead, sent_frames, unanswered, now_ns)
        if end_frame > sent_frames:
            if not have_slots_for(tables, ahead, sent_frames, end_frame):
                is_stuck = True
                break
            handed_ns = monotonic_ns(timespec)
            taken_end = send(link_numbers, link_memory, ahead.buffer, ahead.offsets, sent_frames, end_frame)
            if taken_end > sent_frames:
                taken_orders = await_answers_to(tables, ahead, sent_frames, taken_end, handed_ns)
                if first_handed_ns == 0:
                    first_handed_ns = handed_ns
                if unanswered == 0:  # the engine owed nothing, so its silence counts from here
                    heard_ns = handed_ns
                unanswered += taken_orders
                if forgets:
                    hash_into(orders_sum, ahead.buffer, ahead.offsets[sent_frames], ahead.offsets[taken_end])
                sent_frames = taken_end
            is_stuck = taken_end < end_frame
            if is_stuck or sent_frames == ahead.frames:
                break
            continue  # the send may have consumed the event of an answer, so receive before sleeping

        wake_ns = wake_time_ns(ahead, sent_frames, unanswered, spin_ns, until_ns)
        if wake_ns > now_ns:
            sleep(link_numbers, link_memory, wake_ns)
    goes_on = not is_stuck and link_numbers[NOTICE] == 0
    return GatewayTurnsTaken(
        sent_frames,
        first_handed_ns,
        handed_ns,
        answered_orders,
        received_frames,
        recorded_frames,
        samples,
        now_ns,
        recorded_ns,
        heard_ns,
        goes_on,
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
        self._run(idle_calls(), self._offering.orders_ahead(0), heard_ns=0, until_ns=0)

    def take(self, until_ns: int, heard_ns: int) -> GatewayTurnsTaken | None:
        """Take turns, until `until_ns` at most. Returns None at once if the link lends nothing, or has no room."""
        lent = lent_by(self._link)
        ahead = self._offering.look_ahead() if lent else None
        if lent is None or ahead is None:
            return None
        self._intake.batch.clear()
        self._completion.make_room_for_samples(answer_bytes=len(self._intake.batch.buffer))
        taken = self._run(lent, ahead, heard_ns, until_ns)
        self._note(taken)
        return taken

    def settle(self) -> None:
        """Do the link's own work that the turns left to Python."""
        if lent := lent_by(self._link):
            lent.settle()

    def _run(self, lent: Lent, ahead: OrdersAhead, heard_ns: int, until_ns: int) -> GatewayTurnsTaken:
        batch = self._intake.batch
        completion = self._completion
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
            completion.tables,
            completion.rules,
            completion.last_id,
            completion.newest - completion.answered,
            heard_ns,
            until_ns,
            self._spin_ns,
            self._offering.stream.state,
            self._intake.stream.state,
            not self._intake.stream.keeps_bytes,
        )

    def _note(self, taken: GatewayTurnsTaken) -> None:
        """Hash and report what was sent and received, and read the frames that the kernel could not read."""
        self._offering.note_sent_ahead(taken.sent_frames, taken.first_handed_ns, taken.last_handed_ns)
        self._completion.answered += taken.answered_orders
        batch = self._intake.batch
        intake = self._intake
        batch.count = taken.received_frames
        intake.last_answer_ns = taken.recorded_ns or intake.last_answer_ns
        sampled = self._completion.tables.sampled[: taken.samples]
        intake.note(0, taken.recorded_frames, sampled, taken.recorded_ns)
        if taken.recorded_frames < taken.received_frames:
            intake.read(taken.recorded_frames, taken.received_ns)
