"""Follows a run's components until each has ended, and reports their progress once a second.

To end in band means that a component ends by a message of the session, and leaves its result.
"""

from __future__ import annotations

import math
import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from exchange.instances import components_in_words, instance_of, named, role_of
from exchange.words import printable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.interrupts import BY_SIGNAL, ONE_PRESS_S, interruptible
from exchange_simulation.launching.lineup import READY_S, SUBSCRIBER, Lineup, component_of, processes_of
from exchange_simulation.launching.long_waits import LONG_WAIT_S, waiting_for
from exchange_simulation.launching.notices import say
from exchange_simulation.launching.priority import processors_of
from exchange_simulation.launching.process_group import ProcessGroup, Supervisor
from exchange_simulation.launching.record.noise import NoiseMeter
from exchange_simulation.launching.record.outcome import RunOutcome, outcome_of, read_results

if TYPE_CHECKING:
    from exchange_simulation.launching.hosts.run_hosts import RunHosts
    from exchange_simulation.launching.launch.broker_watch import BrokerWatch

PATIENCE_S = 5.0
"""The time in which components must have ended after they were asked to.

After the first result components are not asked: they may wait for each other for --timeout. So the deadline is then the
sum of both times.
"""
LOOK_S = 1.0
"""The longest time between two looks at the deadlines. Events wake the launcher earlier."""
BROKER_LOOK_S = 0.25
"""The same for a run with a broker, whose queues are looked at too."""
KILLED_ON_HOST = {BY_SIGNAL + number: number for number in signal.Signals}
"""The exit codes by which the relay of a component on another host reports that a signal killed the component."""


@dataclass(frozen=True)
class Moment:
    """The progress of a run: orders of all gateways that were sent, and that were answered."""

    sent: int
    answered: int
    broker_cpu_s: float | None = None
    """CPU time of the run's own broker since the clock started; None if it has none."""


OnSecond = Callable[[Moment], None]


class GatewayTotals:
    """Adds up the counts that several gateways report once a second."""

    def __init__(self, gateways: int) -> None:
        self._gateways = gateways
        self._latest: dict[str, tuple[int, int]] = {}
        self._reported: set[str] = set()

    def take(self, gateway: str, sent: int, answered: int) -> tuple[int, int] | None:
        """Keep a gateway's counts. Returns orders sent and answered of all gateways when a second is over, else None.

        A second is over once each gateway has reported, or if a gateway reports again before the others.
        """
        has_reported_again = gateway in self._reported
        if has_reported_again:
            self._reported.clear()
        self._latest[gateway] = sent, answered
        self._reported.add(gateway)
        have_all_reported = len(self._reported) == self._gateways
        if have_all_reported:
            self._reported.clear()
        if not (has_reported_again or have_all_reported):
            return None
        sent_by_all = sum(gateway_sent for gateway_sent, _ in self._latest.values())
        answered_to_all = sum(gateway_answered for _, gateway_answered in self._latest.values())
        return sent_by_all, answered_to_all


