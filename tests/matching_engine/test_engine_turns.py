"""The engine's compiled turns do what its loop in Python does, whatever comes, in whatever batches."""

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

from exchange.measurements import Meter, Source
from exchange.messages import ASK, BID, Cancel, Confirmation, End, Order, Resume, Statistics, Throughput, encode, read
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

NEXT, COUNT, STEP, ROOM, SAID, NAPS, OFFSETS = range(1, 8)
"""Places in the numbers of a script's lent calls: the next frame and the number of frames, frames a receive, frames
that it still takes, bytes that were said, naps; then the offset of each frame in memory."""
SAID_FROM = 1 << 16
"""Where in memory the frames that the engine said begin, each behind its length as u16."""


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
        length, at = offsets[i + 1] - offsets[i], SAID_FROM + numbers[SAID]
        memory[at], memory[at + 1] = length & 255, length >> 8
        memory[at + 2 : at + 2 + length] = buffer[offsets[i] : offsets[i + 1]]
        numbers[SAID] += 2 + length
    numbers[ROOM] -= taken - first
    return taken


@lendable(SLEEP)
def _sleep(numbers, _memory, _until_ns):
    numbers[NOTICE] = 1


@lendable(SLEEP)
def _nap(numbers, _memory, _until_ns):
    numbers[NAPS] += 1


class Script(Link):
    """Hands out frames, `step` at a time, then its peer leaves; takes `room` frames, and more when it is waited for.

    It has the state of its compiled calls also where it lends none, so that both are the same link.
    """

    url = "scripted://gateway"

    def __init__(self, frames: list[bytes], step: int, room: int, lends: bool) -> None:
        ends = np.cumsum([0, *map(len, frames)])
        self.numbers = np.concatenate((np.zeros(OFFSETS, np.int64), ends))
        self.numbers[COUNT], self.numbers[STEP], self.numbers[ROOM] = len(frames), step, room
        self.memory = np.zeros(1 << 20, np.uint8)
        self.memory[: ends[-1]] = np.frombuffer(b"".join(frames), np.uint8)
        self._room, self._lends = room, lends

    def lend(self) -> Lent | None:
        return Lent(_receive, _send, _sleep, self.numbers, self.memory, self._settle) if self._lends else None

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
    def said(self) -> bytes:
        return self.memory[SAID_FROM : SAID_FROM + self.numbers[SAID]].tobytes()


_receive_plainly, _send_plainly = _receive.plain, _send.plain


class Listener(Script):
    """A reporter: takes everything, and confirms the end."""

    def __init__(self) -> None:
        super().__init__([encode(End(0, 0, 0, 0))], 1, 10**6, lends=False)


class SmallBook(OrderBook):
    """Takes little memory, which each session of an engine takes anew."""

    first_capacity = 1 << 8


