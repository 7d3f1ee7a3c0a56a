"""Noisy measurements of a benchmark are made again, by the rule of trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.messaging import cell_turns, measurements
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.cell_turns import measure_in_turns, steps_of
from exchange_simulation.messaging.measurements import Measurements
from exchange_simulation.messaging.report import show
from exchange_simulation.messaging.running import write_page
from exchange_simulation.messaging.setup import Setup
from exchange_simulation.messaging.setups import Setups
from exchange_simulation.repeats.noise_rule import RedoRule

DE_SPSC = benchmark_of("de-spsc")
QUIET = 0.01
NOISY = 0.2
NOISIEST = 0.5
CELLS = [
    Cell(transport, {"size_bytes": size}, {"timeout_s": 1.0}) for transport in ("tcp", "zeromq") for size in (8, 64)
]
REPEATS = 2
RULE = RedoRule.of_plan(len(CELLS) * REPEATS)
"""At most four extra measurements."""


class NoSetups(Setups):
    """Stands for the setups of networks, which a measurement that is made up does not need."""

    def __init__(self) -> None:
        pass

    def of(self, cell: Cell) -> Setup:
        return Setup({}, {}, Brokers())


class Machine:
    """Stands for `measure`: its measurements have these shares of noise, and each is faster than the one before."""

    def __init__(self, shares: Iterable[float | None]) -> None:
        self.measured: list[str] = []
        self._shares = iter(shares)

    def __call__(self, _benchmark: object, cell: Cell, *_: object) -> dict[str, Any]:
        self.measured.append(str(cell))
        return {
            "status": "complete",
            "reasons": [],
            "figures": {"messages_per_s": float(len(self.measured))},
            "roles": {},
            "broker": None,
            "noise": {"window_s": 1.0, "share_of_all_cpus": next(self._shares)},
        }


def measure_all(monkeypatch: pytest.MonkeyPatch, machine: Machine, rule: RedoRule | None = RULE) -> dict[str, Any]:
    """The record of a benchmark that the machine measures."""
    monkeypatch.setattr(cell_turns, "measure", machine)
    measurements = Measurements(list(CELLS), rule)
    measurements.stopped = measure_in_turns(DE_SPSC, REPEATS, NoSetups(), measurements, lambda: None)
    return {"benchmark": "de-spsc", "settings": {"repeats": REPEATS}, **measurements.record()}


def planned_cells() -> list[str]:
    """The planned measurements in their order, without those that are made again."""
    return [str(CELLS[step.place]) for step in steps_of(CELLS, REPEATS)]


def counting_repeats(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in record["rows"]:
        yield from row["repeats"]


def test_transports_of_one_point_are_measured_one_after_the_other() -> None:
    cells = planned_cells()
    for first_cell, second_cell in zip(cells[0::2], cells[1::2], strict=True):
        first_transport, _, first_point = first_cell.partition(", ")
        second_transport, _, second_point = second_cell.partition(", ")
        assert first_point == second_point
        assert first_transport != second_transport


def test_a_noisy_measurement_is_made_again_at_the_end_of_its_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([NOISY], repeat(QUIET)))
    record = measure_all(monkeypatch, machine)
    first_repeat = planned_cells()[:4]
    second_repeat = planned_cells()[4:]
    assert machine.measured == [*first_repeat, first_repeat[0], *second_repeat]
    (set_aside,) = [measurement for row in record["rows"] for measurement in row["set_aside"]]
    assert set_aside["repeat"] == 1
    assert set_aside["figures"] == {"messages_per_s": 1.0}
    for counting in counting_repeats(record):
        assert counting["noise"]["share_of_all_cpus"] == QUIET
    assert record["redo_noisy"]["set_aside"] == 1
    assert record["redo_noisy"]["still_noisy"] == 0
    assert record["status"] == "complete"


def test_a_machine_that_is_never_quiet_is_measured_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([NOISIEST], repeat(NOISY)))
    record = measure_all(monkeypatch, machine)
    assert len(machine.measured) == 8 + 4
    for counting in counting_repeats(record):
        assert counting["noise"]["share_of_all_cpus"] == NOISY, "the quietest counts"
    for row in record["rows"]:
        assert len(row["repeats"]) == 2
        assert len(row["set_aside"]) == 1
    names = ", ".join(f"repeat 1 of {row['words'].replace(', ', ' ')}" for row in record["rows"][:3])
    assert record["caveats"] == [
        "4 measurements set aside for noise: other work or steal took more than 5% of the processors beside each, at "
        f"most 50% ({names}, ...)",
        "other work or steal took more than 5% of the processors beside 8 of 8 measurements, at most 20%; the plan's "
        "4 extra measurements were not enough",
    ]


def test_terminal_and_page_name_measurements_set_aside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    record = measure_all(monkeypatch, Machine(chain([NOISY], repeat(QUIET))))
    assert "1 messages/s; set aside: others took 20% of all processors" in capsys.readouterr().err
    show(record)
    assert "! 1 measurement set aside for noise" in capsys.readouterr().out
    page = write_page(tmp_path, {**record, "name": "first", "host": {}, "versions": {}}).read_text()
    assert "<li>1 measurement set aside for noise" in page


def test_with_keep_noisy_every_measurement_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(repeat(NOISY))
    record = measure_all(monkeypatch, machine, rule=None)
    assert len(machine.measured) == 8
    assert record["redo_noisy"] is None
    assert "beside 8 of 8 measurements, at most 20%" in record["caveats"][0]


def test_unknown_noise_is_a_caveat_and_nothing_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([None], repeat(QUIET)))
    record = measure_all(monkeypatch, machine)
    assert len(machine.measured) == 8
    assert record["caveats"] == ["the noise of the machine is unknown for 1 of 8 measurements"]


def test_a_try_of_unknown_noise_does_not_replace_a_noisy_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of short measurements is unknown, so a slow measurement would be replaced by a fast one."""
    machine = Machine(chain([NOISY, QUIET, QUIET, QUIET, None, NOISIEST], repeat(QUIET)))
    record = measure_all(monkeypatch, machine)
    assert machine.measured.count(planned_cells()[0]) == 4, "three tries of the first repeat, one of the second"
    (row,) = [row for row in record["rows"] if row["words"] == planned_cells()[0]]
    assert row["repeats"][0]["noise"]["share_of_all_cpus"] == NOISY
    shares_set_aside = [measurement["noise"]["share_of_all_cpus"] for measurement in row["set_aside"]]
    assert shares_set_aside == [None, NOISIEST]


