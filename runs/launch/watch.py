"""Follows a run's components: until each has ended, in band if it can be."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import TYPE_CHECKING, Any

import orjson

from exchange.instances import named
from runs.errors import UserError
from runs.launch.household import Household
from runs.launch.moment import Moment, OnSecond, Together
from runs.lineup import Lineup
from runs.record.noise import NoiseMeter
from runs.record.outcome import Outcome, outcome_of, read_results

if TYPE_CHECKING:
    from runs.broker.broker_watch import BrokerWatch

PATIENCE_S = 5.0
"""How long the others may take to finish in band once one has failed, or one of the same reporter has ended."""
ONE_CTRL_C_S = 0.3
"""Interrupts at once are one: `timeout` sends two, to its child and to its group."""
READY_S = 180.0
"""How long the components may take to get ready: the first time, their kernels are compiled."""


class Watch:
    """Reads the children's events."""

    def __init__(
        self, household: Household, lineup: Lineup, on_second: OnSecond, broker: BrokerWatch | None = None
    ) -> None:
        self._household, self._lineup, self._on_second, self._broker = household, lineup, on_second, broker
        self._together = Together(len(lineup.gateways))
        self._noise = NoiseMeter()
        self._selector = selectors.DefaultSelector()
        self._results: dict[str, dict[str, Any]] = {}
        self._failures: list[str] = []
        self._ready: set[str] = set()
        self._started = False
        self._interrupted_s: float | None = None
        self._partial = dict.fromkeys(household.children, b"")
        self._deadlines_s = dict.fromkeys(lineup.reporters, time.monotonic() + READY_S)
        """By reporter: of itself and the pairs that report to it."""
        for name, child in household.children.items():
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)
            self._selector.register(child.stdout, selectors.EVENT_READ, name)

    def follow(self) -> None:
        """Until every child has closed its events. Ctrl-C asks for an end in band, a second one leaves them behind."""
        while self._selector.get_map():
            try:
                self._once()
            except KeyboardInterrupt:
                if self._interrupted_s is not None and time.monotonic() - self._interrupted_s > ONE_CTRL_C_S:
                    break
                self._interrupt()
            self._leave_late()

    def _leave_late(self) -> None:
        """Follow no longer who goes on although it was to end; who reports to somebody else is to end as well."""
        now_s = time.monotonic()
        groups = {group for group, until_s in self._deadlines_s.items() if now_s > until_s}
        late = [key for key in self._selector.get_map().values() if self._lineup.group_of(key.data) in groups]
        if not late:
            return
        ending = self._started or self._failures
        how = "did not end with the others" if ending else f"was not ready within {READY_S:g} s"
        self._failures += [f"the {key.data} {how}" for key in late if key.data not in self._results]
        for key in late:
            self._selector.unregister(key.fileobj)
        self._end_soon(*(key.data for key in self._selector.get_map().values()))

    def _interrupt(self) -> None:
        """The gateways' results will say that they were interrupted, if they come."""
        if self._interrupted_s is not None:
            return
        self._interrupted_s = time.monotonic()
        if self._started:
            self._end_soon(*self._lineup.gateways)
        else:
            self._give_up("interrupted before the start", *self._lineup.names)

    def _once(self) -> None:
        if self._broker:
            self._broker.look()
        for key, _ in self._selector.select(timeout=0.25):
            name: str = key.data
            chunk = os.read(key.fd, 1 << 16)
            *lines, self._partial[name] = (self._partial[name] + chunk).split(b"\n")
            for line in lines:
                self._take(name, orjson.loads(line))
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._ended(name)

    def _take(self, name: str, event: dict[str, Any]) -> None:
        match event:
            case {"event": "ready"}:
                self._ready.add(name)
                if self._ready == set(self._lineup.names):
                    self._start()
            case {"event": "second", "sent": sent, "answered": answered}:
                if told := self._together.take(name, sent, answered):
                    self._on_second(Moment(*told, self._broker.cpu_s if self._broker else None))
            case {"event": "result", "result": result}:
                self._results[name] = result
                if self._results.keys() >= set(self._lineup.gateways):
                    self._clock_stops()
                self._deadlines_s.setdefault(self._lineup.group_of(name), time.monotonic() + PATIENCE_S)
            case {"event": "error", "message": message, "exit_code": 2} if not self._started:
                raise UserError(message)
            case {"event": "error", "message": message}:
                self._give_up(f"{name}: {message}", *self._lineup.names)

    def _start(self) -> None:
        self._deadlines_s.clear()
        if self._broker:
            self._broker.clock_starts()
        self._noise.clock_starts()
        self._household.say_start()
        self._started = True

    def _clock_stops(self) -> None:
        self._noise.clock_stops()
        if self._broker:
            self._broker.clock_stops()

    def _ended(self, name: str) -> None:
        """A child closed its events: if it leaves no result it was killed, or broke."""
        if name in self._results or self._failures:
            return
        code = self._household.children[name].wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._give_up(f"the {name} {how}", *self._lineup.names)

    def _give_up(self, reason: str, *names: str) -> None:
        self._failures.append(reason)
        self._end_soon(*names)

    def _end_soon(self, *names: str) -> None:
        """Ask for an end in band; what is still there after a while is killed."""
        self._deadlines_s = dict.fromkeys(self._lineup.reporters, time.monotonic() + PATIENCE_S)
        for name in names:
            self._household.signal(name)

    def close(self) -> None:
        self._selector.close()

    def outcome(self) -> Outcome:
        """The results that arrived; those of a component that is gone, from what a reporter heard."""
        of_reporters = [self._results.get(named("reporter", each), {}) for each in self._lineup.reporters]
        heard = {name: said for reporter in of_reporters for name, said in reporter.get("results", {}).items()}
        outcome = outcome_of(self._lineup, read_results({**heard, **self._results}))
        stopped = any(gateway.stopped for gateway in outcome.gateways.values())
        unsaid = self._interrupted_s is not None and self._started and not stopped
        outcome.failures = ("interrupted",) * unsaid + tuple(self._failures)
        outcome.noise = self._noise.noise
        if self._broker:
            outcome.broker, outcome.broker_usage = self._broker.facts, self._broker.usage
            outcome.broker_sockets = outcome.of_this_run(self._broker.sockets)
        return outcome
