"""Hellos: what two ends of a session must have been given alike."""

from __future__ import annotations

import dataclasses
import time

import pytest

from exchange.instances import INSTANCES, named, tagged
from exchange.measurements import Source
from exchange.messages import PROTOCOL_VERSION, decode, encode
from exchange.session import Disagreement, Terms, source_of

TERMS = Terms(run=0xFEED, policy="price-time", packing=4, max_price=999)

DIFFERENCES = [
    ({"run": 0xBEEF}, "--run 000000000000beef, this end with 000000000000feed"),
    ({"policy": "exact-price"}, "--policy exact-price, this end with price-time"),
    ({"packing": 8}, "--packing 8, this end with 4"),
    ({"max_price": 998}, "--max-price 998, this end with 999"),
]


def test_a_hello_carries_the_terms_and_both_clocks():
    before_ns = time.time_ns(), time.monotonic_ns()
    hello = TERMS.hello(Source.ENGINE)
    after_ns = time.time_ns(), time.monotonic_ns()
    assert (hello.version, hello.source) == (PROTOCOL_VERSION, 2)
    assert (hello.run, hello.policy, hello.packing, hello.max_price) == (0xFEED, 1, 4, 999)
    assert before_ns[0] <= hello.wall_ns <= after_ns[0]
    assert before_ns[1] <= hello.monotonic_ns <= after_ns[1]
    assert decode(encode(hello)) == hello


@pytest.mark.parametrize("source", Source)
def test_equal_terms_agree_whoever_speaks(source):
    TERMS.agree(Terms(**dataclasses.asdict(TERMS)).hello(source))


@pytest.mark.parametrize(("change", "said"), DIFFERENCES)
def test_a_disagreement_names_the_option_both_values_and_who_said_it(change, said):
    theirs = dataclasses.replace(TERMS, **change).hello(Source.ENGINE)
    with pytest.raises(Disagreement) as refused:
        TERMS.agree(theirs)
    assert str(refused.value) == f"engine was started with {said}: give both the same"


def test_another_protocol_version_is_a_disagreement():
    theirs = TERMS.hello(Source.GATEWAY)._replace(version=PROTOCOL_VERSION + 1)
    with pytest.raises(Disagreement, match=f"gateway was started with protocol version {PROTOCOL_VERSION + 1}"):
        TERMS.agree(theirs)


def test_clocks_need_not_agree():
    TERMS.agree(TERMS.hello(Source.ENGINE)._replace(wall_ns=0, monotonic_ns=2**63))


def test_the_widest_terms_fit_a_hello():
    widest = Terms(run=2**64 - 1, policy="exact-price", packing=1_000, max_price=65_534)
    hello = decode(encode(widest.hello(Source.REPORTER)))
    assert (hello.run, hello.packing, hello.max_price) == (2**64 - 1, 1_000, 65_534)


def test_a_stranger_that_is_no_source_of_ours_is_a_disagreement_too():
    with pytest.raises(Disagreement):
        TERMS.agree(TERMS.hello(Source.ENGINE)._replace(source=9, run=1))


def test_who_meets_the_other_end_of_another_pair_is_told_so():
    with pytest.raises(Disagreement) as refused:
        TERMS.agree(dataclasses.replace(TERMS, instance=3).hello(Source.ENGINE))
    assert str(refused.value) == "engine.3 was started with --instance 3, this end with 1: give both the same"


def test_a_source_s_byte_has_room_for_every_instance():
    for instance in INSTANCES:
        hello = decode(encode(dataclasses.replace(TERMS, instance=instance).hello(Source.REPORTER)))
        assert source_of(hello.source) == named("reporter", instance)


def test_the_first_instance_s_byte_is_the_number_itself():
    assert [tagged(number, 1) for number in range(8)] == list(range(8))
