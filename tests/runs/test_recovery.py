"""An engine that is killed again and again, and a run that loses nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from exchange.messages import LAYOUTS, Order
from tests.broker import need_rabbitmq
from tests.exchange_command import VALID, Running, exchange
from tests.machine import until

Start = Callable[..., Running]
RATE_PER_S = 4_000
ORDER_BYTES = LAYOUTS[Order].size


def matched(orders: int, folder: Path) -> dict[str, object]:
    """The checksums of a run without any break, by the engine alone."""
    exchange("tape", "--orders", orders, "--output", folder / "tape")
    checksums = exchange("match", folder / "tape", "--json").record["checksums"]
    assert isinstance(checksums, dict)
    return checksums


def kill_engines(run: Running, kills: int, orders: int, seed: int) -> None:
    """Kill the run's engine whenever its journal has grown to a seeded size, of which most is still to come."""
    chance, journal = random.Random(seed), run.folder / "journal" / "engine.journal"
    killed: set[int] = set()
    for size in sorted(chance.uniform(0.05, 0.4) * ORDER_BYTES * orders for _ in range(kills)):
        until(lambda size=size: journal.stat().st_size > size, "a longer journal")
        engine = until(lambda: next(engines_of(run, killed), None), "another engine")
        engine.kill()
        killed.add(engine.pid)


def engines_of(run: Running, killed: set[int]) -> Iterator[psutil.Process]:
    return (child for child in run.family() if child.pid not in killed and "engine" in child.cmdline())


@pytest.mark.long
@pytest.mark.parametrize("transport", ["zeromq", "tcp"])
def test_twenty_kills_in_a_million_orders_leave_the_checksums_as_they_were(
    transport: str, running: Start, tmp_path: Path
) -> None:
    orders = 1_000_000
    words = ("--transport", transport, "--rate", 20_000, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--no-page").under_way()
    kill_engines(run, 20, orders, seed=20)
    record = run.finish().record
    assert record["status"] in VALID, record["reasons"]
    assert record["checksums"] == matched(orders, tmp_path)
    assert record["recovered"]["restarts"] == 20


@pytest.mark.parametrize("transport", ["zeromq", "tcp", "amqp"])
def test_an_engine_that_is_killed_twice_loses_no_order_and_answers_none_twice(
    transport: str, running: Start, tmp_path: Path
) -> None:
    if transport == "amqp":
        need_rabbitmq()
    orders = 4 * RATE_PER_S
    words = ("--transport", transport, "--rate", RATE_PER_S, "--orders", orders, "--recover", "--timeout", 60)
    run = running(*words, "--no-page").under_way()
    kill_engines(run, 2, orders, seed=1)
    said = run.finish()
    record = said.record
    assert (said.code, record["status"] in VALID) == (0, True), (record["reasons"], said.err)
    assert record["checksums"] == matched(orders, tmp_path)
    assert record["counts"]["orders_answered"] == orders
    recovered = record["recovered"]
    assert recovered["restarts"] == 2
    assert recovered["sessions_resumed"] >= 1  # the gateway may meet the third engine only
    assert recovered["without_service_s"] > 0
