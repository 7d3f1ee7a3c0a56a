"""Measurements of a benchmark beside which others used the machine are made again, by the rule of trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from exchange_simulation.messaging import cell_turns
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.cell_turns import measure_in_turns, steps_of
from exchange_simulation.messaging.measurements import Measurements
from exchange_simulation.messaging.report import show
from exchange_simulation.messaging.running import write_page
from exchange_simulation.repeats.noise_rule import RedoRule

DE_SPSC = benchmark_of("de-spsc")
QUIET, NOISY, NOISIEST = 0.01, 0.2, 0.5
CELLS = [
    Cell(transport, {"size_bytes": size}, {"timeout_s": 1.0}) for transport in ("tcp", "zeromq") for size in (8, 64)
]
REPEATS = 2
RULE = RedoRule.of_plan(len(CELLS) * REPEATS)
"""At most four extra measurements."""


class Machine:
    """Measures at once beside these shares of noise; each measurement is faster than the one before."""

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


def measured(monkeypatch: pytest.MonkeyPatch, machine: Machine, rule: RedoRule | None = RULE) -> dict[str, Any]:
    monkeypatch.setattr(cell_turns, "measure", machine)
    measurements = Measurements(list(CELLS), rule)
    measurements.stopped = measure_in_turns(DE_SPSC, REPEATS, None, measurements, lambda: None)  # type: ignore[arg-type]
    return {"benchmark": "de-spsc", "settings": {"repeats": REPEATS}, **measurements.record()}


def planned() -> list[str]:
    return [str(CELLS[step.place]) for step in steps_of(CELLS, REPEATS)]


def counted_repeats(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in record["rows"]:
        yield from row["repeats"]


def test_transports_of_one_point_are_measured_one_after_the_other() -> None:
    for first in range(0, len(planned()), 2):
        one, other = planned()[first : first + 2]
        assert one.partition(", ")[2] == other.partition(", ")[2]
        assert one != other


def test_a_noisy_measurement_is_made_again_at_the_end_of_its_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([NOISY], repeat(QUIET)))
    record = measured(monkeypatch, machine)
    assert machine.measured == [*planned()[:4], planned()[0], *planned()[4:]]
    [aside] = [each for row in record["rows"] for each in row["set_aside"]]
    assert (aside["repeat"], aside["figures"]) == (1, {"messages_per_s": 1.0})
    assert all(each["noise"]["share_of_all_cpus"] == QUIET for each in counted_repeats(record))
    assert (record["redo_noisy"]["set_aside"], record["redo_noisy"]["still_noisy"]) == (1, 0)
    assert record["status"] == "complete"


def test_a_machine_that_is_never_quiet_ends_at_the_cap_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([NOISIEST], repeat(NOISY)))
    record = measured(monkeypatch, machine)
    assert len(machine.measured) == 8 + 4
    assert all(each["noise"]["share_of_all_cpus"] == NOISY for each in counted_repeats(record)), "the quietest counts"
    assert [(len(row["repeats"]), len(row["set_aside"])) for row in record["rows"]] == [(2, 1)] * 4
    names = ", ".join(f"repeat 1 of {row['words'].replace(',', '')}" for row in record["rows"][:3])
    assert record["caveats"] == [
        "4 measurements set aside for noise: other work or steal took more than 5% of the processors beside each, at "
        f"most 50% ({names}, ...)",
        "other work or steal took more than 5% of the processors beside 8 of 8 measurements, at most 20%; the plan's "
        "4 extra measurements were not enough",
    ]


def test_the_terminal_and_the_page_say_what_was_set_aside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    record = measured(monkeypatch, Machine(chain([NOISY], repeat(QUIET))))
    assert "1 messages/s; set aside: others took 20% of all processors" in capsys.readouterr().err
    show(record)
    assert "! 1 measurement set aside for noise" in capsys.readouterr().out
    page = write_page(tmp_path, {**record, "name": "first", "host": {}, "versions": {}}).read_text()
    assert "<li>1 measurement set aside for noise" in page


def test_with_keep_noisy_every_measurement_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(repeat(NOISY))
    record = measured(monkeypatch, machine, rule=None)
    assert len(machine.measured) == 8
    assert record["redo_noisy"] is None
    assert "beside 8 of 8 measurements, at most 20%" in record["caveats"][0]


def test_noise_that_is_unknown_is_no_reason_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(chain([None], repeat(QUIET)))
    record = measured(monkeypatch, machine)
    assert len(machine.measured) == 8
    assert record["caveats"] == ["the noise of the machine is unknown for 1 of 8 measurements"]


def test_a_try_whose_noise_is_unknown_takes_no_other_s_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise cannot be told of short measurements, so a slow one would have been replaced until a fast one came."""
    machine = Machine(chain([NOISY, QUIET, QUIET, QUIET, None, NOISIEST], repeat(QUIET)))
    record = measured(monkeypatch, machine)
    assert machine.measured.count(planned()[0]) == 4, "three tries of the first repeat, one of the second"
    [row] = [row for row in record["rows"] if row["words"] == planned()[0]]
    assert row["repeats"][0]["noise"]["share_of_all_cpus"] == NOISY
    assert [each["noise"]["share_of_all_cpus"] for each in row["set_aside"]] == [None, NOISIEST]


def test_a_wrong_answer_is_never_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first try was noisy and right, its second quiet and wrong: both are in the record, which is invalid."""
    machine = Machine(chain([NOISY], repeat(QUIET)))

    def measure(*words: Any) -> dict[str, Any]:
        record = machine(*words)
        if len(machine.measured) == 5:
            record |= {"status": "invalid", "reasons": ["one was lost"], "figures": {}}
        return record

    monkeypatch.setattr(cell_turns, "measure", measure)
    record = measured(monkeypatch, measure)  # type: ignore[arg-type]
    assert record["status"] == "invalid"
    assert record["reasons"] == [f"{planned()[0]}, repeat 1: one was lost"]
    assert len(machine.measured) == 9, "a wrong answer is not tried again for noise"
