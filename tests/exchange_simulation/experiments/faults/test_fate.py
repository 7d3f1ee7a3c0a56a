"""What became of the orders of a run that broke is told from what it left, never from what it says alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exchange.messages import Confirmation, Message, Order, Quote, Trade, encode
from exchange_simulation.experiments.faults.fate import AnsweredSamples, FaultWindow, counts, service, timeline

RATE = 1000.0
S = 10**9
WINDOW = FaultWindow(start_ns=0, began_ns=2 * S, lifted_ns=3 * S, length_ns=6 * S)


def streams(folder: Path, *answers: Message) -> Path:
    """Ten orders of 5 lots, and these answers."""
    (folder / "orders.bin").write_bytes(b"".join(encode(Order(id_, 1, 500, 5)) for id_ in range(1, 11)))
    (folder / "answers.bin").write_bytes(b"".join(map(encode, answers)))
    return folder


def record(status: str, sent: int, answered: int) -> dict[str, object]:
    return {"status": status, "counts": {"orders_sent": sent, "orders_answered": answered}}


def answered(*seconds: float) -> AnsweredSamples:
    """Orders that are due at these times, and answered a millisecond later; those of the gap all at its end."""
    due = np.array([round(at * S) for at in seconds], np.int64)
    return AnsweredSamples(due // 10**6 + 1, due, due, due + 10**6)


EVERY_5_MS = [number / 200 for number in range(1200)]


def test_confirmations_and_partial_fills_are_no_doubled_answers(tmp_path: Path) -> None:
    folder = streams(tmp_path, Confirmation(1), Quote(500, 501), Trade(2, 500, 3), Trade(1, 500, 3), Trade(1, 500, 2))
    found = counts(record("partial", 10, 2), folder, None, WINDOW, RATE)
    assert found == {"sent": 10, "answered": 2, "lost": 8, "doubled": 0, "reordered": 0, "unreported": 0}


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
    found = counts(record("partial", 10, 3), streams(tmp_path, *answers), None, WINDOW, RATE)
    assert (found["doubled"], found["reordered"]) == (doubled, reordered)


def test_an_answer_that_was_cut_short_ends_the_stream(tmp_path: Path) -> None:
    folder = streams(tmp_path, Confirmation(1), Confirmation(2))
    whole = (folder / "answers.bin").read_bytes()
    (folder / "answers.bin").write_bytes(whole[:-2])
    assert counts(record("partial", 10, 2), folder, None, WINDOW, RATE)["doubled"] == 0


@pytest.mark.parametrize(
    ("told", "unreported"),
    [
        (record("partial", 10, 4), 0),
        (record("complete", 10, 4), 6),  # it says that all is well
        (record("partial", 7, 4), 3),  # ten orders are in the stream
        (None, 2000),  # no record: all that was due when the fault came
    ],
)
def test_an_order_that_the_record_does_not_tell_of_is_unreported(
    told: dict[str, object] | None, unreported: int, tmp_path: Path
) -> None:
    assert counts(told, streams(tmp_path, Confirmation(1)), None, WINDOW, RATE)["unreported"] == unreported


def test_a_gap_that_ends_is_told_from_an_end_of_service() -> None:
    paused = [at for at in EVERY_5_MS if not 2.0 <= at < 2.5]
    found = service(answered(*paused), WINDOW)
    assert (found["without_service_s"], found["came_back"]) == (pytest.approx(0.5, abs=0.01), True)
    assert found["p99_us"] == {"before": 1000.0, "during": 1000.0, "after": 1000.0}
    ended = service(answered(*(at for at in EVERY_5_MS if at < 2.0)), WINDOW)
    assert (ended["without_service_s"], ended["came_back"]) == (pytest.approx(4.0, abs=0.01), False)
    assert ended["p99_us"] == {"before": 1000.0, "during": None, "after": None}


def test_a_time_line_has_the_rates_of_every_tenth_of_a_second() -> None:
    rows = timeline(answered(*EVERY_5_MS), WINDOW, interval=5)
    assert (rows[0], len(rows)) == ([0.0, 1000.0, 1000.0], 60)
