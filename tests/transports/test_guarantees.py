"""The guarantee of an address, and the sentence about guarantees that differ."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from exchange_simulation.launching.transport_urls import guarantee_of
from transports.guarantees import IN_MEMORY, WITHOUT_SERVER, Fate, Guarantee, Sync, chosen_by_options, unlike_guarantees
from transports.registry import built_in

ON_DISK = Guarantee(Fate.KEPT, Fate.KEPT, Sync.BEFORE_CONFIRM)


def test_the_last_guarantee_with_all_its_options_given_applies() -> None:
    guarantees = {"": IN_MEMORY, "a=1": WITHOUT_SERVER, "a=1&b=2": ON_DISK}
    assert chosen_by_options(guarantees, {}) is IN_MEMORY
    assert chosen_by_options(guarantees, {"a": "1", "c": "3"}) is WITHOUT_SERVER
    assert chosen_by_options(guarantees, {"b": "2", "a": "1"}) is ON_DISK
    assert chosen_by_options({"a=1": ON_DISK}, {}) is None


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
def test_a_run_s_guarantee_follows_from_its_url_and_delivery(transport: str, delivery: str | None, level: str) -> None:
    guarantee = guarantee_of(transport, {"delivery": delivery})
    assert guarantee is not None
    assert guarantee.level == level


def test_an_unknown_transport_has_no_guarantee() -> None:
    assert guarantee_of("pigeon", {}) is None


def test_guarantees_name_only_options_and_words_of_their_transport() -> None:
    for transport in built_in().values():
        for query in transport.guarantees:
            for option, word in parse_qsl(query):
                assert word in transport.words(option)


def test_the_sentence_about_differing_guarantees_names_all_transports() -> None:
    alike = {"zeromq": WITHOUT_SERVER, "nats": IN_MEMORY}
    assert unlike_guarantees(alike) == ""
    sentence = unlike_guarantees({**alike, "amqp": ON_DISK, "mine": None})
    assert sentence == (
        "the guarantees differ, so this is not like against like: zeromq and nats are lossy; "
        "amqp is durable, synced before it confirms; mine is of no declared guarantee"
    )
