"""A clock that ran too short tells no rate: the run makes itself longer, or says so where the user set the number."""

from __future__ import annotations

from pathlib import Path
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


def longest_of(monkeypatch: pytest.MonkeyPatch, enough: int, **given: int | None) -> tuple[int, dict[str, Any]]:
    """How much longer a cell became that is timed from `enough` times the messages on."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        figures = {"messages_per_s": 1.0} if cell.times_longer >= enough else {"latency_mean_us": 1.0}
        return {"status": "complete", "reasons": [], "figures": figures}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"timeout_s": 1.0, **given})
    found, record = cell_turns._long_enough(DE_SPSC, cell, None)  # type: ignore[arg-type]
    return found.times_longer, record["figures"]


@pytest.mark.parametrize("given", [{"count": None}, {}])
def test_a_run_makes_itself_longer_until_it_is_timed(given: dict[str, None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is made again from a record, which leaves out the options that were not given."""
    assert longest_of(monkeypatch, 16, **given) == (16, {"messages_per_s": 1.0})


@pytest.mark.parametrize(
    ("messages", "figures"),
    [
        (50, {"mean", "p50", "max"}),
        (999, {"mean", "p50", "p90", "max"}),
        (10_000, {"mean", "p50", "p90", "p99", "p999", "max"}),
    ],
)
def test_a_percentile_that_is_about_the_maximum_is_left_out(messages: int, figures: set[str]) -> None:
    """The p99 of a quick de-pp over a broker was the third slowest of 200 round trips."""
    receivers = [RoleResult(latency=LogBuckets.of(np.arange(1, messages + 1)))]
    assert latency_figures(receivers, "due").keys() == {f"due_{figure}_us" for figure in figures}


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_of(monkeypatch, 1 << 30) == (cell_turns.MOST_TIMES_LONGER, {})


def test_a_number_that_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_of(monkeypatch, 16, count=100) == (1, {})


@pytest.mark.parametrize(
    ("first_reply_s", "sample_s", "reasons"),
    [
        (1.0, 1.6, []),
        (60.0, 6.4, ["too short to be timed: give a longer --sample"]),
    ],
)
def test_a_sample_without_a_reply_grows_to_ten_seconds_at_most(
    first_reply_s: float, sample_s: float, reasons: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it says what to lengthen."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        figures = {"replies_per_s": 1.0} if cell.sample_s >= first_reply_s else {}
        return {"status": "complete", "reasons": [], "figures": figures}

    monkeypatch.setattr(cell_turns, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"sample_s": 0.1, "timeout_s": 1.0})
    found, record = cell_turns._long_enough(benchmark_of("request-reply"), cell, None)  # type: ignore[arg-type]
    assert (found.sample_s, record["reasons"]) == (pytest.approx(sample_s), reasons)


def test_a_longer_cell_has_more_messages() -> None:
    short, long = (Cell("memory", {"size_bytes": 8}, {}, times) for times in (1, 4))
    assert long.count(Counts()) == 4 * short.count(Counts())


def test_a_drained_buffer_is_no_rate_but_invalid(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--sizes", 8, "--count", 10, "--repeats", 1, "--results", tmp_path)
    said = exchange_in_process("bench", "throughput", *words)
    assert said.code == 1
    assert "invalid: memory, 8 B, repeat 1: too short to be timed: give a larger --count" in " ".join(said.out.split())
    assert "messages/s" not in said.err


def test_the_shortest_span_is_a_rate() -> None:
    received = RoleResult(received=11, first_ns=5, last_ns=5 + LEAST_SPAN_NS)
    assert flow_figures(8, [received])["messages_per_s"] == 1000.0
    received.last_ns -= 1
    assert flow_figures(8, [received]) == {}


def test_the_rate_of_a_stream_is_of_all_streams_or_is_left_out() -> None:
    """It was the median of those that had run for long enough: of the slower ones."""
    streams, cell = (
        Streams(lambda _: 11, "streams", median_rate_figure="each_per_s"),
        Cell("memory", {"size_bytes": 8}, {}),
    )
    consumers = {f"consumer {number}": RoleResult(received=11, last_ns=LEAST_SPAN_NS) for number in (1, 2)}
    results = {"publisher": RoleResult(sent=11), **consumers}
    assert streams.figures(cell, results)["each_per_s"] == 1000.0
    consumers["consumer 2"].last_ns -= 1
    assert "each_per_s" not in streams.figures(cell, results)


def test_messages_too_short_for_a_stamp_have_the_right_mean_time() -> None:
    """The mean time is that of messages with a stamp."""
    source, receipt = MessageSource(1), Receipt(1)
    for handed_ns, came_ns in ((1_000, 5_000), (2_000, 10_000)):
        source.fill(2, handed_ns)
        receipt.add(source.batch, came_ns)
    publisher = RoleResult(sent=4, mean_ns=source.stamps_ns // 4)
    consumer = RoleResult(received=4, mean_ns=receipt.came_ns // 4)
    assert published_figures(1, {"publisher": publisher, "consumer": consumer}) == {"latency_mean_us": 6.0}


def test_the_paper_s_clock_ends_with_the_reply() -> None:
    publisher = RoleResult(sent=10, first_ns=5, details={"replied_ns": 5 + LEAST_SPAN_NS})
    assert by_publishers_clock(100, publisher)["messages_per_s"] == 1000.0
    publisher.details["replied_ns"] -= 1
    assert by_publishers_clock(100, publisher) == {}
