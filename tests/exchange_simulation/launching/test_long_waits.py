"""A wait of some length is explained, so that nobody takes it for a hang."""

from __future__ import annotations

import threading

import pytest

from exchange_simulation.launching import long_waits
from exchange_simulation.launching.long_waits import said_if_long
from exchange_simulation.launching.notices import notices_to
from tests.machine import PATIENCE_S


def test_a_long_wait_is_explained_once_to_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_waits, "LONG_WAIT_S", 0.01)
    output: list[str] = []
    was_said = threading.Event()

    def listen(sentence: str) -> None:
        output.append(sentence)
        was_said.set()

    with notices_to(listen), said_if_long("the broker to start"):
        assert was_said.wait(PATIENCE_S)
    assert output == ["waiting for the broker to start, for 0.01 s so far"]


def test_a_short_wait_is_not_mentioned() -> None:
    output: list[str] = []
    with notices_to(output.append), said_if_long("the broker to start"):
        pass
    assert output == []
