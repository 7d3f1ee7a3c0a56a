"""A backlog is found in a run's traffic, with the time at which it was gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange_simulation import run
from exchange_simulation.launching.record.backlog import Backlog, backlog_of, backlog_words
from exchange_simulation.launching.record.reading import Spool


def spool_of(*seconds: tuple[int, int], source: str = "gateway") -> Spool:
    """Return traffic records, one for each second with the orders sent and those answered."""
    records = []
    for second, (sent, answered) in enumerate(seconds):
        payload = {"second": second, "orders_sent": sent, "orders_answered": answered, "messages_received": answered}
        records.append({"source": source, "payload": payload})
    return {"traffic": records}


def test_a_backlog_counts_from_its_highest_second_to_the_first_without_one():
    spool = spool_of((8000, 3000), (8000, 3000), (100, 3000), (100, 3000), (100, 4300), (100, 100))
    assert backlog_of(spool, 8000.0, 6.0) == Backlog(highest=10_000, highest_at_s=2.0, drained_at_s=5.0)


def test_a_backlog_that_the_last_answer_ends_is_drained_then():
    spool = spool_of((8000, 3000), (0, 5000))
    assert backlog_of(spool, 8000.0, 1.625) == Backlog(highest=5_000, highest_at_s=1.0, drained_at_s=1.625)


def test_orders_without_an_answer_are_never_drained():
    assert backlog_of(spool_of((8000, 3000), (0, 2000)), 8000.0, 2.0) == Backlog(5_000, 1.0, None)


@pytest.mark.parametrize("highest_orders_per_s", [1000.0, None])
def test_some_orders_on_their_way_are_no_backlog(highest_orders_per_s: float | None):
    assert backlog_of(spool_of((1000, 950), (1000, 1050)), highest_orders_per_s, 2.0) is None


def test_the_backlogs_of_gateways_are_added():
    records = [*spool_of((500, 420))["traffic"], *spool_of((500, 420), source="gateway.2")["traffic"]]
    records += [*spool_of((0, 0), (0, 80))["traffic"], *spool_of((0, 0), (0, 80), source="gateway.2")["traffic"]]
    assert backlog_of({"traffic": records}, 1000.0, 2.0) == Backlog(160, 1.0, 2.0)


def test_the_sentence_says_how_many_orders_and_how_long():
    record = {"backlog": {"highest": 10_885, "highest_at_s": 2.0, "drained_at_s": 5.421}}
    assert backlog_words(record) == "backlog: 10,885 unanswered orders after 2 s, drained 3.42 s later"
    record["backlog"]["drained_at_s"] = None
    assert backlog_words(record) == "backlog: 10,885 unanswered orders after 2 s, never drained"
    assert backlog_words({}) is None


def test_an_engine_that_works_too_long_has_a_backlog_which_drains_once_the_load_is_low(tmp_path: Path):
    found = run(results=tmp_path, transport="tcp", work="1ms", rate="2000@1s,10@2s")
    backlog = found.record["backlog"]
    assert 900 <= backlog["highest"] <= 2000  # the engine answers at most 1,000 orders a second
    assert backlog["drained_at_s"] <= found.record["duration_s"]
    assert "unanswered orders after 1 s, drained" in found.page.read_text()