class Watch:
    """Reads the components' events, and acts on them."""

    def __init__(
        self,
        processes: ProcessGroup,
        lineup: Lineup,
        on_second: OnSecond,
        timeout_s: float,
        broker: BrokerWatch | None = None,
        restart: Callable[[str], None] | None = None,
        hosts: RunHosts | None = None,
    ) -> None:
        """`timeout_s`: how long a component waits for a silent one. `restart` starts a killed process again.

        `hosts` are those of a run over several hosts.
        """
        self._hosts = hosts
        self._relays: dict[str, int] = {}
        """By component on another host: the number of its relay's process there."""
        self._timeout_s = timeout_s
        self._processes = processes
        self._lineup = lineup
        self._on_second = on_second
        self._broker = broker
        self._supervisor = Supervisor(restart, timeout_s)
        self._takeovers = 0
        self._totals = GatewayTotals(len(lineup.gateways))
        self._noise = NoiseMeter()
        self._affinity: dict[str, list[int]] = {}
        self._selector = selectors.DefaultSelector()
        self._results: dict[str, dict[str, Any]] = {}
        self._facts_for_successor: dict[str, dict[str, Any]] = {}
        """By component: the facts that a process needs to take the place of a killed one."""
        self._failures: list[str] = []
        self._failures_of_subscribers: dict[str, str] = {}
        """The first failure of each subscriber, which ends no other component."""
        self._ready_processes: set[str] = set()
        self._unneeded: set[str] = set()
        """Standbys that ended without a session."""
        self._has_started = False
        self._long_wait_from_s = time.monotonic() + LONG_WAIT_S
        """The time from which the wait for ready components is long; infinite once the user knows, or all are ready."""
        self._interrupted_s: float | None = None
        self._incomplete_line = dict.fromkeys(processes.children, b"")
        self._deadlines_s = dict.fromkeys(lineup.reporters, time.monotonic() + READY_S)
        """By reporter: the time at which it and its pairs must be ready, and after the start, must have ended."""
        for name in processes.children:
            self._listen_to(name)

    def _listen_to(self, name: str) -> None:
        stdout = self._processes.children[name].stdout
        assert stdout is not None
        os.set_blocking(stdout.fileno(), False)
        self._selector.register(stdout, selectors.EVENT_READ, name)

    def follow(self) -> None:
        """Return when all children have closed their events. Ctrl-C asks for an end in band; a second one returns."""
        while self._selector.get_map():
            look_s = time.monotonic()
            try:
                self._look_once()
                self._leave_late(look_s)
            except KeyboardInterrupt:
                if self._interrupted_s is not None and time.monotonic() - self._interrupted_s > ONE_PRESS_S:
                    break
                self._interrupt()

    def _leave_late(self, look_s: float) -> None:
        """Stop following components that are past their deadline, and ask those of other reporters to end too.

        `look_s` is the time before the last look: an event that came while the launcher was stalled is not late.
        """
        late_groups = {group for group, until_s in self._deadlines_s.items() if look_s > until_s}
        late_keys = [key for key in self._selector.get_map().values() if self._lineup.group_of(key.data) in late_groups]
        if not late_keys:
            return
        is_ending = self._has_started or self._failures
        failure = "did not end with the others" if is_ending else f"was not ready within {READY_S:g} s"
        for key in late_keys:
            if component_of(key.data) not in self._results:
                self._failures.append(f"the {key.data} {failure}")
            self._selector.unregister(key.fileobj)
        self._end_soon(*(key.data for key in self._selector.get_map().values()))

    def _interrupt(self) -> None:
        """End the run in band: the gateways' results will say that they were interrupted."""
        if self._interrupted_s is not None:
            return
        self._interrupted_s = time.monotonic()
        if self._has_started:
            self._end_soon(*self._lineup.gateways)
        else:
            self._give_up("interrupted before the start")

    def _look_once(self) -> None:
        """Look at the broker and at restarted processes, then wait for events, at most until the next look."""
        if self._broker:
            self._broker.look()
        self._say_if_wait_is_long()
        for late in self._supervisor.late():
            self._processes.signal(late, signal.SIGKILL)
        with interruptible():
            readable = self._selector.select(BROKER_LOOK_S if self._broker else LOOK_S)
        for key, _ in readable:
            name: str = key.data
            chunk = os.read(key.fd, 1 << 16)
            lines = (self._incomplete_line[name] + chunk).split(b"\n")
            self._incomplete_line[name] = lines.pop()
            for line in lines:
                self._handle_line(name, line)
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._handle_end(name)

    def _say_if_wait_is_long(self) -> None:
        """Say once which processes are not ready yet, so that nobody takes the wait for a hang."""
        if time.monotonic() < self._long_wait_from_s:
            return
        self._long_wait_from_s = math.inf
        waiting = [name for name in self._lineup.processes if name not in self._ready_processes]
        say(waiting_for(f"{components_in_words(waiting)} to be ready (a first run compiles kernels)"))

    def _handle_line(self, name: str, line: bytes) -> None:
        """Handle a line of a process's stdout, which is an event in JSON."""
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            text = printable(line[:100].decode(errors="replace"))
            self._give_up(f"the {name} printed {text!r} where its launcher reads events")
            return
        self._handle_event(name, event)

    def _handle_event(self, name: str, event: dict[str, Any]) -> None:
        """Handle an event of a process. UserError if the process refuses its settings before the start."""
        match event:
            case {"event": "ready"}:
                self._note_ready(name)
            case {"event": "relayed", "pid": pid}:
                self._relays[name] = pid
            case {"event": "took over"}:
                self._takeovers += 1
            case {"event": "refuses"}:  # the engine's journal takes no more orders, so its gateway has to end
                self._signal(named("gateway", instance_of(name)))
            case {"event": "dropped", "gateway": number}:  # the gateway has to end, or its reporter would wait for it
                self._signal(named("gateway", number))
            case {"event": "not needed"}:
                self._unneeded.add(name)
            case {"event": "known", "role": role, "known": known}:
                self._note_known(named(role, instance_of(name)), known)
            case {"event": "second", "sent": sent, "answered": answered}:
                totals = self._totals.take(name, sent, answered)
                if totals:
                    self._on_second(Moment(*totals, self._broker.cpu_s if self._broker else None))
            case {"event": "result", "result": result}:
                self._take_result(component_of(name), result)
            case {"event": "error", "message": message, "exit_code": 2} if not self._has_started:
                raise UserError(message)
            case {"event": "error", "message": message}:
                self._fail(name, f"{name}: {message}")

    def _take_result(self, component: str, result: dict[str, Any]) -> None:
        """Keep a component's result, and ask the processes to end that are no longer needed.

        These are the engine's standby, restarted processes whose component's result the reporter has, and the partner
        in a pair that ended early.
        """
        self._results[component] = result
        if self._results.keys() >= set(self._lineup.gateways):
            self._clock_stops()
        if not self._may_end_alone(component):
            until_s = time.monotonic() + self._timeout_s + PATIENCE_S
            self._deadlines_s.setdefault(self._lineup.group_of(component), until_s)
        if self._lineup.has_standbys and role_of(component) == "engine":
            self._signal(component)
        for recorded in result.get("results", {}):  # the components whose results a reporter has
            if any(self._supervisor.has_restarted(process) for process in processes_of(recorded)):
                self._signal(recorded)
        self._end_partner_of(component, result)

    def _note_known(self, component: str, known: dict[str, Any]) -> None:
        """Keep a component's newest facts for a successor. An engine gets them too: its gateway may have left."""
        self._facts_for_successor[component] = known
        if role_of(component) == "engine":
            self._processes.tell(*self._with_standbys(component), known=known)

    def _note_ready(self, name: str) -> None:
        """Start the clock once all processes are ready. After the start, let a restarted process begin at once."""
        if self._has_started:
            self._supervisor.note_ready(name)
            self._processes.tell(name, known=self._facts_for_successor.get(component_of(name)))
            return
        self._ready_processes.add(name)
        if self._ready_processes == set(self._lineup.processes):
            self._start()

    def _end_partner_of(self, name: str, result: dict[str, Any]) -> None:
        """Ask the other end of a pair to end, if this end ended early and could not say so in band.

        Over a broker, the other end would notice that late. A stopped process is woken by the signal, and can leave its
        result.
        """
        role = role_of(name)
        if role in ("reporter", SUBSCRIBER) or self._may_end_alone(name):
            return
        has_ended_early = bool(result.get("stopped"))
        has_seen_engines_end = bool(result.get("engine_said"))
        if not has_ended_early or has_seen_engines_end:
            return
        if self._lineup.is_market:
            partners = self._lineup.gateways
        elif role == "engine":
            partners = [named("gateway", instance_of(name))]
        else:
            partners = [named("engine", instance_of(name))]
        for partner in partners:
            if partner not in self._results:
                self._signal(partner)

    def _may_end_alone(self, component: str) -> bool:
        """True for a gateway of a market: the engines drop it, and go on with the others."""
        return self._lineup.is_market and role_of(component) == "gateway"

    def _is_recorded(self, component: str) -> bool:
        """True if the component's result has come to its reporter, and the reporter lacks nothing."""
        return component in _complete_results(
            self._results.get(named("reporter", self._lineup.group_of(component)), {})
        )

    def _signal(self, *components: str) -> None:
        """Ask components to end, each with its standby."""
        for name in self._with_standbys(*components):
            self._processes.signal(name)

    def _with_standbys(self, *components: str) -> list[str]:
        """The components' processes, each with its standby."""
        names = []
        for component in components:
            names += [process for process in processes_of(component) if process in self._processes.children]
        return names

    def _start(self) -> None:
        """Start the clock: read the machine's counters, and tell all processes to begin."""
        self._deadlines_s.clear()
        self._long_wait_from_s = math.inf
        if self._broker:
            self._broker.clock_starts()
        for name, child in self._processes.children.items():
            cpus = processors_of(child.pid)
            if cpus and not self._processes.is_relayed(name):
                self._affinity[name] = cpus
        if self._hosts:
            self._hosts.clock_starts()
        self._noise.clock_starts()
        self._processes.tell(*self._lineup.processes)
        self._has_started = True

    def _clock_stops(self) -> None:
        """Read the machine's counters again, once, when the last gateway is done."""
        if self._noise.noise is not None:
            return
        relays_here = self._hosts.relays_here(self._relays) if self._hosts else []
        if self._broker is None:
            self._noise.clock_stops(relays_here)
        else:
            self._noise.clock_stops([*self._broker.pids, *relays_here], self._broker.is_hidden)
            self._broker.clock_stops()
        if self._hosts:
            self._hosts.clock_stops(self._relays)

    def _handle_end(self, name: str) -> None:
        """Handle the end of a process's events. A process without a result is restarted if that is possible."""
        component = component_of(name)
        has_result = component in self._results or self._is_recorded(component)
        if has_result or name in self._unneeded:
            return
        if self._has_started and self._may_end_alone(name):
            code = self._processes.children[name].wait()
            self._failures.append(f"the {name} {self._description_of_end(name, code)}")
            return
        if self._failures:  # the run ends already, and an engine waits for its gateway
            if role_of(name) == "gateway" and not self._may_end_alone(name):
                self._signal(named("engine", instance_of(name)))
            return
        code = self._processes.children[name].wait()
        if self._may_go_on(name) and self._supervisor.restarted(name, code):
            self._incomplete_line[name] = b""
            self._listen_to(name)
            return
        self._fail(name, f"the {name} {self._description_of_end(name, code)}")

    def _description_of_end(self, name: str, code: int) -> str:
        """Return the signal that killed a process, or its exit code with the last line of its log."""
        if self._processes.is_relayed(name) and code in KILLED_ON_HOST:
            code = -KILLED_ON_HOST[code]
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        last_line = self._processes.last_line_of(name)
        end_of_sentence = f"; it said last: {last_line}" if last_line else ""
        return f"ended with exit code {code}: see {name}.log{end_of_sentence}"

    def _may_go_on(self, name: str) -> bool:
        """True if the run is under way, and the other end could go on with another process in place of this one."""
        if not self._has_started:
            return False
        engine_has_ended = named("engine", instance_of(name)) in self._results
        return not (role_of(name) == "gateway" and engine_has_ended)

    def _fail(self, name: str, reason: str) -> None:
        """Note the failure of a component. A subscriber's does not end the run, once the run is under way."""
        if self._has_started and role_of(name) == SUBSCRIBER:
            self._failures_of_subscribers.setdefault(name, reason)
        else:
            self._give_up(reason)

    def _give_up(self, reason: str) -> None:
        """Note the failure, and ask all components to end, except engines that end with their gateways."""
        self._failures.append(reason)
        self._end_soon(*(name for name in self._lineup.names if not self._ends_with_its_gateway(name)))

    def _ends_with_its_gateway(self, name: str) -> bool:
        """True for an engine with a gateway that still runs: it answers its orders, and ends after it."""
        if not self._has_started or role_of(name) != "engine":
            return False
        gateways = [named("gateway", instance_of(name))]
        if self._lineup.is_market:
            gateways = self._lineup.gateways
        children = [self._processes.children.get(gateway) for gateway in gateways]
        return any(child is not None and child.poll() is None for child in children)

    def _end_soon(self, *names: str) -> None:
        """Ask components to end in band, and set the deadline for all."""
        self._deadlines_s = dict.fromkeys(self._lineup.reporters, time.monotonic() + PATIENCE_S)
        self._signal(*(component_of(name) for name in names))

    def close(self) -> None:
        self._selector.close()

    def outcome(self) -> RunOutcome:
        """Return the results of all components. A killed component's result is the one that its reporter received."""
        received: dict[str, Any] = {}
        recorded: dict[str, Any] = {}
        for instance in self._lineup.reporters:
            reporter = self._results.get(named("reporter", instance), {})
            received |= reporter.get("results", {})
            recorded |= _complete_results(reporter)
        # The result of a reporter that lacks nothing counts before the component's own, and that before any other.
        results, unreadable = read_results({**received, **self._results, **recorded})
        outcome = outcome_of(self._lineup, results)
        failures = [*self._failures, *self._failures_of_subscribers.values(), *unreadable]
        was_interrupted = self._interrupted_s is not None and self._has_started
        is_in_a_result = any(gateway.stopped for gateway in outcome.gateways.values())
        if was_interrupted and not is_in_a_result:
            failures.insert(0, "interrupted")
        outcome.failures = tuple(failures)
        outcome.takeovers = self._takeovers
        outcome.restarts = self._supervisor.restarts
        outcome.noise = self._noise.noise
        outcome.affinity = self._affinity
        if self._broker:
            outcome.broker = self._broker.facts
            outcome.broker_usage = self._broker.usage
            outcome.broker_sockets = outcome.accepted_from_components(self._broker.sockets)
        return outcome


def _complete_results(reporter: dict[str, Any]) -> dict[str, Any]:
    """Return the results that a reporter received; empty if it was stopped, since then some may be missing."""
    if reporter.get("stopped"):
        return {}
    return reporter.get("results", {})
