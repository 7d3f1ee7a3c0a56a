"""Hellos: the options that both ends of a session must share."""

from __future__ import annotations

import dataclasses
import time

import pytest

from exchange.instances import INSTANCES, named, tagged
from exchange.instruments import MAX_INSTRUMENTS
from exchange.messages import PROTOCOL_VERSION, Hello, decode, encode, read
from exchange.meters import Source
from exchange.session import Disagreement, Terms, source_of

TERMS = Terms(run=0xFEED, policy="price-time", packing=4, max_price=999)
BYTES_OF_HELLOS = {2: 33, 3: 35}
"""The lengths of hellos of older versions, with their type byte."""

DIFFERENCES = [
    ({"run": 0xBEEF}, "--run 000000000000beef, this end with 000000000000feed"),
    ({"policy": "exact-price"}, "--policy exact-price, this end with price-time"),
    ({"packing": 8}, "--packing 8, this end with 4"),
    ({"max_price": 998}, "--max-price 998, this end with 999"),
    ({"instruments": 100}, "--instruments 100, this end with 1"),
    ({"gateways": 4}, "--gateways 4, this end with 1"),
    ({"engines": 2}, "--engines 2, this end with 1"),
]


def test_a_hello_carries_the_terms_and_both_clocks():
    wall_before_ns = time.time_ns()
    monotonic_before_ns = time.monotonic_ns()
    hello = TERMS.hello(Source.ENGINE)
    assert hello.version == PROTOCOL_VERSION
    assert hello.source == 2
    assert hello.run == 0xFEED
    assert hello.policy == 1
    assert hello.packing == 4
    assert hello.max_price == 999
    assert hello.instruments == 1
    assert wall_before_ns <= hello.wall_ns <= time.time_ns()
    assert monotonic_before_ns <= hello.monotonic_ns <= time.monotonic_ns()
    assert decode(encode(hello)) == hello


@pytest.mark.parametrize("source", Source)
def test_equal_terms_agree_for_every_source(source):
    equal_terms = dataclasses.replace(TERMS)
    TERMS.agree(equal_terms.hello(source))


@pytest.mark.parametrize(("change", "difference"), DIFFERENCES)
def test_a_disagreement_names_the_source_the_option_and_both_values(change, difference):
    hello = dataclasses.replace(TERMS, **change).hello(Source.ENGINE)
    with pytest.raises(Disagreement) as refused:
        TERMS.agree(hello)
    assert str(refused.value) == f"engine was started with {difference}: give both the same"


def test_another_protocol_version_is_a_disagreement():
    hello = TERMS.hello(Source.GATEWAY)._replace(version=PROTOCOL_VERSION + 1)
    with pytest.raises(Disagreement, match=f"gateway was started with protocol version {PROTOCOL_VERSION + 1}"):
        TERMS.agree(hello)


@pytest.mark.parametrize("version", [*BYTES_OF_HELLOS, PROTOCOL_VERSION + 1])
def test_a_hello_of_another_version_is_refused_with_the_version_whatever_its_length(version):
    whole_hello = encode(TERMS.hello(Source.ENGINE)._replace(version=version))
    is_older = version in BYTES_OF_HELLOS
    hello_of_version = whole_hello[: BYTES_OF_HELLOS[version]] if is_older else whole_hello + b"new"
    hello = read(hello_of_version)
    assert isinstance(hello, Hello)
    with pytest.raises(Disagreement) as refused:
        TERMS.agree(hello)
    assert str(refused.value) == (
        f"engine was started with protocol version {version}, this end with {PROTOCOL_VERSION}: give both the same"
    )


def test_a_hello_of_our_version_with_another_length_is_a_foreign_frame():
    hello = encode(TERMS.hello(Source.ENGINE))
    assert read(hello[:-1]) is None
    assert read(hello + b"x") is None


def test_less_than_the_shortest_hello_is_a_foreign_frame():
    hello = encode(TERMS.hello(Source.ENGINE)._replace(version=2))
    assert read(hello[: BYTES_OF_HELLOS[2] - 1]) is None


@pytest.mark.parametrize(
    ("role", "option", "sentence"),
    [
        (
            Source.ENGINE,
            "--market-data",
            "address 1 of --market-data leads to engine 2: give the addresses in the order of the engines' numbers, or "
            "start that engine with --instance 1",
        ),
        (
            Source.GATEWAY,
            "--engine",
            "gateway takes this engine for engine 2, and its --instance is 1: give --engine there the addresses in the "
            "order of the engines' numbers",
        ),
    ],
)
def test_another_engine_than_the_one_at_an_address_is_refused(role, option, sentence):
    ours = dataclasses.replace(TERMS, engines=2, engine=1)
    theirs = dataclasses.replace(TERMS, engines=2, engine=2)
    with pytest.raises(Disagreement) as refused:
        ours.agree(theirs.hello(role), option)
    assert str(refused.value) == sentence


def test_the_clocks_of_two_hellos_may_differ():
    TERMS.agree(TERMS.hello(Source.ENGINE)._replace(wall_ns=0, monotonic_ns=2**63))


def test_the_widest_terms_fit_a_hello():
    widest = Terms(run=2**64 - 1, policy="exact-price", packing=1_000, max_price=65_534, instruments=MAX_INSTRUMENTS)
    hello = decode(encode(widest.hello(Source.REPORTER)))
    assert hello.run == 2**64 - 1
    assert hello.packing == 1_000
    assert hello.max_price == 65_534
    assert hello.instruments == MAX_INSTRUMENTS


def test_an_unknown_source_is_a_disagreement():
    with pytest.raises(Disagreement):
        TERMS.agree(TERMS.hello(Source.ENGINE)._replace(source=9, run=1))


def test_a_component_of_another_pair_is_a_disagreement():
    with pytest.raises(Disagreement) as refused:
        TERMS.agree(dataclasses.replace(TERMS, instance=3).hello(Source.ENGINE))
    assert str(refused.value) == "engine.3 was started with --instance 3, this end with 1: give both the same"


@pytest.mark.parametrize(("role", "ours", "theirs"), [(Source.ENGINE, 1, 2), (Source.GATEWAY, 2, 1)])
def test_a_gateway_at_the_address_of_another_is_told_so_at_both_ends(role, ours, theirs):
    our_terms = dataclasses.replace(TERMS, gateways=2, instance=ours)
    their_terms = dataclasses.replace(TERMS, gateways=2, instance=theirs)
    with pytest.raises(Disagreement) as refused:
        our_terms.agree(their_terms.hello(role))
    assert str(refused.value) == (
        "gateway 1 is at the engine's address for gateway 2: give that gateway --instance 2, or with --engine the "
        "address for gateway 1"
    )


def test_a_source_s_byte_has_room_for_every_instance():
    for instance in INSTANCES:
        hello = decode(encode(dataclasses.replace(TERMS, instance=instance).hello(Source.REPORTER)))
        assert source_of(hello.source) == named("reporter", instance)


def test_the_first_instance_does_not_change_a_source_s_number():
    assert [tagged(number, 1) for number in range(8)] == list(range(8))
