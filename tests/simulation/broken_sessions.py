"""The real gateway and engine in a simulated world: connections break, and gateways and engines crash."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import orjson
import pytest
from world import MS, SECOND, ConfirmingSink, Crash, DelayedQueue, SimulatedLink, Task, World

from exchange.checksum import StreamChecksum
from exchange.messages import End, Statistics, encode
from exchange.records import COMPLETION
from exchange.results import EngineResult, GatewayResult
from exchange.session import Terms
from exchange.settings import RunSettings
from gateway.recovering.gateway import RecoveringGateway
from gateway.recovering.progress import GatewayProgress
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.engine import RecoveringEngine
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.journal_records import JournalReader, snapshot_path
from matching_engine.recovering.resumed_session import ResumedSession
from matching_engine.recovering.standby import LOOK_S
from matching_engine.tape import match_tape
from transports.base import Link, PeerGone
from transports.renewable import RenewableLink

RUN = 0xFEED


@dataclass
class BrokenSession:
    """A session whose breaks and crashes follow from a seed.

    With `has_broker` the queues survive crashes of the engine; without, each connection has its own queues.
    """

    seed: int
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    world: World = field(init=False)
    gateway: RecoveringGateway = field(init=False)
    _gateway_task: Task = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.seed, self.monkeypatch)
        self.monkeypatch.setattr(OrderBook, "first_capacity", 1 << 8)
        chance = self.world.chance
        self.has_broker = chance.random() < 0.4
        self.packing = chance.choice([1, 1, 1, 4])
        self.has_standby = chance.random() < 0.5
        self.sync = chance.choice(["always", "batch", "none"])
        self.orders = chance.randint(1, 120)
        self.crashes_left = chance.randint(0, 4)
        self.breaks_left = 0 if self.has_broker else chance.randint(0, 3)
        window = chance.choice([None, 8, 40])
        rates = [500.0, 5_000.0, None] if window else [500.0, 5_000.0]
        self.settings = RunSettings(
            orders=self.orders,
            orders_per_s=chance.choice(rates),
            window=window,
            packing=self.packing,
            recover=True,
            seed=self.seed,
            timeout_s=20.0,
            sampling_interval=7,
        )
        self.path = self.folder / f"{self.seed}.journal"
        self._snapshots = random.Random(f"snapshots of {self.seed}")
        self.monkeypatch.setattr(
            "matching_engine.recovering.snapshots.EVERY_ORDERS", self._snapshots.choice([1, 7, 40, 1 << 22])
        )
        self._listening: SimulatedLink | None = None
        self._connected: SimulatedLink | None = None
        self._orders_queue = DelayedQueue(self.world)
        self._answers_queue = DelayedQueue(self.world)
        """The queues of the broker."""
        self._journal: InputJournal | None = None
        self._may_have_lost_orders = False
        """Whether a crash of the machine may have taken orders from the journal."""
        self._follower: Follower | None = None
        self.engine: Task | None = None
        self._progress: GatewayProgress | None = None
        self._end_of_departed_gateway: End | None = None
        gateways = random.Random(f"gateways of {self.seed}")
        crash_count = gateways.choice([0, 0, 1, 2])
        self.gateway_crashes = [gateways.randint(1, 2 * self.orders + 20) for _ in range(crash_count)]
        """Calls of links until each gateway crashes."""
        if self.gateway_crashes and gateways.random() < 0.5:  # slower, so that seconds are reported before the crash
            self.settings = replace(self.settings, orders_per_s=40.0, window=None)

    def run(self) -> tuple[GatewayResult, EngineResult | None]:
        """Run gateway and engine to their ends, and return their results. AssertionError if one of them fails.

        The engine has no result if its machine crashed in the end.
        """
        self._start_engine()
        self._start_gateway()
        for _ in range(self.breaks_left):
            self.world.at(self.world.chance.randint(0, 300 * MS), self._break)
        self.world.run()
        gateway = self._gateway_task
        assert gateway.error is None, gateway.error
        assert self.engine is not None
        assert self.engine.error is None, self.engine.error
        assert isinstance(gateway.result, GatewayResult)
        assert isinstance(self.engine.result, EngineResult | None)
        return gateway.result, self.engine.result

    def _start_gateway(self) -> None:
        task = self._gateway_task = self.world.start("gateway", self._run_gateway)
        if self.gateway_crashes:
            task.crashes_in = self.gateway_crashes.pop()
            task.may_crash = lambda: self.gateway._intake.end is None

    def _run_gateway(self) -> GatewayResult | None:
        """Return the gateway's result; None if it crashed."""
        link = RenewableLink(self._connect(self.world.now_ns + SECOND), self._connect)
        streams = (StreamChecksum(), StreamChecksum())
        self._gateway_reports = ConfirmingSink(self.world)  # each gateway has its own reporter
        self.gateway = RecoveringGateway(self.settings, RUN, link, self._gateway_reports, streams)
        self.gateway.on_progress = self._note_progress
        self.gateway.on_end = self._note_end
        self.gateway.unrecorded = self._unrecorded_frames
        if self._progress is not None:
            self.gateway.go_on_from(self._progress)
        try:
            return self.gateway.run()
        except Crash:
            self._gateway_crashed()
            return None

    def _unrecorded_frames(self) -> list[bytes]:
        return [encode(message) for message in self._gateway_reports.messages if message is not None]

    def _note_progress(self, progress: GatewayProgress) -> None:
        self._progress = progress

    def _note_end(self, end: End) -> None:
        self._end_of_departed_gateway = end

    def _gateway_crashed(self) -> None:
        """Handle the end of the gateway's process: its connection breaks, and another gateway starts soon."""
        if self.has_broker:
            assert isinstance(self._connected, SimulatedLink)
            if self.world.chance.random() < 0.5:
                self._answers_queue.put_back(self._connected.unacknowledged)
        else:
            self._break()
        self.world.at(self.world.chance.randint(200 * MS, 600 * MS), self._start_gateway)

    def _connect(self, until_ns: int) -> Link:
        """Wait until an engine listens; return the gateway's end of the connection."""
        if self.has_broker:
            self._connected = SimulatedLink(self.world, self._answers_queue, self._orders_queue)
            return self._connected
        if self.world.chance.random() < 0.1:  # a connection to nobody, which reports no error
            return SimulatedLink(self.world, DelayedQueue(self.world), DelayedQueue(self.world))
        self.world.wait(lambda: self._listening is not None, until_ns)
        listener = self._listening
        self._listening = None
        if listener is None:
            raise PeerGone("nobody listens")
        self._connected = SimulatedLink(self.world, listener.outbound, listener.inbound)
        listener.peer = self._connected
        self._connected.peer = listener
        return self._connected

    def _listen(self) -> SimulatedLink:
        if self.has_broker:
            return SimulatedLink(self.world, self._orders_queue, self._answers_queue)
        self._listening = SimulatedLink(self.world, DelayedQueue(self.world), DelayedQueue(self.world))
        self._listening.peer = None
        return self._listening

    def _break(self) -> None:
        """Break the connection: frames on their way may be lost."""
        if self._connected is not None and self._connected.peer is not None:
            for link in (self._connected, self._connected.peer):
                link.inbound.lose_some()
                link.is_broken = True

    def _start_again(self) -> None:
        """Start another engine, unless the gateway has ended and the journal may lack some of its orders."""
        if self._end_of_departed_gateway is None or not self._may_have_lost_orders:
            self._start_engine()

    def _start_engine(self) -> None:
        self.engine = self.world.start("engine", self._run_engine)
        if self.crashes_left:
            self.crashes_left -= 1
            self.engine.crashes_in = self.world.chance.randint(1, 3 * self.orders)

    def _run_engine(self) -> EngineResult | None:
        link = self._listen()
        engine = MatchingEngine(OrderBook(999), self.packing)
        follower = self._follower or Follower.from_snapshot(self.path, engine)
        self._follower = None
        if follower is None:
            journal = InputJournal(self.path, {"run": RUN}, self.packing, self.sync)
        else:
            journal = InputJournal(
                self.path, {"run": RUN}, self.packing, self.sync, reader=follower.reader, on_orders=follower.match
            )
        self._journal = journal
        journal.start_syncing(lambda run: self.world.start("journal", run))
        resumed = ResumedSession(journal, link, lambda _: self._listen(), follower)
        if self.has_standby:
            self._follower = Follower(self.path, engine.renewed())
            self.world.start("standby", partial(self._follow, self._follower))
        terms = Terms(RUN, "price-time", self.packing, 999)
        service = RecoveringEngine(engine, terms, resumed, ConfirmingSink(self.world), 7, 20.0)

        def finish_if_gateway_departed() -> None:
            if self._end_of_departed_gateway is not None:
                service.finish_for_killed_engine(self._end_of_departed_gateway)

        service.while_alone = finish_if_gateway_departed
        finish_if_gateway_departed()
        try:
            return service.run()
        except Crash:
            self._crashed(link)
            return None
        finally:
            journal.abandon()

    def _follow(self, follower: Follower) -> None:
        while self._follower is follower and self._gateway_task.result is None and self._gateway_task.error is None:
            follower.follow()
            time.sleep(LOOK_S)

    def _crashed(self, link: SimulatedLink) -> None:
        """Handle the end of the engine's process or machine, with all unsynced bytes. Another engine starts soon."""
        chance = self.world.chance
        if self.has_broker:
            if chance.random() < 0.5:
                self._orders_queue.put_back(link.unacknowledged)
        else:
            self._listening = None
            self._break()
        is_machine = chance.random() < 0.5
        if is_machine:
            self.world.power_fails(self.path)
            self._damage_snapshot()
            self._follower = None
            self._may_have_lost_orders |= self.sync != "always"
        if not self._may_have_lost_orders:
            self._check_that_answered_orders_are_journaled()
        self.world.at(chance.randint(MS, 400 * MS), self._start_again)

    def _damage_snapshot(self) -> None:
        """Cut the snapshot in half of the power failures, since a snapshot is not synced."""
        snapshot = snapshot_path(self.path)
        if snapshot.exists() and self._snapshots.random() < 0.5:
            os.truncate(snapshot, self._snapshots.randrange(snapshot.stat().st_size))

    def _check_that_answered_orders_are_journaled(self) -> None:
        """Assert that the journal has every answered order."""
        assert self._journal is not None
        self._journal.abandon()
        reader = JournalReader(self.packing)
        if reader.has_begun(self.path):
            for _ in reader.batches(np.fromfile(self.path, np.uint8)):
                pass
        answered = self.gateway._completion.answered if hasattr(self, "gateway") else 0
        assert reader.orders >= answered, f"{answered} orders are answered, {reader.orders} are on the disk"

    def timed(self) -> int:
        """Return the number of orders whose completion time the last gateway has reported."""
        orders = 0
        for message in self._gateway_reports.messages:
            if not isinstance(message, Statistics):
                continue
            record = orjson.loads(message.document)
            if record["kind"] == COMPLETION and record["payload"]["clock"] == "handed_over":
                orders += record["payload"]["count"]
        return orders

    def expected(self) -> tuple[str, str]:
        """Return the checksums of orders and answers in a session without any break."""
        tape = np.frombuffer(SeededOrders.of(self.settings).records(1, self.orders), np.uint8)
        orders = StreamChecksum()
        answers = StreamChecksum()
        orders.update(tape)
        match_tape(MatchingEngine(OrderBook(999)), tape, answers.update)
        return orders.hex, answers.hex
