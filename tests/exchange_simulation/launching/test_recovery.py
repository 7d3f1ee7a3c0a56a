"""Runs with --recover lose no order, although engines, gateways and reporters are killed."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import xxhash

from exchange.checksum import StreamChecksum
from exchange.messages import LAYOUTS, Order
from exchange.records import COMPLETION, SAMPLE, SESSION, TRAFFIC
from exchange.settings import RunSettings
from exchange_simulation.launching.record.reading import spool_records
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.journal_records import snapshot_path
from matching_engine.recovering.pulse import Pulse
from matching_engine.recovering.snapshots import EVERY_ORDERS
from matching_engine.tape import match_tape
from tests.broker import is_gone, need_rabbitmq, shares_the_broker
from tests.exchange_command import VALID_STATUSES, Running
from tests.machine import PATIENCE_S, until

Start = Callable[..., Running]
RATE_PER_S = 4_000
ORDER_BYTES = LAYOUTS[Order].size


def matched(orders: int, **settings: Any) -> dict[str, str]:
    """The checksums of a run without any break, by the engine alone."""
    seeded_orders = SeededOrders.of(RunSettings(orders=orders, **settings))
    tape = seeded_orders.records(1, orders)
    answers = StreamChecksum()
    match_tape(MatchingEngine(OrderBook(999)), np.frombuffer(tape, np.uint8), answers.update)
    return {"hash": "xxh64", "orders": xxhash.xxh64_hexdigest(tape), "answers": answers.hex}


def kill_some(run: Running, kills: int, orders: int, seed: int, role: str = "engine") -> None:
    """Kill the run's engine, or its gateway, at seeded sizes of the journal, all below 40 % of its final size."""
    chance = random.Random(seed)
    shares = sorted(chance.uniform(0.05, 0.4) for _ in range(kills))
    killed: set[int] = set()
    for share in shares:
        wait_for_journal(run, share * orders)
        process = until(partial(process_of, role, run, killed), f"another {role}")
        process.kill()
        killed.add(process.pid)


def journal_of(run: Running) -> Path:
    return run.folder / "journal" / "engine.journal"


def wait_for_journal(run: Running, orders: float, poll_s: float = 0.05) -> None:
    """Wait until the engine's journal is longer than this number of orders."""
    journal = journal_of(run)
    size = orders * ORDER_BYTES

    def is_longer() -> bool:
        return journal.stat().st_size > size

    until(is_longer, "a longer journal", poll_s)


def process_of(role: str, run: Running, killed: set[int]) -> psutil.Process | None:
    """Return the run's process with this role that is not among the killed; None if it has not started yet."""
    for child in run.family():
        if child.pid not in killed and role in child.cmdline():
            return child
    return None


