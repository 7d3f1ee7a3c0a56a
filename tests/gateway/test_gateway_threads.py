"""A session of the gateway between real threads."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import pytest
import xxhash
from gateway_session import RUN, stream_of
from scripted_links import SECOND

from exchange.checksum import StreamChecksum
from exchange.messages import (
    Confirmation,
    End,
    Hello,
    Order,
    decode,
    decode_all,
    encode,
)
from exchange.meters import Source
from exchange.session import Terms
from exchange.settings import RunSettings
from gateway.completion import Completion
from gateway.service import Gateway
from tests.machine import PATIENCE_S
from transports import registry
from transports.base import Link, Pattern
from transports.frames import FrameBatch
from transports.lending import lent_by


def memory_engine(link: Link, terms: Terms, until_ns: int) -> None:
    """Be the simplest engine: send a hello, a confirmation for each order, and an end."""
    orders: list[bytes] = []
    answers: list[bytes] = []
    batch = FrameBatch(4_096)
    ended = False
    while not ended and time.monotonic_ns() < until_ns:
        batch.clear()
        replies = []
        if not link.receive(batch):
            link.wait(until_ns)
        for message in decode_all(b"".join(batch)):
            match message:
                case Hello():
                    replies.append(encode(terms.hello(Source.ENGINE)))
                case Order(id=order_id):
                    orders.append(encode(message))
                    replies.append(encode(Confirmation(order_id)))
                    answers.append(replies[-1])
                case End():
                    end = End(
                        sent=len(answers),
                        sent_checksum=xxhash.xxh64_intdigest(b"".join(answers)),
                        received=len(orders),
                        received_checksum=xxhash.xxh64_intdigest(b"".join(orders)),
                    )
                    replies.append(encode(end))
                    ended = True
        if replies:
            link.send(FrameBatch.of(*replies), 0)


def memory_reporter(link: Link, until_ns: int) -> None:
    """Take every frame, and confirm the end."""
    batch = FrameBatch(4_096)
    while time.monotonic_ns() < until_ns:
        batch.clear()
        if not link.receive(batch):
            link.wait(until_ns)
        if any(isinstance(decode(frame), End) for frame in batch):
            link.send(FrameBatch.of(encode(End(0, 0, 0, 0))), 0)
            return


COMPILED_LINK = "zeromq+inproc://{}"
"""The URL of a link that lends compiled calls."""
LINKS = ("memory://{}", COMPILED_LINK, "zeromq+inproc://{}?calls=plain")


@pytest.mark.parametrize(
    "settings",
    [
        {"orders_per_s": 20_000.0, "orders": 1_000},
        {"orders_per_s": 4_000.0, "orders": 400, "pace": "spin:100"},
        {"orders_per_s": 20_000.0, "orders": 1_001, "packing": 7},
        {"orders_per_s": 20_000.0, "orders": 1_000, "window": 3},
        {"orders_per_s": 20_000.0, "orders": 1_000, "arrivals": "bursts:100", "packing": 8, "window": 50},
        {"orders_per_s": 20_000.0, "orders": 1_000, "sampling_interval": 1, "arrivals": "poisson"},
        {"orders_per_s": 2_000_000.0, "orders": 5_000},
        {"orders_per_s": None, "orders": 5_000, "window": 500},
    ],
    ids=["schedule", "spin", "packed", "window", "packed bursts in a window", "all samples", "tables grow", "rate max"],
)
@pytest.mark.parametrize("link", LINKS, ids=["memory", "compiled", "plain"])
def test_between_threads_every_order_is_sent_and_answered(
    settings: dict[str, Any], link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.service.Completion", partial(Completion, capacity=1 << 9))  # small, so that it grows
    settings = RunSettings(**{"timeout_s": PATIENCE_S, "sampling_interval": 100, **settings})
    terms = Terms(RUN, settings.policy, settings.packing, settings.max_price, instruments=settings.instruments)
    until_ns = time.monotonic_ns() + int(PATIENCE_S * SECOND)
    engine_url = link.format(f"gateway-run-{settings.orders}-engine")
    reporter_url = link.format(f"gateway-run-{settings.orders}-reporter")
    engine = registry.listen(engine_url, "token", Pattern.PAIR)
    reporter = registry.listen(reporter_url, "token", Pattern.FAN_IN)
    to_engine = registry.connect(engine_url, "token", until_ns, Pattern.PAIR)
    to_reporter = registry.connect(reporter_url, "token", until_ns, Pattern.FAN_IN)
    threads = [
        threading.Thread(target=memory_engine, args=(engine, terms, until_ns)),
        threading.Thread(target=memory_reporter, args=(reporter, until_ns)),
    ]
    for thread in threads:
        thread.start()
    streams = (StreamChecksum(), StreamChecksum())
    gateway = Gateway(settings, RUN, to_engine, to_reporter, streams, reports_thread_usage=True)
    gateway.warm()
    result = gateway.run()
    for thread in threads:
        thread.join()
    lends_calls = lent_by(to_engine) is not None
    assert lends_calls == (link == COMPILED_LINK)
    gateway.close()
    engine.close()
    reporter.close()
    assert result.stopped is None
    assert result.orders.messages == settings.orders
    assert result.orders_answered == settings.orders
    assert result.orders.checksum == xxhash.xxh64_hexdigest(stream_of(settings, settings.orders))
    assert result.engine_said == {
        "sent": settings.orders,
        "sent_checksum": int(result.answers.checksum, 16),
        "received": settings.orders,
        "received_checksum": int(result.orders.checksum, 16),
    }
    assert result.samples == settings.orders // settings.sampling_interval
