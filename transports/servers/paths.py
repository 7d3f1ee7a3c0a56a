"""Paths in the settings of NATS and Redis, which know the same escapes."""

from __future__ import annotations

import os
import re
from pathlib import Path

PLAIN = re.compile(r"[A-Za-z0-9/._-]")
"""Characters that stand for themselves."""


def quoted_path(path: Path) -> str:
    """The path in quotes: bytes other than letters, digits and /._- are escaped as \\xNN, so that any name works."""
    escaped = ""
    for byte in os.fsencode(path):
        character = chr(byte)
        escaped += character if PLAIN.fullmatch(character) else f"\\x{byte:02x}"
    return f'"{escaped}"'
