"""A network as the launcher uses it. The profile `local` makes no network.

with Network.up(parse("wan10"), roles=("gateway", "engine", "reporter")) as net:
    net.address["engine"]                        # "10.77.1.2"
    net.prefix("engine")                         # words before the command of a process in that namespace
    net.socket("engine").bind(("10.77.1.2", 0))  # a socket of this process in that namespace
net.facts                                        # mechanism, measured round trips, lateness of the wire, flags
"""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from typing import Any

import click

from exchange.settings import ROLES
from exchange_simulation.launching.command_line import python_module
from exchange_simulation.launching.errors import last_line
from exchange_simulation.launching.interrupts import interruptible, pause
from exchange_simulation.launching.network import visitor
from exchange_simulation.launching.network.links import move_into
from exchange_simulation.launching.network.probe import Machine, probe
from exchange_simulation.launching.network.profile import Profile
from exchange_simulation.launching.network.topology import NetworkPlan, Seat
from exchange_simulation.launching.process_group import end

UP_S = 180.0
"""The longest time to come up; the first time, the wire's kernel is compiled."""
ANSWER_S = 5.0
ROUND_TRIPS = 20

# The allowed error of a round trip: a share of the expected time, and a constant for the software in between.
ALLOWED_SHARE = 0.10
ALLOWED_US = 50.0


class Network:
    """A network that is up. `address` has the address at which the other roles reach each role.

    This process is outside of the network, and cannot connect to these addresses.
    """

    def __init__(self, profile: Profile, mechanism: str, seats: list[Seat]) -> None:
        self.profile = profile
        self.mechanism = mechanism
        self.address = {seat.role: seat.address for seat in seats}
        self._prefixes: dict[str, list[str]] = {seat.role: [] for seat in seats}
        self._user: str | None = None
        self._nets: dict[str, str] = {}
        self._round_trips: dict[str, dict[str, Any]] = {}
        self._wire: dict[str, Any] | None = None
        self._holder_died = False

    @classmethod
    @contextlib.contextmanager
    def up(
        cls,
        profile: Profile,
        roles: tuple[str, ...] = ROLES,
        unshaped: tuple[str, ...] = ("reporter",),
        process_group: int = 0,
    ) -> Iterator[Network]:
        """Yield a network, which exists during the context. Its processes join `process_group`; 0 makes a new group.

        UserError if this machine cannot have the network, ClickException if it does not come up. KeyboardInterrupt if a
        signal comes until it is up.
        """
        machine = probe()
        mechanism = machine.mechanism(profile)
        plan = NetworkPlan(list(roles), list(unshaped), mechanism, profile.rate_bit_per_s, profile.delay_us)
        net = cls(profile, mechanism, plan.seats)
        with _holder(machine, plan, process_group) as holder:
            net._enter(machine, holder)
            net._round_trips = net._measure_round_trips(plan.seats, process_group)
            net._take_wire_figures(holder)  # resets the figures: the frames so far were not the run's
            try:
                yield net
            finally:
                net._wire = net._take_wire_figures(holder)

    def prefix(self, role: str) -> list[str]:
        """Return the words before a command that run it in the role's namespace, with our files and user."""
        return self._prefixes[role]

    def enter(self, role: str) -> None:
        """Move this process, a fork with one thread, into the role's namespace."""
        move_into(self._user, self._nets[role])

    def _visitor(self, role: str, *words: str) -> list[str]:
        """Return the command that runs a program of visitor.py in the role's namespace."""
        return [*self.prefix(role), sys.executable, "-I", "-S", visitor.__file__, *words]

    def socket(self, role: str) -> socket.socket:
        """Return a new TCP socket in the role's namespace, to reserve a port there or to connect from there."""
        our_end, visitors_end = socket.socketpair()
        with our_end, visitors_end:
            command = self._visitor(role, "lend", str(visitors_end.fileno()))
            # In a group of its own: Ctrl-C in a terminal would end it, and the network would seem to be gone.
            if subprocess.run(command, pass_fds=[visitors_end.fileno()], process_group=0, check=False).returncode:
                raise click.ClickException(f"the network is gone: its {role} has no socket")
            _, (descriptor,), _, _ = socket.recv_fds(our_end, 1, 1)
        return socket.socket(fileno=descriptor)

    @property
    def facts(self) -> dict[str, Any]:
        """The record's `network`. `wire` covers all the time that the network was up; None while the network is up."""
        flags = list(self._flags())
        return {
            "profile": self.profile.name,
            "mechanism": self.mechanism,
            "rate_bit_per_s": self.profile.rate_bit_per_s,
            "delay_us": self.profile.delay_us,
            "address": self.address,
            "round_trip_us": self._round_trips,
            "wire": self._wire,
            "is_flagged": bool(flags),
            "flags": flags,
        }

    def _flags(self) -> Iterator[str]:
        """Yield the reasons why results are not those of the requested network."""
        wrong_trips = []
        for roles, trip in self._round_trips.items():
            if is_off(trip):
                wrong_trips.append(f"{roles} {trip['median']:g} us, not {trip['expected']:g} us")
        if wrong_trips:
            yield f"round trips took: {'; '.join(wrong_trips)}"
        if self._holder_died:
            yield "the network went down before the run was over"
        if self._wire is None or self.profile.delay_us is None:
            return
        p99_us = self._wire["lateness_us"]["p99"]
        if p99_us > self.profile.delay_us * ALLOWED_SHARE + ALLOWED_US:
            yield f"1 % of the frames left the wire {p99_us} us late or more"
        if self._wire["lost"]:
            yield f"the wire lost {self._wire['lost']} frames"

    def _enter(self, machine: Machine, holder: subprocess.Popen[str]) -> None:
        """Wait until the holder is ready, and keep the commands that enter its namespaces."""
        with interruptible():
            ready = _next_event(holder, UP_S)
        if ready.get("event") != "ready":
            reason = ready.get("message") or _last_error_line(holder)
            raise click.ClickException(f"the network did not come up: {reason}")
        self._user = f"/proc/{holder.pid}/ns/user" if "--user" in machine.enter else None
        users = [f"--user={self._user}"] if self._user else []
        for role, fd in ready["namespaces"].items():
            self._nets[role] = f"/proc/{holder.pid}/fd/{fd}"
            self._prefixes[role] = ["nsenter", "--preserve-credentials", *users, f"--net={self._nets[role]}", "--"]

    def _measure_round_trips(self, seats: list[Seat], process_group: int) -> dict[str, dict[str, Any]]:
        """Return the round trips of each two roles in us: min and median; for shaped links also expected and error.

        ClickException if nothing can be started in a namespace, or a role does not answer.
        """
        with contextlib.ExitStack() as servers:
            for seat in seats:
                servers.enter_context(_served(self._visitor(seat.role, "serve"), process_group))
            figures = {}
            for asker, server in itertools.combinations(seats, 2):
                pause(0)  # ends here if a signal came: all round trips over long links take half a minute
                figures[f"{asker.role}-{server.role}"] = self._round_trip(asker, server, process_group)
            return figures

    def _round_trip(self, asker: Seat, server: Seat, process_group: int) -> dict[str, Any]:
        """Return the figures of round trips from one role to another."""
        command = self._visitor(asker.role, "ask", server.address, str(ROUND_TRIPS))
        finished = subprocess.run(command, capture_output=True, text=True, process_group=process_group, check=False)
        if finished.returncode:
            raise click.ClickException(f"no answer from {server.address} in the network: {last_line(finished.stderr)}")
        measured_us = [ns / 1000 for ns in json.loads(finished.stdout)]
        figures: dict[str, Any] = {"min": round(min(measured_us), 1), "median": round(median(measured_us), 1)}
        if asker.is_shaped and server.is_shaped and self.profile.is_shaped:
            figures["expected"] = round(self.profile.round_trip_us, 1)
            figures["error"] = round(figures["median"] - figures["expected"], 1)
        return figures

    def _take_wire_figures(self, holder: subprocess.Popen[str]) -> dict[str, Any] | None:
        """Return the wire's figures since the last call; None without a wire. If the holder has died, note that."""
        assert holder.stdin is not None
        try:
            holder.stdin.write("figures\n")
            holder.stdin.flush()
        except BrokenPipeError:
            self._holder_died = True
            return None
        event = _next_event(holder, ANSWER_S)
        self._holder_died = not event
        figures: dict[str, Any] | None = event.get("wire")
        return figures


