"""Addresses: what is none is refused with a sentence."""

from __future__ import annotations

import pytest

from transports.base import Address, BadAddress
from transports.registry import transport_of


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


def test_an_address_of_ipv6_is_taken_apart() -> None:
    assert Address.parse("tcp://[::1]:7000", "token").host_and_port() == ("::1", 7000)
