"""A clock that ran too short gives no rate: the cell is made longer, or is invalid if the user chose its length."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exchange.measurements import LogBuckets
from exchange_simulation.messaging import cell_turns
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell, Counts
from exchange_simulation.messaging.payload import MessageSource, Receipt
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.messaging.streams import (
    LEAST_SPAN_NS,
    Streams,
    by_publishers_clock,
    flow_figures,
    latency_figures,
    published_figures,
)
from tests.exchange_command import exchange_in_process

DE_SPSC = benchmark_of("de-spsc")
NO_SETUPS: Any = SimpleNamespace(of=lambda _cell: None)
"""Stands for the setups of networks, since these tests measure nothing."""


def lengthened(monkeypatch: pytest.MonkeyPatch, enough: int, **given: int | None) -> tuple[int, dict[str, Any]]:
    """Measure a cell that is timed once it has `enough` times the messages; returns (times longer, figures)."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        figures = {"messages_per_s": 1.0} if cell.times_longer >= enough else {"latency_mean_us": 1.0}
        return {"status": "complete", "reasons": [], "figures": figures}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"timeout_s": 1.0, **given})
    long_cell, record = cell_turns._long_enough(DE_SPSC, cell, NO_SETUPS)
    return long_cell.times_longer, record["figures"]


@pytest.mark.parametrize("given", [{"count": None}, {}], ids=["as typed", "from a record"])
def test_a_cell_is_made_longer_until_it_is_timed(given: dict[str, None], monkeypatch: pytest.MonkeyPatch) -> None:
    """A record leaves out the options that the user did not give."""
    assert lengthened(monkeypatch, 16, **given) == (16, {"messages_per_s": 1.0})


@pytest.mark.parametrize(
    ("messages", "figures"),
    [
        (50, {"mean", "p50", "max"}),
        (999, {"mean", "p50", "p90", "max"}),
        (10_000, {"mean", "p50", "p90", "p99", "p999", "max"}),
    ],
)
def test_percentiles_of_too_few_messages_are_left_out(messages: int, figures: set[str]) -> None:
    """Regression: the p99 of a quick de-pp over a broker was the third slowest of 200 round trips."""
    receivers = [RoleResult(latency=LogBuckets.of(np.arange(1, messages + 1)))]
    assert latency_figures(receivers, "due").keys() == {f"due_{figure}_us" for figure in figures}


def with_known_noise(monkeypatch: pytest.MonkeyPatch, window_s: float, **given: int) -> tuple[int, str]:
    """Measure a cell of which each message takes its share of `window_s`; returns (times longer, status)."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        noise = {"window_s": window_s * cell.times_longer}
        return {"status": "complete", "reasons": [], "figures": {"messages_per_s": 1.0}, "noise": noise}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"timeout_s": 1.0, **given})
    long_cell, record = cell_turns._long_enough(DE_SPSC, cell, NO_SETUPS)
    return long_cell.times_longer, record["status"]


@pytest.mark.parametrize(("window_s", "times_longer"), [(0.25, 1), (0.1, 4), (0.02, 16)])
def test_a_cell_is_made_longer_until_its_noise_can_be_told(
    window_s: float, times_longer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert with_known_noise(monkeypatch, window_s) == (times_longer, "complete")


def test_a_cell_of_the_user_s_count_counts_although_its_noise_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_known_noise(monkeypatch, 0.1, count=100) == (1, "complete")


def test_a_cell_is_not_made_longer_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lengthened(monkeypatch, 1 << 30) == (cell_turns.MOST_TIMES_LONGER, {})


def test_a_count_that_the_user_chose_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lengthened(monkeypatch, 16, count=100) == (1, {})


def lengthened_sample(monkeypatch: pytest.MonkeyPatch, first_reply_s: float) -> tuple[float, list[str]]:
    """Measure a sample of 0.1 s whose first reply comes after `first_reply_s`; returns (its last length, reasons)."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        figures = {"replies_per_s": 1.0} if cell.sample_s >= first_reply_s else {}
        return {"status": "complete", "reasons": [], "figures": figures}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"sample_s": 0.1, "timeout_s": 1.0})
    long_cell, record = cell_turns._long_enough(benchmark_of("request-reply"), cell, NO_SETUPS)
    return long_cell.sample_s, record["reasons"]


