"""A benchmark that was interrupted goes on with the measurements that it lacks."""

from __future__ import annotations

import pytest

from exchange.json_records import Record
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.messaging.benchmark_record import RecordSoFar, measure_benchmark
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.cell_turns import measure_in_turns, steps_of
from exchange_simulation.messaging.earlier import can_go_on, earlier_tries
from exchange_simulation.messaging.measurements import Measurements
from exchange_simulation.messaging.options import settings_from_words
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.setup import plan_of
from exchange_simulation.messaging.setups import Setups
from exchange_simulation.repeats.noise_rule import RedoRule

THROUGHPUT = benchmark_of("throughput")
SETTINGS, _ = settings_from_words(
    THROUGHPUT, ["--transport", "tcp", "--sizes", "8,64", "--count", "20000", "--repeats", "3", "--keep-noisy"]
)
CELLS = [Cell("tcp", {"size_bytes": size}, SETTINGS) for size in (8, 64)]


def a_try(repeat: int, share: float, status: str = "complete") -> Record:
    return {"repeat": repeat, "status": status, "noise": {"share_of_all_cpus": share, "window_s": 1.0}}


def record_of(repeats: list[Record], set_aside: list[Record] | None = None) -> Record:
    """The record of an interrupted benchmark with one cell, tcp with 8 B."""
    row = {"transport": "tcp", "point": {"size_bytes": 8}, "repeats": repeats, "set_aside": set_aside or []}
    return {"rows": [row]}


def test_an_interrupted_benchmark_measures_what_it_lacks_and_nothing_twice() -> None:
    measured: list[Record] = []

    def interrupt_after_four(record_so_far: RecordSoFar) -> None:
        measured.append(record_so_far())
        if len(measured) == 4:
            raise KeyboardInterrupt

    with Brokers() as brokers:
        interrupted = measure_benchmark(THROUGHPUT, SETTINGS, "b", brokers, interrupt_after_four)
        record = measure_benchmark(THROUGHPUT, SETTINGS, "b", brokers, interrupt_after_four, interrupted)

    assert can_go_on(interrupted, THROUGHPUT, SETTINGS)
    assert len(measured) == 6
    assert record["status"] == "complete"
    assert {row["words"]: [repeat["repeat"] for repeat in row["repeats"]] for row in record["rows"]} == {
        "tcp, 8 B": [1, 2, 3],
        "tcp, 64 B": [1, 2, 3],
    }
    kept = [repeat for row in interrupted["rows"] for repeat in row["repeats"]]
    assert len(kept) == 4
    assert all(repeat in [other for row in record["rows"] for other in row["repeats"]] for repeat in kept)


def test_tries_that_were_set_aside_come_first_and_lost_tries_are_left_out() -> None:
    record = record_of([a_try(1, 0.01), a_try(2, 0.3, "partial")], [a_try(1, 0.4)])

    tries = earlier_tries(record, CELLS)

    assert [[(a["repeat"], a["noise"]["share_of_all_cpus"]) for a in cell] for cell in tries] == [
        [(1, 0.4), (1, 0.01)],
        [],
    ]


@pytest.mark.parametrize(
    ("settings", "goes_on"),
    [(SETTINGS, True), ({**SETTINGS, "count": 30_000}, False), ({**SETTINGS, "sizes": (8,)}, False)],
    ids=["the same", "other count", "other sizes"],
)
def test_only_a_benchmark_with_the_same_settings_goes_on(settings: Settings, goes_on: bool) -> None:
    record = {"status": "partial", "benchmark": "throughput", "settings": dict(SETTINGS)}

    assert can_go_on(record, THROUGHPUT, settings) == goes_on
    assert not can_go_on({**record, "status": "complete"}, THROUGHPUT, settings)


def test_a_wrong_answer_is_not_asked_for_again_and_a_noisy_try_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both steps of repeat 1 were noisy, and one had a wrong answer."""
    asked: list[tuple[int, int]] = []

    def measure(_benchmark: object, cell: Cell, _setup: object) -> Record:
        asked.append((cell.size, len(asked)))
        return {**a_try(0, 0.01), "figures": {"messages_per_s": 1.0}, "reasons": []}

    monkeypatch.setattr("exchange_simulation.messaging.cell_turns.measure", measure)
    measurements = Measurements(list(CELLS), RedoRule.of_plan(2))
    measurements.tries = [[a_try(1, 0.4, "invalid")], [a_try(1, 0.4)]]
    with Brokers() as brokers:
        setups = Setups(THROUGHPUT, plan_of(THROUGHPUT, SETTINGS), SETTINGS, brokers)
        stopped = measure_in_turns(THROUGHPUT, 1, setups, measurements, lambda: None)

    assert len(steps_of(CELLS, 1)) == 2
    assert stopped is None
    assert asked == [(64, 0)]
