"""A run's folder with its page."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_run import SyntheticRun

from exchange_simulation.reports.run.page import write_page


@pytest.fixture(scope="session")
def complete_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its page."""
    folder = SyntheticRun(seconds=5).write(tmp_path_factory.mktemp("results") / "complete")
    write_page(folder)
    return folder
