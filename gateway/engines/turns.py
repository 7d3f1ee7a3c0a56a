"""The turns of a gateway with sessions at several engines as one compiled call, over links that lend their calls.

A turn receives from each engine that may have answered, records the answers, hands each due order over to the link of
its engine, and sleeps on all links at once. Otherwise it is the turn of gateway/turns.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from exchange import checksum, log_buckets, measurements, messages
from exchange.checksum import STATE_BYTES, State, hash_into
from exchange.compiled import bytes_at, cached_kernel
from gateway import completion, offering, turns
from gateway.completion import Rules, Tables, record_answers
from gateway.engines.intake import DividedIntake
from gateway.engines.offering import DividedOffering
from gateway.engines.sessions import EngineLinks
from gateway.offering import OrdersAhead
from gateway.turns import (
    MANY_SAMPLES,
    GatewayTurns,
    GatewayTurnsTaken,
    await_answers_to,
    frames_that_may_go,
    have_slots_for,
    may_be_full,
    newest_sent_id,
    wake_time_ns,
)
from transports import lending, lent_table
from transports.frames import Bytes, Longs
from transports.lending import NOTICE, SIGNAL, Lent, idle_calls, lent_by, monotonic_ns, poll
from transports.lent_table import FIRST_POLLFD, LINK_COLUMNS, MAY_HAVE_SENT, LentTable, memory_of, numbers_of

# Columns of `rows`, a LentTable's, which has a row for each engine, by its number.
ORDERS_SUM = LINK_COLUMNS  # the address of the state of the checksum of its orders
ANSWERS_SUM = LINK_COLUMNS + 1  # the same for its answers
SENT = LINK_COLUMNS + 2  # orders that its link took in this call
RECEIVED = LINK_COLUMNS + 3  # answers that came from it in this call
HAS_MOVED = LINK_COLUMNS + 4  # whether a frame was sent or received in this call
COLUMNS = LINK_COLUMNS + 5


@cached_kernel(checksum, completion, offering, turns, log_buckets, measurements, messages, lending, lent_table)
def take_divided_turns(  # noqa: PLR0912, PLR0915 - a turn is one compiled call
    receive: Any,
    send: Any,
    sleep: Any,
    rows: Longs,
    pollfds: Longs,
    owners: Longs,
    ahead: OrdersAhead,
    engines_ahead: Longs,
    answers: Bytes,
    answer_offsets: Longs,
    engines_of_answers: Longs,
    largest_answer: int,
    tables: Tables,
    rules: Rules,
    last_id: int,
    unanswered: int,
    heard_ns: int,
    until_ns: int,
    spin_ns: int,
    orders_sum: State,
    forgets_orders: bool,
    forgets_answers: bool,
) -> tuple[GatewayTurnsTaken, int]:
    """Take turns until `until_ns`, or until Python is needed.

    `rows`, `pollfds` and `owners` are a LentTable's. `engines_ahead` has the engine of each frame of `ahead`, and
    `engines_of_answers` gets the engine of each frame of `answers`. For the other arguments see `take_turns` in
    gateway/turns.py. The sums of each engine's orders are always taken here, those of its answers if it forgets them.

    Returns what was done, and the engine from which the frames came that were received and not recorded.
    """
    timespec = np.empty(2, np.int64)
    engines = len(rows) - 1
    sent_frames = 0  # frames of `ahead` that were handed over: the first ones
    answered_orders = 0  # orders that got their first answer in this call
    received_frames = 0  # frames in `answers`
    recorded_frames = 0  # frames in `answers` that were recorded: the first ones
    engine_of_rest = 1  # the engine of the received frames that were not recorded
    samples = 0  # filled rows of `tables.sampled`
    first_handed_ns = 0  # when the first frame was handed over; 0 before
    handed_ns = 0  # when the latest frame was handed over; 0 before
    recorded_ns = 0  # when the latest recorded frame was received; 0 before
    is_stuck = False  # whether the tables have no slots for the next orders, or a link no room for the next frames
    has_notice = False  # whether a link left something for Python to do
    now_ns = monotonic_ns(timespec)
    while True:
        is_over = False
        for engine in range(1, engines + 1):
            if rows[engine, MAY_HAVE_SENT] == 0:
                continue
            numbers = numbers_of(rows, engine)
            received_frames = receive(
                numbers, memory_of(rows, engine), answers, answer_offsets, recorded_frames, largest_answer
            )
            now_ns = monotonic_ns(timespec)
            has_notice |= numbers[NOTICE] != 0
            if received_frames == recorded_frames:
                rows[engine, MAY_HAVE_SENT] = 0
                continue
            rows[engine, HAS_MOVED] = 1
            # A frame may have found no room. No descriptor becomes ready for it, so the gateway must not sleep.
            is_full = may_be_full(answers, answer_offsets, received_frames, largest_answer)
            heard_ns = now_ns
            engine_of_rest = engine
            if now_ns >= until_ns:  # the received frames count in the next second
                break
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
            rows[engine, RECEIVED] += recorded_frames - recorded_before
            if forgets_answers:
                sum_of_engine = bytes_at(rows[engine, ANSWERS_SUM], STATE_BYTES)
                hash_into(sum_of_engine, answers, answer_offsets[recorded_before], answer_offsets[recorded_frames])
            else:
                engines_of_answers[recorded_before:recorded_frames] = engine
            if recorded_frames < received_frames:
                is_over = True
                break
            if forgets_answers:
                received_frames = 0
                recorded_frames = 0
            if is_full:
                is_over = True
                break
        if now_ns >= until_ns or is_over or samples >= MANY_SAMPLES or has_notice:
            break

        end_frame = frames_that_may_go(ahead, sent_frames, unanswered, now_ns)
        if end_frame > sent_frames:
            if not have_slots_for(tables, ahead, sent_frames, end_frame):
                is_stuck = True
                break
            handed_ns = monotonic_ns(timespec)
            taken_end = sent_frames
            while taken_end < end_frame and not is_stuck:
                first = taken_end  # the first frame of a run of frames for one engine
                engine = engines_ahead[first]
                run_end = first + 1
                while run_end < end_frame and engines_ahead[run_end] == engine:
                    run_end += 1
                numbers = numbers_of(rows, engine)
                taken_end = send(numbers, memory_of(rows, engine), ahead.buffer, ahead.offsets, first, run_end)
                has_notice |= numbers[NOTICE] != 0
                is_stuck = taken_end < run_end
                sum_of_engine = bytes_at(rows[engine, ORDERS_SUM], STATE_BYTES)
                hash_into(sum_of_engine, ahead.buffer, ahead.offsets[first], ahead.offsets[taken_end])
                rows[engine, SENT] += taken_end - first
                rows[engine, HAS_MOVED] = 1
                rows[engine, MAY_HAVE_SENT] = 1  # the send may have consumed the event of an answer
            if taken_end > sent_frames:
                taken_orders = await_answers_to(tables, ahead, sent_frames, taken_end, handed_ns)
                if first_handed_ns == 0:
                    first_handed_ns = handed_ns
                if unanswered == 0:  # the engines owed nothing, so their silence counts from here
                    heard_ns = handed_ns
                unanswered += taken_orders
                if forgets_orders:
                    hash_into(orders_sum, ahead.buffer, ahead.offsets[sent_frames], ahead.offsets[taken_end])
                sent_frames = taken_end
            if is_stuck or has_notice or sent_frames == ahead.frames:
                break
            continue  # a send may have consumed the event of an answer, so receive before sleeping

        wake_ns = wake_time_ns(ahead, sent_frames, unanswered, spin_ns, until_ns)
        now_ns = monotonic_ns(timespec)
        if wake_ns <= now_ns:
            rows[1:, MAY_HAVE_SENT] = 1
            continue
        reason = poll(pollfds, timespec, wake_ns)
        now_ns = monotonic_ns(timespec)
        if reason == SIGNAL:
            has_notice = True
            break
        for i in range(len(pollfds)):
            if pollfds[i] >> 48:  # the field `revents`, the last two bytes
                engine = owners[i]
                rows[engine, MAY_HAVE_SENT] = 1
                if i != rows[engine, FIRST_POLLFD] or reason != 0:
                    numbers = numbers_of(rows, engine)
                    sleep(numbers, memory_of(rows, engine), 0)  # it notes what Python has to do
                    has_notice |= numbers[NOTICE] != 0
        if has_notice:
            break
    goes_on = not is_stuck and not has_notice
    taken = GatewayTurnsTaken(
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
    return taken, engine_of_rest


class DividedTurns(GatewayTurns):
    """Takes the turns of a gateway with several engines by compiled code while nothing needs Python."""

    _link: EngineLinks
    _offering: DividedOffering
    _intake: DividedIntake

    def __init__(self, *parts: Any) -> None:
        """`parts` are the arguments of GatewayTurns."""
        super().__init__(*parts)
        self._table = LentTable(1 + len(self._link.sessions), COLUMNS)
        self._engines_of_answers: Longs = np.zeros(self._intake.batch.capacity_frames, np.int64)

    def warm(self) -> None:
        """Load the kernel, and take no turn."""
        self._table.place([(session.engine, idle_calls()) for session in self._link.sessions])
        self._run_divided(idle_calls(), self._offering.orders_ahead(0), heard_ns=0, until_ns=0)

    def take(self, until_ns: int, heard_ns: int) -> GatewayTurnsTaken | None:
        """Take turns, until `until_ns` at most. Returns None at once if a link lends nothing, or has no room."""
        lent_of = self._lent_of_engines()
        ahead = self._offering.look_ahead() if lent_of else None
        if ahead is None:
            return None
        self._intake.batch.clear()
        self._completion.make_room_for_samples(answer_bytes=len(self._intake.batch.buffer))
        self._table.place(lent_of)
        for session in self._link.sessions:
            row = self._table.rows[session.engine]
            row[ORDERS_SUM] = session.orders.state.ctypes.data
            row[ANSWERS_SUM] = session.answers.state.ctypes.data
        _, first_lent = lent_of[0]
        taken, engine_of_rest = self._run_divided(first_lent, ahead, heard_ns, until_ns)
        self._note_divided(taken, engine_of_rest)
        return taken

    def _lent_of_engines(self) -> list[tuple[int, Lent]]:
        """Return what the link of each engine lends; nothing if a link cannot be served by compiled turns now."""
        lent_of = []
        for session in self._link.sessions:
            lent = lent_by(session.link)
            if lent is None or lent.pollfds is None:
                return []
            lent_of.append((session.engine, lent))
        return lent_of

    def settle(self) -> None:
        for session in self._link.sessions:
            if lent := lent_by(session.link):
                lent.settle()

    def _run_divided(
        self, lent: Lent, ahead: OrdersAhead, heard_ns: int, until_ns: int
    ) -> tuple[GatewayTurnsTaken, int]:
        batch = self._intake.batch
        completion_of_orders = self._completion
        return take_divided_turns(
            lent.receive,
            lent.send,
            lent.sleep,
            self._table.rows,
            self._table.pollfds,
            self._table.owners,
            ahead,
            self._offering.engines_ahead,
            batch.buffer,
            batch.offsets,
            self._engines_of_answers,
            batch.largest_frame,
            completion_of_orders.tables,
            completion_of_orders.rules,
            completion_of_orders.last_id,
            completion_of_orders.newest - completion_of_orders.answered,
            heard_ns,
            until_ns,
            self._spin_ns,
            self._offering.stream.state,
            not self._offering.stream.keeps_bytes,
            self._forgets_answers,
        )

    @property
    def _forgets_answers(self) -> bool:
        return not any(session.answers.keeps_bytes for session in self._link.sessions)

    def _note_divided(self, taken: GatewayTurnsTaken, engine_of_rest: int) -> None:
        """Count, hash and report what was sent and received, and read the frames that the kernel could not read."""
        self._offering.note_sent_ahead(taken.sent_frames, taken.first_handed_ns, taken.last_handed_ns)
        self._completion.answered += taken.answered_orders
        batch = self._intake.batch
        batch.count = taken.received_frames
        for session in self._link.sessions:
            row = self._table.rows[session.engine].tolist()
            session.orders_sent += row[SENT]
            session.answers_received += row[RECEIVED]
            session.has_moved = session.has_moved or row[HAS_MOVED] == 1
        if not self._forgets_answers:
            self._hash_answers(taken.recorded_frames)
        self._intake.note_turns(taken.recorded_ns, self._completion.tables.sampled[: taken.samples])
        if taken.recorded_frames < taken.received_frames:
            session_of_rest = self._link.sessions[engine_of_rest - 1]
            self._intake.read_of(session_of_rest, taken.recorded_frames, taken.received_ns)

    def _hash_answers(self, recorded: int) -> None:
        """Hash the recorded frames, each with those of its engine."""
        batch = self._intake.batch
        engines = self._engines_of_answers
        first = 0
        while first < recorded:
            end = first + 1
            while end < recorded and engines[end] == engines[first]:
                end += 1
            session = self._link.sessions[engines[first] - 1]
            session.answers.update(batch.span(first, end))
            first = end
