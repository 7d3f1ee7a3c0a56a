"""A gateway and its engine, as they are shipped, in a world in which connections break and engines crash."""

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

    With `has_broker` queues outlive the engines; without, each connection has its own queues.
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
        self.has_broker, self.packing = chance.random() < 0.4, chance.choice([1, 1, 1, 4])
        self.has_standby = chance.random() < 0.5
        self.sync = chance.choice(["always", "batch", "none"])
        self.orders = chance.randint(1, 120)
        self.crashes_left, self.breaks_left = chance.randint(0, 4), 0 if self.has_broker else chance.randint(0, 3)
        window = chance.choice([None, 8, 40])
        self.settings = RunSettings(
            orders=self.orders,
            orders_per_s=chance.choice([500.0, 5_000.0, None] if window else [500.0, 5_000.0]),
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
        self._queues = DelayedQueue(self.world), DelayedQueue(self.world)
        self._journal: InputJournal | None = None
        self._may_have_lost = False
        self._follower: Follower | None = None
        self.engine: Task | None = None
        self._progress: GatewayProgress | None = None
        self._end_of_departed_gateway: End | None = None
        gateways = random.Random(f"gateways of {self.seed}")
        self.gateway_crashes = [gateways.randint(1, 2 * self.orders + 20) for _ in range(gateways.choice([0, 0, 1, 2]))]
        if self.gateway_crashes and gateways.random() < 0.5:  # over some seconds, so that there is something reported
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
        """None if it crashed."""
        link = RenewableLink(self._connect(self.world.now_ns + SECOND), self._connect)
        streams = (StreamChecksum(), StreamChecksum())
        self._gateway_reports = ConfirmingSink(self.world)  # the reporter of the gateway before has died with it
        self.gateway = RecoveringGateway(self.settings, RUN, link, self._gateway_reports, streams)
        self.gateway.on_progress, self.gateway.on_end = self._note_progress, self._note_end
        self.gateway.unrecorded = lambda: map(encode, filter(None, self._gateway_reports.messages))
        if self._progress is not None:
            self.gateway.go_on_from(self._progress)
        try:
            return self.gateway.run()
        except Crash:
            self._gateway_crashed()
            return None

    def _note_progress(self, progress: GatewayProgress) -> None:
        self._progress = progress

    def _note_end(self, end: End) -> None:
        self._end_of_departed_gateway = end

    def _gateway_crashed(self) -> None:
        """The process is gone; another gateway comes soon."""
        if self.has_broker:
            assert isinstance(self._connected, SimulatedLink)
            self._queues[1].put_back(self._connected.unacknowledged if self.world.chance.random() < 0.5 else [])
        else:
            self._break()
        self.world.at(self.world.chance.randint(200 * MS, 600 * MS), self._start_gateway)

    def _connect(self, until_ns: int) -> Link:
        """The connector's end, once somebody listens."""
        if self.has_broker:
            self._connected = SimulatedLink(self.world, self._queues[1], self._queues[0])
            return self._connected
        if self.world.chance.random() < 0.1:  # a connection that leads nowhere, and never says so
            return SimulatedLink(self.world, DelayedQueue(self.world), DelayedQueue(self.world))
        self.world.wait(lambda: self._listening is not None, until_ns)
        listener, self._listening = self._listening, None
        if listener is None:
            raise PeerGone("nobody listens")
        self._connected = SimulatedLink(self.world, listener.outbound, listener.inbound)
        listener.peer, self._connected.peer = self._connected, listener
        return self._connected

    def _listen(self) -> SimulatedLink:
        if self.has_broker:
            return SimulatedLink(self.world, *self._queues)
        self._listening = SimulatedLink(self.world, DelayedQueue(self.world), DelayedQueue(self.world))
        self._listening.peer = None
        return self._listening

    def _break(self) -> None:
        """Cut the connection: frames on their way may be lost."""
        if self._connected is not None and self._connected.peer is not None:
            for link in (self._connected, self._connected.peer):
                link.inbound.lose_some()
                link.is_broken = True

    def _start_again(self) -> None:
        """Start another engine, unless the gateway has ended and the journal may lack some of its orders."""
        if self._end_of_departed_gateway is None or not self._may_have_lost:
            self._start_engine()

    def _start_engine(self) -> None:
        self.engine = self.world.start("engine", self._run_engine)
        if self.crashes_left:
            self.crashes_left -= 1
            self.engine.crashes_in = self.world.chance.randint(1, 3 * self.orders)

    def _run_engine(self) -> EngineResult | None:
        link = self._listen()
        engine = MatchingEngine(OrderBook(999), self.packing)
        follower, self._follower = self._follower or Follower.from_snapshot(self.path, engine), None
        reading = {"reader": follower.reader, "on_orders": follower.match} if follower else {}
        journal = self._journal = InputJournal(self.path, {"run": RUN}, self.packing, self.sync, **reading)
        journal.start_syncing(lambda run: self.world.start("journal", run))
        resumed = ResumedSession(journal, link, lambda _: self._listen(), follower)
        if self.has_standby:
            self._follower = Follower(self.path, engine.renewed())
            self.world.start("standby", partial(self._follow, self._follower))
        terms = Terms(RUN, "price-time", self.packing, 999)
        service = RecoveringEngine(engine, terms, resumed, ConfirmingSink(self.world), 7, 20.0)
        service.while_alone = lambda: (
            self._end_of_departed_gateway and service.finish_for_killed_engine(self._end_of_departed_gateway)
        )
        service.while_alone()
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
        """The process is gone, or the machine with all that it had not synced; another engine comes soon."""
        chance = self.world.chance
        if self.has_broker:
            self._queues[0].put_back(link.unacknowledged if chance.random() < 0.5 else [])
        else:
            self._listening = None
            self._break()
        is_machine = chance.random() < 0.5
        if is_machine:
            self.world.power_fails(self.path)
            self._damage_snapshot()
            self._follower = None
            self._may_have_lost |= self.sync != "always"
        if not self._may_have_lost:
            self._check_that_answered_orders_are_there()
        self.world.at(chance.randint(MS, 400 * MS), self._start_again)

    def _damage_snapshot(self) -> None:
        """A snapshot is not synced: half of the power failures leave only its beginning."""
        snapshot = snapshot_path(self.path)
        if snapshot.exists() and self._snapshots.random() < 0.5:
            os.truncate(snapshot, self._snapshots.randrange(snapshot.stat().st_size))

    def _check_that_answered_orders_are_there(self) -> None:
        """No order is answered that a crash can take from the journal."""
        assert self._journal is not None
        self._journal.abandon()
        reader = JournalReader(self.packing)
        if reader.has_begun(self.path):
            for _ in reader.batches(np.fromfile(self.path, np.uint8)):
                pass
        answered = self.gateway._completion.answered if hasattr(self, "gateway") else 0
        assert reader.orders >= answered, f"{answered} orders are answered, {reader.orders} are on the disk"

    def timed(self) -> int:
        """Orders whose completion time the last gateway has reported."""
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
