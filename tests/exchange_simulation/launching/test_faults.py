"""Faults during a run: the run goes on, or ends with a record and without orphans."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from exchange.messages import Order, encode
from tests.exchange_command import VALID_STATUSES, Running, listening_port
from tests.exchange_simulation.launching.strangers import speak_garbage
from tests.machine import until

Start = Callable[..., Running]
LIKE_CTRL_C = (signal.SIGTERM, signal.SIGHUP)
ENDLESS = ("--rate", 2000, "--duration", 600)
FOREVER = (*ENDLESS, "--no-page")
SHORT = ("--rate", 1000, "--duration", 5, "--no-page")
"""Long enough for what a test does to a run that is under way."""


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path) -> Iterator[None]:
    """The scratch folder of every run is empty again, whatever was killed."""
    yield
    until(lambda: not list((tmp_path / "scratch").iterdir()), "the scratch folder is empty")


def gone(processes: list[psutil.Process]) -> bool:
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGINT, *(pytest.param(n, marks=pytest.mark.long) for n in LIKE_CTRL_C)])
def test_a_signal_ends_the_run_in_band_with_a_readable_record(number: signal.Signals, running: Start) -> None:
    run = running(*FOREVER).wait_until_under_way()
    family = run.family()
    run.signal(number)
    finished = run.finish()
    record = finished.record
    assert finished.code == 128 + number
    assert record["status"] == "partial"
    assert record["reasons"] == ["gateway: interrupted"]
    assert record["counts"]["orders_sent"] == record["counts"]["orders_received"] > 0
    assert record["completion_us"]["due"]["count"] > 0
    assert gone(family)


def test_a_second_ctrl_c_ends_at_once_and_keeps_the_measurements(running: Start) -> None:
    run = running(*ENDLESS, "--timeout", 100, "--record").wait_until_under_way()
    run.component("engine").suspend()
    run.signal(signal.SIGINT)
    time.sleep(0.5)  # two at once are one
    run.signal(signal.SIGINT)
    finished = run.finish()
    assert finished.code == 130
    assert finished.record["status"] == "partial", finished.err
    assert any("interrupted" in reason for reason in finished.record["reasons"])
    (folder,) = run.results.iterdir()
    assert {"run.json", "spool", "orders.bin", "report.html"} <= {path.name for path in folder.iterdir()}
    assert list(folder.glob("spool/*.jsonl"))


def test_ctrl_c_before_the_start_is_reported_in_one_sentence(running: Start) -> None:
    run = running(*FOREVER)
    run.component("reporter")
    run.signal(signal.SIGINT)
    finished = run.finish()
    assert finished.code == 130
    assert finished.record["status"] == "partial"
    assert finished.record["reasons"][0] == "interrupted before the start"
    assert "was not ready" not in finished.out
    assert "Traceback" not in finished.err


@pytest.mark.parametrize("transport", ["zeromq", "tcp"])
@pytest.mark.parametrize("role", ["engine", "gateway", "reporter"])
@pytest.mark.long
def test_a_killed_component_ends_the_run_as_partial(role: str, transport: str, running: Start) -> None:
    run = running("--transport", transport, *(ENDLESS if role == "engine" else FOREVER)).wait_until_under_way()
    family = run.family()
    run.component(role).kill()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert any(f"the {role} was killed by SIGKILL" in reason for reason in finished.record["reasons"])
    assert "Traceback" not in finished.err
    assert gone(family)
    assert (run.folder / "report.html").exists() == (role == "engine")


@pytest.mark.long
def test_a_killed_component_of_a_second_pair_ends_the_run_and_is_named(running: Start) -> None:
    run = running("--pairs", 2, "--reporters", 2, *ENDLESS).wait_until_under_way()
    family = run.family()
    next(child for child in family if "gateway" in child.cmdline() and child.cmdline()[-1] == "2").kill()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert "the gateway.2 was killed by SIGKILL" in finished.record["reasons"]
    assert [pair["status"] for pair in finished.record["pairs"]] == ["partial", "partial"]
    assert finished.record["pairs"][0]["counts"]["orders_sent"] > 0
    assert gone(family)


def test_an_engine_that_stops_answering_is_noticed(running: Start) -> None:
    run = running(*FOREVER, "--timeout", 4).wait_until_under_way()
    engine = run.component("engine")
    engine.suspend()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert any("the engine said nothing for 4 s" in reason for reason in finished.record["reasons"])
    assert not any("left no result" in reason for reason in finished.record["reasons"])


@pytest.mark.long
@pytest.mark.parametrize("transport", ["zeromq", "tcp"])
@pytest.mark.parametrize("role", ["engine", "reporter"])
def test_garbage_at_any_port_is_counted_and_the_run_stays_valid(role: str, transport: str, running: Start) -> None:
    run = running("--transport", transport, *SHORT).wait_until_under_way()
    speak_garbage(listening_port(run.component(role)))
    record = run.finish().record
    assert record["status"] in VALID_STATUSES, record["reasons"]
    assert record["counts"]["handshakes_refused"] >= 3


@pytest.mark.long
def test_a_stranger_with_valid_orders_over_tcp_is_refused(running: Start) -> None:
    run = running("--transport", "tcp", *SHORT).wait_until_under_way()
    order = encode(Order(1, 1, 500, 10))
    with socket.create_connection(("127.0.0.1", listening_port(run.component("engine")))) as stranger:
        stranger.sendall((len(order).to_bytes(4, "little") + order) * 10)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(100) == b""
    record = run.finish().record
    assert record["status"] in VALID_STATUSES
    assert record["counts"]["handshakes_refused"] == 1


def test_a_full_disk_ends_the_run_with_a_sentence(running: Start, tmp_path: Path) -> None:
    run = running(*FOREVER).wait_until_under_way()
    spool = next(run.results.glob("*/spool"))
    spool.rename(tmp_path / "moved")  # a write that fails, as on a disk that filled up
    finished = run.finish()
    assert finished.code == 1
    assert json.loads(finished.out)["status"] == "partial"
    assert "Traceback" not in finished.err
