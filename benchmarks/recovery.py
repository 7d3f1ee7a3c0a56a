"""What recovery costs if nothing fails, and how soon a killed engine answers again.

    gateway ⇄ engine ── journal, synced as --sync says        against the same run without a journal
    gateway ⇄ engine ✗ ── started again, or its standby       against the time that is allowed

More is better in every row: a p50 and a break are given as their reciprocals. Runs have real-time priority if the
system permits it.
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
from exchange_simulation.launching.priority import at_priority
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.follower import Follower
from matching_engine.recovering.journal import InputJournal
from matching_engine.recovering.pulse import Pulse
from matching_engine.recovering.snapshots import EVERY_ORDERS, write_snapshot
from transports.frames import FrameBatch

ORDERS = 1_000_000
"""Number of orders of a journal that is matched again."""
FLAT_OUT_ORDERS = 500_000
RATE_PER_S = 8_000
REQUIRED_PER_S = 5e6
"""The rate at which a journal must be matched again."""
LONGEST_RUN_S = 120.0


def rows(repeats: int) -> Iterator[BenchmarkRow]:
    """Measure journals that are matched again, what a journal costs a run, and how long an engine is away."""
    with tempfile.TemporaryDirectory(prefix="exchange-recovery-") as name, at_priority(permitted_priority()):
        folder = Path(name)
        yield matched_again(folder, 1, repeats)
        yield matched_again(folder, 1_000, repeats)
        yield resumed(folder, repeats)
        yield flat_out(folder, "none", repeats, required=0.8, hoped_for=0.95)
        yield flat_out(folder, "batch", repeats, required=0.5, hoped_for=0.7)
        yield paced(folder, repeats)
        yield break_of("recover", folder, repeats, allowed_s=2.0, hoped_for=2)
        yield break_of("standby", folder, repeats, allowed_s=0.3, hoped_for=6)


def matched_again(folder: Path, orders_per_record: int, repeats: int) -> BenchmarkRow:
    """Match a journal again."""
    journal = journal_of(ORDERS, orders_per_record, folder)
    ours, _ = in_turns(partial(replay, journal), None, repeats)
    title = f"a journal matched again, {orders_per_record:,} orders in a record"
    return BenchmarkRow(
        title,
        f"{REQUIRED_PER_S / 1e6:g} M orders/s",
        "orders/s",
        ours,
        [REQUIRED_PER_S] * repeats,
        required=1,
        hoped_for=4,
    )


def resumed(folder: Path, repeats: int) -> BenchmarkRow:
    """Resume a journal from its snapshot, against matching the whole journal again."""
    journal = with_snapshot(folder)
    ours, replayed = in_turns(partial(resume, journal), partial(replay, journal), repeats)
    title = f"a journal of {journal.orders / 1e6:g} M orders taken up from its snapshot"
    return BenchmarkRow(title, "matched again", "orders/s", ours, replayed)


def flat_out(folder: Path, sync: str, repeats: int, required: float, hoped_for: float) -> BenchmarkRow:
    """Run as fast as it goes with a journal, against the same run without."""
    with_journal = partial(orders_per_s, folder, sync)
    ours, without = in_turns(with_journal, partial(orders_per_s, folder), repeats)
    return BenchmarkRow(f"flat out, --sync {sync}", "no journal", "orders/s", ours, without, required, hoped_for)


def paced(folder: Path, repeats: int) -> BenchmarkRow:
    """Run at a rate with a journal, against the same run without."""
    with_journal = partial(inverse_p50_s, folder, "batch")
    ours, without = in_turns(with_journal, partial(inverse_p50_s, folder), repeats)
    title = f"1 / p50 at {RATE_PER_S:,} orders/s, --sync batch"
    return BenchmarkRow(title, "no journal", "/s", ours, without, required=1 / 1.3, hoped_for=1 / 1.1)


def break_of(how: str, folder: Path, repeats: int, allowed_s: float, hoped_for: float) -> BenchmarkRow:
    """Kill the engine of runs that recover, against the time without an answer that is allowed."""
    ours, _ = in_turns(partial(inverse_break_s, folder, how), None, repeats)
    title = f"1 / engine killed to first answer, --{how}"
    return BenchmarkRow(
        title, f"{allowed_s:g} s", "/s", ours, [1 / allowed_s] * repeats, required=1, hoped_for=hoped_for
    )


def journal_of(orders: int, orders_per_record: int, folder: Path) -> InputJournal:
    """Write a journal of the first `orders` orders."""
    journal = InputJournal(folder / f"{orders_per_record}.journal", {}, sync="none")
    append(journal, RunSettings(orders=orders), 1, orders, orders_per_record)
    return journal


def append(
    journal: InputJournal, settings: RunSettings, first: int, count: int, orders_per_record: int = 1_000
) -> None:
    """Append `count` orders, from order `first` on."""
    tape = np.frombuffer(bytearray(SeededOrders.of(settings).records(first, count)), np.uint8)
    record_bytes = len(tape) // count * orders_per_record
    for start in range(0, len(tape), record_bytes):
        journal.append(tape[start : start + record_bytes])


def with_snapshot(folder: Path) -> InputJournal:
    """Write a journal with a snapshot, and further orders after it. All orders have one price, so few of them rest."""
    settings = RunSettings(orders=EVERY_ORDERS + ORDERS, prices=(500, 500))
    journal = InputJournal(folder / "snapshot.journal", {}, sync="none")
    append(journal, settings, 1, EVERY_ORDERS)
    follower = follow(journal)
    write_snapshot(journal, follower.engine, follower.sums)
    append(journal, settings, EVERY_ORDERS + 1, ORDERS)
    return journal


def follow(journal: InputJournal) -> Follower:
    """Return a follower that has matched the whole journal, from its snapshot if there is one."""
    follower = Follower(journal.path, MatchingEngine(OrderBook(999)))
    follower.follow()
    return follower


def resume(journal: InputJournal) -> float:
    """Load a journal's snapshot, and match the orders after it; returns orders of the whole journal a second."""
    began_s = time.perf_counter()
    follow(journal)
    return journal.orders / (time.perf_counter() - began_s)


