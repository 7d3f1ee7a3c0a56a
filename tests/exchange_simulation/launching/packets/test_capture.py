"""tcpdump on loopback: its counts against the kernel's, and its failures, which scripts in its place imitate."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import psutil
import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.packets.capture import Capture, Captured
from exchange_simulation.launching.packets.pcap import compare_with_counters, counts
from exchange_simulation.launching.packets.rows import packet_rows
from tests.machine import until
from transports.sockets import counted_since, counters, describe

ROUNDS = 3_000
ORDER = bytes(40)
ANSWER = bytes(70)
COUNTS = "0 packets captured, 0 packets received by filter, 0 packets dropped by kernel"
DIES_LATER = f"""
trap '' INT
trap 'echo "{COUNTS}" >&2; echo "tcpdump: Unable to write output: No space left on device" >&2; exit 1' USR1
echo "listening on lo" >&2
while :; do :; done
"""
HOUSEHOLD_WITH_CAPTURE = """
import sys, time
from pathlib import Path
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.packets.capture import Capture
with ProcessGroup() as processes, Capture([9], Path(sys.argv[1]), process_group=processes.id) as capture:
    print(capture._process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """An order's way and an answer's, over one connection without Nagle."""
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        socket.create_connection(door.getsockname()) as one,
        door.accept()[0] as other,
    ):
        for end in (one, other):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield one, other


def play(one: socket.socket, other: socket.socket, rounds: int) -> None:
    for _ in range(rounds):
        one.sendall(ORDER)
        assert other.recv(len(ORDER), socket.MSG_WAITALL) == ORDER
        other.sendall(ANSWER)
        assert one.recv(len(ANSWER), socket.MSG_WAITALL) == ANSWER


def name(end: socket.socket) -> str:
    host, port = end.getsockname()
    return f"{host}:{port}"


def reading(end: socket.socket) -> dict[str, Any]:
    return describe(end) | counters(end)


def as_record(ends: tuple[socket.socket, socket.socket], before: list[dict[str, Any]]) -> dict[str, object]:
    """A run's record of both ends' sockets since then."""
    since = counted_since([reading(end) for end in ends], before)
    sockets = [
        {"component": "gateway", **since[0]},
        {"component": "engine", **since[1]},
    ]
    return {"sockets": sockets, "duration_s": 1.0, "counts": {"orders_sent": ROUNDS}}


def test_tcpdump_and_the_kernel_count_the_same(pcap, ends):
    before = [reading(end) for end in ends]
    with Capture([ends[0].getsockname()[1]], pcap, process_group=os.getpgrp()) as capture:
        play(*ends, ROUNDS)
    record = as_record(ends, before)
    rows = packet_rows(record)
    assert capture.captured
    comparison = compare_with_counters(record, pcap, asdict(capture.captured))
    assert len(comparison["directions"]) == 2
    assert max(comparison["off_by"].values()) < 0.002, comparison  # a delayed acknowledgement more or less
    assert capture.captured.dropped == 0
    assert capture.captured.captured == pytest.approx(sum(row.segments for row in rows), rel=0.002)


def test_a_capture_of_a_whole_connection_has_the_kernel_s_counts(pcap):
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        with (
            Capture([port], pcap, process_group=os.getpgrp()),
            socket.create_connection(("127.0.0.1", port)) as one,
            door.accept()[0] as other,
        ):
            play(one, other, ROUNDS)
            accepted = reading(other)
        traffic = counts(pcap)
    sent = traffic[accepted["local"], accepted["peer"]]
    received = traffic[accepted["peer"], accepted["local"]]
    assert sent.payload_bytes == accepted["bytes_out"] == ROUNDS * len(ANSWER)
    assert received.payload_bytes == accepted["bytes_in"] == ROUNDS * len(ORDER)
    assert sent.segments == pytest.approx(accepted["segments_out"], rel=0.003)
    assert received.segments == pytest.approx(accepted["segments_in"], rel=0.003)


def test_segments_sent_in_one_piece_are_captured_as_one(pcap):
    """The captured frame has the payload of all segments."""
    block = bytes(1 << 20)
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket() as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
        one.connect(door.getsockname())
        direction = (name(one), name(door))
        with door.accept()[0] as other, Capture([one.getsockname()[1]], pcap, process_group=os.getpgrp()):
            with ThreadPoolExecutor(1) as sender:
                sent = sender.submit(one.sendall, block)
                assert other.recv(len(block), socket.MSG_WAITALL) == block
                sent.result()
            counted = counters(one)
    captured = counts(pcap)[direction]
    least_segments = len(block) / 1460
    assert captured.payload_bytes == counted["bytes_out"]
    assert captured.payload_bytes >= len(block)
    assert counted["segments_out"] > least_segments
    assert 2 * captured.segments < least_segments, "a captured frame holds several segments"


def test_a_capture_that_ends_at_once_has_lost_nothing(pcap, ends):
    for _ in range(10):
        with Capture([ends[0].getsockname()[1]], pcap, process_group=os.getpgrp()):
            play(*ends, 1)
        one, other = map(name, ends)  # look at this direction alone: another test may have the same port, elsewhere
        captured = counts(pcap)
        assert captured[one, other].payload_bytes == len(ORDER)
        assert captured[other, one].payload_bytes == len(ANSWER)


