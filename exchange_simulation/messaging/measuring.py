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
from exchange_simulation.launching.record.machine import has_proc
from exchange_simulation.launching.record.noise import NoiseMeter
from exchange_simulation.launching.record.status import sockets_differ
from exchange_simulation.launching.transport_checks import runs_in_one_process
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.cell import Cell, Figures
from exchange_simulation.messaging.hosts.role_host import RoleElsewhere
from exchange_simulation.messaging.machine import Reading, figures_of, read, read_every_second, seconds_of
from exchange_simulation.messaging.role_process import Forked, Threaded, fork, start_thread
from exchange_simulation.messaging.roles import ReceivedPart, Role, RoleResult
from exchange_simulation.messaging.setup import Setup
from exchange_simulation.reports.progress import OnCount, counting, now_and_then
from transports.declaration import BrokerServer, ServerUsage

COMPLETE = "complete"
INVALID = "invalid"
PARTIAL = "partial"
"""The status of a benchmark that was interrupted."""
LOST_ROLE = "partial"
"""The status of a try that lost a role or its broker."""
READY_S = 180.0
"""The longest time that roles may take to be ready."""
COUNT_EVERY_S = 1.0
"""Interval at which the progress of roles is shown."""
FIELDS_OF_ONE_SOCKET = {"local", "peer", "sndbuf_bytes", "rcvbuf_bytes"}
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
"""The fields of sockets and links that are counts."""


class RoleLost(Exception):
    """A role, or the broker, ended early; the sentence names it, and says how it ended."""


@dataclass
class CellOutcome:
    """The end of a cell."""

    results: dict[str, RoleResult] = field(default_factory=dict)
    """Results by the role's name."""
    lost: str | None = None
    """The sentence on a role that was lost; the other roles were then ended."""


