"""A session loses patience in time; a broker that has gone is named."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from mmap import mmap
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from exchange.results import ResourceUsage
from exchange_simulation.messaging import measuring
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import Consume
from exchange_simulation.messaging.machine import Reading
from exchange_simulation.messaging.measuring import CellOutcome, Launcher, RoleLost, usage_of
from exchange_simulation.messaging.payload import MessageSource
from exchange_simulation.messaging.role_process import Threaded, start_thread
from exchange_simulation.messaging.roles import LinkEnd, Role, RoleResult, open_links
from exchange_simulation.messaging.session import Session, Silence
from exchange_simulation.messaging.supply_chain.agent import ChainAgent, _Shift
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.ledger import Head, Ledger
from exchange_simulation.messaging.supply_chain.topologies import vertical
from transports.frames import FrameBatch


class Stuck:
    """A link on which nothing goes."""

    def wait(self, *_: Any, **__: Any) -> None: ...


def waits(session: Session, times: int) -> None:
    for _ in range(times):
        session.wait(session.link, "no message could be sent", writable=True)


def test_who_waits_for_one_peer_alone_loses_patience() -> None:
    session = Session([Stuck()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        waits(session, 2)


def test_a_consumer_of_a_shared_queue_waits_while_others_get_on() -> None:
    """The launcher sees whether anybody does."""
    theirs, ours = Pipe()
    session = Session([Stuck()], theirs, 0.0, until_stopped=True)  # type: ignore[list-item]
    waits(session, 3)
    ours.send(("stop",))
    with pytest.raises(Silence):
        waits(session, 1)


class Unconfirmed(Stuck):
    """A link to a broker that confirms nothing, by a clock which passes only while it is waited for."""

    now_ns = 0

    def drain(self, until_ns: int) -> bool:
        Unconfirmed.now_ns = until_ns
        return False


@pytest.mark.parametrize("until_stopped", [False, True])
def test_a_broker_that_confirms_nothing_is_not_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch, until_stopped: bool
) -> None:
    """For the patience of a role alone; of one that begins, until the launcher says stop."""
    monkeypatch.setattr("exchange_simulation.messaging.session.time.monotonic_ns", lambda: Unconfirmed.now_ns)
    theirs, ours = Pipe()
    Unconfirmed.now_ns = 0
    ours.send(("stop",))
    session = Session([Unconfirmed()], theirs, 2.0, until_stopped)  # type: ignore[list-item]
    with pytest.raises(Silence, match="what was sent did not leave for 2 s"):
        session.drain(session.link)
    assert 2e9 < Unconfirmed.now_ns < 3e9


@pytest.mark.parametrize(("begins", "word"), [(True, "result"), (False, "failed")])
def test_a_publisher_waits_for_its_reply_as_long_as_its_consumers_get_on(begins: bool, word: str) -> None:
    """Whoever begins is patient until the launcher says stop; a consumer is not."""

    def await_reply(session: Session) -> RoleResult:
        for _ in range(3):
            session.wait(Stuck(), "no reply came")  # type: ignore[arg-type]
        return RoleResult()

    role = start_thread(Role("publisher", await_reply, (), begins), 0.0, lambda: None)
    assert role.pipe.recv() == ("ready",)
    role.pipe.send(("start",))
    assert [role.pipe.recv()[0], role.pipe.recv()[0]] == ["at work", word]
    role.end(in_order=False)


def test_a_consumer_says_that_it_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchange_simulation.messaging.flow.REPORT_EVERY_NS", -1)
    theirs, ours = Pipe()
    assert Consume(8, 40)(Session([Trickle(8)], theirs, 9.0)).stopped is None  # type: ignore[list-item]
    assert [ours.recv() for _ in range(2)] == [("progress", 1), ("progress", 11)]


class Full(Stuck):
    """A link through which questions come, and no answer goes."""

    def receive(self, batch: FrameBatch) -> int:
        batch.append(b"question")
        return 1

    def send(self, _batch: FrameBatch, first: int) -> int:
        return first


def test_who_answers_gives_up_where_no_answer_can_be_sent() -> None:
    session = Session([Full()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        session.echo(FrameBatch(1), 1)


class Trickle:
    """A link that has ten messages at a time."""

    junk = 0

    def __init__(self, size: int) -> None:
        self._source = MessageSource(size)

    def receive(self, batch: FrameBatch) -> int:
        self._source.fill(min(10, batch.capacity_frames), 1)
        for frame in self._source.batch:
            batch.append(frame)
        return self._source.batch.count

    def send(self, batch: FrameBatch, _first: int) -> int:
        return batch.count


@pytest.mark.parametrize(("size", "is_flood", "rests"), [(8, True, 200), (8, False, 0), (4096, True, 0)])
def test_a_consumer_rests_in_a_flood_but_not_near_its_end(
    size: int, is_flood: bool, rests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flood is of few small messages."""
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic_ns=time.monotonic_ns)  # other threads go on sleeping
    monkeypatch.setattr("exchange_simulation.messaging.flow.time", clock)
    theirs, _ours = Pipe()  # which stays open: on a busy machine the consumer says how far it is
    session = Session([Trickle(size)], theirs, 9.0)  # type: ignore[list-item]
    result = Consume(size, 4_000, is_flood)(session)
    assert (result.stopped, result.received) == (None, 4_011)
    assert abs(len(slept) - rests) <= 1


