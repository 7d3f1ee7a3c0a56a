"""No example has a deadline: a compiled kernel's first call, or a busy machine, takes its time."""

from __future__ import annotations

import time

import pytest
from gateway_session import Session
from hypothesis import settings
from scripted_links import Clock

settings.register_profile("unhurried", settings(), deadline=None)
settings.load_profile("unhurried")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The monotonic clock of the code under test."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    return clock


@pytest.fixture
def session(clock: Clock) -> Session:
    return Session(clock)
