"""Addresses: parts, options, and the errors for text that is no address."""

from __future__ import annotations

import time

import pytest

from transports.base import Address, BadAddress, mask
from transports.declaration import BUFFERS
from transports.registry import connect, transport_of


@pytest.mark.parametrize("url", ["tcp://[::1:7000", "tcp://[nonsense]:7000", "tcp", "", "127.0.0.1:7000", "//x"])
def test_text_that_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadAddress, match="is no address"):
        Address.parse(url, "token")


def test_an_option_may_have_an_empty_value() -> None:
    assert Address.parse("zeromq://127.0.0.1:1?calls=", "token").options == {"calls": ""}


def test_a_misspelt_option_is_refused_with_the_known_options() -> None:
    address = Address.parse("zeromq://127.0.0.1:1?cals=plain", "token")
    taken = "back, calls, full, hwm, keys, nodelay, rcvbuf, sndbuf, topology"
    with pytest.raises(BadAddress, match=f"'cals' is no option of zeromq, which takes {taken}"):
        transport_of("zeromq").check(address)


@pytest.mark.parametrize("place", ["/tmp/a#1/engine.sock", "/tmp/c++/engine.sock"])
def test_a_path_may_have_any_character_except_a_question_mark(place: str) -> None:
    address = Address.parse(f"zeromq+ipc://{place}?keys=/home{place}", "token")
    assert address.place == place
    assert address.options["keys"] == f"/home{place}"
    assert Address.parse(address.url, "token") == address


@pytest.mark.parametrize("url", ["tcp://host..example:7000", f"tcp://{'a' * 64}:7000", "amqp://host..example"])
def test_an_impossible_name_of_a_host_is_refused_at_once(url: str) -> None:
    with pytest.raises(BadAddress, match=r"is no name of a host: each part between two dots has 1 to 63 characters"):
        connect(url, "token", time.monotonic_ns() + 60 * 10**9)


def test_an_ipv6_address_is_split_into_host_and_port() -> None:
    assert Address.parse("tcp://[::1]:7000", "token").host_and_port() == ("::1", 7000)


@pytest.mark.parametrize("port", ["", "-1", "65536", "seven", "9" * 5_000])
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(BadAddress, match=r"lacks host:port with a port of 0\.\.65535"):
        Address.parse(f"tcp://127.0.0.1:{port}", "token").host_and_port()


@pytest.mark.parametrize("size", ["", "-1", "4095", "large", "9" * 5_000])
def test_what_is_no_size_of_a_buffer_is_refused(size: str) -> None:
    problem = BUFFERS["sndbuf"].problem_of(size)
    assert problem is not None
    assert "it takes a number of bytes, 4,096 to" in problem


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("amqp://me:secret@host:1/shop?nodelay=off", "amqp://me:***@host:1/shop?nodelay=off"),
        ("amqp://me:a/b?c@d@host/", "amqp://me:***@host/"),
        ("amqps://me:secret@host?keys=/home/me@work/k", "amqps://me:***@host?keys=/home/me@work/k"),
        ("zeromq+tcp://127.0.0.1:7000?keys=/home/me@work/k", "zeromq+tcp://127.0.0.1:7000?keys=/home/me@work/k"),
        ("zeromq+ipc:///home/me@work/engine.sock", "zeromq+ipc:///home/me@work/engine.sock"),
    ],
)
def test_a_password_has_stars_and_all_else_is_shown(url: str, masked: str) -> None:
    assert mask(url) == masked