class Gone:
    """A node that was killed."""

    def usage(self) -> None:
        raise ProcessLookupError("process 7 has ended")


def test_a_broker_that_was_lost_is_named_and_not_its_process() -> None:
    with pytest.raises(RoleLost, match="the broker ended in the middle"):
        usage_of(Gone())  # type: ignore[arg-type]


def test_a_role_that_has_gone_before_it_is_told_to_stop_is_named() -> None:
    """The benchmark ended with "Broken pipe"."""
    ours, theirs = Pipe()
    theirs.close()
    nowhere: Any = None
    launcher = Launcher([Role("idle 1", nowhere, (), idles=True)], nowhere, in_threads=True, patience_s=9.0)
    launcher._members["idle 1"] = Threaded(ours, nowhere)
    with pytest.raises(RoleLost, match="the idle 1 ended"):
        launcher._stop({"idle 1"})


class Heard:
    """A launcher's end of a pipe that notes what the launcher says."""

    def __init__(self, pipe: Any, words: list[tuple[Any, ...]]) -> None:
        self._pipe, self._words = pipe, words

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)

    def send(self, word: tuple[Any, ...]) -> None:
        self._words.append(word)
        self._pipe.send(word)


def test_each_of_many_idle_roles_is_told_to_stop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[tuple[Any, ...]] = []

    def start(role: Role, _patience_s: float, settle: Callable[[], None]) -> Threaded:
        started = start_thread(role, 0.0, settle)
        return Threaded(Heard(started.pipe, words), started.thread)  # type: ignore[arg-type]

    def idle(session: Session) -> RoleResult:
        with contextlib.suppress(Silence):
            while True:
                session.wait(Stuck(), "nothing came")  # type: ignore[arg-type]
        return RoleResult()

    monkeypatch.setattr("exchange_simulation.messaging.measuring.start_thread", start)
    roles = [Role("consumer", lambda _session: RoleResult(), ())]
    roles += [Role(f"idle {number}", idle, (), idles=True) for number in range(20)]
    settled: list[str] = []
    setup: Any = SimpleNamespace(settle=lambda role: settled.append(role.name))
    with Launcher(roles, setup, in_threads=True, patience_s=9.0) as launcher:
        assert len(launcher.play(lambda: None, lambda: None, lambda _count: None).results) == 21
    assert words.count(("stop",)) == 20
    assert sorted(settled) == sorted(role.name for role in roles), "--cpus moved no role that is a thread"


def test_a_role_that_cannot_be_moved_to_its_place_says_why() -> None:
    """It ended with exit code 0, and no sentence."""

    def settle() -> None:
        raise OSError(22, "Invalid argument")

    started = start_thread(Role("consumer", lambda _session: RoleResult(), ()), 0.0, settle)
    word, sentence, _ = started.pipe.recv()
    started.end(in_order=False)
    assert word == "failed"
    assert "Invalid argument" in sentence


