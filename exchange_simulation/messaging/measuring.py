"""One repeat of one cell: start its roles together, follow them to their end, judge the answer, compute the figures."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing.connection import wait
from typing import Any

from exchange.json_records import Record
from exchange.measurements import LogBuckets
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import interruptible
from exchange_simulation.launching.long_waits import said_if_long
from exchange_simulation.launching.record.noise import NoiseMeter
from exchange_simulation.launching.record.status import sockets_differ
from exchange_simulation.launching.transport_settings import runs_in_one_process
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Figures
from exchange_simulation.messaging.machine import Reading, figures_of, read, read_every_second, seconds_of
from exchange_simulation.messaging.role_process import Forked, Threaded, fork, start_thread
from exchange_simulation.messaging.roles import Role, RoleResult
from exchange_simulation.messaging.setup import Setup
from exchange_simulation.reports.progress import OnCount, counting, now_and_then
from transports.declaration import BrokerServer, ServerUsage

COMPLETE, INVALID, PARTIAL = "complete", "invalid", "partial"
READY_S = 180.0
COUNT_EVERY_S = 1.0
OWN = {"local", "peer", "sndbuf_bytes", "rcvbuf_bytes"}
"""The fields that differ from socket to socket."""
COUNTERS = {
    "retransmits",
    "bytes_in",
    "bytes_out",
    "segments_in",
    "segments_out",
    "published",
    "confirmed",
    "returned",
    "refused",
    "redelivered",
    "blocked_s",
    "looked_at",
}
"""The fields in which sockets and links count."""


class RoleLost(Exception):
    """A role, or the broker, ended early; the sentence says which, and how."""


@dataclass
class CellOutcome:
    """Results by role; `lost` says which role was lost, if one was and the others were ended."""

    results: dict[str, RoleResult] = field(default_factory=dict)
    lost: str | None = None


class Launcher:
    """The roles of one cell. They end with the context, whatever happened."""

    def __init__(self, roles: Sequence[Role], setup: Setup, in_threads: bool, patience_s: float) -> None:
        self._roles = {role.name: role for role in roles}
        self._patience_s = patience_s
        assert len(self._roles) == len(roles)
        self._setup = setup
        self._in_threads = in_threads
        self._members: dict[str, Forked | Threaded] = {}
        self._results: dict[str, RoleResult] = {}
        self._progress: dict[str, int] = {}
        self._told_to_stop: set[str] = set()
        self._may_close = False

    def __enter__(self) -> Launcher:
        for name, role in self._roles.items():
            settle = partial(self._setup.settle, role)
            if self._in_threads:
                self._members[name] = start_thread(role, self._patience_s, settle)
            else:
                self._members[name] = fork(role, self._patience_s, self._setup.group, settle)
        return self

    def play(self, on_start: Callable[[], None], on_end: Callable[[], None], on_count: OnCount) -> CellOutcome:
        """Start all roles once they are ready, and follow them until each has a result.

        `on_count` is called now and then with the number of messages of roles that share queues. UserError if a role
        cannot open its ends.
        """
        outcome = CellOutcome()
        begin = {name for name, role in self._roles.items() if role.begins}
        try:
            with said_if_long("the benchmark's roles to be ready"):
                self._await_word(set(self._members))
            on_start()
            for names in (self._members.keys() - begin, begin):
                self._say("start", names)
                self._await_word(names)
            self._await_results(on_count)
            on_end()
            self._say("close", set(self._members))
            self._may_close = True
        except RoleLost as error:
            outcome.lost = str(error)
        outcome.results = {name: self._results[name] for name in self._roles if name in self._results}
        return outcome

    def _say(self, word: str, names: set[str]) -> None:
        for name in names:
            member = self._members[name]
            try:
                member.pipe.send((word,))
            except OSError as error:
                raise RoleLost(f"the {name} {member.how_it_ended()}") from error

    def _await_word(self, names: set[str]) -> None:
        """Wait until each of these roles has sent its `ready`, or its `at work`."""
        waiting = set(names)
        until_s = time.monotonic() + READY_S
        while waiting:
            heard = self._hear(waiting, until_s - time.monotonic())
            if not heard:
                raise RoleLost(f"the {min(waiting)} was not ready within {READY_S:g} s")
            waiting -= heard.keys()

    def _await_results(self, on_count: OnCount) -> None:
        """Follow the roles. Stop roles that share a queue once every message is there or no more messages come."""
        moved_s = time.monotonic()
        while waiting := self._members.keys() - self._results.keys():
            heard = self._hear(waiting, self._patience_s)
            for name, (word, *what) in heard.items():
                moved_s = time.monotonic()
                if word == "result":
                    self._results[name] = what[0]
                    self._stop_idle_if_all_else_is_over()
                else:
                    self._progress[name] = what[0]
                    on_count(sum(self._progress.values()))
                    self._stop_sharers_if_complete(name)
            silent_s = 0.0 if heard else time.monotonic() - moved_s  # a stall of our own is no silence of theirs
            if silent_s > self._patience_s:
                self._stop(waiting)
            if silent_s > 2 * self._patience_s and any(result.stopped for result in self._results.values()):
                raise RoleLost(f"the {min(waiting)} has not reported for {2 * self._patience_s:g} s")

    def _stop_sharers_if_complete(self, name: str) -> None:
        if (shares := self._roles[name].shares) is None:
            return
        sharers = {other for other, role in self._roles.items() if role.shares == shares}
        if sum(self._progress.get(each, 0) for each in sharers) >= shares.total:
            self._stop(sharers)

    def _stop_idle_if_all_else_is_over(self) -> None:
        waiting = self._members.keys() - self._results.keys()
        if all(self._roles[name].idles for name in waiting):
            self._stop(waiting)

    def _stop(self, names: set[str]) -> None:
        """Tell each of these roles once: 1,024 roles that hear it again at each other's end took a minute to end."""
        untold = names - self._told_to_stop - self._results.keys()
        patient = {name for name in untold if self._roles[name].is_patient}
        self._say("stop", patient)
        self._told_to_stop |= patient

    def _hear(self, names: set[str], longest_s: float) -> dict[str, tuple[Any, ...]]:
        """Read a message from each role that sent one. RoleLost if a role is gone; UserError if one cannot begin."""
        pipes: dict[Any, str] = {self._members[name].pipe: name for name in names}
        with interruptible():
            readable = wait(list(pipes), max(longest_s, 0))
        return {pipes[pipe]: self._word(pipes[pipe], pipe) for pipe in readable}

    def _word(self, name: str, pipe: Any) -> tuple[Any, ...]:
        try:
            word: tuple[Any, ...] = pipe.recv()
        except (EOFError, OSError) as error:
            raise RoleLost(f"the {name} {self._members[name].how_it_ended()}") from error
        match word:
            case ("failed", why, True):
                raise UserError(f"{name}: {why}")
            case ("failed", why, _):
                raise RoleLost(f"the {name} failed: {why}")
        return word

    def __exit__(self, *_: object) -> None:
        for member in self._members.values():
            member.end(in_order=self._may_close)


