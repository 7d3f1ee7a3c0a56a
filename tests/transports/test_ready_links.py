"""A link is ready when it is made: nothing compiles once frames flow, so nothing compiles on a run's clock."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

KERNELS = """
import sys
from numba.core.registry import CPUDispatcher
from transports.base import Pattern
from transports.registry import listen
link = listen(sys.argv[1], "token", Pattern(sys.argv[2]))
modules = [module for name, module in sys.modules.items() if name.startswith("transports.")]
kernels = {name: each for module in modules for name, each in vars(module).items() if isinstance(each, CPUDispatcher)}
print(*sorted(f"{name}:{len(kernel.signatures)}" for name, kernel in kernels.items()))
link.close()
"""
"""Runs in a process of its own, since other tests have compiled kernels in this one."""


@pytest.mark.parametrize(
    ("url", "kind", "kernels"),
    [
        ("tcp://127.0.0.1:0", "pair", "send_frames:1 split_frames:1"),
        ("tcp://127.0.0.1:0", "fan-in", "send_frames:1 split_frames:1"),
        ("zeromq://127.0.0.1:0", "pair", "_events:1 _receive_frames:1 _send_frames:1 _sleep:1"),
    ],
)
def test_an_open_link_has_its_kernels(url: str, kind: str, kernels: str) -> None:
    output = subprocess.run([sys.executable, "-c", KERNELS, url, kind], capture_output=True, text=True, check=True)
    of_turns = {"monotonic_ns:0", "poll:0"}  # a turn brings them compiled; tests/runs/test_warming.py looks at turns
    assert set(output.stdout.split()) - of_turns == set(kernels.split())


@pytest.mark.parametrize("scheme", ["tcp", "zeromq"])
def test_links_meet_over_ipv6(scheme: str) -> None:
    from tests.transports.conftest import joined

    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    with joined(f"{scheme}://[::1]:0") as (listener, connector):
        assert listener.url.startswith(f"{scheme}://[::1]:")
        assert listener.sockets()[0]["local"] == connector.sockets()[0]["peer"] == listener.url.partition("://")[2]


@pytest.mark.parametrize(
    "url", ["zeromq+ipc://{path}/link", "zeromq://127.0.0.1:0", "zeromq://127.0.0.1:0?topology=simplex"]
)
def test_no_zeromq_listener_lingers_for_ever(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what was set at its birth, which by itself is for ever: a full pipe to a gone peer then never ends."""
    from transports.registry import listen

    bound_with: list[int] = []
    bind = zmq.Socket.bind

    def remember(socket: zmq.Socket[bytes], endpoint: str) -> object:
        if not endpoint.startswith("inproc:"):
            bound_with.append(int(socket.linger))
        return bind(socket, endpoint)

    monkeypatch.setattr(zmq.Socket, "bind", remember)
    listen(url.format(path=tmp_path), "token").close()
    assert bound_with
    assert all(each >= 0 for each in bound_with)
