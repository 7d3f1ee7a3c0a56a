"""Two ends of one link, joined as two components would be, and a pump that moves frames until something holds."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from exchange_simulation.messaging.session import await_subscribers
from tests.broker import shares_the_broker
from tests.machine import PATIENCE_S
from transports.base import Address, Link, Pattern
from transports.declaration import RunningBroker
from transports.frames import FrameBatch
from transports.registry import connect, has_broker, known_schemes, listen, transport_of

TOKEN = "a-run"
NAMES = itertools.count()


def urls() -> list[str]:
    """Every scheme that a transport serves, in each of its variants: a new transport is picked up unasked.

    A broker that no test can start is left out, as that of amqps: tests/transports/amqp has its own.
    """
    return [
        f"{scheme}://{{{transport_of(scheme).places[scheme]}}}{'?' + variant if variant else ''}"
        for scheme in known_schemes()
        if not has_broker(scheme) or _can_start(scheme)
        for variant in _variants(scheme)
    ]


def _can_start(scheme: str) -> bool:
    declared = transport_of(scheme).broker
    return declared is not None and scheme in declared().starts


def _variants(scheme: str) -> list[str]:
    """The variants that a scheme declares, and a connection for each direction if it can have that."""
    transport = transport_of(scheme)
    return [*(transport.variants or ("",)), *(["topology=simplex"] if scheme in transport.simplex else [])]


def deadline_ns(seconds: float = PATIENCE_S) -> int:
    return time.monotonic_ns() + int(seconds * 1e9)


def as_parameter(url: str, *marks: pytest.MarkDecorator) -> pytest.ParameterSet:
    """Return a URL as a parameter of tests, marked as well if it is at the broker that all tests share."""
    if "{broker}" in url:
        return pytest.param(url, marks=[*marks, shares_the_broker])
    return pytest.param(url, marks=marks)


def _as_parameter_of_contract(url: str) -> pytest.ParameterSet:
    """Return the same, `long` where another URL shows the same: zeromq is zeromq+tcp, confirmed acks too."""
    if url.startswith("zeromq+tcp:") or url.endswith("delivery=acked"):
        return as_parameter(url, pytest.mark.long)
    return as_parameter(url)


SECURE = ("zeromq://{port}?keys={keys}", "tcp://{port}?keys={keys}")


@pytest.fixture(params=[_as_parameter_of_contract(url) for url in (*urls(), *SECURE)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of its own for each test."""
    return placed(request, tmp_path)


SAME = ("topology=", "zeromq+tcp:", "delivery=acked")
"""No other ways for a pattern: it has connections of its own, zeromq is zeromq+tcp, confirmed has acks as well."""


def urls_with(pattern: Pattern) -> list[pytest.ParameterSet]:
    """Return the URLs whose transport has the pattern, as parameters of tests."""
    return [as_parameter(url) for url in urls() if _has(url, pattern) and not any(same in url for same in SAME)]


def _has(url: str, pattern: Pattern) -> bool:
    scheme = url.partition(":")[0]
    return pattern in transport_of(scheme).patterns


def placed(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of the parameter with a free place in it, and what a test left at a broker taken down behind it."""
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
    """Gives the place of a scheme's broker, with what its clients need in the environment."""
    used: dict[str, RunningBroker] = {}

    def environment(broker: RunningBroker) -> None:
        for name, value in broker.environment.items():
            monkeypatch.setenv(name, value)

    def place_of(scheme: str) -> str:
        used[scheme] = brokers(scheme)
        environment(used[scheme])
        return used[scheme].url.partition("://")[2]

    yield place_of
    for scheme, broker in used.items():
        environment(broker)
        declared = transport_of(scheme).broker
        probe = declared().probe(broker.url, [Address.parse(broker.url, TOKEN)]) if declared else None
        if probe is not None:
            probe.take_down()
            probe.close()


@pytest.fixture
def broker_place(broker_place_of: Callable[[str], str]) -> str:
    """user@host:port/vhost of the RabbitMQ that all tests share."""
    return broker_place_of("amqp")


def until(condition: Callable[[], bool], *links: Link) -> None:
    """Serve the links until the condition holds; AssertionError if it never does."""
    end_ns = deadline_ns()
    while not condition():
        assert time.monotonic_ns() < end_ns, "nothing happened in time"
        for link in links:
            link.wait(time.monotonic_ns() + 1_000_000)


@contextlib.contextmanager
def publishing(
    url: str, pattern: Pattern, keys: tuple[str, ...], *of_subscribers: tuple[str, ...]
) -> Iterator[tuple[Link, list[Link]]]:
    """(publisher, a subscriber for each set of keys), all of them there."""
    with contextlib.ExitStack() as closing:
        publisher = listen(url, TOKEN, pattern, keys)
        closing.callback(publisher.close)
        subscribers = [connect(publisher.url, TOKEN, deadline_ns(), pattern, each) for each in of_subscribers]
        for link in subscribers:
            closing.callback(link.close)
        await_subscribers(publisher, len(subscribers), deadline_ns())
        yield publisher, subscribers


@contextlib.contextmanager
def joined(url: str, token: str = TOKEN, pattern: Pattern = Pattern.PAIR) -> Iterator[tuple[Link, Link]]:
    """(listener, connector), each with the other's greeting behind it."""
    with contextlib.ExitStack() as closing:
        listener = listen(url, TOKEN, pattern)
        closing.callback(listener.close)
        connector = connect_while_serving(listener, token, pattern)
        closing.callback(connector.close)
        greet(connector, listener)
        yield listener, connector


def connect_while_serving(listener: Link, token: str = TOKEN, pattern: Pattern = Pattern.PAIR) -> Link:
    with ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(connect, listener.url, token, deadline_ns(), pattern)
        until(connecting.done, listener)
        return connecting.result()


def greet(connector: Link, listener: Link) -> None:
    """One frame each way, so that both ends are through their handshake."""
    for source, target in ((connector, listener), (listener, connector)):
        assert list(carry(source, target, FrameBatch.of(b"hello"))) == [b"hello"]


def carry(source: Link, target: Link, frames: FrameBatch) -> FrameBatch:
    """Send all of `frames` and receive as many."""
    received = FrameBatch(max(frames.count, 1), frames.used_bytes + frames.largest_frame, frames.largest_frame)
    sent = 0

    def arrived() -> bool:
        nonlocal sent
        sent = source.send(frames, sent) if sent < frames.count else sent
        target.receive(received)
        return received.count == frames.count

    until(arrived, target, source)
    return received


@contextlib.contextmanager
def in_thread(work: Callable[[], None]) -> Iterator[None]:
    """Do it beside the test; what it raises fails the test."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work)
        yield
        done.result(PATIENCE_S)
