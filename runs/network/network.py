"""A network that is up, as the launcher uses it:

with Network.up(parse("wan10"), roles=("gateway", "engine", "reporter")) as net:
    net.address["engine"]                        # "10.77.1.2"
    net.prefix("engine")                         # what goes before the command of a process that is to be there
    net.socket("engine").bind(("10.77.1.2", 0))  # a socket of ours that is there, while we stay here
net.facts                                        # mechanism, measured round trips, lateness of the wire, flags
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import click

from runs.network import lend
from runs.network.ping import ALLOWED_SHARE, ALLOWED_US, is_off, round_trips
from runs.network.plan import Plan
from runs.network.probe import Machine, probe
from runs.network.profile import Profile
from runs.network.topology import Seat, seats

ROLES = ("gateway", "engine", "reporter")
UP_S = 180.0
"""How long it may take to come up: the first time, the wire's kernel is compiled."""
ANSWER_S = 5.0


class Network:
    """`address`: where each role is reached, by the others and not from here, unless the profile is local."""

    def __init__(self, profile: Profile, mechanism: str, table: list[Seat]) -> None:
        self.profile, self.mechanism = profile, mechanism
        self.address = {seat.role: "127.0.0.1" if profile.is_local else seat.address for seat in table}
        self._prefixes: dict[str, list[str]] = {seat.role: [] for seat in table}
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
        """UserError where this machine cannot have it. What is started joins `process_group`, or one of its own."""
        table = seats(list(roles), list(unshaped))
        if profile.is_local:
            yield cls(profile, "loopback", table)
            return
        machine = probe()
        mechanism = machine.mechanism(profile)
        net = cls(profile, mechanism, table)
        plan = Plan(list(roles), list(unshaped), mechanism, profile.rate_bit_per_s, profile.delay_us)
        with _holder(machine, plan, process_group) as holder:
            net._enter(machine, holder)
            net._round_trips = round_trips(table, profile, net.prefix, process_group)
            net._figures(holder)  # what the wire carried so far was not the user's
            try:
                yield net
            finally:
                net._wire = net._figures(holder)

    def prefix(self, role: str) -> list[str]:
        """Same files, same user, the role's network; nothing if the profile is local."""
        return self._prefixes[role]

    def socket(self, role: str) -> socket.socket:
        """A new TCP socket in the role's namespace: to reserve a port there, or to connect from there."""
        if self.profile.is_local:
            return socket.socket()
        here, there = socket.socketpair()
        with here, there:
            command = [*self.prefix(role), sys.executable, "-I", "-S", lend.__file__, str(there.fileno())]
            subprocess.run(command, pass_fds=[there.fileno()], check=True)
            _, fds, _, _ = socket.recv_fds(here, 1, 1)
        return socket.socket(fileno=fds[0])

    @property
    def facts(self) -> dict[str, Any]:
        """For the run's record. `wire` covers the time since the network was up, and is there once it is down."""
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
        """Why its results are not those of the network that was asked for, if they are not."""
        for pair, figures in self._round_trips.items():
            if is_off(figures):
                yield f"round trips {pair} took {figures['median']:g} us, not {figures['expected']:g} us"
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
        """Once all is up: how to get there."""
        ready = _heard(holder, UP_S)
        if ready.get("event") != "ready":
            raise click.ClickException(f"the network did not come up: {ready.get('message') or _last_words(holder)}")
        users = [f"--user=/proc/{holder.pid}/ns/user"] * machine.has_own_users
        for role, fd in ready["namespaces"].items():
            net = f"--net=/proc/{holder.pid}/fd/{fd}"
            self._prefixes[role] = ["nsenter", "--preserve-credentials", *users, net, "--"]

    def _figures(self, holder: subprocess.Popen[str]) -> dict[str, Any] | None:
        assert holder.stdin is not None
        try:
            holder.stdin.write("figures\n")
            holder.stdin.flush()
        except BrokenPipeError:
            self._holder_died = True
            return None
        said = _heard(holder, ANSWER_S)
        self._holder_died = not said
        figures: dict[str, Any] | None = said.get("wire")
        return figures


@contextlib.contextmanager
def _holder(machine: Machine, plan: Plan, process_group: int) -> Iterator[subprocess.Popen[str]]:
    """Its end of file is ours, whatever becomes of us."""
    command = [*machine.enter, sys.executable, "-m", "runs.network.holder", plan.to_json()]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=process_group,
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ANSWER_S)
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _last_words(holder: subprocess.Popen[str]) -> str:
    holder.kill()
    assert holder.stderr is not None
    return (holder.stderr.read().strip().splitlines() or ["its process ended"])[-1]


def _heard(holder: subprocess.Popen[str], patience_s: float) -> dict[str, Any]:
    """Its next line; nothing if it is gone, or silent."""
    assert holder.stdout is not None
    if not select.select([holder.stdout], [], [], patience_s)[0]:
        return {}
    line = holder.stdout.readline()
    return dict(json.loads(line)) if line else {}
