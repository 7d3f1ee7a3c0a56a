"""Runs with --recover lose no order, although engines, gateways and reporters are killed."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest
import xxhash

from exchange.checksum import StreamChecksum
from exchange.messages import LAYOUTS, Order
from exchange.records import COMPLETION, SAMPLE, SESSION, TRAFFIC
from exchange.settings import RunSettings
from exchange_simulation.launching.record.reading import records
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.journal_records import snapshot_path
from matching_engine.recovering.pulse import Pulse
from matching_engine.recovering.snapshots import EVERY_ORDERS
from matching_engine.tape import match_tape
from tests.broker import need_rabbitmq, shares_the_broker
from tests.exchange_command import VALID_STATUSES, Running
from tests.machine import PATIENCE_S, until

Start = Callable[..., Running]
RATE_PER_S = 4_000
ORDER_BYTES = LAYOUTS[Order].size
KINDS = (COMPLETION, SAMPLE, SESSION, TRAFFIC)


def matched(orders: int, **settings: Any) -> dict[str, str]:
    """The checksums of a run without any break, by the engine alone."""
    tape, answers = SeededOrders.of(RunSettings(orders=orders, **settings)).records(1, orders), StreamChecksum()
    match_tape(MatchingEngine(OrderBook(999)), np.frombuffer(tape, np.uint8), answers.update)
    return {"hash": "xxh64", "orders": xxhash.xxh64_hexdigest(tape), "answers": answers.hex}


def kill_some(run: Running, kills: int, orders: int, seed: int, role: str = "engine") -> None:
    """Kill the run's engine, or its gateway, whenever the journal has grown to a seeded size; most is still to come."""
    chance, journal = random.Random(seed), run.folder / "journal" / "engine.journal"
    killed: set[int] = set()
    for size in sorted(chance.uniform(0.05, 0.4) * ORDER_BYTES * orders for _ in range(kills)):
        until(lambda size=size: journal.stat().st_size > size, "a longer journal")
        engine = until(lambda: next(processes_of(role, run, killed), None), f"another {role}")
        engine.kill()
        killed.add(engine.pid)


def engines_of(run: Running, killed: set[int]) -> Iterator[psutil.Process]:
    return processes_of("engine", run, killed)


def processes_of(role: str, run: Running, killed: set[int]) -> Iterator[psutil.Process]:
    return (child for child in run.family() if child.pid not in killed and role in child.cmdline())


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
    kill_some(run, 20, orders, seed=20)
    assert answered_once(run, orders)["restarts"] == 20


