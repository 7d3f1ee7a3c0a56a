"""Whatever breaks, a session ends with every order answered once: the shipped gateway, engine and journal, simulated.

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

SEEDS, MANY = 40, 500
JOURNALED = InputJournal.batches


def check(seed: int, folder: Path) -> None:
    """Run one seed. AssertionError where an order is lost, matched twice, answered twice or timed twice."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        session = BrokenSession(seed, folder, monkeypatch)
        gateway, engine = session.run()
        expected = session.expected()
    assert gateway.stopped is None
    assert gateway.orders_answered == gateway.orders.messages == session.orders
    assert session.timed() == session.orders, "each order has one completion time"
    assert (gateway.orders.checksum, gateway.answers.checksum) == expected
    assert gateway.engine_said is not None
    if engine is not None:
        assert engine.stopped is None
        assert (engine.orders, engine.answers) == (gateway.orders, gateway.answers)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_order_is_answered_once(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS, MANY))
def test_every_order_is_answered_once_under_many_seeds(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_a_seed_makes_the_same_run_again(tmp_path: Path) -> None:
    ends = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        with pytest.MonkeyPatch.context() as monkeypatch:
            session = BrokenSession(7, tmp_path / folder, monkeypatch)
            gateway, engine = session.run()
        ends.append((session.world.now_ns, session.world.chance.random(), gateway.recovery, engine and engine.orders))
    assert ends[0] == ends[1]


def _matches_for_half_a_minute(journal: InputJournal) -> Iterator[FrameBatch]:
    for _ in range(10):
        time.sleep(3)
        yield FrameBatch(1)
    yield from JOURNALED(journal)


def test_a_journal_slower_than_the_timeout_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than the timeout to match it again."""
    monkeypatch.setattr(InputJournal, "batches", _matches_for_half_a_minute)
    check(5, tmp_path)


def _writes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that writes an order once the next one comes, when the answer has left."""
    append, before = InputJournal.append, {}

    def later(journal: InputJournal, orders: Any) -> None:
        if (waiting := before.pop(id(journal), None)) is not None:
            append(journal, waiting)
        before[id(journal)] = orders.copy()

    monkeypatch.setattr(InputJournal, "append", later)


def _counts_one_order_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that sends an order again that the engine has."""
    go_on = SessionResumer._continue_after
    monkeypatch.setattr(SessionResumer, "_continue_after", lambda resumer, orders: go_on(resumer, max(orders - 1, 0)))


def _believes_every_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes a resume which a broker delivers once more for a new one."""
    monkeypatch.setattr("matching_engine.recovering.resumed_session.ResumedSession.is_new", lambda *_: True)


def _sends_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby that goes on with its book, and does not send the answers that the gateway lacks."""
    monkeypatch.setattr("matching_engine.recovering.follower.Follower.answers_after", lambda *_: [])


def _goes_on_in_an_old_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that takes the place of one that died, and resumes a session that the engine has left behind."""
    go_on_from = SessionResumer.go_on_from

    def before_it(resumer: SessionResumer, before: GatewayProgress) -> GatewayProgress:
        go_on = go_on_from(resumer, before)
        resumer._session = before.session - 1
        return go_on

    monkeypatch.setattr(SessionResumer, "go_on_from", before_it)


def _forgets_what_was_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that does not report once more what died with the one before and its reporter."""
    monkeypatch.setattr(GatewayProgress, "with_records", lambda progress, _: progress)


PLANTS = [
    (_writes_later, 63), (_counts_one_order_too_few, 5), (_believes_every_resume, 4), (_sends_too_few, 24),
    (_goes_on_in_an_old_session, 29), (_forgets_what_was_reported, 92),
]  # fmt: skip
"""Bugs, each with a seed that found it soon."""


@pytest.mark.parametrize(("plant", "soon"), PLANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(plant: Any, soon: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    attempts = enumerate((soon, *range(SEEDS)))
    assert any(_is_violated(seed, tmp_path / str(attempt)) for attempt, seed in attempts), "no seed found it"


def _is_violated(seed: int, folder: Path) -> bool:
    """Whether this seed, in a folder of its own, breaks a promise."""
    folder.mkdir()
    try:
        check(seed, folder)
    except AssertionError:
        return True
    return False
