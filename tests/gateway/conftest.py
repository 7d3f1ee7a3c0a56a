"""A gateway's session on a simulated clock."""

from __future__ import annotations

import time

import pytest
from gateway_session import GatewaySession
from scripted_links import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The monotonic clock of the code under test."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    return clock


@pytest.fixture
def session(clock: Clock) -> GatewaySession:
    return GatewaySession(clock)