@pytest.mark.long
@pytest.mark.parametrize(("transport", "rate_per_s"), [("zeromq", 20_000), ("tcp", 20_000), ("amqp", 8_000)])
def test_twenty_kills_in_a_million_orders_do_not_change_the_checksums(
    transport: str, rate_per_s: int, running: Start
) -> None:
    if transport == "amqp":
        need_rabbitmq()
    orders = 1_000_000
    words = ("--transport", transport, "--rate", rate_per_s, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--no-page").wait_until_under_way()
    kill_some(run, kills=20, orders=orders, seed=20)
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == 20


@pytest.mark.parametrize(
    ("transport", "kills"),
    [("zeromq", 2), pytest.param("tcp", 1, marks=pytest.mark.long), pytest.param("amqp", 2, marks=pytest.mark.long)],
)
def test_an_engine_that_is_killed_loses_no_order_and_answers_none_twice(
    transport: str, kills: int, running: Start
) -> None:
    if transport == "amqp":
        need_rabbitmq()
    orders = 2 * RATE_PER_S
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--no-page").wait_until_under_way()
    kill_some(run, kills, orders, seed=1)
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == kills
    assert recovered["sessions_resumed"] >= 1  # the second engine may be killed before the gateway reaches it
    assert recovered["without_service_s"] > 0


def test_an_engine_killed_after_a_snapshot_matches_only_later_orders(running: Start) -> None:
    orders = 5_500_000
    words = ("--rate", "max", "--orders", orders, "--prices", "500..500", "--recover", "--timeout", 60)
    run = running(*words, "--no-page").wait_until_under_way()
    until(snapshot_path(journal_of(run)).exists, "a snapshot")
    run.component("engine").kill()
    recovered = answered_once(run, orders, prices=(500, 500))
    assert recovered["restarts"] == 1
    assert recovered["orders_matched_again"] < orders - EVERY_ORDERS


@pytest.mark.parametrize(
    ("transport", "kills"),
    [("zeromq", 2), pytest.param("tcp", 2, marks=pytest.mark.long), pytest.param("amqp", 2, marks=pytest.mark.long)],
)
def test_a_killed_gateway_continues_with_the_next_order(transport: str, kills: int, running: Start) -> None:
    if transport == "amqp":
        need_rabbitmq()
    orders = 3 * RATE_PER_S
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--record", "--sampling-interval", 100, "--no-page").wait_until_under_way()
    kill_some(run, kills, orders, seed=3, role="gateway")
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == kills
    assert recovered["sessions_resumed"] >= 1  # a gateway that is killed soon has not resumed
    samples = [sample["id"] for sample in payloads(run, SAMPLE)]
    assert samples == sorted(set(samples)), "no sample comes twice"
    assert (run.folder / "orders.bin").stat().st_size == orders * ORDER_BYTES
    record = json.loads((run.folder / "run.json").read_bytes())
    count = record["completion_us"]["due"]["count"]
    assert count < orders, "no completion counts twice; the last order is left out of analysis, so fewer than all"


@pytest.mark.parametrize(
    "transport",
    [
        pytest.param("amqp", marks=shares_the_broker),
        pytest.param("zeromq", marks=pytest.mark.long),
        pytest.param("tcp", marks=pytest.mark.long),
    ],
)
def test_a_killed_reporter_loses_no_second(transport: str, running: Start, request: pytest.FixtureRequest) -> None:
    if transport == "amqp":
        transport = request.getfixturevalue("at_broker")
    orders = 3 * RATE_PER_S
    interval = 100
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--sampling-interval", interval, "--no-page").wait_until_under_way()
    spool = run.folder / "spool"
    until((spool / "000001.jsonl").exists, "a spool file")
    run.component("reporter").kill()
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == 1
    lines: list[str] = []
    for file in spool.iterdir():
        lines += file.read_text().splitlines()
    assert len(set(lines)) == len(lines), "no line comes twice"
    sample_ids = [sample["id"] for sample in payloads(run, SAMPLE)]
    assert sample_ids == list(range(interval, orders + 1, interval))
    assert sum(second["orders_answered"] for second in payloads(run, TRAFFIC)) == orders
    assert completions_from_due(run) == orders
    assert len(payloads(run, SESSION)) == 2, "a source that goes on begins no session"
    counts = json.loads((run.folder / "run.json").read_bytes())["counts"]
    assert counts["statistics_sent"] == counts["statistics_received"]
    assert counts["statistics_received"] > orders / interval


def payloads(run: Running, kind: str) -> list[dict[str, Any]]:
    """Return the payloads of the run's records of a kind."""
    return [record["payload"] for record in spool_records(run.folder) if record["kind"] == kind]


def completions_from_due(run: Running) -> int:
    """Return how many completion times from due the run's spool holds."""
    return sum(second["count"] for second in payloads(run, COMPLETION) if second["clock"] == "due")


LATER_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in (3, 4, 5)]


