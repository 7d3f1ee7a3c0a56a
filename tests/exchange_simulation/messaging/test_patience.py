"""Roles and the launcher wait long enough, and not longer; a role or a broker that has gone is named."""

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
from exchange_simulation.messaging.supply_chain.agent import ChainAgent, _WorkingAgent
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.ledger import Head, Ledger
from exchange_simulation.messaging.supply_chain.topologies import vertical
from transports.frames import FrameBatch


class BlockedLink:
    """A link that neither sends nor receives."""

    def wait(self, *_: Any, **__: Any) -> None: ...

    def excuse(self) -> str:
        return ""


def wait_to_send(session: Session, times: int) -> None:
    for _ in range(times):
        session.wait(session.link, "no message could be sent", writable=True)


def test_a_session_gives_up_after_its_patience() -> None:
    session = Session([BlockedLink()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        wait_to_send(session, 2)


class SlowReader(BlockedLink):
    """A link whose first look takes longer than the session waits, and whose message has come meanwhile."""

    looks = 0

    def receive(self, batch: FrameBatch) -> int:
        self.looks += 1
        if self.looks == 1:
            return 0
        batch.append(b"message")
        return 1


def test_a_session_that_was_slow_itself_looks_once_more() -> None:
    """Regression: a consumer that compiled for 10 s found that nothing had come for 10 s."""
    session = Session([SlowReader()], Pipe()[0], 0.0)  # type: ignore[list-item]
    batch = FrameBatch(1)
    session.receive(session.link, batch, "nothing came")
    assert list(batch) == [b"message"]


def test_a_session_until_stopped_waits_for_the_launcher_s_stop() -> None:
    role_end, launcher_end = Pipe()
    session = Session([BlockedLink()], role_end, 0.0, is_patient=True)  # type: ignore[list-item]
    wait_to_send(session, 3)
    launcher_end.send(("stop",))
    with pytest.raises(Silence):
        wait_to_send(session, 1)


class UnconfirmedLink(BlockedLink):
    """A link to a broker that confirms nothing; its clock moves only in a wait."""

    now_ns = 0

    def drain(self, until_ns: int) -> bool:
        UnconfirmedLink.now_ns = until_ns
        return False


@pytest.mark.parametrize("is_patient", [False, True])
def test_a_session_gives_up_on_a_broker_that_confirms_nothing(
    monkeypatch: pytest.MonkeyPatch, is_patient: bool
) -> None:
    monkeypatch.setattr("exchange_simulation.messaging.session.time.monotonic_ns", lambda: UnconfirmedLink.now_ns)
    role_end, launcher_end = Pipe()
    UnconfirmedLink.now_ns = 0
    launcher_end.send(("stop",))
    session = Session([UnconfirmedLink()], role_end, 2.0, is_patient)  # type: ignore[list-item]
    with pytest.raises(Silence, match="what was sent did not leave for 2 s"):
        session.drain(session.link)
    assert 2e9 < UnconfirmedLink.now_ns < 3e9


@pytest.mark.parametrize(("begins", "last_word"), [(True, "result"), (False, "failed")])
def test_only_a_role_that_begins_waits_until_stopped(begins: bool, last_word: str) -> None:

    def await_reply(session: Session) -> RoleResult:
        for _ in range(3):
            session.wait(BlockedLink(), "no reply came")  # type: ignore[arg-type]
        return RoleResult()

    role = start_thread(Role("publisher", await_reply, (), begins), 0.0, lambda: None)
    assert role.pipe.recv() == ("ready",)
    role.pipe.send(("start",))
    assert role.pipe.recv() == ("at work",)
    assert role.pipe.recv()[0] == last_word
    role.end(may_close=False)


def test_a_consumer_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchange_simulation.messaging.flow.REPORT_EVERY_NS", -1)
    role_end, launcher_end = Pipe()

    result = Consume(8, 40)(Session([TenAtATime(8)], role_end, 9.0))  # type: ignore[list-item]

    assert result.stopped is None
    assert launcher_end.recv() == ("progress", 1)
    assert launcher_end.recv() == ("progress", 11)


class FullLink(BlockedLink):
    """A link that receives questions, and takes no answer."""

    def receive(self, batch: FrameBatch) -> int:
        batch.append(b"question")
        return 1

    def send(self, _batch: FrameBatch, first: int) -> int:
        return first


def test_an_echo_gives_up_if_no_answer_can_be_sent() -> None:
    session = Session([FullLink()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        session.echo(FrameBatch(1), 1)


class TenAtATime:
    """A link that receives ten messages at a time."""

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
def test_a_consumer_rests_only_in_a_flood_of_small_messages(
    size: int, is_flood: bool, rests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200 rests: the last of the 4,000 messages, which come ten at a time, are received without a rest."""
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic_ns=time.monotonic_ns)  # other modules keep the real sleep
    monkeypatch.setattr("exchange_simulation.messaging.flow.time", clock)
    role_end, _launcher_end = Pipe()  # the other end stays open, since the consumer may report its progress
    session = Session([TenAtATime(size)], role_end, 9.0)  # type: ignore[list-item]
    result = Consume(size, 4_000, is_flood)(session)
    assert result.stopped is None
    assert result.received == 4_011
    assert abs(len(slept) - rests) <= 1


class KilledNode:
    def usage(self) -> None:
        raise ProcessLookupError("process 7 has ended")


def test_a_lost_broker_is_named_in_place_of_its_process() -> None:
    with pytest.raises(RoleLost, match="the broker ended in the middle"):
        usage_of(KilledNode())  # type: ignore[arg-type]


def test_a_role_that_ended_before_its_stop_is_named() -> None:
    """Regression: the benchmark ended with "Broken pipe"."""
    ours, theirs = Pipe()
    theirs.close()
    nowhere: Any = None
    launcher = Launcher([Role("idle 1", nowhere, (), idles=True)], nowhere, in_threads=True, patience_s=9.0)
    launcher._members["idle 1"] = Threaded(ours, nowhere)
    with pytest.raises(RoleLost, match="the idle 1 ended"):
        launcher._stop({"idle 1"})


class RecordingPipe:
    """The launcher's end of a pipe; adds every word that the launcher sends to `words`."""

    def __init__(self, pipe: Any, words: list[tuple[Any, ...]]) -> None:
        self._pipe = pipe
        self._words = words

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)

    def send(self, word: tuple[Any, ...]) -> None:
        self._words.append(word)
        self._pipe.send(word)


def test_each_of_many_idle_roles_is_told_to_stop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[tuple[Any, ...]] = []

    def start(role: Role, _patience_s: float, enter_host: Callable[[], None]) -> Threaded:
        started = start_thread(role, 0.0, enter_host)
        return Threaded(RecordingPipe(started.pipe, words), started.thread)  # type: ignore[arg-type]

    def idle(session: Session) -> RoleResult:
        with contextlib.suppress(Silence):
            while True:
                session.wait(BlockedLink(), "nothing came")  # type: ignore[arg-type]
        return RoleResult()

    monkeypatch.setattr("exchange_simulation.messaging.measuring.start_thread", start)
    roles = [Role("consumer", lambda _session: RoleResult(), ())]
    roles += [Role(f"idle {number}", idle, (), idles=True) for number in range(20)]
    moved_roles: list[str] = []
    setup: Any = SimpleNamespace(hosts=None, enter_host=lambda role: moved_roles.append(role.name))
    with Launcher(roles, setup, in_threads=True, patience_s=9.0) as launcher:
        assert len(launcher.play(lambda: None, lambda: None, lambda _count: None).results) == 21
    assert words.count(("stop",)) == 20
    assert sorted(moved_roles) == sorted(role.name for role in roles), "--cpus also moves roles that are threads"


def test_a_role_that_cannot_be_moved_to_its_host_says_why() -> None:
    """Regression: the role ended with exit code 0, and without a sentence."""

    def enter_host() -> None:
        raise OSError(22, "Invalid argument")

    started = start_thread(Role("consumer", lambda _session: RoleResult(), ()), 0.0, enter_host)
    word, sentence, _ = started.pipe.recv()
    started.end(may_close=False)
    assert word == "failed"
    assert "Invalid argument" in sentence


def test_the_broker_s_sockets_are_read_before_the_roles_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: they were read after the roles had ended, so a broker that ignored --nagle passed."""
    sockets = [{"tcp_nodelay": 1, "tcp_nodelay_asked": 0, "local": "127.0.0.1:5672"}]

    class LauncherThatClosesSockets(Launcher):
        def play(self, on_start: Callable[[], None], on_end: Callable[[], None], _on_count: object) -> CellOutcome:
            on_start()
            on_end()
            sockets.clear()
            return CellOutcome()

    server = SimpleNamespace(usage=ResourceUsage.now, facts=lambda: {"pid": os.getpid()})
    setup: Any = SimpleNamespace(
        hosts=None,
        sees_all_roles=True,
        servers=lambda _cell: [server],
        links=lambda _, brokers: contextlib.nullcontext(brokers),
        group=0,
        accepted=lambda _server: list(sockets),
    )
    monkeypatch.setattr(measuring, "Launcher", LauncherThatClosesSockets)
    monkeypatch.setattr(measuring, "usage_of", lambda server: server.usage())
    benchmark = replace(benchmark_of("de-spsc"), roles=lambda *_: [], judge=lambda *_: [], figures=lambda *_: {})
    record = measuring.measure(benchmark, Cell("amqp", {}, {"timeout_s": 1.0, "nagle": "broker"}), setup)
    assert record["status"] == "invalid"
    assert record["reasons"] == ["TCP_NODELAY of the broker's 127.0.0.1:5672 was to be off, and is on"]


def test_a_link_that_replaced_another_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the queues of a run with --restart-after stayed at the broker."""
    closed: list[str] = []

    def link(name: str, *_: object) -> Any:
        return SimpleNamespace(close=lambda _linger_s: closed.append(name))

    monkeypatch.setattr("exchange_simulation.messaging.roles.connect", link)
    with contextlib.ExitStack() as stack:
        links = open_links([LinkEnd("first", ""), LinkEnd("second", "")], stack)
        links[0] = link("again")
    assert closed == ["second", "again"]


def test_an_agent_without_messages_reports_while_others_begin() -> None:
    """Regression: the launcher ended a run whose deliveries were further apart than --timeout."""
    reports: list[int] = []
    session: Any = SimpleNamespace(links=[], must_stop=False, report_progress=reports.append)
    agent = ChainAgent(Chain(vertical(1)), (), ChainTimes(0.0, 20.0, 10.0), {}, (), mmap(-1, 8))
    working_agent = _WorkingAgent(agent, session, 0)
    for second in (1, 11, 19, 21, 29):
        working_agent._report_progress(second * 10**9)
        assert not working_agent._is_over(second * 10**9)
    assert reports == [0, 0, 0]
    assert working_agent._is_over(31 * 10**9)


def test_each_of_400_copies_of_a_message_has_its_number() -> None:
    """Regression: all copies from the 256th on had one number, so some suppliers never made an offer."""
    ledger = Ledger(0, 1)
    head = Head(*[0] * len(Head._fields))
    copies = [ledger.note_received(head, 1, 400, 0) for _ in range(400)]
    assert copies == list(range(400))


def test_figures_of_the_machine_begin_after_links_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the time in which 60 clients opened their links was in the figures."""

    class ImmediateLauncher(Launcher):
        def play(self, on_start: Callable[[], None], on_end: Callable[[], None], _on_count: object) -> CellOutcome:
            on_start()
            on_end()
            return CellOutcome()

    @contextlib.contextmanager
    def reading(_rss_bytes: object) -> Iterator[list[Reading]]:
        series = [{**EMPTY, "s": 0.0}]
        yield series
        series.append({**EMPTY, "s": 6.0, "interrupts": 80.0})

    monkeypatch.setattr(measuring, "Launcher", ImmediateLauncher)
    monkeypatch.setattr(measuring, "read_every_second", reading)
    monkeypatch.setattr(measuring, "read", lambda _rss_bytes: {**EMPTY, "s": 4.0}, raising=False)
    benchmark = replace(
        benchmark_of("perftest"), roles=lambda *_: [], judge=lambda *_: [], figures=lambda *_: {"transfers": 1.0}
    )
    setup: Any = SimpleNamespace(
        hosts=None,
        sees_all_roles=True,
        servers=lambda _cell: [],
        links=lambda _, brokers: contextlib.nullcontext(brokers),
    )
    record = measuring.measure(benchmark, Cell("memory", {}, {"timeout_s": 1.0}), setup)
    assert [second["second"] for second in record["series"]] == [2.0]
    assert record["figures"]["interrupts_per_s"] == 40.0


EMPTY = dict.fromkeys(("user", "system", "interrupts", "switches", "packets", "bytes", "used_mb", "broker_mb"), 0.0)
