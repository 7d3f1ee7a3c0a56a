"""Addresses: what is none is refused with a sentence."""

from __future__ import annotations

import time

import pytest

from transports.base import Address, BadAddress
from transports.registry import connect, transport_of


@pytest.mark.parametrize("url", ["tcp://[::1:7000", "tcp://[nonsense]:7000", "tcp", "", "127.0.0.1:7000", "//x"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadAddress, match="is no address"):
        Address.parse(url, "token")


def test_an_option_without_a_value_is_an_option_all_the_same() -> None:
    assert Address.parse("zeromq://127.0.0.1:1?calls=", "token").options == {"calls": ""}


def test_a_misspelt_option_is_refused_with_those_there_are() -> None:
    address = Address.parse("zeromq://127.0.0.1:1?cals=plain", "token")
    taken = "back, calls, hwm, keys, nodelay, rcvbuf, sndbuf, topology"
    with pytest.raises(BadAddress, match=f"'cals' is no option of zeromq, which takes {taken}"):
        transport_of("zeromq").check(address)


@pytest.mark.parametrize("place", ["/tmp/a#1/engine.sock", "/tmp/c++/engine.sock"])
def test_a_path_may_have_any_character_but_a_question_mark(place: str) -> None:
    address = Address.parse(f"zeromq+ipc://{place}?keys=/home{place}", "token")
    assert (address.place, address.options["keys"]) == (place, f"/home{place}")
    assert Address.parse(address.url, "token") == address


@pytest.mark.parametrize("url", ["tcp://host..example:7000", f"tcp://{'a' * 64}:7000", "amqp://host..example"])
def test_a_host_that_no_name_can_be_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadAddress, match=r"is no name of a host: between two dots are 1 to 63 characters"):
        connect(url, "token", time.monotonic_ns() + 60 * 10**9)


def test_an_address_of_ipv6_is_taken_apart() -> None:
    assert Address.parse("tcp://[::1]:7000", "token").host_and_port() == ("::1", 7000)