@contextlib.contextmanager
def progress_of(what: str, roles: Iterable[Role]) -> Iterator[OnCount]:
    """Show how many messages roles that share queues have together; show nothing if none shares one."""
    total = sum(shares.total for shares in {role.shares for role in roles} if shares)
    if not total:
        yield lambda _count: None
        return
    with counting(what, total, f" of {total:,} messages", "delivered") as on_count:
        yield now_and_then(on_count, lambda: COUNT_EVERY_S)


def measure(benchmark: BenchmarkDefinition, cell: Cell, setup: Setup) -> Record:
    """The repeat's record; its `status` is partial if a role was lost, invalid if the answer is wrong."""
    broker = setup.brokers.get(cell.transport)
    noise = NoiseMeter()
    server = broker.server if broker else None
    usage: list[ServerUsage] = []
    at_broker: list[dict[str, Any]] = []

    def on_start() -> None:
        if server:
            usage.append(usage_of(server))
            if cell.settings.get("nagle"):  # roles that have ended have no sockets there
                at_broker.extend(setup.accepted(server))
        if machine:
            machine[:] = [read(partial(_rss_bytes, server))]  # links were opened before
        noise.clock_starts()

    def on_end() -> None:
        if server:
            usage.append(usage_of(server))
        noise.clock_stops([server.facts()["pid"]] if server else ())

    with setup.links(cell.transport) as links:
        roles = benchmark.roles(cell, links)
        benchmark.prepare(cell, roles)
        with (
            Launcher(roles, setup, runs_in_one_process(cell.transport), cell.settings["timeout_s"]) as launcher,
            progress_of(f"{benchmark.name}, {cell}", roles) as on_count,
            benchmark.around_roles(cell, roles, server),
            read_every_second(partial(_rss_bytes, server))
            if benchmark.plots_over_time
            else contextlib.nullcontext() as machine,
        ):
            outcome = launcher.play(on_start, on_end, on_count)
    used = {name: result.usage for name, result in outcome.results.items()}
    of_broker = usage[1].since(usage[0]) if len(usage) == 2 else None
    return {
        **_judged(benchmark, cell, outcome, at_broker, machine),
        "roles": {name: _as_record(result) for name, result in outcome.results.items()},
        "broker": of_broker,
        "noise": noise.noise.beside({**used, **({"broker": of_broker} if of_broker else {})}) if noise.noise else None,
    }