def test_the_broker_s_sockets_are_read_while_the_roles_have_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were read after the roles had ended, so a broker that ignored --nagle passed."""
    sockets = [{"tcp_nodelay": 1, "tcp_nodelay_asked": 0, "local": "127.0.0.1:5672"}]

    class Ended(Launcher):
        def play(self, on_start: Callable[[], None], on_end: Callable[[], None], _on_count: object) -> CellOutcome:
            on_start()
            on_end()
            sockets.clear()
            return CellOutcome()

    server = SimpleNamespace(usage=ResourceUsage.now, facts=lambda: {"pid": os.getpid()})
    setup: Any = SimpleNamespace(
        brokers={"amqp": SimpleNamespace(server=server)},
        links=lambda _: contextlib.nullcontext(),
        group=0,
        accepted=lambda _server: list(sockets),
    )
    monkeypatch.setattr(measuring, "Launcher", Ended)
    monkeypatch.setattr(measuring, "usage_of", lambda server: server.usage())
    benchmark = replace(benchmark_of("de-spsc"), roles=lambda *_: [], judge=lambda *_: [], figures=lambda *_: {})
    found = measuring.measure(benchmark, Cell("amqp", {}, {"timeout_s": 1.0, "nagle": "broker"}), setup)
    assert found["status"] == "invalid"
    assert found["reasons"] == ["TCP_NODELAY of the broker's 127.0.0.1:5672 was to be off, and is on"]


def test_a_link_that_was_opened_again_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queues of a run with --restart-after stayed at the broker."""
    closed: list[str] = []

    def link(name: str, *_: object) -> Any:
        return SimpleNamespace(close=lambda _linger_s: closed.append(name))

    monkeypatch.setattr("exchange_simulation.messaging.roles.connect", link)
    with contextlib.ExitStack() as stack:
        links = open_links([LinkEnd("first", ""), LinkEnd("second", "")], stack)
        links[0] = link("again")
    assert closed == ["second", "again"]


def test_an_agent_without_messages_reports_while_others_begin() -> None:
    """The launcher ended a run whose deliveries were further apart than --timeout, and called them lost."""
    reports: list[int] = []
    session: Any = SimpleNamespace(links=[], must_stop=False, report_progress=reports.append)
    agent = ChainAgent(Chain(vertical(1)), (), ChainTimes(0.0, 20.0, 10.0), {}, (), mmap(-1, 8))
    shift = _Shift(agent, session, 0)
    for s in (1, 11, 19, 21, 29):
        assert not shift._is_over(s * 10**9)
    assert reports == [0, 0, 0]
    assert shift._is_over(31 * 10**9)


def test_every_copy_of_a_message_to_many_suppliers_is_told_from_the_others() -> None:
    """From the 256th on all were the same copy, so some suppliers never made an offer."""
    ledger, head = Ledger(0, 1), Head(*[0] * len(Head._fields))
    assert [ledger.note_received(head, 1, 400, 0) for _ in range(400)] == list(range(400))


def test_what_the_machine_does_while_links_open_is_in_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was: of a perftest of 3.5 s over 60 clients, 0.2 s in which the processors idled."""

    class AtOnce(Launcher):
        def play(self, on_start: Callable[[], None], on_end: Callable[[], None], _on_count: object) -> CellOutcome:
            on_start()
            on_end()
            return CellOutcome()

    @contextlib.contextmanager
    def reading(_rss_bytes: object) -> Iterator[list[Reading]]:
        yield (series := [{**EMPTY, "s": 0.0}])
        series.append({**EMPTY, "s": 6.0, "interrupts": 80.0})

    monkeypatch.setattr(measuring, "Launcher", AtOnce)
    monkeypatch.setattr(measuring, "read_every_second", reading)
    monkeypatch.setattr(measuring, "read", lambda _rss_bytes: {**EMPTY, "s": 4.0}, raising=False)
    benchmark = replace(
        benchmark_of("perftest"), roles=lambda *_: [], judge=lambda *_: [], figures=lambda *_: {"transfers": 1.0}
    )
    setup: Any = SimpleNamespace(brokers={}, links=lambda _transport: contextlib.nullcontext())
    found = measuring.measure(benchmark, Cell("memory", {}, {"timeout_s": 1.0}), setup)
    assert [second["second"] for second in found["series"]] == [2.0]
    assert found["figures"]["interrupts_per_s"] == 40.0


EMPTY = dict.fromkeys(("user", "system", "interrupts", "switches", "packets", "bytes", "used_mb", "broker_mb"), 0.0)
