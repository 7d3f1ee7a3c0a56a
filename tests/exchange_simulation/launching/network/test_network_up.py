"""Emulated networks: namespaces reach each other at the requested rate and delay."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
import psutil
import pytest

from exchange_simulation.launching.network.network import Network, is_off
from exchange_simulation.launching.network.profile import parse
from tests.machine import until

WITH_BROKER = ("gateway", "engine", "reporter", "broker")


def connected(net: Network, to: str, of: str) -> tuple[socket.socket, socket.socket]:
    """(the end of the one who listened, the end of the one who connected)"""
    with net.socket(to) as door:
        door.bind((net.address[to], 0))
        door.listen()
        caller = net.socket(of)
        caller.connect(door.getsockname())
        return door.accept()[0], caller


def received(sock: socket.socket, count: int) -> bytes:
    sock.settimeout(30)
    data = b""
    while len(data) < count:
        data += sock.recv(1 << 16)
    return data


def carry(source: socket.socket, sink: socket.socket, count: int) -> None:
    """More than both ends' buffers hold, perhaps."""
    sender = threading.Thread(target=source.sendall, args=[bytes(count)])
    sender.start()
    assert received(sink, count) == bytes(count)
    sender.join()


@pytest.mark.parametrize("name", ["veth", pytest.param("gige", marks=pytest.mark.long)])
def test_roles_with_a_link_exchange_tcp_both_ways(name, available):
    with Network.up(parse(available(name)), WITH_BROKER) as net:
        for pair in ("engine gateway", "broker engine", "broker reporter", "reporter engine"):
            one, other = connected(net, *pair.split())
            with one, other:
                other.sendall(b"order")
                assert received(one, 5) == b"order", pair
                carry(one, other, 100_000)


def test_a_prefixed_process_is_in_its_role_s_network_as_same_user(available):
    with Network.up(parse(available("veth"))) as net:
        command = [*net.prefix("engine"), "sh", "-c", "ip -brief address; id --user; pwd"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert net.address["engine"] in output
    assert output.splitlines()[-2:] == [str(os.geteuid()), str(Path.cwd())]


def test_over_veth_a_round_trip_is_short_and_nothing_is_flagged(available):
    with Network.up(parse(available("veth"))) as net:
        pass
    assert net.facts["mechanism"] == "veth"
    assert net.facts["round_trip_us"]["gateway-engine"]["min"] < 500
    assert not net.facts["is_flagged"]


def test_over_wan10_a_round_trip_takes_20_ms_or_is_flagged(available):
    """The reporter's link has no delay."""
    with Network.up(parse(available("wan10")), WITH_BROKER) as net:
        pass
    measured_us = net.facts["round_trip_us"]["gateway-engine"]["median"]
    assert measured_us >= 20_000
    assert measured_us <= 20_000 * 1.10 + 50 or net.facts["is_flagged"]
    for pair in ("gateway-reporter", "engine-reporter", "broker-reporter"):
        assert net.facts["round_trip_us"][pair]["min"] < 10_000  # the delay is 20,000


def test_a_link_carries_nearly_its_rate_and_no_more(available):
    sent = 500_000
    with Network.up(parse(available("gige?rate_mbit=10"))) as net:
        one, other = connected(net, "engine", "gateway")
        with one, other:
            until(lambda: _share_of_the_rate(other, one, sent) > 0.66, "a transfer that nothing else held up")


def _share_of_the_rate(source: socket.socket, sink: socket.socket, sent: int, rate_bit_s: float = 10e6) -> float:
    started_s = time.monotonic()
    carry(source, sink, sent)
    share = sent * 8 / rate_bit_s / (time.monotonic() - started_s)
    assert share <= 1
    return share


def test_the_wire_reports_its_frames_and_their_lateness(available):
    with Network.up(parse(available("wan1"))) as net:
        if net.mechanism != "wire":
            pytest.skip("netem is here, so no wire")
        one, other = connected(net, "engine", "gateway")
        with one, other:
            carry(other, one, 100_000)
    wire = net.facts["wire"]
    assert wire["frames"] >= 100_000 / 1460
    assert 0 <= wire["lateness_us"]["p50"] <= wire["lateness_us"]["p99"] <= wire["lateness_us"]["max"] + 1
    assert wire["stray"] == 0


def test_a_round_trip_off_by_more_than_a_tenth_and_50_us_is_flagged():
    assert not is_off({"expected": 100.0, "error": 59.0})
    assert is_off({"expected": 100.0, "error": 61.0})
    assert is_off({"expected": 20_000.0, "error": -2_051.0})
    assert not is_off({"median": 1e6})


def test_a_network_that_ends_before_its_run_is_flagged(available):
    with Network.up(parse(available("wan1"))) as net:
        os.kill(holder_of(net), signal.SIGKILL)
    assert "the network went down before the run was over" in net.facts["flags"]


def test_a_network_leaves_no_process_and_no_interface(available):
    before = set(psutil.net_if_addrs())
    children = psutil.Process().children()
    with Network.up(parse(available("wan1"))) as net:
        holder = holder_of(net)
        namespaces = namespaces_of(net)
        assert set(psutil.net_if_addrs()) == before
    assert not psutil.pid_exists(holder)
    assert not inhabited(namespaces)
    assert psutil.Process().children() == children


OWNER = """
import sys
from exchange_simulation.launching.network.network import Network
from exchange_simulation.launching.network.profile import parse
from tests.machine import until
with Network.up(parse(sys.argv[1])) as net:
    print(*(net.prefix(role)[-2].partition("=")[2] for role in net.address), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["veth", "wan1"])
@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_owner_that_is_killed_leaves_no_process_and_no_interface(name, number, available, eventually):
    before = set(psutil.net_if_addrs())
    command = [sys.executable, "-c", OWNER, available(name)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        paths = owner.stdout.readline().split()
        namespaces = {os.stat(path).st_ino for path in paths}
        family = psutil.Process(owner.pid).children(recursive=True)
        assert family
        assert inhabited({os.stat(f"/proc/{family[0].pid}/ns/net").st_ino})
        hub = os.stat(f"/proc/{family[0].pid}/ns/net").st_ino
        owner.send_signal(number)
    eventually(lambda: not any(child.is_running() for child in family), "the network's processes ended")
    assert not inhabited({*namespaces, hub})
    assert set(psutil.net_if_addrs()) == before


def test_a_network_that_the_holder_cannot_make_gets_an_error(available, monkeypatch):
    available("veth")
    monkeypatch.setattr("exchange_simulation.launching.network.network.asdict", lambda plan: {})
    with pytest.raises(click.ClickException, match="the network did not come up: "), Network.up(parse("veth")):
        pass


def holder_of(net: Network) -> int:
    return int(net.prefix("engine")[-2].split("/")[2])


def namespaces_of(net: Network) -> set[int]:
    return {os.stat(net.prefix(role)[-2].partition("=")[2]).st_ino for role in net.address}


def inhabited(namespaces: set[int]) -> bool:
    """Whether a process of this machine is in one of them."""
    for pid in psutil.pids():
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino in namespaces:
                return True
        except OSError:
            continue
    return False