def _rss_bytes(server: BrokerServer | None) -> int:
    """The memory of the broker's processes; 0 without one."""
    with contextlib.suppress(OSError):
        usage = server.usage() if server else None
        return int(usage.since(usage)["rss_bytes"]) if usage else 0
    return 0


def usage_of(server: BrokerServer) -> ServerUsage:
    """RoleLost if the broker has ended: the clients' own errors only say that a connection was closed."""
    try:
        return server.usage()
    except OSError as error:
        raise RoleLost("the broker ended in the middle") from error


def _judged(
    benchmark: BenchmarkDefinition,
    cell: Cell,
    outcome: CellOutcome,
    at_broker: list[dict[str, Any]],
    machine: list[Reading] | None,
) -> Record:
    series = {"series": seconds_of(machine)} if machine else {}
    if outcome.lost:
        return {"status": PARTIAL, "reasons": [outcome.lost], "figures": {}, **series}
    sockets = {**{name: result.sockets for name, result in outcome.results.items()}, "broker": at_broker}
    reasons = [*benchmark.judge(cell, outcome.results), *sockets_differ(sockets)]
    figures = {} if reasons else benchmark.figures(cell, outcome.results)
    figures |= figures_of(machine) if machine and figures else {}
    strain = {"strain": benchmark.scale.strain(cell, outcome.results)} if benchmark.scale else {}
    saturated = [] if reasons else benchmark.saturation_reasons(cell, outcome.results)
    return {
        "status": INVALID if reasons else COMPLETE,
        "reasons": reasons,
        "saturated": saturated,
        "figures": figures,
        **strain,
        **series,
    }


def is_timed(benchmark: BenchmarkDefinition, figures: Figures) -> bool:
    """Whether a repeat has the benchmark's main figure: the clock ran for long enough."""
    return any(column.with_interval and column.name in figures for column in benchmark.columns)


def _without_buckets(details: Any) -> Any:
    """The same with figures in place of histograms."""
    if isinstance(details, LogBuckets):
        return details.figures_us()
    return {name: _without_buckets(each) for name, each in details.items()} if isinstance(details, dict) else details


def _alike_together(links: Sequence[Record]) -> list[Record]:
    """One record with the sums of links that differ in counts alone; `many` is their number."""
    found: dict[str, Record] = {}
    for link in links:
        shared = {name: value for name, value in link.items() if name not in OWN}
        key = repr({name: value is None if name in COUNTERS else value for name, value in shared.items()})
        if (before := found.get(key)) is None:
            found[key] = link
            continue
        sums = {name: before[name] + value for name, value in link.items() if name in COUNTERS and value is not None}
        found[key] = {**shared, **sums, "many": before.get("many", 1) + 1}
    return list(found.values())


def _as_record(result: RoleResult) -> Record:
    """Checksums in hex; the histogram's figures in place of its buckets; links that are alike as one."""
    record = {**asdict(replace(result, details={})), "details": _without_buckets(result.details)}
    record["latency_us"] = result.latency.figures_us() if result.latency else {}
    record |= {name: _alike_together(record[name]) for name in ("sockets", "facts")}
    del record["latency"]
    return {**record, **{name: f"{record[name]:016x}" for name in ("sent_checksum", "received_checksum")}}
