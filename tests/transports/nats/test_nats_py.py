"""client=nats-py: the client library handles each frame; what it cannot do is refused in words."""

from __future__ import annotations

import importlib.util

import pytest

from tests.transports.conftest import TOKEN, carry, joined, serve_links_until
from transports.base import BadAddress, NotInstalled, PeerGone
from transports.declaration import BreakableServer, RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.nats.connection import PASSWORD
from transports.nats.nats_py import MOST_PENDING_BYTES
from transports.nats.server import Nats
from transports.registry import listen


def test_frames_go_both_ways_in_order_over_a_connection_of_nats_py(nats: RunningBroker) -> None:
    frames = [number.to_bytes(2, "big") for number in range(2000)]
    with joined(f"{nats.url}?client=nats-py&nodelay=off") as ends:
        for source, target in (ends, ends[::-1]):
            assert list(carry(source, target, FrameBatch.of(*frames))) == frames
        for end in ends:
            assert end.facts()["client"].startswith("nats-py ")
            assert [described["tcp_nodelay"] for described in end.sockets()] == [False, False]


def test_more_than_nats_py_may_have_to_send_is_not_taken(nats: RunningBroker) -> None:
    frames = FrameBatch.of(*[bytes(100_000)] * 40)
    with joined(f"{nats.url}?client=nats-py") as (listener, connector):
        taken = connector.send(frames, 0)
        assert 100_000 * (taken - 1) <= MOST_PENDING_BYTES < 100_000 * taken
        received = FrameBatch(100, 5_000_000, 100_000)
        serve_links_until(lambda: listener.receive(received) >= 0 and received.count == taken, listener, connector)


def test_a_server_that_dies_ends_both_ends(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("own") / "server"
    with Nats().start(folder, None, nodelay=True, where=ServerPlace()) as running:
        monkeypatch.setenv(PASSWORD, running.environment[PASSWORD])
        assert isinstance(running.server, BreakableServer)
        with joined(f"{running.url}?client=nats-py") as ends:
            running.server.restart()
            for end in ends:
                with pytest.raises(PeerGone, match=r"the NATS server at .* went away"):
                    serve_links_until(lambda end=end: end.receive(FrameBatch()) > 0)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("delivery=durable", "nats-py is measured as a client of core NATS: leave delivery out"),
        ("sndbuf=8192", "nats-py opens its sockets itself"),
    ],
)
def test_an_option_that_nats_py_lacks_is_refused_with_the_reason(option: str, reason: str) -> None:
    with pytest.raises(BadAddress, match=rf"\?client=nats-py&{option}: {reason}"):
        listen(f"nats://127.0.0.1:1?client=nats-py&{option}", TOKEN)


def test_a_missing_nats_py_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=r"nats\?client=nats-py needs the Python module 'nats'.*pip install nats-py"):
        listen("nats://127.0.0.1:1?client=nats-py", TOKEN)


def test_a_wrong_password_is_named_before_nats_py_connects(
    nats: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "wrong")
    with pytest.raises(BadAddress, match=f"Authorization Violation: set {PASSWORD}"):
        listen(f"{nats.url}?client=nats-py", TOKEN)
