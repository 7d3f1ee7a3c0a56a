"""Programs that pretend to be RabbitMQ; the real one is the tests' `rabbitmq_node`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def pretender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a shell script in RabbitMQ's place."""

    def put(script: str) -> None:
        program = tmp_path / "rabbitmq-server"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(program))

    return put
