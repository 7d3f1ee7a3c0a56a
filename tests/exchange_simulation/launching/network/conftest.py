"""Real namespaces, where this machine has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.probe import probe
from exchange_simulation.launching.network.profile import parse
from tests.machine import lacks, until


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests of this folder in one process.

    Some look whether a process is gone by its number, which another test's process may have soon.
    """
    item.add_marker(pytest.mark.xdist_group("network"))


@pytest.fixture
def available() -> Callable[[str], str]:
    """The network, if it can be had; the test is skipped with the reason otherwise."""

    def check(text: str) -> str:
        machine = probe()
        try:
            machine.mechanism(parse(text))
        except UserError as refusal:
            leave_out = pytest.skip if machine.findings["tools"].works else lacks
            leave_out(refusal.message)
        return text

    return check


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any], str], None]:
    return until
