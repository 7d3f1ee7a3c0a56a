"""A reporter between two sources."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from reporter_session import ReporterSession, WaitedClock


@pytest.fixture
def session(tmp_path: Path) -> Iterator[ReporterSession]:
    session = ReporterSession(tmp_path / "spool")
    yield session
    session.close()


@pytest.fixture
def clock(session: ReporterSession, monkeypatch: pytest.MonkeyPatch) -> WaitedClock:
    """The monotonic clock of the reporter, which waits on it."""
    clock = WaitedClock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    monkeypatch.setattr(session.link, "wait", clock.wait)
    return clock
