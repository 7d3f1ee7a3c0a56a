"""What a ZeroMQ listener takes from a peer that it admitted."""

from __future__ import annotations

import zmq
from zmq.utils.monitor import recv_monitor_message

from tests.transports.conftest import TOKEN, carry, joined, until
from transports.base import Pattern
from transports.frames import FrameBatch


def test_a_peer_that_sends_60_mb_is_dropped_and_the_others_are_served() -> None:
    with joined("zeromq://127.0.0.1:0", pattern=Pattern.FAN_IN) as (listener, connector):
        with zmq.Context() as context, context.socket(zmq.DEALER) as greedy:
            greedy.linger, greedy.plain_username, greedy.plain_password = 0, b"exchange", TOKEN.encode()
            with greedy.get_monitor_socket(zmq.EVENT_DISCONNECTED) as monitor:
                greedy.connect(listener.url.replace("zeromq", "tcp"))
                greedy.send(bytes(60 << 20))
                until(lambda: bool(monitor.poll(0)), listener)
                assert recv_monitor_message(monitor)["event"] == zmq.EVENT_DISCONNECTED
        assert listener.receive(FrameBatch()) == 0
        assert list(carry(connector, listener, FrameBatch.of(b"served"))) == [b"served"]