def test_only_the_ports_that_were_asked_for_are_captured(pcap, ends):
    with Capture([9, 10], pcap, process_group=os.getpgrp()):
        play(*ends, 1)
    assert counts(pcap) == {}


def test_tcpdump_ends_also_when_we_are_killed(pcap):
    killed = subprocess.Popen(
        [sys.executable, "-c", HOUSEHOLD_WITH_CAPTURE, pcap], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with killed:
        assert killed.stdout
        capturing = psutil.Process(int(killed.stdout.readline()))
        killed.kill()
    until(lambda: not capturing.is_running(), "tcpdump's end")


def test_an_interface_that_is_not_there_is_said(pcap):
    with pytest.raises(UserError, match=r"cannot capture on nowhere0: .*No such device"):
        Capture([9], pcap, process_group=os.getpgrp(), interface="nowhere0").__enter__()


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Capture]:
    """A capture whose tcpdump is a shell script; it tells where it is in `pid`."""

    def make(script: str) -> Capture:
        (tmp_path / "tcpdump").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{script}\n")
        (tmp_path / "tcpdump").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return Capture([9], tmp_path / "it.pcap", process_group=os.getpgrp())

    return make


def is_gone(tmp_path: Path) -> bool:
    return not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_user_without_the_right_to_capture_gets_advice(pretend, tmp_path):
    forbidden = "tcpdump: lo: You don't have permission to capture on that device\\n(socket: Operation not permitted)"
    with pytest.raises(
        UserError, match=r"may not capture on lo: run this as root, or .* setcap cap_net_raw=ep .*/tcpd"
    ):
        pretend(f'printf "{forbidden}\\n" >&2; exit 1').__enter__()
    assert is_gone(tmp_path)


def test_without_tcpdump_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("exchange_simulation.launching.packets.capture.OFTEN_NOT_IN_PATH", str(tmp_path))
    with pytest.raises(UserError, match="not installed: apt-get install tcpdump"):
        Capture([9], tmp_path / "it.pcap", process_group=os.getpgrp()).__enter__()


def test_captures_on_other_systems_are_refused_with_a_command(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match=r"on Linux only; .*sudo tcpdump -i lo0"):
        Capture([9], tmp_path / "it.pcap", process_group=os.getpgrp()).__enter__()


def test_a_place_that_takes_no_file_is_said(pretend, tmp_path):
    capture = pretend("exit 1")
    capture._path = tmp_path / "missing" / "it.pcap"
    with pytest.raises(UserError, match=r"cannot write .*it\.pcap"):
        capture.__enter__()


def test_a_capture_names_the_problem_of_a_tcpdump_that_ended_early(pretend, tmp_path):
    with pretend(DIES_LATER) as capture:
        pass
    assert "not whole, tcpdump ended: Unable to write output" in capture.problem
    assert capture.captured is None
    assert is_gone(tmp_path)


def test_an_error_of_tcpdump_does_not_hide_an_earlier_error(pretend, tmp_path):
    with pytest.raises(KeyboardInterrupt), pretend(DIES_LATER):
        raise KeyboardInterrupt
    assert is_gone(tmp_path)


def answering(tmp_path: Path, *answers: tuple[int, int]) -> str:
    """A script in place of tcpdump. Asked for the nth time, it has captured and received as the nth answer says.

    At its end it writes to `asked` how often it was asked.
    """
    os.mkfifo(tmp_path / "never")
    cases = ""
    for number, (captured, received) in enumerate(answers, start=1):
        cases += f" {number}) c={captured} r={received};;"
    counts = "$c packets captured, $r packets received by filter, 0 packets dropped by kernel"
    return f"""
        trap 'n=$((n + 1)); case $n in {cases} esac; echo "{counts}" >&2' USR1
        trap 'echo $n > {tmp_path}/asked; echo "{counts}" >&2; exit' INT
        n=0
        echo "listening on lo" >&2
        while :; do read -r line < {tmp_path}/never || :; done
    """


def test_leaving_waits_for_packets_that_tcpdump_has_not_taken(pretend, tmp_path):
    """tcpdump never gets the 7 packets that the kernel received before the start."""
    with pretend(answering(tmp_path, (0, 7), (0, 17), (3, 17), (5, 19))) as capture:
        pass
    assert (tmp_path / "asked").read_text() == "4\n"
    assert capture.captured == Captured(captured=5, received=19, dropped=0)
    assert is_gone(tmp_path)


def test_a_deaf_tcpdump_is_killed(pretend, tmp_path, monkeypatch):
    monkeypatch.setattr("exchange_simulation.launching.packets.capture.PATIENCE_S", 0.2)
    os.mkfifo(tmp_path / "never")
    with pytest.raises(click.ClickException, match="said nothing"):
        pretend(f"read -r line < {tmp_path}/never").__enter__()
    until(lambda: is_gone(tmp_path), "its end")


def test_received_packets_count_twice_on_loopback_only():
    counted = Captured(captured=5, received=10, dropped=1)
    assert counted.missing(11, "lo") == 0
    assert counted.missing(11, "eth0") == 5
