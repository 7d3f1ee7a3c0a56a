"""Waiting for a condition, however long it takes, and skipping tests whose programs are missing.

PATIENCE_S only ends a hang: no test passes or fails by how long something takes on a busy machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

PATIENCE_S = 300.0
EXAMPLES = int(os.environ.get("EXCHANGE_TESTS_EXAMPLES", "25"))
"""The number of examples with which a property is tried; some tests take a multiple; `make test-long` tries more."""


def until(condition: Callable[[], Any], what: str, poll_s: float = 0.05) -> Any:
    """Wait until the condition is true; return its value. It is polled, since it is about another process."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end_s, f"never happened: {what}"
        time.sleep(poll_s)


def lacks(program: str) -> NoReturn:
    """Skip the test, since a program is missing that set-up would install; under CI=true, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has every program: {program}", pytrace=False)
    pytest.skip(program)
