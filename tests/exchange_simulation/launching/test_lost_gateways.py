"""A gateway of several that dies, stops reading or floods the engine is dropped, and hurts no other gateway."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.exchange_command import VALID_STATUSES, Running, command
from tests.machine import PATIENCE_S, until

pytestmark = pytest.mark.xdist_group("lost gateways")

FLOOD = """
import sys, time
from exchange.meters import Source
from exchange.messages import ASK, BID, Hello, Order, encode, read
from exchange.session import Terms
from exchange_simulation.launching.services import link_token, run_id
from transports.base import PeerGone
from transports.frames import FrameBatch
from transports.registry import connect

url = sys.argv[1]
link = connect(url, link_token("first", url), time.monotonic_ns() + 60 * 10**9)
terms = Terms(run_id("first"), "price-time", 1, 999, instance=3, gateways=3)
link.send(FrameBatch.of(encode(terms.hello(Source.GATEWAY))), 0)
batch = FrameBatch()
while not any(isinstance(read(frame), Hello) for frame in batch):
    link.wait(time.monotonic_ns() + 10**9)
    link.receive(batch)
orders = FrameBatch.of(*(encode(Order(n, ASK if n % 2 else BID, 500, 100)) for n in range(1, 4001)))
first = 0
try:
    while True:  # never read an answer
        first = link.send(orders, first) % orders.count
        link.wait(time.monotonic_ns() + 10**7, readable=False, writable=True)
except PeerGone:
    pass
"""


def gateway_process(run: Running, number: int) -> psutil.Process:
    """Wait for the process of a gateway by its number; return it."""

    def find() -> psutil.Process | None:
        for child in run.family():
            words = child.cmdline()
            if "gateway" in words and words[words.index("--instance") + 1] == str(number):
                return child
        return None

    return until(find, f"the process of gateway {number}")


def assert_others_are_whole(record: dict[str, Any], lost: int) -> None:
    """Check that the run is partial because of one gateway, and that nothing of the other gateways was lost."""
    assert record["status"] == "partial"
    for entry in record["gateways"]:
        if entry["gateway"] == lost:
            assert entry["engine"]["dropped"]
            continue
        assert entry["status"] in VALID_STATUSES, entry["reasons"]
        assert entry["orders_answered"] == entry["orders"]["messages"]
        assert entry["engine"]["orders"] == entry["orders"]
        assert entry["engine"]["answers"] == entry["answers"]


@pytest.mark.parametrize("transport", ["zeromq", "tcp"])
def test_a_gateway_that_is_killed_hurts_no_other(running: Callable[..., Running], transport: str) -> None:
    words = ("--transport", transport, "--gateways", 3, "--rate", 1500, "--orders", 9000, "--timeout", 5)
    run = running(*words).wait_until_under_way()
    gateway_process(run, 2).kill()
    finished = run.finish()
    assert finished.code == 1
    assert_others_are_whole(finished.record, lost=2)
    assert any("gateway.2 was killed by SIGKILL" in reason for reason in finished.record["reasons"])
    assert any("the engine dropped gateway.2" in reason for reason in finished.record["reasons"])
    assert finished.record["gateways"][0]["orders"]["messages"] == 3000


def test_a_gateway_that_stops_reading_is_dropped_once_too_many_answers_wait_for_it(
    running: Callable[..., Running],
) -> None:
    words = ("--transport", "tcp", "--gateways", 3, "--rate", "max", "--duration", 30, "--timeout", 120)
    run = running(*words).wait_until_under_way()
    gateway_process(run, 2).send_signal(signal.SIGSTOP)
    finished = run.finish()
    assert_others_are_whole(finished.record, lost=2)
    [dropped] = [entry["engine"] for entry in finished.record["gateways"] if entry["gateway"] == 2]
    assert dropped["dropped"] == "gateway.2 did not read: 131,072 answers waited for it"
    assert dropped["undelivered"] > 131_072


def test_a_gateway_that_is_frozen_is_dropped_though_the_engine_sleeps_long_between_orders(
    running: Callable[..., Running],
) -> None:
    words = ("--transport", "tcp", "--gateways", 3, "--rate", 300, "--duration", 15, "--timeout", 4)
    run = running(*words).wait_until_under_way()
    gateway_process(run, 2).send_signal(signal.SIGSTOP)
    finished = run.finish()
    assert_others_are_whole(finished.record, lost=2)
    [dropped] = [entry["engine"]["dropped"] for entry in finished.record["gateways"] if entry["gateway"] == 2]
    assert dropped == "gateway.2 said nothing for 6 s"


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Yield a function that starts a command; every process ends with its test."""
    processes: list[subprocess.Popen[str]] = []

    def start(words: list[str]) -> subprocess.Popen[str]:
        processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_a_gateway_that_floods_the_engine_and_reads_nothing_hurts_no_other(
    tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    holders = [socket.socket() for _ in range(4)]
    for holder in holders:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
    reporter, *engines = [f"tcp://127.0.0.1:{holder.getsockname()[1]}" for holder in holders]
    common = ("--run", "first", "--gateways", 3, "--timeout")
    started(command("reporter", "--listen", reporter, "--results", tmp_path, *common, 30))
    engine = started(command("engine", "--listen", " ".join(engines), "--reporter", reporter, *common, 30))
    for number in (1, 2):
        words = ("--engine", engines[number - 1], "--reporter", reporter, "--instance", number)
        started(command("gateway", *words, *common, 30, "--rate", 3000, "--orders", 12_000))
    flood = started([sys.executable, "-c", FLOOD, engines[2]])
    path = tmp_path / "first" / "run.json"
    until(path.exists, "the run's record")
    engine.wait(PATIENCE_S)
    flood.wait(PATIENCE_S)
    for holder in holders:
        holder.close()
    record = json.loads(path.read_bytes())
    assert_others_are_whole(record, lost=3)
    [dropped] = [entry["engine"]["dropped"] for entry in record["gateways"] if entry["gateway"] == 3]
    assert dropped == "gateway.3 did not read: 131,072 answers waited for it" or dropped.startswith(
        "gateway.3 took no answer"
    )
