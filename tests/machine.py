"""Waiting for a condition, and skipping tests whose programs are missing.

PATIENCE_S only ends a test that hangs: no test fails because a busy machine is slow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

PATIENCE_S = 300.0
EXAMPLES = int(os.environ.get("EXCHANGE_TESTS_EXAMPLES", "25"))
"""The number of examples for each property. Some tests take a multiple, and `make test-long` takes more."""


def until(condition: Callable[[], Any], expected: str, poll_s: float = 0.05) -> Any:
    """Poll the condition until it is true; return its value. AssertionError, with `expected`, after PATIENCE_S."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end_s, f"never happened: {expected}"
        time.sleep(poll_s)


def lacks(program: str) -> NoReturn:
    """Skip the test, since a program is missing; in CI (CI=true), where every program is installed, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI has every program: {program}", pytrace=False)
    pytest.skip(program)