class Launcher:
    """The roles of one cell. All of them end with the context."""

    def __init__(self, roles: Sequence[Role], setup: Setup, in_threads: bool, patience_s: float) -> None:
        self._roles = {role.name: role for role in roles}
        self._patience_s = patience_s
        assert len(self._roles) == len(roles)
        self._setup = setup
        self._in_threads = in_threads
        self._members: dict[str, Forked | Threaded | RoleElsewhere] = {}
        self._results: dict[str, RoleResult] = {}
        self._progress: dict[str, int] = {}
        self._told_to_stop: set[str] = set()
        self._may_close = False

    def __enter__(self) -> Launcher:
        with contextlib.ExitStack() as ended_on_error:
            ended_on_error.push(self)
            for name, role in self._roles.items():
                self._members[name] = self._started(role)
            ended_on_error.pop_all()
        return self

    def _started(self, role: Role) -> Forked | Threaded | RoleElsewhere:
        """Start a role on its host, or here as a process or a thread. CannotStart if the system allows no more."""
        if self._setup.hosts:
            elsewhere = self._setup.hosts.start(role, self._patience_s)
            if elsewhere:
                return elsewhere
        enter_host = partial(self._setup.enter_host, role)
        if self._in_threads:
            return start_thread(role, self._patience_s, enter_host)
        return fork(role, self._patience_s, self._setup.group, enter_host)

    def play(self, on_start: Callable[[], None], on_end: Callable[[], None], on_count: OnCount) -> CellOutcome:
        """Start all roles once they are ready, and follow them until each has a result.

        `on_count` is called now and then with the number of messages of roles that share queues. UserError if a role
        cannot open its ends.
        """
        outcome = CellOutcome()
        beginners = {name for name, role in self._roles.items() if role.begins}
        try:
            with said_if_long("the benchmark's roles to be ready"):
                self._await_word(set(self._members))
            on_start()
            # Roles that begin, such as publishers, start once all others are at work.
            for names in (self._members.keys() - beginners, beginners):
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
        """Send a word to each of these roles. RoleLost if one has ended."""
        for name in names:
            member = self._members[name]
            try:
                member.tell(word)
            except OSError as error:
                raise RoleLost(f"the {name} {member.how_it_ended()}") from error

    def _await_word(self, names: set[str]) -> None:
        """Wait until each of these roles has sent one word: `ready` or `at work`."""
        waiting = set(names)
        until_s = time.monotonic() + READY_S
        while waiting:
            words = self._hear(waiting, until_s - time.monotonic())
            if not words and time.monotonic() > until_s:
                raise RoleLost(f"the {min(waiting)} was not ready within {READY_S:g} s")
            waiting -= words.keys()

    def _await_results(self, on_count: OnCount) -> None:
        """Follow the roles. Stop roles that share a queue once every message is there or no more messages come."""
        last_word_s = time.monotonic()
        waiting = set(self._members)
        while waiting:
            words = self._hear(waiting, self._patience_s)
            for name, (word, value) in words.items():
                last_word_s = time.monotonic()
                if word == "result":
                    self._results[name] = value
                    self._stop_idle_if_all_else_is_over()
                else:
                    self._progress[name] = value
                    on_count(sum(self._progress.values()))
                    self._stop_sharers_if_complete(name)
            # After words, silence counts as 0, so a stall of this launcher is no silence of the roles.
            silent_s = 0.0 if words else time.monotonic() - last_word_s
            if silent_s > self._patience_s:
                self._stop(waiting)
            if silent_s > 2 * self._patience_s and any(result.stopped for result in self._results.values()):
                raise RoleLost(f"the {min(waiting)} has not reported for {2 * self._patience_s:g} s")
            waiting = self._members.keys() - self._results.keys()

    def _stop_sharers_if_complete(self, name: str) -> None:
        """Stop the roles that share a queue with `name` once they have all messages together."""
        shares = self._roles[name].shares
        if shares is None:
            return
        sharers = {other for other, role in self._roles.items() if role.shares == shares}
        if sum(self._progress.get(sharer, 0) for sharer in sharers) >= shares.total:
            self._stop(sharers)

    def _stop_idle_if_all_else_is_over(self) -> None:
        """Stop the idle roles once all other roles have a result."""
        waiting = self._members.keys() - self._results.keys()
        if all(self._roles[name].idles for name in waiting):
            self._stop(waiting)

    def _stop(self, names: set[str]) -> None:
        """Tell the patient roles among these to stop, each once: 1,024 roles that are told repeatedly end slowly."""
        untold = names - self._told_to_stop - self._results.keys()
        patient = {name for name in untold if self._roles[name].is_patient}
        self._say("stop", patient)
        self._told_to_stop |= patient

    def _hear(self, names: set[str], longest_s: float) -> dict[str, tuple[Any, ...]]:
        """Wait until a role sends a word; returns a word of each role that sent one, by the role's name.

        There may be no words, also before `longest_s` is over. RoleLost if a role is gone; UserError if a role cannot
        begin.
        """
        if not self._with_words(names):
            self._read(names, longest_s)
        return {name: self._word(name) for name in self._with_words(names)}

    def _with_words(self, names: set[str]) -> list[str]:
        return [name for name in names if self._members[name].has_words]

    def _read(self, names: set[str], longest_s: float) -> None:
        """Wait until one of these roles sends something, and read what is there.

        Roles on another host share a source: what comes may be a word of another role, or a part of a word.
        """
        members_by_source: dict[Any, Forked | Threaded | RoleElsewhere] = {}
        for name in names:
            members_by_source[self._members[name].source] = self._members[name]
        with interruptible():
            readable = wait(list(members_by_source), max(longest_s, 0))
        for source in readable:
            members_by_source[source].receive()

    def _word(self, name: str) -> tuple[Any, ...]:
        """Return a role's next word. RoleLost, UserError."""
        try:
            word = self._members[name].next_word()
        except EOFError as error:
            raise RoleLost(f"the {name} {self._members[name].how_it_ended()}") from error
        match word:
            case ("failed", sentence, True):
                raise UserError(f"{name}: {sentence}")
            case ("failed", sentence, _):
                raise RoleLost(f"the {name} failed: {sentence}")
        return word

    def __exit__(self, *_: object) -> None:
        for member in self._members.values():
            member.end(may_close=self._may_close)


