"""Where RabbitMQ's own start script is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from transports.rabbitmq.errors import RabbitMqMissing

NAMED_BY = "EXCHANGE_RABBITMQ_SERVER"
USUAL_PLACES = (
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
    "/opt/homebrew/sbin/rabbitmq-server",
    "/usr/local/sbin/rabbitmq-server",
)
WRAPPER = "rabbitmq-script-wrapper"
"""Debian's /usr/sbin/rabbitmq-server: changes to the user rabbitmq, who has no business in our folder."""


def find_server() -> Path:
    """The script, from EXCHANGE_RABBITMQ_SERVER, the usual places, or PATH. RabbitMqMissing where there is none."""
    named = os.environ.get(NAMED_BY)
    if named:
        if not _is_program(named):
            raise RabbitMqMissing(f"{NAMED_BY} names {named}, which is no program")
        return Path(named)
    on_path = shutil.which("rabbitmq-server")
    for place in (*USUAL_PLACES, *([on_path] if on_path else [])):
        if _is_program(place) and Path(place).resolve().name != WRAPPER:
            return Path(place)
    raise RabbitMqMissing()


def _is_program(place: str) -> bool:
    return Path(place).is_file() and os.access(place, os.X_OK)