def test_a_sample_without_a_reply_is_made_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_s, reasons = lengthened_sample(monkeypatch, first_reply_s=1.0)
    assert sample_s == pytest.approx(1.6)
    assert reasons == []


def test_a_sample_is_never_longer_than_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    sample_s, reasons = lengthened_sample(monkeypatch, first_reply_s=60.0)
    assert sample_s == pytest.approx(6.4), "the next length would be 25.6 s"
    assert reasons == ["too short to be timed: give a longer --sample"]


@pytest.mark.parametrize("benchmark", ["request-reply", "de-spsc"])
def test_a_load_over_time_is_not_made_longer(benchmark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a load of a second without a reply was measured again and again, without an end."""
    measured: list[Cell] = []

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        measured.append(cell)
        assert len(measured) < 10, "the measurements have no end"
        return {"status": "complete", "reasons": [], "figures": {}}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8, "rate_per_s": "1@1s"}, {"sample_s": 0.1, "timeout_s": 3.0})
    _, record = cell_turns._long_enough(benchmark_of(benchmark), cell, NO_SETUPS)
    assert len(measured) == 1
    assert record["reasons"] == ["too short to be timed: give a longer load by --rate"]


def test_a_longer_cell_has_more_messages() -> None:
    short = Cell("memory", {"size_bytes": 8}, {}, times_longer=1)
    long = Cell("memory", {"size_bytes": 8}, {}, times_longer=4)
    assert long.count(Counts()) == 4 * short.count(Counts())


def test_a_rate_of_ten_messages_is_invalid(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--sizes", 8, "--count", 10, "--repeats", 1, "--results", tmp_path)
    finished = exchange_in_process("bench", "throughput", *words)
    assert finished.code == 1
    output = " ".join(finished.out.split())
    assert "invalid: memory, 8 B, repeat 1: too short to be timed: give a larger --count" in output
    assert "messages/s" not in finished.err


def test_a_span_shorter_than_the_least_gives_no_rate() -> None:
    received = RoleResult(received=11, first_ns=5, last_ns=5 + LEAST_SPAN_NS)
    assert flow_figures(8, [received])["messages_per_s"] == 1000.0
    received.last_ns -= 1
    assert flow_figures(8, [received]) == {}


def test_the_rate_of_a_stream_is_left_out_unless_all_were_timed() -> None:
    """Regression: the rate was the median of the streams that had run for long enough, which are the slower ones."""
    streams = Streams(messages=lambda _: 11, streams_key="streams", median_rate_figure="rate_of_a_stream")
    cell = Cell("memory", {"size_bytes": 8}, {})
    first = RoleResult(received=11, last_ns=LEAST_SPAN_NS)
    second = RoleResult(received=11, last_ns=LEAST_SPAN_NS)
    results = {"publisher": RoleResult(sent=11), "consumer 1": first, "consumer 2": second}

    assert streams.figures(cell, results)["rate_of_a_stream"] == 1000.0
    second.last_ns -= 1
    assert "rate_of_a_stream" not in streams.figures(cell, results)


def test_messages_without_a_stamp_have_the_right_mean_latency() -> None:
    source = MessageSource(1)
    receipt = Receipt(1)
    for handed_over_ns, came_ns in ((1_000, 5_000), (2_000, 10_000)):  # latencies of 4 and 8 us
        source.fill(2, handed_over_ns)
        receipt.add(source.batch, came_ns)
    publisher = RoleResult(sent=4, mean_ns=source.stamps_ns // 4)
    consumer = RoleResult(received=4, mean_ns=receipt.came_ns // 4)
    assert published_figures(1, {"publisher": publisher, "consumer": consumer}) == {"latency_mean_us": 6.0}


def test_the_paper_s_clock_ends_with_the_reply() -> None:
    publisher = RoleResult(sent=10, first_ns=5, details={"replied_ns": 5 + LEAST_SPAN_NS})
    results = {"publisher": publisher}
    assert by_publishers_clock(100, results, {})["messages_per_s"] == 1000.0
    publisher.details["replied_ns"] -= 1
    assert by_publishers_clock(100, results, {}) == {}
