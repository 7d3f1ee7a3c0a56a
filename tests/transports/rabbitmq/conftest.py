"""Shell scripts in place of RabbitMQ. (The fixture `rabbitmq_node` has a real node.)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def fake_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a shell script in place of RabbitMQ's server."""

    def put(script: str) -> None:
        program = tmp_path / "rabbitmq-server"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("EXCHANGE_RABBITMQ_SERVER", str(program))

    return put
