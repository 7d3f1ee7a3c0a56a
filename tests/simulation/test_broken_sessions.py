"""In a simulated world of faults, the real gateway, engine and journal answer every order once.

A failure names its seed: `pytest tests/simulation -k SEED` makes the same run again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_sessions import BrokenSession

from gateway.recovering.progress import GatewayProgress
from gateway.recovering.resumption import SessionResumer
from matching_engine.recovering.journal import InputJournal
from transports.frames import FrameBatch

SEEDS = 40
MANY_SEEDS = 500
BATCHES = InputJournal.batches
"""The real method, which a test replaces."""


def check(seed: int, folder: Path) -> None:
    """Run one seed. AssertionError if an order is lost, matched twice, answered twice or timed twice."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        session = BrokenSession(seed, folder, monkeypatch)
        gateway, engine = session.run()
        orders_checksum, answers_checksum = session.expected()
    assert gateway.stopped is None
    assert gateway.orders.messages == session.orders
    assert gateway.orders_answered == session.orders
    assert session.timed() == session.orders, "each order has one completion time"
    assert gateway.orders.checksum == orders_checksum
    assert gateway.answers.checksum == answers_checksum
    assert gateway.engine_said is not None
    if engine is not None:
        assert engine.stopped is None
        assert engine.orders == gateway.orders
        assert engine.answers == gateway.answers


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_order_is_answered_once(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS, MANY_SEEDS))
def test_every_order_is_answered_once_under_many_seeds(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_a_seed_always_makes_the_same_run(tmp_path: Path) -> None:
    assert end_of_seed_7(tmp_path / "first") == end_of_seed_7(tmp_path / "second")


def end_of_seed_7(folder: Path) -> dict[str, object]:
    """Run seed 7; return facts of the run's end."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as monkeypatch:
        session = BrokenSession(7, folder, monkeypatch)
        gateway, engine = session.run()
    return {
        "time": session.world.now_ns,
        "next random number": session.world.chance.random(),
        "recovery": gateway.recovery,
        "orders of the engine": engine.orders if engine is not None else None,
    }


def test_a_journal_that_takes_longer_than_the_timeout_loses_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matching the journal again takes half a minute, longer than the timeout of the gateway."""

    def slow_batches(journal: InputJournal) -> Iterator[FrameBatch]:
        for _ in range(10):
            time.sleep(3)
            yield FrameBatch(1)
        yield from BATCHES(journal)

    monkeypatch.setattr(InputJournal, "batches", slow_batches)
    check(5, tmp_path)


# Bugs that a test plants into the code.


def _writes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal writes orders when the next orders come, after the answers have left."""
    append = InputJournal.append
    waiting_orders: dict[int, Any] = {}

    def append_the_previous(journal: InputJournal, orders: Any) -> None:
        waiting = waiting_orders.pop(id(journal), None)
        if waiting is not None:
            append(journal, waiting)
        waiting_orders[id(journal)] = orders.copy()

    monkeypatch.setattr(InputJournal, "append", append_the_previous)


def _counts_one_order_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway sends an order again that the engine has."""
    go_on = SessionResumer._continue_after
    monkeypatch.setattr(SessionResumer, "_continue_after", lambda resumer, orders: go_on(resumer, max(orders - 1, 0)))


def _believes_every_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine takes a redelivered resume for a new one."""
    monkeypatch.setattr("matching_engine.recovering.resumed_session.ResumedSession.is_new", lambda *_: True)


def _sends_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby goes on with its book and does not send the answers that the gateway lacks."""
    monkeypatch.setattr("matching_engine.recovering.follower.Follower.answers_after", lambda *_: [])


def _goes_on_in_an_old_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A successor of a killed gateway resumes a session that has already ended at the engine."""
    go_on_from = SessionResumer.go_on_from

    def go_on_in_the_session_before(resumer: SessionResumer, progress: GatewayProgress) -> GatewayProgress:
        result = go_on_from(resumer, progress)
        resumer._session = progress.session - 1
        return result

    monkeypatch.setattr(SessionResumer, "go_on_from", go_on_in_the_session_before)


def _forgets_reported_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A successor does not report again the records that died with the gateway and its reporter."""
    monkeypatch.setattr(GatewayProgress, "with_records", lambda progress, _: progress)


BUGS = [
    (_writes_later, 63),
    (_counts_one_order_too_few, 5),
    (_believes_every_resume, 4),
    (_sends_too_few, 24),
    (_goes_on_in_an_old_session, 29),
    (_forgets_reported_records, 92),
]
"""Bugs, each with a seed that has found the bug."""


@pytest.mark.parametrize(("plant", "first_seed"), BUGS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(plant: Any, first_seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for attempt, seed in enumerate([first_seed, *range(SEEDS)]):
        if _finds_a_bug(seed, tmp_path / str(attempt)):
            return
    pytest.fail("no seed found the bug")


def _finds_a_bug(seed: int, folder: Path) -> bool:
    """Run this seed in a new folder. Returns whether a check failed."""
    folder.mkdir()
    try:
        check(seed, folder)
    except AssertionError:
        return True
    return False