@pytest.mark.parametrize("seed", [2, *LATER_SEEDS])
@pytest.mark.parametrize(
    "transport",
    ["zeromq", pytest.param("tcp", marks=pytest.mark.long), pytest.param("amqp", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("kills_both_at_once", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_gateway_killed_with_its_reporter_loses_no_completion_time(
    kills_both_at_once: bool, transport: str, seed: int, running: Start
) -> None:
    """If the gateway is killed later than its reporter, it reports for some time to nobody.

    The timeout is longer than this test waits: a source that does not notice that its reporter is gone would wait for
    the reporter's confirmation until the timeout.
    """
    if transport == "amqp":
        need_rabbitmq()
    orders = 4 * RATE_PER_S
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover")
    run = running(*words, "--timeout", 2 * PATIENCE_S, "--no-page").wait_until_under_way()
    reporter = run.component("reporter")
    gateway = run.component("gateway")
    chance = random.Random(seed)
    share_at_first_kill = chance.uniform(0.25, 0.35)
    later_share = chance.uniform(0.35, 0.7)
    share_at_second_kill = share_at_first_kill if kills_both_at_once else later_share
    wait_for_journal(run, share_at_first_kill * orders, poll_s=0.005)
    reporter.kill()
    wait_for_journal(run, share_at_second_kill * orders, poll_s=0.005)
    gateway.kill()
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == 2
    assert recovered["orders_untimed"] == 0
    assert completions_from_due(run) == orders


def test_a_frozen_engine_without_a_standby_ends_the_run_with_a_sentence(running: Start) -> None:
    words = ("--transport", "tcp", "--rate", 1000, "--orders", 60_000, "--recover", "--timeout", 3)
    run = running(*words, "--no-page").wait_until_under_way()
    run.component("engine").suspend()
    finished = run.finish()
    assert finished.code == 1
    assert finished.record["status"] == "partial"
    assert "gateway: the engine said nothing for 3 s" in finished.record["reasons"]
    counts = finished.record["counts"]
    unknown = counts["orders_sent"] - counts["orders_answered"]
    assert unknown > 0
    assert finished.record["reasons"][0].endswith(f"unknown {unknown:,}")


def answered_once(run: Running, orders: int, **settings: Any) -> dict[str, Any]:
    """The run's `recovered`; AssertionError if an order was lost, or answered twice."""
    finished = run.finish()
    record = finished.record
    assert finished.code == 0
    assert record["status"] in VALID_STATUSES, (record["reasons"], finished.err)
    assert record["checksums"] == matched(orders, **settings)
    assert record["counts"]["orders_answered"] == orders
    recovered = record["recovered"]
    assert isinstance(recovered, dict)
    return recovered


@pytest.mark.parametrize(
    ("transport", "signals"),
    [
        ("zeromq", (signal.SIGKILL, signal.SIGSTOP)),
        pytest.param("tcp", (signal.SIGSTOP, signal.SIGKILL), marks=pytest.mark.long),
        pytest.param("amqp", (signal.SIGSTOP,), marks=[pytest.mark.long, shares_the_broker]),
    ],
)
def test_a_standby_replaces_an_engine_that_died_or_froze(
    transport: str, signals: tuple[int, ...], running: Start, request: pytest.FixtureRequest
) -> None:
    if transport == "amqp":
        transport = request.getfixturevalue("at_broker")
    orders = 3 * RATE_PER_S
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--standby", "--timeout", 60)
    run = running(*words, "--no-page").wait_until_under_way()
    pulse_path = Pulse.path(journal_of(run))
    previous_engine = 0
    for number in signals:
        until(partial(is_served_by_another, pulse_path, previous_engine), "another engine that serves")
        engine = psutil.Process(Pulse(pulse_path).pid)
        engine.send_signal(number)
        until(partial(is_gone, engine), "the engine's death")
        previous_engine = engine.pid
    recovered = answered_once(run, orders)
    assert recovered["takeovers"] == len(signals)
    assert recovered["restarts"] == len(signals)


def is_served_by_another(pulse_path: Path, previous_engine: int) -> bool:
    """Whether the process of the pulse is another than the previous engine, and serves."""
    pulse = Pulse(pulse_path)
    return pulse.pid != previous_engine and pulse.beats > 0


@pytest.mark.parametrize(
    ("transport", "mode"),
    [
        pytest.param("amqp", "--standby", marks=shares_the_broker),
        pytest.param("amqp", "--recover", marks=[pytest.mark.long, shares_the_broker]),
        pytest.param("tcp", "--recover", marks=pytest.mark.long),
    ],
)
def test_an_engine_killed_after_its_last_answer_leaves_a_complete_run(
    transport: str, mode: str, running: Start, request: pytest.FixtureRequest
) -> None:
    """The reporter is frozen, so that the engine still waits for the reporter's last message."""
    if transport == "amqp":
        transport = request.getfixturevalue("at_broker")
    orders = 2 * RATE_PER_S
    asked = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, mode, "--timeout", 60)
    run = running(*asked, "--no-page").wait_until_under_way()
    pulse = Pulse(Pulse.path(journal_of(run)))
    reporter = run.component("reporter")
    until(lambda: pulse.beats, "an engine that serves")
    reporter.suspend()
    until(lambda: not pulse.beats, "an engine that has ended its session")
    killed = pulse.pid
    psutil.Process(killed).kill()
    until(lambda: pulse.pid != killed and not pulse.beats, "another engine that has ended the session")
    reporter.resume()
    recovered = answered_once(run, orders)
    assert recovered["takeovers"] == int(mode == "--standby")
    assert recovered["restarts"] == 1