@pytest.mark.parametrize(
    ("transport", "kills"),
    [("zeromq", 2), *(pytest.param(each, kills, marks=pytest.mark.long) for each, kills in (("tcp", 1), ("amqp", 2)))],
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
    assert recovered["sessions_resumed"] >= 1  # the gateway may meet the third engine only
    assert recovered["without_service_s"] > 0


def test_an_engine_killed_after_a_snapshot_matches_only_later_orders(running: Start) -> None:
    orders = 5_500_000
    words = ("--rate", "max", "--orders", orders, "--prices", "500..500", "--recover", "--timeout", 60)
    run = running(*words, "--no-page").wait_until_under_way()
    until(snapshot_path(run.folder / "journal" / "engine.journal").exists, "a snapshot")
    next(engines_of(run, set())).kill()
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
    samples = [record["payload"]["id"] for record in records(run.folder) if record["kind"] == SAMPLE]
    assert samples == sorted(set(samples)), "no sample comes twice"
    assert (run.folder / "orders.bin").stat().st_size == orders * ORDER_BYTES
    record = json.loads((run.folder / "run.json").read_bytes())
    assert record["completion_us"]["due"]["count"] < orders, "no completion counts twice; the last is apart"


@pytest.mark.parametrize(
    "transport",
    [
        pytest.param("amqp", marks=shares_the_broker),
        *(pytest.param(each, marks=pytest.mark.long) for each in ("zeromq", "tcp")),
    ],
)
def test_a_killed_reporter_loses_no_second(transport: str, running: Start, request: pytest.FixtureRequest) -> None:
    if transport == "amqp":
        transport = request.getfixturevalue("at_broker")
    orders, interval = 3 * RATE_PER_S, 100
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--sampling-interval", interval, "--no-page").wait_until_under_way()
    until((run.folder / "spool" / "000001.jsonl").exists, "a spool file")
    run.component("reporter").kill()
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == 1
    lines = [line for file in (run.folder / "spool").iterdir() for line in file.read_text().splitlines()]
    assert len(set(lines)) == len(lines), "nothing comes twice"
    found = {kind: [each["payload"] for each in records(run.folder) if each["kind"] == kind] for kind in KINDS}
    assert [sample["id"] for sample in found[SAMPLE]] == list(range(interval, orders + 1, interval))
    assert sum(second["orders_answered"] for second in found[TRAFFIC]) == orders
    assert sum(each["count"] for each in found[COMPLETION] if each["clock"] == "due") == orders
    assert len(found[SESSION]) == 2, "a source that goes on begins no session"
    counts = json.loads((run.folder / "run.json").read_bytes())["counts"]
    assert counts["statistics_sent"] == counts["statistics_received"] > orders / interval


TOGETHER = [("zeromq", 1), *((each, seed) for seed in range(3, 9) for each in ("zeromq", "tcp", "amqp"))]


@pytest.mark.parametrize(
    ("transport", "seed"), [("zeromq", 2), *(pytest.param(*each, marks=pytest.mark.long) for each in TOGETHER)]
)
def test_a_gateway_killed_with_its_reporter_loses_no_completion_time(transport: str, seed: int, running: Start) -> None:
    """With an odd seed both at once; else the gateway reports for some time to nobody.

    The timeout is longer than this test waits: a source that misses the loss of its reporter waits for it at its end.
    """
    if transport == "amqp":
        need_rabbitmq()
    orders, chance = 4 * RATE_PER_S, random.Random(seed)
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover")
    run = running(*words, "--timeout", 2 * PATIENCE_S, "--no-page").wait_until_under_way()
    journal, roles = run.folder / "journal" / "engine.journal", ("reporter", "gateway")
    processes = [run.component(role) for role in roles]
    first = chance.uniform(0.25, 0.35)
    for process, share in zip(processes, (first, first if seed % 2 else chance.uniform(0.35, 0.7)), strict=True):
        until(lambda share=share: journal.stat().st_size > share * ORDER_BYTES * orders, "a longer journal", 0.005)
        process.kill()
    recovered = answered_once(run, orders)
    assert recovered["restarts"] == 2
    assert recovered["orders_untimed"] == 0
    found = [each["payload"] for each in records(run.folder) if each["kind"] == COMPLETION]
    assert sum(each["count"] for each in found if each["clock"] == "due") == orders


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
    pulse, seen = run.folder / "journal" / "engine.pulse", 0
    for number in signals:
        until(lambda seen=seen: Pulse(pulse).pid != seen and Pulse(pulse).beats, "an engine that serves")
        engine = psutil.Process(seen := Pulse(pulse).pid)
        engine.send_signal(number)
        until(lambda engine=engine: not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE, "its death")
    recovered = answered_once(run, orders)
    assert recovered["takeovers"] == len(signals)
    assert recovered["restarts"] == len(signals)


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
    pulse, reporter = Pulse(run.folder / "journal" / "engine.pulse"), run.component("reporter")
    until(lambda: pulse.beats, "an engine that serves")
    reporter.suspend()
    until(lambda: not pulse.beats, "an engine that has ended its session")
    psutil.Process(pulse.pid).kill()
    killed = pulse.pid
    until(lambda: pulse.pid != killed and not pulse.beats, "another engine that has ended the session")
    reporter.resume()
    recovered = answered_once(run, orders)
    assert recovered["takeovers"] == int(mode == "--standby")
    assert recovered["restarts"] == 1
