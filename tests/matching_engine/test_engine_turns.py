"""The engine's compiled turns do the same as its loop in Python, for all frames and batches."""

from __future__ import annotations

import contextlib
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exchange.messages import (
    ASK,
    BID,
    LAYOUTS,
    Cancel,
    Confirmation,
    End,
    Hello,
    Order,
    Resume,
    Statistics,
    Throughput,
    encode,
    read,
)
from exchange.meters import Meter, Source
from exchange.records import PROCESS
from exchange.results import EngineResult
from exchange.session import Terms
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.engine import RecoveringEngine
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.pulse import BEAT_NS, Pulse
from matching_engine.recovering.resumed_session import ResumedSession
from matching_engine.recovering.snapshots import write_snapshot
from matching_engine.service import EngineService
from matching_engine.turns import MOST_SAMPLES, NO_STORE, EngineSamples, EngineTurnsTaken, Sums, take_lent, warm_turns
from transports.base import BadAddress, Link, PeerGone
from transports.frames import LARGEST_FRAME, FrameBatch
from transports.lending import NOTICE, RECEIVE, SEND, SLEEP, Lent, lendable

# Places in the numbers of a script's lent calls. Place 0 is NOTICE.
NEXT = 1
"""The gateway's next frame."""
COUNT = 2
"""The number of the gateway's frames."""
STEP = 3
"""The number of frames that one receive brings."""
ROOM = 4
"""The number of frames that the link still takes."""
SENT_BYTES = 5
"""The number of bytes that the engine sent."""
NAPS = 6
"""How often the engine slept."""
OFFSETS = 7
"""The first of the offsets in memory of the gateway's frames."""
SENT_FROM = 1 << 16
"""Where in memory the frames that the engine sent begin. Each follows its length as u16."""


@lendable(RECEIVE)
def _receive(numbers, memory, buffer, offsets, count, largest):
    for _ in range(min(numbers[STEP], numbers[COUNT] - numbers[NEXT])):
        if count + 1 == len(offsets) or offsets[count] + largest > len(buffer):
            break
        frame = memory[numbers[OFFSETS + numbers[NEXT]] : numbers[OFFSETS + numbers[NEXT] + 1]]
        buffer[offsets[count] : offsets[count] + len(frame)] = frame
        offsets[count + 1] = offsets[count] + len(frame)
        numbers[NEXT] += 1
        count += 1
    return count


@lendable(SEND)
def _send(numbers, memory, buffer, offsets, first, end):
    taken = min(end, first + numbers[ROOM])
    for i in range(first, taken):
        length = offsets[i + 1] - offsets[i]
        at = SENT_FROM + numbers[SENT_BYTES]
        memory[at], memory[at + 1] = length & 255, length >> 8
        memory[at + 2 : at + 2 + length] = buffer[offsets[i] : offsets[i + 1]]
        numbers[SENT_BYTES] += 2 + length
    numbers[ROOM] -= taken - first
    return taken


@lendable(SLEEP)
def _sleep(numbers, _memory, _until_ns):
    numbers[NOTICE] = 1


@lendable(SLEEP)
def _nap(numbers, _memory, _until_ns):
    numbers[NAPS] += 1


