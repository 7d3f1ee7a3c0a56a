"""The URL of a broker on another host, as the others connect to it."""

from __future__ import annotations

import pytest

from exchange_simulation.launching.hosts.broker_on_host import url_for_peers


@pytest.mark.parametrize(
    ("url", "for_peers"),
    [
        ("amqp://exchange@0.0.0.0:5672?delivery=lossy", "amqp://exchange@broker:5672?delivery=lossy"),
        ("nats://0.0.0.0:4222", "nats://broker:4222"),
        ("redis://0.0.0.0:6379?keys=/a/0.0.0.0:1", "redis://broker:6379?keys=/a/0.0.0.0:1"),
    ],
)
def test_peers_connect_to_the_address_and_not_to_that_on_which_it_listens(url: str, for_peers: str) -> None:
    assert url_for_peers(url, "0.0.0.0", "broker") == for_peers
