"""A reporter between two sources."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from reporter_session import Clock, Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(tmp_path / "spool")
    yield session
    session.close()


@pytest.fixture
def clock(session: Session, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The monotonic clock of the reporter, which waits on it."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    monkeypatch.setattr(session.link, "wait", clock.wait)
    return clock