@contextlib.contextmanager
def progress_of(title: str, roles: Iterable[Role]) -> Iterator[OnCount]:
    """Show the number of messages that roles with shared queues have together; show nothing without such roles."""
    total = sum(shares.total for shares in {role.shares for role in roles} if shares)
    if not total:
        yield lambda _count: None
        return
    with counting(title, total, f" of {total:,} messages", "delivered") as on_count:
        yield now_and_then(on_count, lambda: COUNT_EVERY_S)


def measure(benchmark: BenchmarkDefinition, cell: Cell, setup: Setup) -> Record:
    """Measure one repeat of a cell; returns its record.

    The status is partial if a role was lost, and invalid if the answer is wrong.
    """
    noise = NoiseMeter()
    servers = setup.servers(cell)
    usage_at_start: list[ServerUsage] = []
    usage_at_end: list[ServerUsage] = []
    broker_sockets: list[dict[str, Any]] = []
    hosts: list[Record] = []

    def on_start() -> None:
        for server in servers:
            usage_at_start.append(usage_of(server))
            if cell.settings.get("nagle"):  # the sockets are read now, since they are gone once the roles have ended
                broker_sockets.extend(setup.accepted(server))
        if setup.hosts:
            setup.hosts.clock_starts()
        if readings:
            readings[:] = [read(partial(_rss_bytes, servers))]  # drops the readings while links were opened
        noise.clock_starts()

    def on_end() -> None:
        usage_at_end.extend(map(usage_of, servers))
        pids = [server.facts()["pid"] for server in servers]
        if setup.hosts:
            pids += setup.hosts.pids_here()
            hosts.extend(setup.hosts.after_measurement())
        noise.clock_stops(pids)

    with setup.links(cell.transport, brokers=cell.brokers) as links:
        roles = benchmark.roles(cell, links)
        if setup.hosts:
            roles = setup.hosts.placed(roles)
        benchmark.prepare(cell, roles)
        reading: contextlib.AbstractContextManager[list[Reading] | None] = contextlib.nullcontext()
        if benchmark.plots_over_time and has_proc() and setup.sees_all_roles:
            reading = read_every_second(partial(_rss_bytes, servers))
        with (
            Launcher(roles, setup, runs_in_one_process(cell.transport), cell.settings["timeout_s"]) as launcher,
            progress_of(f"{benchmark.name}, {cell}", roles) as on_count,
            benchmark.around_roles(cell, roles, servers[0] if servers else None),
            reading as readings,
        ):
            outcome = launcher.play(on_start, on_end, on_count)
    broker_usage = _usage_between(usage_at_start, usage_at_end)
    usage_of_ours = {name: result.usage for name, result in outcome.results.items()}
    if setup.hosts:
        outcome.results = setup.hosts.by_launchers_clock(roles, outcome.results)
        usage_of_ours = setup.hosts.on_this_machine(roles, usage_of_ours)
    if broker_usage:
        usage_of_ours["broker"] = broker_usage
    record: Record = {}
    if hosts:
        record["hosts"] = hosts
    record |= _judged(benchmark, cell, outcome, broker_sockets, readings)
    record["roles"] = {name: _as_record(result) for name, result in outcome.results.items()}
    record["broker"] = broker_usage
    record["noise"] = noise.noise.as_record(usage_of_ours) if noise.noise else None
    return record


def _usage_between(starts: Sequence[ServerUsage], ends: Sequence[ServerUsage]) -> dict[str, Any] | None:
    """The use of all brokers together between the readings; None without a broker, or if the end was not read."""
    if not starts or len(ends) < len(starts):
        return None
    sums: dict[str, Any] = {}
    for start, end in zip(starts, ends, strict=True):
        for name, value in end.since(start).items():
            sums[name] = sums.get(name, 0) + value
    return sums


