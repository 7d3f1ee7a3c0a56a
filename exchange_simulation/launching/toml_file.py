"""Reads the TOML files of a user: exchange.toml, descriptions of sweeps, topologies of supply chains."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from exchange_simulation.launching.errors import UserError
from transports.regular_files import read_regular

MOST_BYTES = 1 << 20


def read_toml(path: Path, advice: str = "") -> dict[str, Any]:
    """Read a TOML file; `advice` is added to the sentence about a file that is no TOML.

    FileNotFoundError if there is none. UserError if the file cannot be read, or is no TOML.
    """
    try:
        content = read_regular(path, MOST_BYTES, "a TOML file")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # among the values: a number with thousands of digits
        raise UserError(f"{path} is no TOML that can be read: {_reason(error)}{advice}") from error


def _reason(error: Exception) -> str:
    """What is wrong. Python's advice about long numbers is for programmers."""
    return str(error).partition("; use sys.set_int_max_str_digits")[0]
