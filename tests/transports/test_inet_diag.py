"""The kernel's counters of any connection: held against what its own descriptors say, and against bad answers."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transports import inet_diag, tcp_info
from transports.base import TransportError
from transports.inet_diag import Connection, connections, dump

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inet_diag is Linux's")

NOBODY = 65534
DONE = struct.pack("=IHHIIi", 20, 3, 2, 0, 0, 0)
FOREIGN = """
import socket
one = socket.create_connection(("127.0.0.1", int(input())))
one.sendall(b"hello")
print("connected", flush=True)
input()
"""


@contextlib.contextmanager
def pair(family: int, host: str, mapped: bool = False) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection, the one that connected first."""
    listens_on = (socket.AF_INET6, "::") if mapped else (family, host)
    with (
        socket.create_server((listens_on[1], 0), family=listens_on[0], dualstack_ipv6=mapped) as door,
        socket.create_connection((host, door.getsockname()[1])) as one,
        door.accept()[0] as other,
    ):
        yield one, other


def port_of(end: socket.socket) -> int:
    return end.getsockname()[1]


def exchange(one: socket.socket, other: socket.socket, times: int) -> None:
    for _ in range(times):
        one.sendall(b"order")
        assert other.recv(5, socket.MSG_WAITALL) == b"order"
        other.sendall(b"answer")
        assert one.recv(6, socket.MSG_WAITALL) == b"answer"


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Whoever runs the tests: for a while, nobody."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def seen_at(end: socket.socket) -> Connection:
    name = inet_diag.address_name(socket.inet_pton(end.family, end.getsockname()[0]), port_of(end))
    return next(found for found in connections(port_of(end)) if found.local == name)


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_both_ends_are_counted_as_their_own_descriptors_say(family, host):
    with pair(family, host) as (one, other):
        exchange(one, other, 100)
        for end in (one, other):
            assert seen_at(end).counters == tcp_info.counters(end)
        assert seen_at(one).counters["bytes_out"] == 500 == seen_at(other).counters["bytes_in"]
        assert seen_at(one).counters["segments_in"] >= 100


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_is_found_by_either_ends_port_and_both_ends_are_told(family):
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with pair(family, host) as (one, other):
        names = [f"[{host}]:{port_of(end)}" if ":" in host else f"{host}:{port_of(end)}" for end in (one, other)]
        for port in (port_of(one), port_of(other)):
            found = {(end.local, end.peer) for end in connections(port)}
            assert found >= {(names[0], names[1]), (names[1], names[0])}


def test_ipv4_over_a_listener_for_both_is_written_as_ipv4():
    with pair(socket.AF_INET, "127.0.0.1", mapped=True) as (one, other):
        assert other.getsockname()[0] == "::ffff:127.0.0.1"
        assert {end.local for end in connections(port_of(other))} >= {f"127.0.0.1:{port_of(e)}" for e in (one, other)}


def test_a_port_without_connections_has_none_and_listeners_are_none():
    with socket.create_server(("127.0.0.1", 0)) as door:
        assert connections(port_of(door)) == []


def test_an_ended_connection_is_not_told():
    with pair(socket.AF_INET, "127.0.0.1") as (one, other):
        ends = {f"127.0.0.1:{port_of(end)}" for end in (one, other)}
        other.close()
        assert one.recv(1) == b""
        assert not [found for found in connections(port_of(one)) if {found.local, found.peer} == ends]