def session(
    script: Script, packing: int, with_ids: bool, journal: InputJournal | None = None, reporter: Script | None = None
) -> EngineResult:
    reporter = reporter or Listener()
    terms = Terms(7, "price-time", packing, 999)
    engine = MatchingEngine(SmallBook(999, with_ids=with_ids), packing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matching_engine.service.ANSWER_BYTES", LARGEST_FRAME)
        if journal is None:
            return EngineService(engine, terms, script, reporter, sampling_interval=3, timeout_s=1.0).run()
        resumed = ResumedSession(journal, script, lambda _: script)
        return RecoveringEngine(engine, terms, resumed, reporter, sampling_interval=3, timeout_s=1.0).run()


class Stalled(Script):
    """Takes one answer, then none while it is waited for three times; notes how long and after how many beats."""

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
    """In this context a file has no room for more bytes."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


def journaled(frames: list[bytes]) -> list[bytes]:
    """A session that can be resumed: the gateway has nothing at its start, and has everything at its end."""
    hello, *orders, end = frames
    return [hello, encode(Resume(1, 0, 0)), *orders, end, encode(Resume(1, 0, 0))]


def frames_of(packing: int) -> st.SearchStrategy[bytes]:
    ids, prices, volumes = st.integers(1, 50), st.integers(495, 505), st.integers(0, 40)
    order = st.builds(Order, ids, st.sampled_from([ASK, BID]), prices, volumes)
    pack = st.lists(st.one_of(order, order, st.builds(Cancel, ids)), min_size=1, max_size=packing)
    frames = pack.map(lambda messages: b"".join(map(encode, messages)))
    return st.one_of(frames, frames, frames, st.just(encode(Confirmation(1))), st.just(b""))


def test_an_engine_whose_gateway_takes_no_answers_shows_its_pulse(tmp_path: Path) -> None:
    """Else its standby would take it for frozen, and kill it."""
    hello, end = encode(Terms(7, "price-time", 1, 999).hello(Source.GATEWAY)), encode(End(0, 0, 0, 0))
    frames = journaled([hello, *[encode(Order(number, ASK, 500, 1)) for number in (1, 2, 3)], end])
    script = Stalled(frames, tmp_path / "engine.pulse")
    session(script, 1, False, InputJournal(tmp_path / "engine.journal", {"run": "it"}))
    lengths_ns, beats = zip(*script.waits[:4], strict=True)
    assert max(lengths_ns) <= BEAT_NS
    assert len(set(beats)) == 4


@pytest.mark.parametrize("packing", [1, 5])
@pytest.mark.parametrize("with_ids", [False, True])
@given(st.data())
@settings(max_examples=40)
def test_compiled_turns_do_what_the_loop_in_python_does(packing: int, with_ids: bool, data: st.DataObject) -> None:
    """docs/loops.md has both loops, step by step."""
    hello, end = (
        encode(each) for each in (Terms(7, "price-time", packing, 999).hello(Source.GATEWAY), End(0, 0, 0, 0))
    )
    frames = [hello, *data.draw(st.lists(frames_of(packing), max_size=60)), end]
    step, room = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    scripts = [Script(frames, step, room, lends) for lends in (True, False)]
    reporters = [Listener(), Listener()]
    compiled, plain = (
        session(script, packing, with_ids, None, to) for script, to in zip(scripts, reporters, strict=True)
    )
    assert scripts[0].said[200:] == scripts[1].said[200:]
    for fact in ("orders", "answers", "junk_frames", "gateway_said", "stopped"):
        assert getattr(compiled, fact) == getattr(plain, fact)
    assert compiled.stopped is None
    sampled, also_sampled = (readings(reporter) for reporter in reporters)
    assert sampled == also_sampled
    assert sampled == [Meter.ENGINE_ORDERS_RECEIVED, Meter.ENGINE_MESSAGES_SENT] * (len(sampled) // 2)


def readings(reporter: Script) -> list[int]:
    """The meters whose readings a reporter was sent."""
    messages = map(read, said_frames(reporter.said))
    return [message.meter for message in messages if isinstance(message, Throughput)]


def test_an_engine_that_loads_a_snapshot_says_that_it_is_there(tmp_path: Path) -> None:
    """Its gateway takes silence for its end, and so does its standby."""
    path, terms = tmp_path / "j.journal", Terms(7, "price-time", 1, 999)
    journal = InputJournal(path, {}, sync="none")
    follower = Follower(path, MatchingEngine(SmallBook(999)))
    for number, side in ((1, ASK), (2, BID)):
        journal.append(np.frombuffer(bytearray(encode(Order(number, side, 500, 1))), np.uint8))
        follower.follow()
        if side == ASK:
            write_snapshot(journal, follower.engine, follower.sums)
    theirs = Resume(1, follower.engine.counts.answers, follower.sums.answers.value)
    frames = [encode(each) for each in (terms.hello(Source.GATEWAY), theirs, End(0, 0, 0, 0), theirs)]
    script = Script(frames, 9, 9, lends=False)
    session(script, 1, False, journal)
    said = list(said_frames(script.said))
    assert said[said.index(encode(Resume(1, 2, 0))) + 1] == b""


def test_a_restarted_engine_counts_no_order_twice_in_a_rate(
    tmp_path: Path,
) -> None:
    """300 orders had a confirmation and a quote each; the three that follow have no quote."""
    journal = InputJournal(tmp_path / "j.journal", {}, sync="none")
    for number in range(1, 301):
        journal.append(np.frombuffer(bytearray(encode(Order(number, ASK, 501 - number, 1))), np.uint8))
    orders = [encode(Order(number, ASK, 900, 1)) for number in (301, 302, 303)]
    start_ns = time.monotonic_ns() - 5_500_000_000
    Pulse(Pulse.path(journal.path)).clock_start_ns(start_ns)
    hello, end = Terms(7, "price-time", 1, 999).hello(Source.GATEWAY), End(0, 0, 0, 0)
    frames = journaled([encode(hello), *orders, encode(end)])
    reporter = Listener()
    session(Script(frames, 9, 1000, lends=False), 1, False, journal, reporter)
    said = list(map(read, said_frames(reporter.said)))
    records = [orjson.loads(message.document) for message in said if isinstance(message, Statistics)]
    seconds = [each["payload"]["second"] for each in records if each["kind"] == PROCESS]
    assert seconds
    assert 5 <= min(seconds) <= max(seconds) <= (time.monotonic_ns() - start_ns) // 10**9
    rates = {message.meter: message.rate_per_s for message in said if isinstance(message, Throughput)}
    assert rates[Meter.ENGINE_ORDERS_RECEIVED] == rates[Meter.ENGINE_MESSAGES_SENT] > 0


def test_an_engine_with_a_full_disk_lets_its_gateway_go(
    tmp_path: Path,
) -> None:
    """The disk is full as a session begins; the engine leaves its result."""
    path, terms, refusals = tmp_path / "j.journal", Terms(7, "price-time", 1, 999), []
    script = Script([encode(terms.hello(Source.GATEWAY)), encode(Resume(1, 0, 0))], 9, 9, lends=False)
    resumed = ResumedSession(InputJournal(path, {}), script, lambda _: script)
    engine = RecoveringEngine(MatchingEngine(SmallBook(999), 1), terms, resumed, Listener(), 3, timeout_s=1.0)
    engine.on_refusal = lambda: refusals.append(path)
    with files_of_at_most(path.stat().st_size):
        result = engine.run()
    assert str(result.stopped).startswith(f"cannot write {path}")
    assert refusals == [path]


def said_frames(said: bytes) -> Iterator[bytes]:
    """The frames that a script took."""
    while said:
        size = 2 + int.from_bytes(said[:2], "little")
        yield said[2:size]
        said = said[size:]


def test_an_engine_whose_link_cannot_be_opened_again_leaves_its_result(tmp_path: Path) -> None:
    """A broker that is being killed breaks off a new connection as if it did not speak AMQP."""

    def refuse(_until_ns: int) -> Link:
        raise BadAddress("the broker does not speak AMQP")

    terms = Terms(7, "price-time", 1, 999)
    script = Script([encode(terms.hello(Source.GATEWAY)), encode(Resume(1, 0, 0))], 9, 9, lends=False)
    resumed = ResumedSession(InputJournal(tmp_path / "journal", {}), script, refuse)
    engine = MatchingEngine(SmallBook(999), 1)
    result = RecoveringEngine(engine, terms, resumed, Listener(), sampling_interval=3, timeout_s=1.0).run()
    assert result.stopped == "the peer left"


@pytest.mark.parametrize("packing", [1, 5])
@given(data=st.data())
def test_compiled_turns_write_the_journal_that_the_loop_in_python_writes(
    packing: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hello = encode(Terms(7, "price-time", packing, 999).hello(Source.GATEWAY))
    frames = journaled([hello, *data.draw(st.lists(frames_of(packing), max_size=60)), encode(End(0, 0, 0, 0))])
    step, room, folder = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20)), tmp_path_factory.mktemp("journal")
    scripts = [Script(frames, step, room, lends) for lends in (True, False)]
    journals = [InputJournal(folder / each, {}, packing, "none") for each in ("compiled", "plain")]
    compiled, plain = (
        session(*each, journal=journal)
        for each, journal in zip([(script, packing, False) for script in scripts], journals, strict=True)
    )
    assert scripts[0].said[200:] == scripts[1].said[200:]
    assert (compiled.orders, compiled.answers, compiled.stopped) == (plain.orders, plain.answers, None)
    kept = [b"".join(frame for batch in journal.batches() for frame in batch) for journal in journals]
    assert kept[0] == kept[1]
    assert journals[0].orders == compiled.orders.messages
    for journal in journals:
        journal.close()


@pytest.mark.parametrize("lends", [True, False], ids=["compiled", "in Python"])
def test_no_answer_leaves_to_an_order_that_the_disk_has_no_room_for(lends: bool, tmp_path: Path) -> None:
    hello = encode(Terms(7, "price-time", 1, 999).hello(Source.GATEWAY))
    orders = [encode(Order(number, ASK, 500, 10)) for number in range(1, 301)]
    frames = journaled([hello, *orders, encode(End(0, 0, 0, 0))])
    with contextlib.closing(InputJournal(tmp_path / "rehearsal", {}, sync="none")) as rehearsal:
        session(Script(frames, 3, 10**6, lends), 1, False, rehearsal)  # compiles all, as numba's cache is of files, too
    script = Script(frames, 3, 10**6, lends)
    journal = InputJournal(tmp_path / "j", {}, sync="none")
    with files_of_at_most(2_000):
        result = session(script, 1, False, journal)
    assert (result.stopped or "").startswith(f"cannot write {tmp_path / 'j'}: ")
    assert (result.stopped or "").endswith(f"; orders behind {journal.orders} are refused")
    assert 0 < journal.orders < 300
    said, confirmations = script.said, 0
    while said:
        size = int.from_bytes(said[:2], "little")
        confirmations += isinstance(read(said[2 : 2 + size]), Confirmation)
        said = said[2 + size :]
    assert confirmations == journal.orders
    journal.close()


@pytest.mark.parametrize("packing", [1, 3])
def test_a_book_that_grows_within_a_turn_loses_nothing(packing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallBook, "first_capacity", 4)
    orders = [encode(Order(number, ASK, 500, 10)) for number in range(1, 301)]
    frames = [b"".join(orders[at : at + packing]) for at in range(0, 300, packing)]
    hello = encode(Terms(7, "price-time", packing, 999).hello(Source.GATEWAY))
    results = [
        session(Script([hello, *frames, encode(End(0, 0, 0, 0))], 50, 10**6, lends), packing, False)
        for lends in (True, False)
    ]
    assert results[0].orders == results[1].orders
    assert results[0].answers == results[1].answers
    assert results[0].answers.messages == 301


@pytest.mark.parametrize(("interval", "noted"), [(2, [2, 4]), (1, [*range(1, 6)]), (9, [])])
def test_sampled_orders_are_noted_and_the_turns_go_on(interval: int, noted: list[int]) -> None:
    """Were a sample reported at once, libzmq's thread would wait for the processor with that order's answers."""
    taken, script, samples = turns_of(5, interval)
    assert (taken.samples, samples.rows[: taken.samples, 1].tolist()) == (len(noted), noted)
    assert script.numbers[NAPS] > 0
    assert np.all(np.diff(samples.rows[: taken.samples, 0]) >= 0)


def test_python_reports_samples_once_there_is_no_room_for_more() -> None:
    taken, script, _ = turns_of(2 * MOST_SAMPLES, interval=1)
    assert (taken.samples, script.numbers[NEXT], script.numbers[NAPS]) == (MOST_SAMPLES, MOST_SAMPLES, 0)


def turns_of(orders: int, interval: int) -> tuple[EngineTurnsTaken, Script, EngineSamples]:
    """Turns over a script with as many orders, one a frame, which go on for a moment after the last one."""
    engine, script = MatchingEngine(SmallBook(1000)), Script([encode(Order(1, BID, 5, 5))] * orders, 1, 10**6, True)
    warm_turns(engine)  # to load what is compiled would take the moment
    lent = Lent(_receive, _send, _nap, script.numbers, script.memory, lambda: None)
    batches, samples, until_ns = (
        [FrameBatch(1 << 14) for _ in range(2)],
        EngineSamples(interval),
        time.monotonic_ns() + 10**8,
    )
    return take_lent(lent, engine, Sums(), NO_STORE, *batches, samples, until_ns), script, samples
