"""Follows a run's components: until each has ended, in band if it can be."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import TYPE_CHECKING, Any

import orjson

from experiments.errors import UserError
from experiments.household import Household
from experiments.moment import Moment, OnSecond
from experiments.noise import NoiseMeter
from experiments.record import engine_result, gateway_result, reporter_result
from experiments.status import Outcome

if TYPE_CHECKING:
    from experiments.broker_watch import BrokerWatch

ROLES = ("reporter", "engine", "gateway")
PATIENCE_S = 5.0
"""How long the others may take to finish in band once one has failed, or has ended."""
ONE_CTRL_C_S = 0.3
"""Interrupts at once are one: `timeout` sends two, to its child and to its group."""
READY_S = 180.0
"""How long the components may take to get ready: the first time, their kernels are compiled."""


class Watch:
    """Reads the children's events."""

    def __init__(self, household: Household, on_second: OnSecond, broker: BrokerWatch | None = None) -> None:
        self._household, self._on_second, self._broker = household, on_second, broker
        self._noise = NoiseMeter()
        self._selector = selectors.DefaultSelector()
        self._results: dict[str, dict[str, Any]] = {}
        self._failures: list[str] = []
        self._ready: set[str] = set()
        self._started = False
        self._interrupted_s: float | None = None
        self._partial = dict.fromkeys(household.children, b"")
        self._deadline_s: float | None = time.monotonic() + READY_S
        for role, child in household.children.items():
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)
            self._selector.register(child.stdout, selectors.EVENT_READ, role)

    def follow(self) -> None:
        """Until every child has closed its events. Ctrl-C asks for an end in band, a second one leaves them behind."""
        while self._selector.get_map():
            try:
                self._once()
            except KeyboardInterrupt:
                if self._interrupted_s is not None and time.monotonic() - self._interrupted_s > ONE_CTRL_C_S:
                    break
                self._interrupt()
            if self._deadline_s is not None and time.monotonic() > self._deadline_s:
                self._failures += [f"the {role} {self._overdue()}" for role in self._missing()]
                break

    def _overdue(self) -> str:
        ending = self._started or self._failures
        return "did not end with the others" if ending else f"was not ready within {READY_S:g} s"

    def _missing(self) -> list[str]:
        """Components that go on although they were to end."""
        return [key.data for key in self._selector.get_map().values() if key.data not in self._results]

    def _interrupt(self) -> None:
        """The gateway's result will say that it was interrupted, if one comes."""
        if self._interrupted_s is not None:
            return
        self._interrupted_s = time.monotonic()
        if self._started:
            self._end_soon("gateway")
        else:
            self._give_up("interrupted before the start", *ROLES)

    def _once(self) -> None:
        if self._broker:
            self._broker.look()
        for key, _ in self._selector.select(timeout=0.25):
            role: str = key.data
            chunk = os.read(key.fd, 1 << 16)
            *lines, self._partial[role] = (self._partial[role] + chunk).split(b"\n")
            for line in lines:
                self._take(role, orjson.loads(line))
            if not chunk:
                self._selector.unregister(key.fileobj)
                self._ended(role)

    def _take(self, role: str, event: dict[str, Any]) -> None:
        match event:
            case {"event": "ready"}:
                self._ready.add(role)
                if self._ready == set(ROLES):
                    self._deadline_s = None
                    if self._broker:
                        self._broker.clock_starts()
                    self._noise.clock_starts()
                    self._household.say_start()
                    self._started = True
            case {"event": "second", "sent": sent, "answered": answered}:
                self._on_second(Moment(sent, answered, self._broker.cpu_s if self._broker else None))
            case {"event": "result", "result": result}:
                self._results[role] = result
                if role == "gateway":
                    self._clock_stops()
                self._deadline_s = self._deadline_s or time.monotonic() + PATIENCE_S
            case {"event": "error", "message": message, "exit_code": 2} if not self._started:
                raise UserError(message)
            case {"event": "error", "message": message}:
                self._give_up(f"{role}: {message}", *ROLES)

    def _clock_stops(self) -> None:
        self._noise.clock_stops()
        if self._broker:
            self._broker.clock_stops()

    def _ended(self, role: str) -> None:
        """A child closed its events: if it leaves no result it was killed, or broke."""
        if role in self._results or self._failures:
            return
        code = self._household.children[role].wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._give_up(f"the {role} {how}", *ROLES)

    def _give_up(self, reason: str, *roles: str) -> None:
        self._failures.append(reason)
        self._end_soon(*roles)

    def _end_soon(self, *roles: str) -> None:
        """Ask for an end in band; what is still there after a while is killed."""
        self._deadline_s = time.monotonic() + PATIENCE_S
        for role in roles:
            self._household.signal(role)

    def close(self) -> None:
        self._selector.close()

    def outcome(self) -> Outcome:
        """The results that arrived; those of a component that is gone, from what the reporter heard."""
        heard = self._results.get("reporter", {}).get("results", {})
        gateway = gateway_result(self._results.get("gateway") or heard.get("gateway"))
        unsaid = self._interrupted_s is not None and self._started and not (gateway and gateway.stopped)
        outcome = Outcome(
            gateway=gateway,
            engine=engine_result(self._results.get("engine") or heard.get("engine")),
            reporter=reporter_result(self._results.get("reporter")),
            failures=("interrupted",) * unsaid + tuple(self._failures),
            broker=self._broker.facts if self._broker else None,
            broker_usage=self._broker.usage if self._broker else None,
            noise=self._noise.noise,
        )
        if self._broker:
            outcome.broker_sockets = outcome.of_this_run(self._broker.sockets)
        return outcome
