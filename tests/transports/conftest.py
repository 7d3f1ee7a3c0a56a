"""Two ends of one link, joined as two components would be, and functions that move frames until a condition holds."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from exchange_simulation.messaging.session import await_subscribers
from tests.broker import shares_the_broker
from tests.machine import PATIENCE_S
from transports.base import Address, Link, Pattern, PeerGone
from transports.declaration import RunningBroker
from transports.frames import FrameBatch
from transports.registry import connect, has_broker, known_schemes, listen, transport_of

TOKEN = "a-run"
NAMES = itertools.count()


def urls() -> list[str]:
    """URLs of every scheme that a transport serves, in each of its variants, so a new transport needs no entry here.

    Each has the kind of its place in braces, as in tcp://{port}. A scheme whose broker no test can start is left out,
    as amqps: tests/transports/amqp has a broker for it.
    """
    templates = []
    for scheme in known_schemes():
        if has_broker(scheme) and not _can_start(scheme):
            continue
        place = transport_of(scheme).places[scheme]
        for variant in _variants(scheme):
            query = f"?{variant}" if variant else ""
            templates.append(f"{scheme}://{{{place}}}{query}")
    return templates


def _can_start(scheme: str) -> bool:
    declared = transport_of(scheme).broker
    return declared is not None and scheme in declared().starts


def _variants(scheme: str) -> list[str]:
    """The variants that a scheme declares, and one with a connection for each direction if the scheme can have that."""
    transport = transport_of(scheme)
    variants = list(transport.variants or ("",))
    if scheme in transport.simplex:
        variants.append("topology=simplex")
    return variants


def deadline_ns(seconds: float = PATIENCE_S) -> int:
    return time.monotonic_ns() + int(seconds * 1e9)


def as_parameter(url: str, *marks: pytest.MarkDecorator) -> pytest.ParameterSet:
    """Return a URL as a parameter of tests, with a mark if the URL is at the broker that all tests share."""
    if "{broker}" in url:
        return pytest.param(url, marks=[*marks, shares_the_broker])
    return pytest.param(url, marks=marks)


def _as_parameter_of_contract(url: str) -> pytest.ParameterSet:
    """Return a URL as a parameter, marked `long` if another URL tests the same.

    zeromq is zeromq+tcp, and `confirmed` acknowledges as `acked` does.
    """
    if url.startswith("zeromq+tcp:") or url.endswith("delivery=acked"):
        return as_parameter(url, pytest.mark.long)
    return as_parameter(url)


SECURE = ("zeromq://{port}?keys={keys}", "tcp://{port}?keys={keys}")


@pytest.fixture(params=[_as_parameter_of_contract(url) for url in (*urls(), *SECURE)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address with a new place for each test."""
    return placed(request, tmp_path)


LEFT_OUT = ("topology=", "zeromq+tcp:", "delivery=acked")
"""Parts of URLs that `urls_with` leaves out: only pairs have a topology, and the other two add nothing new.

zeromq is the same as zeromq+tcp, and `confirmed` acknowledges as `acked` does."""


def urls_with(pattern: Pattern) -> list[pytest.ParameterSet]:
    """Return the URLs whose transport has the pattern, as parameters of tests."""
    parameters = []
    for url in urls():
        is_left_out = any(part in url for part in LEFT_OUT)
        if _has(url, pattern) and not is_left_out:
            parameters.append(as_parameter(url))
    return parameters


def _has(url: str, pattern: Pattern) -> bool:
    scheme = url.partition(":")[0]
    options = dict(parse_qsl(url.partition("?")[2]))
    return not transport_of(scheme).why_lacks(pattern, options)


