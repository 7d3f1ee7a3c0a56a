"""Runs with market data to subscribers: each receives everything, and one that fails hurts nobody else."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from exchange_simulation.experiments.comparison_arms import comparison_arms
from exchange_simulation.launching.errors import UserError
from tests.exchange_command import (
    ORDERS,
    REFERENCE_RUN,
    VALID_STATUSES,
    FinishedCommand,
    Running,
    exchange_in_process,
    run_exchange,
)
from tests.machine import until


def run_with(tmp_path: Path, *words: object) -> FinishedCommand:
    return run_exchange(tmp_path, "--subscribers", 2, *words)


def assert_all_received_everything(record: dict[str, Any], subscribers: int) -> None:
    market_data = record["market_data"]
    published = market_data["published"]
    assert published["joined"] == list(range(1, subscribers + 1))
    assert [entry["subscriber"] for entry in market_data["subscribers"]] == published["joined"]
    for entry in market_data["subscribers"]:
        assert entry["messages"] == published["messages"] > ORDERS / 2
        assert entry["checksum"] == published["checksum"]
        assert (entry["gaps"], entry["dropped"], entry["conflated"], entry["before"]) == (0, 0, 0, 0)
        assert entry["delivery_us"]["count"] == entry["messages"]
    assert market_data["delivery_us"]["count"] == subscribers * published["messages"]


def test_subscribers_receive_all_market_data_and_the_streams_stay_the_same(
    tmp_path: Path, match_record: dict[str, Any]
) -> None:
    finished = run_with(tmp_path, "--transport", "zeromq", "--depth", *REFERENCE_RUN)
    assert finished.code == 0, finished.err
    record = finished.record
    assert record["checksums"] == match_record["checksums"]
    assert record["market_data"]["published"]["slow_subscriber"] == "drop"
    assert_all_received_everything(record, 2)
    assert record["market_data"]["subscribers"][0]["levels"] > 0
    assert record["components"]["subscriber"]["cpu_s"] > 0


@pytest.mark.parametrize("transport", ["amqp", "nats", "redis", "redis?kind=stream"])
def test_subscribers_receive_all_market_data_through_a_broker(
    transport: str, tmp_path: Path, match_record: dict[str, Any]
) -> None:
    finished = run_with(tmp_path, "--transport", transport, *REFERENCE_RUN)
    assert finished.code == 0, finished.err
    assert finished.record["checksums"] == match_record["checksums"]
    assert_all_received_everything(finished.record, 2)


@pytest.mark.parametrize("transport", ["zeromq", "amqp"])
def test_subscribers_receive_what_packed_orders_cause(transport: str, tmp_path: Path) -> None:
    finished = run_with(tmp_path, "--transport", transport, "--packing", 10, "--depth", *REFERENCE_RUN)
    assert finished.code == 0, finished.err
    assert_all_received_everything(finished.record, 2)


@pytest.mark.parametrize("transport", ["nng", "shm"])
def test_where_nothing_fans_out_the_engine_sends_to_each_subscriber_and_waits_for_it(
    transport: str, tmp_path: Path, match_record: dict[str, Any]
) -> None:
    finished = run_with(tmp_path, "--transport", transport, *REFERENCE_RUN)
    assert finished.code == 0, finished.err
    assert finished.record["checksums"] == match_record["checksums"]
    assert finished.record["market_data"]["published"]["slow_subscriber"] == "wait"
    assert_all_received_everything(finished.record, 2)


def process_of_subscriber(run: Running, number: int) -> psutil.Process:
    """Wait for the process of the subscriber with this number; return it."""

    def find() -> psutil.Process | None:
        for child in run.family():
            words = child.cmdline()
            if "subscriber" in words and words[words.index("--instance") + 1] == str(number):
                return child
        return None

    return until(find, f"the process of subscriber {number}")


def assert_others_have_everything(record: dict[str, Any], orders: int) -> None:
    assert record["counts"]["orders_answered"] == orders
    published = record["market_data"]["published"]["messages"]
    by_number = {entry["subscriber"]: entry for entry in record["market_data"]["subscribers"]}
    for number in (1, 3):
        assert by_number[number]["messages"] == published
        assert by_number[number]["gaps"] == 0


@pytest.mark.parametrize("transport", ["zeromq", "nng", "shm"])
def test_a_killed_subscriber_ends_nobody_else(
    transport: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    short_folder = tmp_path_factory.mktemp("run")  # the path of a Unix socket, which shm has, is 107 bytes at most
    load = ("--transport", transport, "--rate", 4000, "--orders", 16_000)
    run = Running(short_folder / "results", "--no-page", "--subscribers", 3, *load)
    request.addfinalizer(run.clear_up)
    run.wait_until_under_way()
    process_of_subscriber(run, 2).kill()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert any("the subscriber.2 was killed by SIGKILL" in reason for reason in finished.record["reasons"])
    assert_others_have_everything(finished.record, 16_000)


def test_a_stopped_subscriber_loses_messages_alone_and_its_losses_are_counted(
    running: Callable[..., Running],
) -> None:
    run = running(
        "--no-page",
        "--subscribers",
        3,
        "--rate",
        8000,
        "--orders",
        32_000,
        "--transport",
        "zeromq?hwm=1000&sndbuf=4096&rcvbuf=4096",
    ).wait_until_under_way()
    stopped = process_of_subscriber(run, 2)
    stopped.send_signal(signal.SIGSTOP)
    answered = until_answered(run, 3)
    stopped.send_signal(signal.SIGCONT)
    finished = run.finish()
    assert answered
    assert finished.record["status"] in VALID_STATUSES, finished.record["reasons"]
    assert_others_have_everything(finished.record, 32_000)
    [entry] = [entry for entry in finished.record["market_data"]["subscribers"] if entry["subscriber"] == 2]
    assert entry["dropped"] > 0
    assert entry["messages"] + entry["dropped"] == finished.record["market_data"]["published"]["messages"]


def until_answered(run: Running, seconds: int) -> bool:
    """Wait until the spool has this many seconds of the run; return True."""

    def have_passed() -> bool:
        lines = b"".join(path.read_bytes() for path in run.folder.glob("spool/*.jsonl"))
        return lines.count(b'"kind":"traffic"') >= seconds

    return until(have_passed, f"{seconds} seconds of the run")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--transport", "tcp"), "--subscribers is 2; tcp cannot carry market data between processes: use amqp"),
        (("--pairs", 2), "--subscribers is 2; allowed is 0 with --pairs: each pair is a market of its own"),
        (("--recover",), "--subscribers is 2; allowed is 0 with --recover: an engine that is started again"),
        (
            ("--transport", "amqp", "--slow-subscriber", "drop"),
            "--slow-subscriber is drop, which amqp cannot do for one subscriber alone: use wait",
        ),
        (
            ("--transport", "redis?kind=stream", "--slow-subscriber", "drop"),
            "--slow-subscriber is drop, which redis cannot do for one subscriber alone: use wait",
        ),
        (("--slow-subscriber", "stop"), "'stop' is not one of"),
    ],
)
def test_settings_that_cannot_have_subscribers_are_refused(
    words: tuple[object, ...], sentence: str, tmp_path: Path
) -> None:
    finished = exchange_in_process("run", "--subscribers", 2, "--results", tmp_path / "results", *words)
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("words", [("--depth",), ("--slow-subscriber", "wait")])
def test_options_of_market_data_need_subscribers(words: tuple[str, ...], tmp_path: Path) -> None:
    finished = exchange_in_process("run", *words, "--results", tmp_path / "results")
    assert finished.code == 2
    assert "is for market data: give --subscribers too" in " ".join(finished.err.split())


def test_transports_are_compared_at_each_number_of_subscribers() -> None:
    arms = comparison_arms(["zeromq", "amqp"], [4000.0], 1.0, {}, subscribers=[0, 8])
    assert [arm.settings.subscribers for arm in arms] == [0, 0, 8, 8]
    with pytest.raises(UserError, match="--subscribers has 8 twice"):
        comparison_arms(["zeromq", "amqp"], [4000.0], 1.0, {}, subscribers=[8, 8])