def is_off(figures: dict[str, Any]) -> bool:
    """Return True if a round trip's median differs from the expected time by more than is allowed."""
    if "expected" not in figures:
        return False
    return bool(abs(figures["error"]) > figures["expected"] * ALLOWED_SHARE + ALLOWED_US)


@contextlib.contextmanager
def _served(command: list[str], process_group: int) -> Iterator[None]:
    """Run a visitor that answers round trips during the context. ClickException if it cannot be started."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, process_group=process_group) as server:
        assert server.stdout is not None
        if not server.stdout.readline():
            raise click.ClickException("nothing can be started in the network's namespaces")
        yield


@contextlib.contextmanager
def _holder(machine: Machine, plan: NetworkPlan, process_group: int) -> Iterator[subprocess.Popen[str]]:
    """Yield the holder's process, and end it after the context. If this process ends, end of file ends the holder."""
    holder = python_module("exchange_simulation.launching.network.holder")
    command = [*machine.enter, *holder, json.dumps(asdict(plan))]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, process_group=process_group)
    assert process.stdin is not None
    try:
        yield process
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        end(process, ANSWER_S)


def _last_error_line(holder: subprocess.Popen[str]) -> str:
    """End the holder; return the last line of its errors."""
    holder.kill()
    assert holder.stderr is not None
    return last_line(holder.stderr.read(), "its process ended")


def _next_event(holder: subprocess.Popen[str], patience_s: float) -> dict[str, Any]:
    """Return the holder's next event; empty if the holder is gone or silent."""
    assert holder.stdout is not None
    if not select.select([holder.stdout], [], [], patience_s)[0]:
        return {}
    line = holder.stdout.readline()
    return dict(json.loads(line)) if line else {}