def placed(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of the test's parameter with a free place filled in. A broker is cleaned after the test."""
    template: str = request.param
    place = ""
    keys = request.getfixturevalue("keys") if "{keys}" in template else ""
    if "{broker}" in template:
        place = request.getfixturevalue("broker_place_of")(template.partition(":")[0])
    name = f"test-{next(NAMES)}"
    return template.format(port="127.0.0.1:0", path=tmp_path / "link", name=name, broker=place, keys=keys)


@pytest.fixture
def broker_place_of(
    brokers: Callable[[str], RunningBroker], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], str]]:
    """Return a function: the place of a scheme's broker, whose variables it sets in the environment.

    After the test the queues that it left at the brokers are deleted.
    """
    used: dict[str, RunningBroker] = {}

    def set_environment(broker: RunningBroker) -> None:
        for name, value in broker.environment.items():
            monkeypatch.setenv(name, value)

    def place_of(scheme: str) -> str:
        used[scheme] = brokers(scheme)
        set_environment(used[scheme])
        return used[scheme].url.partition("://")[2]

    yield place_of
    for scheme, broker in used.items():
        set_environment(broker)
        declared = transport_of(scheme).broker
        probe = declared().probe(broker.url, [Address.parse(broker.url, TOKEN)]) if declared else None
        if probe is not None:
            probe.take_down()
            probe.close()


@pytest.fixture
def broker_place(broker_place_of: Callable[[str], str]) -> str:
    """user@host:port/vhost of the RabbitMQ that all tests share."""
    return broker_place_of("amqp")


def serve_links_until(condition: Callable[[], bool], *links: Link) -> None:
    """Serve the links until the condition holds. AssertionError if it does not hold in time."""
    end_ns = deadline_ns()
    while not condition():
        assert time.monotonic_ns() < end_ns, "nothing happened in time"
        for link in links:
            link.wait(time.monotonic_ns() + 1_000_000)


def frames_until_gone(link: Link) -> list[bytes]:
    """Receive frame by frame until the link raises PeerGone; return the frames."""
    end_ns = deadline_ns()
    received: list[bytes] = []
    batch = FrameBatch(1)
    with contextlib.suppress(PeerGone):
        while True:
            assert time.monotonic_ns() < end_ns, "the link goes on"
            batch.clear()
            link.receive(batch)
            received += batch
    return received


@contextlib.contextmanager
def publishing(
    url: str, pattern: Pattern, keys: tuple[str, ...], *keys_of_subscribers: tuple[str, ...]
) -> Iterator[tuple[Link, list[Link]]]:
    """Yield (publisher, a subscriber for each set of keys), once the publisher knows of all of them."""
    with contextlib.ExitStack() as closing:
        publisher = listen(url, TOKEN, pattern, keys)
        closing.callback(publisher.close)
        subscribers = []
        for subscriber_keys in keys_of_subscribers:
            subscriber = connect(publisher.url, TOKEN, deadline_ns(), pattern, subscriber_keys)
            closing.callback(subscriber.close)
            subscribers.append(subscriber)
        await_subscribers(publisher, len(subscribers), deadline_ns())
        yield publisher, subscribers


@contextlib.contextmanager
def joined(url: str, token: str = TOKEN, pattern: Pattern = Pattern.PAIR) -> Iterator[tuple[Link, Link]]:
    """Yield (listener, connector), after each has received a frame of the other."""
    with contextlib.ExitStack() as closing:
        listener = listen(url, TOKEN, pattern)
        closing.callback(listener.close)
        connector = connect_while_serving(listener, token, pattern)
        closing.callback(connector.close)
        greet(connector, listener)
        yield listener, connector


def connect_while_serving(listener: Link, token: str = TOKEN, pattern: Pattern = Pattern.PAIR) -> Link:
    """Connect in another thread, while this thread serves the listener."""
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(connect, listener.url, token, deadline_ns(), pattern)
        serve_links_until(connecting.done, listener)
        return connecting.result()


def greet(connector: Link, listener: Link) -> None:
    """Send one frame each way, so that both ends have finished their handshake."""
    for source, target in ((connector, listener), (listener, connector)):
        assert list(carry(source, target, FrameBatch.of(b"hello"))) == [b"hello"]


def carry(source: Link, target: Link, frames: FrameBatch) -> FrameBatch:
    """Send all of `frames` and receive as many."""
    received = FrameBatch(max(frames.count, 1), frames.used_bytes + frames.largest_frame, frames.largest_frame)
    sent = 0

    def have_arrived() -> bool:
        nonlocal sent
        if sent < frames.count:
            sent = source.send(frames, sent)
        target.receive(received)
        return received.count == frames.count

    serve_links_until(have_arrived, target, source)
    return received


@contextlib.contextmanager
def in_thread(work: Callable[[], None]) -> Iterator[None]:
    """Do the work in a thread inside the context; an exception of the work fails the test."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result(PATIENCE_S)
