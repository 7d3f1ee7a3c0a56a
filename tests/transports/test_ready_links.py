"""A link is ready when it is made: nothing compiles once frames flow, so nothing compiles on a run's clock."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zmq

LIST_KERNELS = Path(__file__).with_name("list_kernels.py")
KERNELS_OF_LINKS = {
    ("tcp://127.0.0.1:0", "pair"): "send_frames:1 split_frames:1",
    ("tcp://127.0.0.1:0", "fan-in"): "send_frames:1 split_frames:1",
    ("zeromq://127.0.0.1:0", "pair"): "_events:1 _receive_frames:1 _send_frames:1 _sleep:1",
}
"""The kernels of each link, by URL and pattern, each with the number of its compiled signatures."""
INLINED = {"monotonic_ns:0", "poll:0", "send_part:0", "receive_part:0", "_count_after_noting:0", "_length_at:0"}
"""Kernels that are compiled as a part of others, so they have no compiled signature of their own."""


def test_an_open_link_has_its_kernels() -> None:
    urls_and_patterns = [word for link in KERNELS_OF_LINKS for word in link]
    command = [sys.executable, str(LIST_KERNELS), *urls_and_patterns]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = [set(line.split()) - INLINED for line in output.stdout.splitlines()]
    assert listed == [set(kernels.split()) for kernels in KERNELS_OF_LINKS.values()]


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
    """A listener keeps the linger set when it was bound. With the infinite default, `close` waits for a gone peer."""
    from transports.registry import listen

    lingers: list[int] = []
    bind = zmq.Socket.bind

    def remember(socket: zmq.Socket[bytes], endpoint: str) -> object:
        if not endpoint.startswith("inproc:"):
            lingers.append(int(socket.linger))
        return bind(socket, endpoint)

    monkeypatch.setattr(zmq.Socket, "bind", remember)
    listen(url.format(path=tmp_path), "token").close()
    assert lingers
    assert all(linger >= 0 for linger in lingers)
