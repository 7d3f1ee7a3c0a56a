"""RESP3 read in Python: every kind of value, bytes cut anywhere, and bytes that are no RESP."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports.redis.resp import ErrorReply, NoResp, Push, command, parse

texts = st.binary(max_size=40)
scalars = st.one_of(st.integers(-(10**12), 10**12), texts, st.none(), st.booleans())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(texts, st.integers()), inner, max_size=4)
    ),
    max_leaves=12,
)


def written(value: Any) -> bytes:
    """A value as a server writes it."""
    if isinstance(value, bool):
        return b"#t\r\n" if value else b"#f\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if value is None:
        return b"_\r\n"
    if isinstance(value, bytes):
        return b"$%d\r\n%s\r\n" % (len(value), value)
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(written, value))
    return b"%%%d\r\n" % len(value) + b"".join(written(key) + written(item) for key, item in value.items())


@given(values, st.binary(max_size=20))
def test_a_value_is_read_whole_and_what_is_behind_it_stays(value: Any, behind: bytes) -> None:
    data = written(value)
    try:
        parsed = parse(data + behind, 0)
    except NoResp:
        assert nesting(value) > 8
        return
    assert parsed is not None
    assert (parsed.value, parsed.end) == (value, len(data))


def nesting(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(nesting, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(nesting, value), default=0)
    return 0


@given(values, st.data())
def test_a_value_that_is_cut_waits_for_the_rest(value: Any, data: st.DataObject) -> None:
    whole = written(value)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        assert parse(cut, 0) is None
    except NoResp:
        assert nesting(value) > 8


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_wait_or_are_refused(garbage: bytes) -> None:
    try:
        parsed = parse(garbage, 0)
    except NoResp:
        return
    assert parsed is None or 0 < parsed.end <= len(garbage)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"+OK\r\n", b"OK"),
        (b"-OOM command not allowed\r\n", ErrorReply("OOM command not allowed")),
        (b"!21\r\nSYNTAX invalid syntax\r\n", ErrorReply("SYNTAX invalid syntax")),
        (b"=8\r\ntxt:some\r\n", b"some"),
        (b",1.5\r\n", 1.5),
        (b"(12345678901234567890\r\n", 12345678901234567890),
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b"~2\r\n:1\r\n:2\r\n", [1, 2]),
        (b">2\r\n+message\r\n:1\r\n", Push([b"message", 1])),
        (b"|1\r\n+ttl\r\n:3600\r\n:7\r\n", 7),
    ],
)
def test_the_kinds_of_values_that_a_server_may_send(data: bytes, value: Any) -> None:
    parsed = parse(data, 0)
    assert parsed is not None
    assert (parsed.value, parsed.end) == (value, len(data))


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n", b"$3\r\nabcdef\r\n", b":x\r\n", b"$99999999999\r\n", b"*1\r\n" * 20]
)
def test_bytes_that_are_no_resp_are_refused(data: bytes) -> None:
    with pytest.raises(NoResp):
        parse(data, 0)


def test_a_command_is_an_array_of_texts() -> None:
    assert command("PUBLISH", "ü", b"\x00") == b"*3\r\n$7\r\nPUBLISH\r\n$2\r\n\xc3\xbc\r\n$1\r\n\x00\r\n"
