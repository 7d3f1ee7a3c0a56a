"""Measured round trips between the roles of a network, and whether they are as expected."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import click

from runs.network.profile import Profile
from runs.network.topology import Seat

COUNT = 20
ALLOWED_SHARE, ALLOWED_US = 0.10, 50.0
"""The allowed error of a round trip: a share of the expected time, and a constant for the software in between."""
Visitor = Callable[..., list[str]]
"""Gives the command of a program of visitor.py in a role's namespace: (role, *words)."""


def round_trips(seats: list[Seat], profile: Profile, visitor: Visitor, group: int) -> dict[str, dict[str, Any]]:
    """Min, median and, between two shaped links, expected time and error, in us, by two roles.

    ClickException if a namespace runs nothing, or a role does not answer.
    """
    with contextlib.ExitStack() as servers:
        for seat in seats:
            servers.enter_context(_served(visitor(seat.role, "serve"), group))
        return {
            f"{one.role}-{other.role}": _figures(one, other, profile, visitor, group)
            for one, other in itertools.combinations(seats, 2)
        }


def _figures(one: Seat, other: Seat, profile: Profile, visitor: Visitor, group: int) -> dict[str, Any]:
    measured_us = [ns / 1000 for ns in _round_trips_ns(visitor(one.role, "ask", other.address, str(COUNT)), group)]
    figures: dict[str, Any] = {"min": round(min(measured_us), 1), "median": round(median(measured_us), 1)}
    if one.is_shaped and other.is_shaped and profile.is_shaped:
        figures["expected"] = round(profile.round_trip_us, 1)
        figures["error"] = round(figures["median"] - figures["expected"], 1)
    return figures


def is_off(figures: dict[str, Any]) -> bool:
    if "expected" not in figures:
        return False
    return bool(abs(figures["error"]) > figures["expected"] * ALLOWED_SHARE + ALLOWED_US)


@contextlib.contextmanager
def _served(command: list[str], group: int) -> Iterator[None]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=group
    ) as server:  # fmt: skip
        assert server.stdout is not None
        if not server.stdout.readline():
            raise click.ClickException("nothing can be started in the network's namespaces")
        yield


def _round_trips_ns(command: list[str], group: int) -> list[int]:
    done = subprocess.run(command, capture_output=True, text=True, process_group=group, check=False)
    if done.returncode:
        address, complaint = command[-2], done.stderr.strip().splitlines()[-1]
        raise click.ClickException(f"no answer from {address} in the network: {complaint}")
    return list(json.loads(done.stdout))
