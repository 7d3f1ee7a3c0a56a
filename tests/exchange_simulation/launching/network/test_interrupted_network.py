"""Ctrl-C while a network comes up: it is heeded at once, and no helper that it reaches makes the machine seem worse."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from exchange_simulation.launching.interrupts import interruption_noted
from exchange_simulation.launching.network import network
from exchange_simulation.launching.network.network import Network
from exchange_simulation.launching.network.probe import _try
from exchange_simulation.launching.network.profile import parse
from exchange_simulation.launching.network.topology import NetworkPlan

IN_OUR_GROUP = f"import os; assert os.getpgrp() != {os.getpgrp()}"
"""A program that fails in the process group of this test, which Ctrl-C in a terminal reaches."""


@pytest.fixture
def net() -> Network:
    plan = NetworkPlan(["gateway", "engine", "reporter"], ["reporter"], "veth", None, None)
    return Network(parse("veth"), "veth", plan.seats)


def test_a_probe_of_the_machine_is_out_of_reach_of_ctrl_c() -> None:
    """Regression: it was ended, and the run said that this machine cannot have a network."""
    finding = _try("namespace", (), [sys.executable, "-c", IN_OUR_GROUP], "")
    assert finding.works, finding


def test_the_lender_of_a_socket_is_out_of_reach_of_ctrl_c(net: Network) -> None:
    """Regression: it was ended, and the run said that the network is gone."""
    then_run = "import sys; os.execv(sys.argv[1], sys.argv[1:])"
    net.prefix("engine").extend([sys.executable, "-c", f"{IN_OUR_GROUP}; {then_run}"])
    with net.socket("engine") as lent:
        assert lent.getsockname()


def test_a_signal_while_a_network_comes_up_is_heeded_at_once(net: Network) -> None:
    """Regression: up to three minutes passed."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as silent, os.fdopen(writer, "w"), interruption_noted() as interruption:
        holder: Any = SimpleNamespace(stdout=silent)
        interruption.note(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            net._enter(SimpleNamespace(enter=()), holder)  # type: ignore[arg-type]


def test_a_signal_between_two_round_trips_is_heeded(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the round trips over all long links were measured first, for half a minute."""
    asked: list[str] = []

    def signalled(_net: Network, asker: Any, _server: Any, _group: int) -> dict[str, Any]:
        asked.append(asker.role)
        interruption.note(signal.SIGINT)
        return {}

    monkeypatch.setattr(Network, "_round_trip", signalled)
    monkeypatch.setattr(network, "_served", lambda *_: contextlib.nullcontext())
    seats = NetworkPlan(["gateway", "engine", "reporter"], [], "wire", 10**9, 100_000.0).seats
    with interruption_noted() as interruption, pytest.raises(KeyboardInterrupt):
        net._measure_round_trips(seats, 0)
    assert len(asked) == 1
