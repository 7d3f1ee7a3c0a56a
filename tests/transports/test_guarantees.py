"""Guarantees: which one an address has, and what is said of those that differ."""

from __future__ import annotations

import pytest

from exchange.settings import RunSettings
from exchange_simulation.launching.transport_settings import guarantee_of
from transports.guarantees import IN_MEMORY, WITHOUT_SERVER, Fate, Guarantee, Sync, guarantee_for, unlike_guarantees
from transports.registry import built_in

ON_DISK = Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM)


def test_the_last_guarantee_whose_options_are_all_given_holds() -> None:
    guarantees = {"": IN_MEMORY, "a=1": WITHOUT_SERVER, "a=1&b=2": ON_DISK}
    assert guarantee_for(guarantees, {}) is IN_MEMORY
    assert guarantee_for(guarantees, {"a": "1", "c": "3"}) is WITHOUT_SERVER
    assert guarantee_for(guarantees, {"b": "2", "a": "1"}) is ON_DISK
    assert guarantee_for({"a=1": ON_DISK}, {}) is None


@pytest.mark.parametrize(
    ("transport", "delivery", "level"),
    [
        ("zeromq", None, "lossy"),
        ("amqp", None, "lossy"),
        ("amqp", "acked", "acknowledged"),
        ("amqp://me@host:1/", "durable", "durable, synced before it confirms"),
        ("amqp?queue=quorum", "confirmed", "durable, synced before it confirms"),
        ("redis", None, "lossy"),
        ("redis?kind=stream", None, "durable, synced once a second"),
        ("redis://host:1?kind=stream", None, "durable, synced once a second"),
    ],
)
def test_the_guarantee_of_a_run_follows_from_its_url_and_its_delivery(
    transport: str, delivery: str | None, level: str
) -> None:
    guarantee = guarantee_of(RunSettings(transport=transport, delivery=delivery))
    assert guarantee is not None
    assert guarantee.level == level


def test_a_transport_that_nobody_has_has_no_guarantee() -> None:
    assert guarantee_of(RunSettings(transport="pigeon")) is None


def test_every_option_that_a_guarantee_names_is_an_option_with_that_word() -> None:
    for transport in built_in().values():
        for query in filter(None, transport.guarantees):
            for condition in query.split("&"):
                option, _, word = condition.partition("=")
                assert word in transport.words(option)


def test_guarantees_that_differ_are_said_with_the_names_of_each() -> None:
    alike = {"zeromq": WITHOUT_SERVER, "nats": IN_MEMORY}
    assert unlike_guarantees(alike) == ""
    sentence = unlike_guarantees({**alike, "amqp": ON_DISK, "mine": None})
    assert sentence == (
        "the guarantees differ, so this is not like against like: zeromq and nats are lossy; "
        "amqp is durable, synced before it confirms; mine is of no declared guarantee"
    )
