"""The minutes of a long run, and the verdict on growth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from exchange.growth import growth_of
from exchange.measurements import BUCKETS, LogBuckets, bucket_of
from exchange.records import NEEDED_BY_FIGURES
from exchange_simulation.launching.record.reading import read_spool
from exchange_simulation.reports.run.minutes import growth_verdict, minutes_of, minutes_table, show_minutes
from exchange_simulation.reports.run.page import page_html
from exchange_simulation.reports.run.run_folder import RunFolder

ORDERS_A_SECOND = 100


def soaked(minutes: int, leak_mb_a_minute: float = 0.0, slower_a_minute: float = 0.0) -> RunFolder:
    """Return a run with a reading every ten seconds, in which memory and times vary by 2 % and grow as asked."""
    random = np.random.default_rng(7)
    spool: dict[str, list[dict[str, Any]]] = {kind: [] for kind in NEEDED_BY_FIGURES}
    most_bytes = 0
    for second in range(0, minutes * 60, 10):
        minute = second / 60
        times_ns = (200_000 * (1 + slower_a_minute * minute) * random.normal(1, 0.02, ORDERS_A_SECOND)).astype(np.int64)
        counts = np.bincount(bucket_of(times_ns), minlength=BUCKETS)
        buckets = LogBuckets(counts, int(times_ns.sum()), int(times_ns.min()), int(times_ns.max()))
        head = {"second": second, "clock": "due", "last_order": False}
        spool["completion"].append({"source": "gateway", "payload": {**head, **buckets.sparse()}})
        traffic = {"second": second, "orders_sent": 1000, "orders_answered": 1000, "messages_received": 1000}
        clocks = {"kind": "traffic", "wall_ns": second * 10**9, "monotonic_ns": second * 10**9}
        spool["traffic"].append({"source": "gateway", **clocks, "payload": traffic})
        rss_bytes = int(1e6 * (100 + leak_mb_a_minute * minute + random.normal(0, 0.5)))
        most_bytes = max(most_bytes, rss_bytes)
        process = {"second": second, "cpu_s": second * 0.1, "max_rss_bytes": most_bytes, "rss_bytes": rss_bytes}
        spool["process"].append({"source": "engine", **clocks, "kind": "process", "payload": process})
    run = {"status": "complete", "duration_s": minutes * 60.0, "settings": {"orders_per_s": 100.0, "transport": "tcp"}}
    return RunFolder(run, spool)


def test_a_minute_has_the_figures_of_its_seconds():
    first, *_others, last = minutes_of(soaked(12))
    assert (first.number, last.number) == (0, 11)
    assert first.answered_orders_per_s == pytest.approx(6000 / 60)
    assert first.p50_us == pytest.approx(200, rel=0.02)
    assert first.p50_us < first.p99_us < first.max_us
    assert first.memory_mb["engine"] == pytest.approx(100, rel=0.02)


def test_a_run_of_less_than_ten_minutes_has_no_minutes(capsys: pytest.CaptureFixture[str]):
    assert minutes_table(soaked(9)) is None
    show_minutes(soaked(9))
    assert capsys.readouterr().out == ""


def test_ten_minutes_are_whole_although_the_last_order_is_answered_before_they_are_over():
    """Regression: `--rate 2000 --duration 10m` lasts 599.9995 s, and had neither minutes nor a verdict."""
    folder = soaked(10)
    folder.run["duration_s"] = 599.9995
    assert [minute.number for minute in minutes_of(folder)] == list(range(10))


def test_nothing_grows_where_figures_only_vary():
    verdict = growth_verdict(minutes_of(soaked(30)))
    assert verdict.endswith("neither completion p50, p99 nor any component's memory was found to grow.")


def test_a_leak_is_named_with_its_size():
    verdict = growth_verdict(minutes_of(soaked(30, leak_mb_a_minute=1.0)))
    assert verdict == "Over 30 minutes, the first left out, these grow: engine's memory by 24 %."


def test_completion_times_that_rise_are_named():
    verdict = growth_verdict(minutes_of(soaked(30, slower_a_minute=0.01)))
    assert "completion p50 by 24 %" in verdict
    assert "completion p99 by" in verdict
    assert "memory" not in verdict


def test_growth_is_seldom_seen_where_there_is_none():
    random = np.random.default_rng(1)
    seen = [growth_of(random.normal(100, 20, 20)).is_certain for _ in range(400)]
    assert sum(seen) <= 8


def without_times(folder: RunFolder, memory_mb: npt.NDArray[np.float64]) -> RunFolder:
    """Return the run with these readings of the engine's memory, one for each minute, and no completion times."""
    most_mb = np.maximum.accumulate(memory_mb)
    processes = []
    for minute, (now_mb, most_so_far_mb) in enumerate(zip(memory_mb, most_mb, strict=True)):
        sizes = {"rss_bytes": int(now_mb * 1e6), "max_rss_bytes": int(most_so_far_mb * 1e6)}
        processes.append({"source": "engine", "payload": {"second": minute * 60, "cpu_s": 0.0, **sizes}})
    return RunFolder(folder.run, {**folder.spool, "completion": [], "traffic": [], "process": processes})


