"""Fixtures of the tests of packets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.packets.capture import Capture
from tests.machine import lacks


@pytest.fixture
def pcap(tmp_path: Path) -> Path:
    """A file for a capture; the test is left out where nothing can be captured."""
    try:
        with Capture([9], tmp_path / "probe.pcap", process_group=os.getpgrp()):
            pass
    except UserError as error:
        lacks(error.message)
    return tmp_path / "it.pcap"
