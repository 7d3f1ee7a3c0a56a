"""A server's own options: only one that is started here takes them, and servers with unlike ones are not shared."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.launch.brokers import Brokers, broker_of_run
from exchange_simulation.launching.transport_defaults import with_transport_defaults
from exchange_simulation.launching.transport_urls import split_query
from transports.amqp.broker import RabbitMq
from transports.base import BadAddress
from transports.declaration import RunningBroker, ServerPlace


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, str], set[int]]]:
    """The list of the brokers that are started, in place of which nothing starts."""
    noted: list[tuple[dict[str, str], set[int]]] = []

    @contextlib.contextmanager
    def start(
        self: RabbitMq, folder: Path, process_group: int | None, nodelay: bool, where: ServerPlace
    ) -> Iterator[RunningBroker]:
        noted.append((dict(self.options), os.sched_getaffinity(0)))
        yield RunningBroker(f"amqp://me@host:{len(noted)}/")

    monkeypatch.setattr(RabbitMq, "start", start)
    monkeypatch.setattr(RabbitMq, "standing", lambda self, nodelay: None)
    return noted


def urls_of(*settings: RunSettings) -> list[str]:
    with Brokers() as brokers:
        return [broker_of_run(with_transport_defaults(each), brokers).url for each in settings]


def test_a_query_is_split_into_the_options_of_the_links_and_of_the_server() -> None:
    assert split_query("queue=quorum&schedulers=1&pair=2&busy_wait=none", {"schedulers", "busy_wait"}) == (
        "queue=quorum&pair=2",
        {"schedulers": "1", "busy_wait": "none"},
    )
    assert split_query("", {"schedulers"}) == ("", {})


def test_servers_are_shared_by_runs_with_the_same_options(started: list[tuple[dict[str, str], set[int]]]) -> None:
    one, other, like_one, plain = urls_of(
        RunSettings(transport="amqp?schedulers=1"),
        RunSettings(transport="amqp?schedulers=2"),
        RunSettings(transport="amqp?prefetch=5&schedulers=1", delivery="acked"),
        RunSettings(transport="amqp"),
    )
    assert [options for options, _ in started] == [{"schedulers": "1"}, {"schedulers": "2"}, {}]
    assert [url.partition("?")[0][-2:] for url in (one, other, like_one, plain)] == ["1/", "2/", "1/", "3/"]
    assert "schedulers" not in one + other + like_one
    assert "prefetch=5" in like_one


def test_a_broker_is_started_on_its_processor(started: list[tuple[dict[str, str], set[int]]]) -> None:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    urls_of(RunSettings(transport="amqp", cpus={"broker": cpu, "gateway": 0}), RunSettings(transport="amqp"))
    assert [processors for _, processors in started] == [{cpu}, before]
    assert os.sched_getaffinity(0) == before


def test_a_processor_that_is_not_here_is_named_with_those_that_are() -> None:
    with pytest.raises(UserError, match=r"--cpus is broker=4000; the processors here are \d"):
        urls_of(RunSettings(transport="amqp", cpus={"broker": 4000}))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"transport": "amqp://me@host:1/?schedulers=1&busy_wait=none"}, "keeps its own schedulers and busy_wait"),
        ({"transport": "redis://host:1?kind=stream&sync=always"}, "keeps its own sync"),
        ({"transport": "nats://host:1", "cpus": {"broker": 0}}, "keeps its processors: leave broker out of --cpus"),
    ],
)
def test_a_server_of_somebody_else_keeps_its_own_options(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadAddress, match=sentence):
        urls_of(RunSettings(**settings))  # type: ignore[arg-type]


def test_a_transport_without_a_broker_has_no_processor_for_one() -> None:
    with pytest.raises(BadSetting, match="zeromq has no broker"):
        with_transport_defaults(RunSettings(transport="zeromq", cpus={"broker": 0}))