def replay(journal: InputJournal) -> float:
    """Match a journal from its first order; returns orders a second."""
    engine = MatchingEngine(OrderBook(999))
    answers = FrameBatch(1 << 19, 1 << 21)
    began_s = time.perf_counter()
    for orders in journal.batches():
        first = 0
        while first < orders.count:
            answers.clear()
            first, _ = engine.handle(orders, answers, first)
    return journal.orders / (time.perf_counter() - began_s)


def orders_per_s(folder: Path, sync: str | None = None) -> float:
    """Measure the orders/s of a run as fast as it goes; `sync` says when its journal is synced, None: no journal."""
    run = start_run(folder, "--rate", "max", "--orders", FLAT_OUT_ORDERS, *journal_words(folder, sync))
    return float(record_of(run)["rates"]["orders_per_s"])


def inverse_p50_s(folder: Path, sync: str | None = None) -> float:
    """Measure the median completion time from due of a paced run; returns its reciprocal, in 1/s."""
    run = start_run(folder, "--rate", RATE_PER_S, "--duration", 3, *journal_words(folder, sync))
    return 1e6 / float(record_of(run)["completion_us"]["due"]["p50"])


def journal_words(folder: Path, sync: str | None) -> list[str]:
    """Return the options of a journal in a new folder; no options if `sync` is None."""
    if sync is None:
        return []
    return ["--journal", tempfile.mkdtemp(dir=folder), "--sync", sync]


def inverse_break_s(folder: Path, how: str) -> float:
    """Kill a run's engine a second after it begins to serve; returns 1 / (seconds without an answer)."""
    journal = Path(tempfile.mkdtemp(dir=folder))
    run = start_run(folder, "--rate", RATE_PER_S, "--duration", 4, f"--{how}", "--journal", journal)
    pulse = journal / "engine.pulse"
    if serves(pulse, run):
        time.sleep(1)
        psutil.Process(Pulse(pulse).pid).send_signal(signal.SIGKILL)
    return 1 / float(record_of(run)["recovered"]["without_service_s"])


def serves(pulse: Path, run: subprocess.Popen[str]) -> bool:
    """Wait until the engine's pulse beats; returns False if the run ends before, or does not begin in time."""
    until_s = time.monotonic() + LONGEST_RUN_S
    while run.poll() is None and time.monotonic() < until_s:
        if pulse.exists() and Pulse(pulse).beats:
            return True
        time.sleep(0.01)
    return False


def start_run(folder: Path, *options: Any) -> subprocess.Popen[str]:
    """Start `exchange run` with these options."""
    fixed_options = ["--no-spark", "--no-page", "--json", "--results", str(folder / "results")]
    command = [*EXCHANGE, "run", *map(str, options), *fixed_options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def record_of(run: subprocess.Popen[str]) -> Record:
    """Wait for a run; returns its run.json.

    RuntimeError if the run left no record. TimeoutExpired if the run takes too long; it is then interrupted.
    """
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
