"""The fate of orders is derived from a run's streams and samples, and not from its record alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exchange.messages import Confirmation, Message, Order, Quote, Trade, encode
from exchange_simulation.experiments.faults.fate import AnsweredSamples, FaultWindow, counts, service, timeline

RATE = 1000.0
S = 10**9
WINDOW = FaultWindow(run_start_ns=0, run_length_ns=6 * S, fault_start_ns=2 * S, fault_end_ns=3 * S)


def streams(folder: Path, *answers: Message) -> Path:
    """Ten orders of 5 lots, and these answers."""
    (folder / "orders.bin").write_bytes(b"".join(encode(Order(id_, 1, 500, 5)) for id_ in range(1, 11)))
    (folder / "answers.bin").write_bytes(b"".join(map(encode, answers)))
    return folder


def record(status: str, sent: int, answered: int) -> dict[str, object]:
    """The fields of a run's record that `counts` reads."""
    return {"status": status, "counts": {"orders_sent": sent, "orders_answered": answered}}


def samples_due_at(seconds: list[float]) -> AnsweredSamples:
    """Samples that are due at these times, handed over at once, and answered a millisecond later."""
    due_ns = np.array([round(due_s * S) for due_s in seconds], np.int64)
    return AnsweredSamples(ids=due_ns // 10**6 + 1, due_ns=due_ns, handed_over_ns=due_ns, answered_ns=due_ns + 10**6)


EVERY_5_MS = [number / 200 for number in range(1200)]


def test_confirmations_and_partial_fills_are_no_doubled_answers(tmp_path: Path) -> None:
    folder = streams(tmp_path, Confirmation(1), Quote(500, 501), Trade(2, 500, 3), Trade(1, 500, 3), Trade(1, 500, 2))
    fate = counts(record("partial", 10, 2), folder, None, WINDOW, RATE)
    assert fate == {"sent": 10, "answered": 2, "lost": 8, "doubled": 0, "reordered": 0, "unreported": 0}


@pytest.mark.parametrize(
    ("answers", "doubled", "reordered"),
    [
        ((Confirmation(1), Confirmation(2), Confirmation(1)), 1, 0),
        ((Trade(3, 500, 4), Trade(3, 500, 4)), 1, 0),
        ((Confirmation(2), Confirmation(1), Confirmation(3)), 0, 1),
    ],
)
def test_doubled_and_reordered_answers_are_counted(
    answers: tuple[Message, ...], doubled: int, reordered: int, tmp_path: Path
) -> None:
    fate = counts(record("partial", 10, 3), streams(tmp_path, *answers), None, WINDOW, RATE)
    assert fate["doubled"] == doubled
    assert fate["reordered"] == reordered


def test_an_answer_that_is_cut_short_is_not_counted(tmp_path: Path) -> None:
    folder = streams(tmp_path, Confirmation(1), Confirmation(2))
    whole = (folder / "answers.bin").read_bytes()
    (folder / "answers.bin").write_bytes(whole[:-2])
    assert counts(record("partial", 10, 2), folder, None, WINDOW, RATE)["doubled"] == 0


@pytest.mark.parametrize(
    ("run_record", "unreported"),
    [
        pytest.param(record("partial", 10, 4), 0, id="the record shows the loss"),
        pytest.param(record("complete", 10, 4), 6, id="the record hides the loss"),
        pytest.param(record("partial", 7, 4), 3, id="the stream has more orders than the record"),
        pytest.param(None, 2000, id="no record: the orders due before the fault"),
    ],
)
def test_a_lost_order_that_the_record_does_not_show_is_unreported(
    run_record: dict[str, object] | None, unreported: int, tmp_path: Path
) -> None:
    fate = counts(run_record, streams(tmp_path, Confirmation(1)), None, WINDOW, RATE)
    assert fate["unreported"] == unreported


def test_an_exchange_that_answers_after_a_gap_came_back() -> None:
    answers_with_gap = [due_s for due_s in EVERY_5_MS if not 2.0 <= due_s < 2.5]
    after_gap = service(samples_due_at(answers_with_gap), WINDOW)
    assert after_gap["without_service_s"] == pytest.approx(0.5, abs=0.01)
    assert after_gap["came_back"] is True
    assert after_gap["p99_us"] == {"before": 1000.0, "during": 1000.0, "after": 1000.0}


def test_an_exchange_that_answers_no_more_did_not_come_back() -> None:
    answers_before_fault = [due_s for due_s in EVERY_5_MS if due_s < 2.0]
    no_service = service(samples_due_at(answers_before_fault), WINDOW)
    assert no_service["without_service_s"] == pytest.approx(4.0, abs=0.01)
    assert no_service["came_back"] is False
    assert no_service["p99_us"] == {"before": 1000.0, "during": None, "after": None}


def test_a_timeline_has_the_rates_of_every_tenth_of_a_second() -> None:
    rows = timeline(samples_due_at(EVERY_5_MS), WINDOW, sampling_interval=5)
    assert len(rows) == 60
    assert rows[0] == [0.0, 1000.0, 1000.0]
