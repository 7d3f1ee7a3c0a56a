"""A line now and then while a cell goes on for minutes."""

from __future__ import annotations

import pytest

from messaging.flow import ConsumeShared
from messaging.measuring import progress_of
from messaging.roles import Role, Sharing
from reports import progress


def role(name: str, shares: Sharing | None) -> Role:
    return Role(name, ConsumeShared(256, 1, 0.0), (), shares=shares)


def test_messages_of_all_queues_are_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(progress, "SAY_EVERY_S", 0)
    monkeypatch.setattr("messaging.measuring.COUNT_EVERY_S", 0)
    queues = [Sharing(f"queue {number}", 600) for number in (1, 2)]
    with progress_of("perftest", [role(f"subscriber {i}", queues[i % 2]) for i in range(4)]) as on_count:
        on_count(5)
    assert capsys.readouterr().err == "perftest: 5 of 1,200 messages delivered\n"


def test_nothing_is_said_where_nobody_shares_a_queue(capsys: pytest.CaptureFixture) -> None:
    with progress_of("de-spsc", [role("consumer", None)]) as on_count:
        on_count(5)
    assert capsys.readouterr().err == ""