def test_without_privilege_a_connection_of_another_process_and_user_is_seen():
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        subprocess.Popen([sys.executable, "-c", FOREIGN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as foreign,
    ):
        assert foreign.stdin
        assert foreign.stdout
        foreign.stdin.write(b"%d\n" % port_of(door))
        foreign.stdin.flush()
        other, peer = door.accept()
        with other:
            assert foreign.stdout.readline() == b"connected\n"
            with unprivileged():
                found = {end.local: end.counters for end in connections(port_of(door))}
        assert found[f"127.0.0.1:{peer[1]}"]["bytes_out"] == 5
        foreign.communicate(b"\n")


def test_so_many_connections_that_the_answer_has_many_parts_are_all_told():
    with socket.create_server(("127.0.0.1", 0), backlog=200) as door, contextlib.ExitStack() as ends:
        for _ in range(200):
            ends.enter_context(socket.create_connection(door.getsockname()))
            ends.enter_context(door.accept()[0])
        name = f"127.0.0.1:{port_of(door)}"
        assert sum(name in {found.local, found.peer} for found in connections(port_of(door))) == 400


def test_elsewhere_than_on_linux_it_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(TransportError, match="on Linux only"):
        connections(80)


class Scripted:
    """A netlink socket whose kernel answers each request as told; `{}` in time means an answer to the latest one."""

    def __init__(self, *answers: bytes, flags: int = 0) -> None:
        self._answers, self._flags = list(answers), flags
        self.requests = 0

    def send(self, request: bytes) -> None:
        self.requests += 1
        self._number = request[8:12]

    def recvmsg(self, _length: int) -> tuple[bytes, list[object], int, None]:
        if not self._answers:
            raise TimeoutError
        answer = self._answers.pop(0)
        return self._numbered(answer), [], self._flags, None

    def _numbered(self, answer: bytes) -> bytes:
        """Answers to this request, as far as they are whole messages."""
        numbered, at = bytearray(answer), 0
        while at + 16 <= len(answer):
            numbered[at + 8 : at + 12] = self._number
            at += max(16, (int.from_bytes(answer[at : at + 4], sys.byteorder) + 3) & ~3)
        return bytes(numbered)


def message(kind: int, payload: bytes, flags: int = 2, length: int | None = None) -> bytes:
    return struct.pack("=IHHII", 16 + len(payload) if length is None else length, kind, flags, 0, 0) + payload


def told(info: bytes = bytes(232)) -> bytes:
    """A connection 10.0.0.1:80 to 10.0.0.2:4711 with a tcp_info."""
    ends = struct.pack(">HH4s12x4s12x", 80, 4711, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    return b"\x02\x01\x00\x00" + ends + bytes(32) + struct.pack("=HH", 4 + len(info), 2) + info


def ask(*answers: bytes, flags: int = 0) -> list[Connection]:
    return dump(Scripted(*answers, flags=flags), socket.AF_INET, 80)


def test_an_answer_of_two_parts_and_an_end_is_read_whole():
    one = message(20, told())
    assert [end.local for end in ask(one + one, one, DONE)] == ["10.0.0.1:80"] * 3
    assert ask(one + DONE)[0].counters == dict.fromkeys(tcp_info.COUNTERS, 0)


def test_an_older_kernels_shorter_tcp_info_leaves_counters_out():
    assert set(ask(message(20, told(bytes(140))) + DONE)[0].counters) == {"retransmits", "bytes_in", "segments_out"}


def test_a_kernel_that_refuses_is_an_oserror_with_its_number():
    with pytest.raises(PermissionError):
        ask(message(2, struct.pack("=i", -errno.EPERM) + bytes(16)))
    with pytest.raises(OSError, match="No such file") as refused:
        ask(message(20, told()), message(3, struct.pack("=i", -errno.ENOENT)))
    assert refused.value.errno == errno.ENOENT


def test_an_interrupted_dump_is_asked_again_and_its_half_is_forgotten():
    kernel = Scripted(message(20, told(), flags=0x12), DONE, DONE)
    assert dump(kernel, socket.AF_INET, 80) == []
    assert kernel.requests == 2


def test_a_dump_that_is_always_interrupted_is_given_up():
    with pytest.raises(BlockingIOError, match="changed under every look"):
        ask(*[message(3, bytes(4), flags=0x12)] * inet_diag.ATTEMPTS)


def test_answers_to_somebody_elses_request_are_passed_over():
    class Another(Scripted):
        def _numbered(self, answer: bytes) -> bytes:
            return answer if answer == message(20, told()) else super()._numbered(answer)

    assert dump(Another(message(20, told()), DONE), socket.AF_INET, 80) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x10",
        message(20, told())[:-1],
        message(20, told(), length=0),
        message(20, told(), length=15),
        message(20, told(), length=1 << 31),
        message(20, told()[:71]),
        message(20, told()[:72] + struct.pack("=HH", 3, 2)),
        message(20, told()[:72] + struct.pack("=HH", 300, 2) + bytes(100)),
        message(3, b"\x00"),
    ],
)
def test_a_malformed_answer_is_an_oserror(answer):
    with pytest.raises(OSError, match="the kernel's answer") as refused:
        ask(answer)
    assert refused.value.errno == errno.EBADMSG


def test_an_answer_that_did_not_fit_is_an_oserror():
    with pytest.raises(OSError, match="longer than what was read"):
        ask(message(20, told()), flags=socket.MSG_TRUNC)


WHOLE = message(20, told()) * 2 + DONE


@given(st.lists(st.one_of(st.binary(max_size=200), st.just(WHOLE)), max_size=3), st.data())
def test_whatever_is_answered_becomes_connections_or_an_oserror(answers, data):
    changed = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(0, 4))):
        changed[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = ask(bytes(changed)[: data.draw(st.integers(0, len(WHOLE)))], *answers)
    except OSError:
        return
    assert all(isinstance(end, Connection) for end in found)