class Script(Link):
    """A gateway that delivers its frames, `step` at a time, then leaves. It takes `room` frames between waits.

    With and without lent calls, the state is in `numbers` and `memory`, so that both kinds of link do the same.
    """

    url = "scripted://gateway"

    def __init__(self, frames: list[bytes], step: int, room: int, lends: bool) -> None:
        ends = np.cumsum([0, *map(len, frames)])
        self.numbers = np.concatenate((np.zeros(OFFSETS, np.int64), ends))
        self.numbers[COUNT] = len(frames)
        self.numbers[STEP] = step
        self.numbers[ROOM] = room
        self.memory = np.zeros(1 << 20, np.uint8)
        self.memory[: ends[-1]] = np.frombuffer(b"".join(frames), np.uint8)
        self._room = room
        self._lends = lends

    def lend(self) -> Lent | None:
        if not self._lends:
            return None
        return Lent(_receive, _send, _sleep, self.numbers, self.memory, self._settle)

    def _settle(self) -> None:
        self.numbers[NOTICE] = 0
        self._check()

    def _check(self) -> None:
        if self.numbers[NEXT] == self.numbers[COUNT]:
            raise PeerGone("the peer left")

    def receive(self, batch: FrameBatch) -> int:
        before = batch.count
        batch.count = _receive_plainly(
            self.numbers, self.memory, batch.buffer, batch.offsets, before, batch.largest_frame
        )
        return batch.count - before

    def send(self, batch: FrameBatch, first: int) -> int:
        return _send_plainly(self.numbers, self.memory, batch.buffer, batch.offsets, first, batch.count)

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.numbers[ROOM] = self._room
        if readable:
            self._check()

    def close(self, linger_s: float = 1.0) -> None:
        pass

    @property
    def sent(self) -> list[bytes]:
        """The frames that the engine sent."""
        data = self.memory[SENT_FROM : SENT_FROM + self.numbers[SENT_BYTES]].tobytes()
        frames = []
        while data:
            end = 2 + int.from_bytes(data[:2], "little")
            frames.append(data[2:end])
            data = data[end:]
        return frames


_receive_plainly = _receive.plain
_send_plainly = _send.plain


class ScriptedReporter(Script):
    """A reporter that takes every frame and confirms the end."""

    def __init__(self) -> None:
        super().__init__([encode(End(0, 0, 0, 0))], step=1, room=10**6, lends=False)


class SmallBook(OrderBook):
    """A book with little memory, since each session of an engine makes a book."""

    first_capacity = 1 << 8


def session(
    script: Script, packing: int, with_ids: bool, journal: InputJournal | None = None, reporter: Script | None = None
) -> EngineResult:
    """Run an engine over this script. With a journal it is a recovering engine."""
    reporter = reporter or ScriptedReporter()
    terms = Terms(7, "price-time", packing, 999)
    engine = MatchingEngine(SmallBook(999, with_ids=with_ids), packing)
    with pytest.MonkeyPatch.context() as patch:
        # The buffer of answers is so small that a script fills it.
        patch.setattr("matching_engine.service.ANSWER_BYTES", LARGEST_FRAME)
        if journal is None:
            return EngineService(engine, terms, script, reporter, sampling_interval=3, timeout_s=1.0).run()
        resumed = ResumedSession(journal, script, lambda _: script)
        return RecoveringEngine(engine, terms, resumed, reporter, sampling_interval=3, timeout_s=1.0).run()


class Stalled(Script):
    """Takes one answer, then no more until the fourth wait. Notes each wait's length in ns and the beats so far."""

    def __init__(self, frames: list[bytes], pulse: Path) -> None:
        super().__init__(frames, step=9, room=1, lends=False)
        self._pulse = pulse
        self.waits: list[tuple[int, int]] = []

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if writable:
            self.waits.append((until_ns - time.monotonic_ns(), Pulse(self._pulse).beats))
        if readable or len(self.waits) > 3:
            super().wait(until_ns, readable, writable)


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes in this context, as on a full disk."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


def journaled(frames: list[bytes]) -> list[bytes]:
    """Return the frames of a session that can be resumed, from those of a plain one.

    The gateway has no answer at the start, and has every answer at the end.
    """
    hello, *orders, end = frames
    return [hello, encode(Resume(1, 0, 0)), *orders, end, encode(Resume(1, 0, 0))]


def frames_of(packing: int) -> st.SearchStrategy[bytes]:
    """Make frames of up to `packing` orders and cancels, and a few frames that the engine does not match."""
    ids = st.integers(1, 50)
    prices = st.integers(495, 505)
    volumes = st.integers(0, 40)
    order = st.builds(Order, ids, st.sampled_from([ASK, BID]), prices, volumes)
    pack = st.lists(st.one_of(order, order, st.builds(Cancel, ids)), min_size=1, max_size=packing)
    frames = pack.map(lambda messages: b"".join(map(encode, messages)))
    return st.one_of(frames, frames, frames, st.just(encode(Confirmation(1))), st.just(b""))