def test_a_wrong_answer_is_never_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try of a cell is noisy and right, and the second quiet and wrong: the record has both."""
    machine = Machine(chain([NOISY], repeat(QUIET)))

    def measure(*arguments: Any) -> dict[str, Any]:
        record = machine(*arguments)
        if len(machine.measured) == 5:
            record |= {"status": "invalid", "reasons": ["one was lost"], "figures": {}}
        return record

    record = measure_all(monkeypatch, measure)  # type: ignore[arg-type]
    assert record["status"] == "invalid"
    assert record["reasons"] == [f"{planned_cells()[0]}, repeat 1: one was lost"]
    assert len(machine.measured) == 9, "a wrong answer is not tried again for noise"


def compared_record(shares: Iterable[float], *, redo_noisy: bool) -> dict[str, Any]:
    """A benchmark of two transports, one four times as fast, in repeats with these shares of noise."""
    all_shares = list(shares)

    def row_of(transport: str, messages_per_s: float) -> dict[str, Any]:
        repeats = []
        for number, share in enumerate(all_shares, 1):
            repeats.append(
                {
                    "repeat": number,
                    "status": "complete",
                    "reasons": [],
                    "figures": {"messages_per_s": messages_per_s + number},
                    "noise": {"window_s": 1.0, "share_of_all_cpus": share},
                }
            )
        return {
            "transport": transport,
            "point": {"size_bytes": 64},
            "words": transport,
            "figures": {"messages_per_s": {"median": messages_per_s, "low": None, "high": None, "n": len(repeats)}},
            "repeats": repeats,
        }

    return {
        "name": "first",
        "benchmark": "de-spsc",
        "status": "complete",
        "reasons": [],
        "caveats": [],
        "settings": {"repeats": len(all_shares)},
        "redo_noisy": {"most_tries": 3} if redo_noisy else None,
        "host": {},
        "versions": {},
        "rows": [row_of("amqp", 1000.0), row_of("zeromq", 4000.0)],
    }


def test_noisy_cells_make_no_ratio_but_a_range(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Regression: "zeromq's rates are 3.4 to 280 times amqp's" was the headline of cells beside other work."""
    record = compared_record([NOISY] * 4 + [QUIET] * 2, redo_noisy=True)
    show(record)
    printed = " ".join(capsys.readouterr().out.split())
    assert "too noisy to say: others took more than 5% of all processors beside 4 of 6 repeats" in printed
    assert "times as much" not in printed
    assert "the machine: others took more than 5% of all processors beside 8 of 12 measurements" in printed
    page = write_page(tmp_path, record).read_text()
    assert '<div class="banner" role="note"><p>The machine: others took more than 5% of all processors' in page


def test_cells_noisy_in_half_of_their_repeats_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    show(compared_record([NOISY] * 3 + [QUIET] * 3, redo_noisy=True))
    printed = " ".join(capsys.readouterr().out.split())
    assert "zeromq carries 4.0 times as much as amqp" in printed
    assert "the machine:" not in printed


def test_with_keep_noisy_noise_is_a_banner_and_no_reason_to_be_silent(capsys: pytest.CaptureFixture[str]) -> None:
    show(compared_record([NOISY] * 6, redo_noisy=False))
    printed = " ".join(capsys.readouterr().out.split())
    assert "zeromq carries 4.0 times as much as amqp" in printed
    assert "the machine: others took more than 5% of all processors beside 12 of 12 measurements" in printed


def test_a_load_over_time_keeps_its_commas_in_the_name_of_a_measurement() -> None:
    row = {"words": "tcp, 64 B, 1000@5s,8000@5s"}
    assert measurements._name_of(row, {"repeat": 1}) == "repeat 1 of tcp 64 B 1000@5s,8000@5s"
