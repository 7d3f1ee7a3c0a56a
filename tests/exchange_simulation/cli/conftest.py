"""`exchange serve` for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exchange_simulation.cli.serving import Serving, serving
from tests.exchange_simulation.cli.test_recorded_results import unpack


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(unpack(tmp_path_factory.mktemp("recorded"))) as served:
        yield served


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Serving]:
    results = tmp_path / "results"
    results.mkdir()
    with serving(results) as served:
        yield served
