"""What tests ask of the machine: time, as long as it takes, and programs, which CI must have.

PATIENCE_S ends a hang, and nothing else: no test passes or fails by how long something takes on a busy machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

PATIENCE_S = 300.0
EXAMPLES = int(os.environ.get("EXCHANGE_TESTS_EXAMPLES", "25"))
"""How many examples a property is tried with, or a multiple of it; `make test-long` tries more."""


def until(condition: Callable[[], Any], what: str, poll_s: float = 0.05) -> Any:
    """The condition's first true value; polled, since what is watched is another process."""
    end_s = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end_s, f"never happened: {what}"
        time.sleep(poll_s)
    return value


def lacks(program: str) -> NoReturn:
    """Skip the test for want of a program that set-up brings; under CI=true, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has every program: {program}", pytrace=False)
    pytest.skip(program)