def hello_frame(packing: int = 1) -> bytes:
    return encode(Terms(7, "price-time", packing, 999).hello(Source.GATEWAY))


def sent_without_hello(script: Script) -> list[bytes]:
    """Return the frames that the engine sent, without its hello, which has the time."""
    hello_type_byte = bytes([LAYOUTS[Hello].code])
    return [frame for frame in script.sent if not frame.startswith(hello_type_byte)]


END_FRAME = encode(End(0, 0, 0, 0))


def test_an_engine_shows_its_pulse_while_its_gateway_takes_no_answers(tmp_path: Path) -> None:
    """Without a pulse, the standby would kill the engine."""
    orders = [encode(Order(number, ASK, 500, 1)) for number in (1, 2, 3)]
    frames = journaled([hello_frame(), *orders, END_FRAME])
    script = Stalled(frames, tmp_path / "engine.pulse")
    session(script, 1, False, InputJournal(tmp_path / "engine.journal", {"run": "it"}))
    first_waits = script.waits[:4]
    assert max(length_ns for length_ns, _ in first_waits) <= BEAT_NS
    assert len({beats for _, beats in first_waits}) == 4, "a new beat at each wait"


@pytest.mark.parametrize("packing", [1, 5])
@pytest.mark.parametrize("with_ids", [False, True])
@given(st.data())
@settings(max_examples=40)
def test_compiled_turns_do_what_the_loop_in_python_does(packing: int, with_ids: bool, data: st.DataObject) -> None:
    """docs/loops.md has both loops, step by step."""
    frames = [hello_frame(packing), *data.draw(st.lists(frames_of(packing), max_size=60)), END_FRAME]
    step = data.draw(st.integers(1, 9))
    room = data.draw(st.integers(1, 20))
    compiled_script = Script(frames, step, room, lends=True)
    compiled_reporter = ScriptedReporter()
    compiled = session(compiled_script, packing, with_ids, reporter=compiled_reporter)
    plain_script = Script(frames, step, room, lends=False)
    plain_reporter = ScriptedReporter()
    plain = session(plain_script, packing, with_ids, reporter=plain_reporter)
    assert sent_without_hello(compiled_script) == sent_without_hello(plain_script)
    for fact in ("orders", "answers", "junk_frames", "gateway_said", "stopped"):
        assert getattr(compiled, fact) == getattr(plain, fact)
    assert compiled.stopped is None
    meters = reported_meters(compiled_reporter)
    assert meters == reported_meters(plain_reporter)
    assert meters == [Meter.ENGINE_ORDERS_RECEIVED, Meter.ENGINE_MESSAGES_SENT] * (len(meters) // 2)


def reported_meters(reporter: Script) -> list[int]:
    """Return the meters of all rates that the reporter got."""
    messages = [read(frame) for frame in reporter.sent]
    return [message.meter for message in messages if isinstance(message, Throughput)]


def test_an_engine_that_loads_a_snapshot_sends_a_sign_of_life(tmp_path: Path) -> None:
    """Gateway and standby take a long silence for the engine's end."""
    path = tmp_path / "j.journal"
    journal = InputJournal(path, {}, sync="none")
    follower = Follower(path, MatchingEngine(SmallBook(999)))
    journal.append(np.frombuffer(bytearray(encode(Order(1, ASK, 500, 1))), np.uint8))
    follower.follow()
    write_snapshot(journal, follower.engine, follower.sums)
    journal.append(np.frombuffer(bytearray(encode(Order(2, BID, 500, 1))), np.uint8))
    follower.follow()
    resume = encode(Resume(1, follower.engine.counts.answers, follower.sums.answers.value))
    script = Script([hello_frame(), resume, END_FRAME, resume], step=9, room=9, lends=False)
    session(script, 1, False, journal)
    engine_resume = script.sent.index(encode(Resume(1, 2, 0)))
    assert script.sent[engine_resume + 1] == b"", "an empty frame is a sign of life"


def test_a_restarted_engine_counts_no_order_twice_in_a_rate(tmp_path: Path) -> None:
    """The 300 orders before the restart had a confirmation and a quote each; the three after it have no quote."""
    journal = InputJournal(tmp_path / "j.journal", {}, sync="none")
    for number in range(1, 301):
        journal.append(np.frombuffer(bytearray(encode(Order(number, ASK, 501 - number, 1))), np.uint8))
    orders = [encode(Order(number, ASK, 900, 1)) for number in (301, 302, 303)]
    start_ns = time.monotonic_ns() - 5_500_000_000
    Pulse(Pulse.path(journal.path)).clock_start_ns(start_ns)
    frames = journaled([hello_frame(), *orders, END_FRAME])
    reporter = ScriptedReporter()
    session(Script(frames, 9, 1000, lends=False), 1, False, journal, reporter)
    reported = [read(frame) for frame in reporter.sent]
    records = [orjson.loads(message.document) for message in reported if isinstance(message, Statistics)]
    seconds = [record["payload"]["second"] for record in records if record["kind"] == PROCESS]
    last_second = (time.monotonic_ns() - start_ns) // 10**9
    assert seconds
    assert all(5 <= second <= last_second for second in seconds)
    rates = {message.meter: message.rate_per_s for message in reported if isinstance(message, Throughput)}
    assert rates[Meter.ENGINE_ORDERS_RECEIVED] > 0
    assert rates[Meter.ENGINE_ORDERS_RECEIVED] == rates[Meter.ENGINE_MESSAGES_SENT]


def test_an_engine_with_a_full_disk_refuses_and_leaves_its_result(tmp_path: Path) -> None:
    """The disk is full when a session begins."""
    path = tmp_path / "j.journal"
    terms = Terms(7, "price-time", 1, 999)
    refusals: list[Path] = []
    script = Script([hello_frame(), encode(Resume(1, 0, 0))], 9, 9, lends=False)
    resumed = ResumedSession(InputJournal(path, {}), script, lambda _: script)
    engine = RecoveringEngine(MatchingEngine(SmallBook(999), 1), terms, resumed, ScriptedReporter(), 3, timeout_s=1.0)
    engine.on_refusal = lambda: refusals.append(path)
    with files_of_at_most(path.stat().st_size):
        result = engine.run()
    assert str(result.stopped).startswith(f"cannot write {path}")
    assert refusals == [path]


def test_an_engine_leaves_its_result_if_its_link_cannot_be_reopened(tmp_path: Path) -> None:
    """For example: a broker that is being killed closes a new connection as if it did not speak AMQP."""

    def refuse(_until_ns: int) -> Link:
        raise BadAddress("the broker does not speak AMQP")

    terms = Terms(7, "price-time", 1, 999)
    script = Script([hello_frame(), encode(Resume(1, 0, 0))], 9, 9, lends=False)
    resumed = ResumedSession(InputJournal(tmp_path / "journal", {}), script, refuse)
    engine = MatchingEngine(SmallBook(999), 1)
    result = RecoveringEngine(engine, terms, resumed, ScriptedReporter(), sampling_interval=3, timeout_s=1.0).run()
    assert result.stopped == "the peer left"


@pytest.mark.parametrize("packing", [1, 5])
@given(data=st.data())
def test_compiled_turns_write_the_same_journal_as_the_loop_in_python(
    packing: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frames = journaled([hello_frame(packing), *data.draw(st.lists(frames_of(packing), max_size=60)), END_FRAME])
    step = data.draw(st.integers(1, 9))
    room = data.draw(st.integers(1, 20))
    folder = tmp_path_factory.mktemp("journal")
    compiled_script = Script(frames, step, room, lends=True)
    compiled_journal = InputJournal(folder / "compiled", {}, packing, "none")
    compiled = session(compiled_script, packing, False, compiled_journal)
    plain_script = Script(frames, step, room, lends=False)
    plain_journal = InputJournal(folder / "plain", {}, packing, "none")
    plain = session(plain_script, packing, False, plain_journal)

    assert sent_without_hello(compiled_script) == sent_without_hello(plain_script)
    assert compiled.orders == plain.orders
    assert compiled.answers == plain.answers
    assert compiled.stopped is None
    assert journaled_bytes(compiled_journal) == journaled_bytes(plain_journal)
    assert compiled_journal.orders == compiled.orders.messages
    compiled_journal.close()
    plain_journal.close()


def journaled_bytes(journal: InputJournal) -> bytes:
    """Return the records of all orders in the journal."""
    return b"".join(batch.span(0, batch.count).tobytes() for batch in journal.batches())


@pytest.mark.parametrize("lends", [True, False], ids=["compiled", "in Python"])
def test_orders_that_do_not_fit_on_the_disk_get_no_answer(lends: bool, tmp_path: Path) -> None:
    orders = [encode(Order(number, ASK, 500, 10)) for number in range(1, 301)]
    frames = journaled([hello_frame(), *orders, END_FRAME])
    # Compile everything first, since numba's cache consists of files, too.
    with contextlib.closing(InputJournal(tmp_path / "rehearsal", {}, sync="none")) as rehearsal:
        session(Script(frames, 3, 10**6, lends), 1, False, rehearsal)
    script = Script(frames, 3, 10**6, lends)
    journal = InputJournal(tmp_path / "j", {}, sync="none")
    with files_of_at_most(2_000):
        result = session(script, 1, False, journal)
    assert result.stopped is not None
    assert result.stopped.startswith(f"cannot write {tmp_path / 'j'}: ")
    assert result.stopped.endswith(f"; orders behind {journal.orders} are refused")
    assert 0 < journal.orders < 300
    confirmations = [frame for frame in script.sent if isinstance(read(frame), Confirmation)]
    assert len(confirmations) == journal.orders
    journal.close()


@pytest.mark.parametrize("packing", [1, 3])
def test_a_book_that_grows_within_a_turn_loses_no_order(packing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallBook, "first_capacity", 4)
    orders = [encode(Order(number, ASK, 500, 10)) for number in range(1, 301)]
    frames = [b"".join(orders[at : at + packing]) for at in range(0, 300, packing)]
    frames = [hello_frame(packing), *frames, END_FRAME]
    compiled = session(Script(frames, 50, 10**6, lends=True), packing, with_ids=False)
    plain = session(Script(frames, 50, 10**6, lends=False), packing, with_ids=False)
    assert compiled.orders == plain.orders
    assert compiled.answers == plain.answers
    assert compiled.answers.messages == 301, "300 confirmations and a quote"


@pytest.mark.parametrize(("interval", "expected"), [(2, [2, 4]), (1, [1, 2, 3, 4, 5]), (9, [])])
def test_sampling_an_order_does_not_end_the_turns(interval: int, expected: list[int]) -> None:
    """A report at once would delay that order's answers, which libzmq's thread still has to send."""
    taken, script, samples = turns_of(5, interval)
    rows = samples.rows[: taken.samples]
    times_ns = rows[:, 0]
    numbers = rows[:, 1]
    assert numbers.tolist() == expected
    assert np.all(np.diff(times_ns) >= 0)
    assert script.numbers[NAPS] > 0


def test_the_turns_end_when_the_table_of_samples_is_full() -> None:
    taken, script, _ = turns_of(2 * MOST_SAMPLES, interval=1)
    assert taken.samples == MOST_SAMPLES
    assert script.numbers[NEXT] == MOST_SAMPLES
    assert script.numbers[NAPS] == 0


def turns_of(orders: int, interval: int) -> tuple[EngineTurnsTaken, Script, EngineSamples]:
    """Take compiled turns over a script of this many orders, one a frame, for 0.1 s."""
    engine = MatchingEngine(SmallBook(1000))
    script = Script([encode(Order(1, BID, 5, 5))] * orders, step=1, room=10**6, lends=True)
    warm_turns(engine)  # otherwise loading the compiled code takes the 0.1 s
    lent = Lent(_receive, _send, _nap, script.numbers, script.memory, lambda: None)
    samples = EngineSamples(interval)
    until_ns = time.monotonic_ns() + 10**8
    taken = take_lent(lent, engine, Sums(), NO_STORE, FrameBatch(1 << 14), FrameBatch(1 << 14), samples, until_ns)
    return taken, script, samples
