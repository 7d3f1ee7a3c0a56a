"""What round trips between the roles of a network really take, and whether that is what was asked for."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import click

from runs.network import echo
from runs.network.cable import FRAMING, SMALLEST_FRAME
from runs.network.profile import Profile
from runs.network.topology import Seat

COUNT = 20
ALLOWED_SHARE, ALLOWED_US = 0.10, 50.0
"""A round trip may be off by a share of what was asked for and a constant, since software in the way takes its time."""
Prefix = Callable[[str], list[str]]


def round_trips(table: list[Seat], profile: Profile, prefix: Prefix, process_group: int) -> dict[str, dict[str, Any]]:
    """us, by pair of roles: min, median, and what was expected where both links have a delay."""
    with contextlib.ExitStack() as held:
        for seat in table:
            held.enter_context(_served(prefix(seat.role), process_group))
        return {
            f"{one.role}-{other.role}": _figures(one, other, profile, prefix, process_group)
            for one, other in itertools.combinations(table, 2)
        }


def _figures(one: Seat, other: Seat, profile: Profile, prefix: Prefix, process_group: int) -> dict[str, Any]:
    measured_us = [ns / 1000 for ns in _asked(prefix(one.role), other.address, process_group)]
    figures: dict[str, Any] = {"min": round(min(measured_us), 1), "median": round(median(measured_us), 1)}
    if one.is_shaped and other.is_shaped and profile.is_shaped:
        figures["expected"] = round(expected_us(profile), 1)
        figures["error"] = round(figures["median"] - figures["expected"], 1)
    return figures


def expected_us(profile: Profile) -> float:
    """Twice the delay, and twice the time that the smallest frame takes on the link."""
    assert profile.rate_bit_per_s is not None
    assert profile.delay_us is not None
    return 2 * (profile.delay_us + (SMALLEST_FRAME + FRAMING) * 8e6 / profile.rate_bit_per_s)


def is_off(figures: dict[str, Any]) -> bool:
    if "expected" not in figures:
        return False
    return bool(abs(figures["error"]) > figures["expected"] * ALLOWED_SHARE + ALLOWED_US)


@contextlib.contextmanager
def _served(prefix: list[str], process_group: int) -> Iterator[None]:
    with subprocess.Popen(
        [*prefix, sys.executable, "-I", "-S", echo.__file__, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=process_group,
    ) as server:
        assert server.stdout is not None
        if not server.stdout.readline():
            raise click.ClickException("nothing can be started in the network's namespaces")
        yield


def _asked(prefix: list[str], address: str, process_group: int) -> list[int]:
    command = [*prefix, sys.executable, "-I", "-S", echo.__file__, "ask", address, str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, process_group=process_group, check=False)
    if done.returncode:
        raise click.ClickException(f"no answer from {address} in the network: {done.stderr.strip().splitlines()[-1]}")
    return list(json.loads(done.stdout))
