"""A link is ready when it is made: nothing compiles once frames flow, so nothing compiles on a run's clock."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

KERNELS = """
import os, sys
from numba.core.registry import CPUDispatcher
from transports.base import Pattern
from transports.registry import listen

for url, kind in zip(sys.argv[1::2], sys.argv[2::2]):
    if os.fork() == 0:
        link = listen(url, "token", Pattern(kind))
        modules = [module for name, module in sys.modules.items() if name.startswith("transports.")]
        kernels = {n: each for module in modules for n, each in vars(module).items() if isinstance(each, CPUDispatcher)}
        print(*sorted(f"{name}:{len(kernel.signatures)}" for name, kernel in kernels.items()), flush=True)
        link.close()
        os._exit(0)
    os.wait()
"""
"""Each link is in a process of its own, since another has compiled kernels in its process; all share their imports."""
OF_LINKS = {
    ("tcp://127.0.0.1:0", "pair"): "send_frames:1 split_frames:1",
    ("tcp://127.0.0.1:0", "fan-in"): "send_frames:1 split_frames:1",
    ("zeromq://127.0.0.1:0", "pair"): "_events:1 _receive_frames:1 _send_frames:1 _sleep:1",
}


def test_an_open_link_has_its_kernels() -> None:
    words = [word for link in OF_LINKS for word in link]
    output = subprocess.run([sys.executable, "-c", KERNELS, *words], capture_output=True, text=True, check=True)
    inlined = {"monotonic_ns:0", "poll:0", "send_part:0", "receive_part:0", "_noted:0"}
    said = [set(line.split()) - inlined for line in output.stdout.splitlines()]
    assert said == [set(kernels.split()) for kernels in OF_LINKS.values()]


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