def _rss_bytes(servers: Sequence[BrokerServer]) -> int:
    """The memory of the brokers' processes; 0 without one."""
    rss_bytes = 0
    with contextlib.suppress(OSError):
        for server in servers:
            usage = server.usage()
            rss_bytes += int(usage.since(usage)["rss_bytes"])
    return rss_bytes


def usage_of(server: BrokerServer) -> ServerUsage:
    """The broker's usage so far. RoleLost if the broker has ended, which errors of clients do not say."""
    try:
        return server.usage()
    except OSError as error:
        raise RoleLost("the broker ended in the middle") from error


def _judged(
    benchmark: BenchmarkDefinition,
    cell: Cell,
    outcome: CellOutcome,
    broker_sockets: list[dict[str, Any]],
    readings: list[Reading] | None,
) -> Record:
    """The part of a repeat's record that says whether its answer is right, and its figures."""
    series = {"series": seconds_of(readings)} if readings else {}
    if outcome.lost:
        return {"status": LOST_ROLE, "reasons": [outcome.lost], "figures": {}, **series}
    sockets = {name: result.sockets for name, result in outcome.results.items()}
    sockets["broker"] = broker_sockets
    reasons = [*benchmark.judge(cell, outcome.results), *sockets_differ(sockets)]
    if reasons:
        record: Record = {"status": INVALID, "reasons": reasons, "saturated": [], "figures": {}}
    else:
        record = {"status": COMPLETE, "reasons": []}
        record["saturated"] = benchmark.saturation_reasons(cell, outcome.results)
        record["figures"] = benchmark.figures(cell, outcome.results)
        if readings and record["figures"]:
            record["figures"] |= figures_of(readings)
        steps = benchmark.step_figures(cell, outcome.results)
        if steps:
            record["steps"] = steps
    if benchmark.scale:
        record["strain"] = benchmark.scale.strain(cell, outcome.results)
    return {**record, **series}


def is_timed(benchmark: BenchmarkDefinition, figures: Figures) -> bool:
    """True if a repeat has a main figure of the benchmark, which means that its clock ran for long enough."""
    return any(column.with_interval and column.name in figures for column in benchmark.columns)


def _without_buckets(details: Any) -> Any:
    """The details, with figures in place of log buckets."""
    if isinstance(details, LogBuckets):
        return details.figures_us()
    if isinstance(details, dict):
        return {name: _without_buckets(value) for name, value in details.items()}
    if isinstance(details, list):
        return [_without_buckets(value) for value in details]
    if isinstance(details, ReceivedPart):
        return {**asdict(details), "latency": details.latency.figures_us()}
    return details


def _summed_links(links: Sequence[Record]) -> list[Record]:
    """One record with the sums of all links that differ in counts alone; `many` is the number of the links."""
    summed: dict[str, Record] = {}
    for link in links:
        shared = {name: value for name, value in link.items() if name not in FIELDS_OF_ONE_SOCKET}
        counted = {name: value for name, value in shared.items() if name in COUNTERS and value is not None}
        uncounted = {name: value for name, value in shared.items() if name not in counted}
        key = repr((uncounted, list(counted)))
        if key not in summed:
            summed[key] = link
            continue
        previous = summed[key]
        sums = {name: previous[name] + value for name, value in counted.items()}
        summed[key] = {**shared, **sums, "many": previous.get("many", 1) + 1}
    return list(summed.values())


def _as_record(result: RoleResult) -> Record:
    """A role's part of the record: checksums in hex, figures in place of log buckets, similar links summed up."""
    record = asdict(replace(result, details={}))
    del record["latency"]
    record["details"] = _without_buckets(result.details)
    record["latency_us"] = result.latency.figures_us() if result.latency else {}
    record["sockets"] = _summed_links(result.sockets)
    record["facts"] = _summed_links(result.facts)
    record["sent_checksum"] = f"{result.sent_checksum:016x}"
    record["received_checksum"] = f"{result.received_checksum:016x}"
    return record