@pytest.mark.parametrize("minutes", [10, 20, 60])
@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.2])
def test_memory_that_only_varies_is_seldom_called_growth(minutes: int, deviation: float) -> None:
    """Regression: the most memory so far was judged, which never falls: it was called growth in up to 37 %."""
    random = np.random.default_rng(minutes)
    folder = soaked(minutes)
    series = 200
    called_growth = 0
    for _ in range(series):
        memory_mb = 100 * np.maximum(random.normal(1, deviation, minutes), 0.1)
        called_growth += "grow: engine's memory" in growth_verdict(minutes_of(without_times(folder, memory_mb)))
    assert called_growth <= 0.05 * series


def test_memory_that_fell_again_is_no_growth_and_its_peak_is_shown() -> None:
    memory_mb = np.full(20, 100.0)
    memory_mb[10:13] = 300
    minutes = minutes_of(without_times(soaked(20), memory_mb))
    assert "was found to grow" in growth_verdict(minutes)
    assert minutes[-1].memory_mb["engine"] == 300
    assert max(minute.memory_mb["engine"] for minute in minutes) == 300


def test_of_a_record_without_readings_that_can_fall_memory_is_not_judged() -> None:
    """Records of older versions have only the most memory so far."""
    folder = soaked(30, leak_mb_a_minute=1.0)
    for record in folder.spool["process"]:
        del record["payload"]["rss_bytes"]
    minutes = minutes_of(folder)
    assert minutes[-1].memory_mb["engine"] == pytest.approx(129, rel=0.02)
    assert growth_verdict(minutes) == (
        "Over 30 minutes, the first left out, neither completion p50 nor p99 was found to grow. "
        "Memory is not judged: the records have only the most memory so far."
    )


def test_terminal_and_page_have_the_minutes(capsys: pytest.CaptureFixture[str]):
    folder = soaked(30, leak_mb_a_minute=1.0)
    show_minutes(folder)
    shown = capsys.readouterr().out
    assert "these grow: engine's memory" in shown
    assert "engine MB" in shown
    page = page_html(folder)
    assert "Every minute" in page
    assert "these grow: engine&#39;s memory by 24 %" in page


def test_a_spool_on_disk_keeps_the_memory(tmp_path: Path):
    from exchange_simulation import run

    found = run(results=tmp_path, transport="memory", orders=100, rate="1k", page=False)
    processes = read_spool(found.folder)["process"]
    assert all(record["payload"]["max_rss_bytes"] > 0 for record in processes)
    assert all(record["payload"]["rss_bytes"] > 0 for record in processes)
