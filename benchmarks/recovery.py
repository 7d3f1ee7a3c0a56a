"""What recovery costs when nothing fails, and how soon an engine that is killed answers again.

    gateway ⇄ engine ── journal, synced as --sync says        against the same run without a journal
    gateway ⇄ engine ✗ ── started again, or its standby       against the time that is allowed

More is better in every row: a p50 and a break are given as their reciprocals. Runs have real-time priority where we may
give it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.comparison import EXCHANGE, BenchmarkRow, Record, in_turns, permitted_priority
from exchange.settings import RunSettings
from exchange_simulation.launching.priority import going_first
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.pulse import Pulse
from matching_engine.recovering.snapshots import EVERY_ORDERS, write_snapshot
from transports.frames import FrameBatch

ORDERS, FLAT_OUT, RATE_PER_S = 1_000_000, 500_000, 8_000
LONGEST_RUN_S = 120.0


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    with tempfile.TemporaryDirectory(prefix="exchange-recovery-") as place, going_first(permitted_priority()):
        folder = Path(place)
        for in_record in (1, 1_000):
            replayed = in_turns(partial(replay, journal_of(ORDERS, in_record, folder)), None, repeats)[0]
            words = f"a journal matched again, {in_record:,} orders in a record"
            yield BenchmarkRow(words, "5 M orders/s", "orders/s", replayed, [5e6] * repeats, reach=1, aim=4)
        journal = with_snapshot(folder)
        pairs = in_turns(partial(take_up, journal), partial(replay, journal), repeats)
        words = f"a journal of {journal.orders / 1e6:g} M orders taken up from its snapshot"
        yield BenchmarkRow(words, "matched again", "orders/s", *pairs)
        for sync, reach, aim in (("none", 0.8, 0.95), ("batch", 0.5, 0.7)):
            measures = (partial(orders_per_s, folder, sync), partial(orders_per_s, folder))
            yield BenchmarkRow(
                f"flat out, --sync {sync}", "no journal", "orders/s", *in_turns(*measures, repeats), reach, aim
            )
        measures = (partial(per_p50, folder, "batch"), partial(per_p50, folder))
        pairs = in_turns(*measures, repeats)
        yield BenchmarkRow(
            "1 / p50 at 8,000 orders/s, --sync batch", "no journal", "/s", *pairs, reach=1 / 1.3, aim=1 / 1.1
        )
        for how, allowed_s, aim in (("recover", 2.0, 2), ("standby", 0.3, 6)):
            breaks = in_turns(partial(per_break, folder, how), None, repeats)[0]
            words = f"1 / engine killed to first answer, --{how}"
            yield BenchmarkRow(words, f"{allowed_s:g} s", "/s", breaks, [1 / allowed_s] * repeats, reach=1, aim=aim)


def journal_of(orders: int, in_record: int, folder: Path) -> InputJournal:
    """A journal of so many orders."""
    journal = InputJournal(folder / f"{in_record}.journal", {}, sync="none")
    append(journal, RunSettings(orders=orders), 1, orders, in_record)
    return journal


def append(journal: InputJournal, settings: RunSettings, first: int, count: int, in_record: int = 1_000) -> None:
    tape = np.frombuffer(bytearray(SeededOrders.of(settings).records(first, count)), np.uint8)
    size = len(tape) // count * in_record
    for at in range(0, len(tape), size):
        journal.append(tape[at : at + size])


def with_snapshot(folder: Path) -> InputJournal:
    """A journal with a snapshot, behind which further orders come. They have one price, so that few of them rest."""
    settings = RunSettings(orders=EVERY_ORDERS + ORDERS, prices=(500, 500))
    journal = InputJournal(folder / "snapshot.journal", {}, sync="none")
    append(journal, settings, 1, EVERY_ORDERS)
    follower = follow(journal)
    write_snapshot(journal, follower.engine, follower.sums)
    append(journal, settings, EVERY_ORDERS + 1, ORDERS)
    return journal


def follow(journal: InputJournal) -> Follower:
    follower = Follower(journal.path, MatchingEngine(OrderBook(999)))
    follower.follow()
    return follower


def take_up(journal: InputJournal) -> float:
    """Load its snapshot, and match the orders behind that; orders of the whole journal a second."""
    began_s = time.perf_counter()
    follow(journal)
    return journal.orders / (time.perf_counter() - began_s)


def replay(journal: InputJournal) -> float:
    """Match it from its first order; orders a second."""
    engine, answers = MatchingEngine(OrderBook(999)), FrameBatch(1 << 19, 1 << 21)
    began_s = time.perf_counter()
    for orders in journal.batches():
        first = 0
        while first < orders.count:
            answers.clear()
            first, _ = engine.handle(orders, answers, first)
    return journal.orders / (time.perf_counter() - began_s)


def orders_per_s(folder: Path, *sync: str) -> float:
    """The rate of a run as fast as it goes, with a journal if `sync` says when that is synced."""
    run = started(folder, "--rate", "max", "--orders", FLAT_OUT, *journal_words(folder, *sync))
    return float(record_of(run)["rates"]["orders_per_s"])


def per_p50(folder: Path, *sync: str) -> float:
    """The reciprocal of a paced run's median completion time from due, in seconds, so that more is better."""
    run = started(folder, "--rate", RATE_PER_S, "--duration", 3, *journal_words(folder, *sync))
    return 1e6 / float(record_of(run)["completion_us"]["due"]["p50"])


def journal_words(folder: Path, *sync: str) -> list[str]:
    """The options of a journal in a new folder, if `sync` says when that is synced."""
    return ["--journal", tempfile.mkdtemp(dir=folder), "--sync", *sync] if sync else []


def per_break(folder: Path, how: str) -> float:
    """Kill a run's engine once it serves; the reciprocal of the seconds without an answer."""
    journal = Path(tempfile.mkdtemp(dir=folder))
    run = started(folder, "--rate", RATE_PER_S, "--duration", 4, f"--{how}", "--journal", journal)
    path, until_s = journal / "engine.pulse", time.monotonic() + LONGEST_RUN_S
    while not (serves := path.exists() and Pulse(path).beats) and run.poll() is None and time.monotonic() < until_s:
        time.sleep(0.01)
    if serves:
        time.sleep(1)
        psutil.Process(Pulse(path).pid).send_signal(signal.SIGKILL)
    return 1 / float(record_of(run)["recovered"]["without_service_s"])


def started(folder: Path, *words: Any) -> subprocess.Popen[str]:
    fixed = ["--no-spark", "--no-page", "--json", "--results", str(folder / "results")]
    command = [*EXCHANGE, "run", *map(str, words), *fixed]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def record_of(run: subprocess.Popen[str]) -> Record:
    """Its run.json. RuntimeError if it left none. TimeoutExpired after it was interrupted, if it takes too long."""
    try:
        out, err = run.communicate(timeout=LONGEST_RUN_S)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
        run.communicate()
        raise
    if not out:
        raise RuntimeError(err)
    record: Record = json.loads(out)
    return record
