"""A clock that ran too short tells no rate: the run makes itself longer, or says so where the user set the number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from messaging import running
from messaging.benchmark import Cell, Counts
from messaging.benchmarks import benchmark_of
from messaging.roles import RoleResult
from messaging.streams import LEAST_SPAN_NS, flow_figures
from tests.exchange_command import exchange

DE_SPSC = benchmark_of("de-spsc")


def longest_of(monkeypatch: pytest.MonkeyPatch, count: int | None, enough: int) -> tuple[int, dict[str, Any]]:
    """How much longer a cell became that is timed from `enough` times the messages on."""

    def measure(_benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        figures = {"messages_per_s": 1.0} if cell.times_longer >= enough else {"publisher_messages_per_s": 1.0}
        return {"status": "complete", "reasons": [], "figures": figures}

    monkeypatch.setattr(running, "measure", measure)
    cell = Cell("memory", {"size_bytes": 8}, {"count": count, "timeout_s": 1.0})
    found, record = running._long_enough(DE_SPSC, cell, None)  # type: ignore[arg-type]
    return found.times_longer, record["figures"]


def test_a_run_makes_itself_longer_until_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_of(monkeypatch, None, 16) == (16, {"messages_per_s": 1.0})


def test_it_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_of(monkeypatch, None, 1 << 30)[0] == running.MOST_TIMES_LONGER


def test_a_number_that_the_user_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert longest_of(monkeypatch, 100, 16) == (1, {"publisher_messages_per_s": 1.0})


def test_a_longer_cell_has_more_messages() -> None:
    short, long = (Cell("memory", {"size_bytes": 8}, {}, times) for times in (1, 4))
    assert long.count(Counts()) == 4 * short.count(Counts())


def test_a_drained_buffer_is_no_rate_and_the_publisher_s_clock_stays(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--sizes", 8, "--count", 10, "--repeats", 1, "--results", tmp_path)
    said = exchange("bench", "de-spsc", *words)
    assert said.code == 0, said.err
    assert "memory, 8 B: too short to be timed: give a larger --count" in said.out
    assert "publisher's clock" in said.out


def test_the_shortest_span_is_a_rate() -> None:
    received = RoleResult(received=11, first_ns=5, last_ns=5 + LEAST_SPAN_NS)
    assert flow_figures(8, [received])["messages_per_s"] == 1000.0
    received.last_ns -= 1
    assert flow_figures(8, [received]) == {}
