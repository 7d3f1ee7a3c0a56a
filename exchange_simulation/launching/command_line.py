"""The words that start `exchange` again, as a process of its own."""

from __future__ import annotations

import sys


def exchange_command(*words: object) -> list[str]:
    """Return the command `exchange WORDS`, run by this Python."""
    return [*python_module("exchange_simulation.cli"), *map(str, words)]


def python_module(module: str) -> list[str]:
    """Return the words that run one of our modules as a program.

    With `-P`, Python imports nothing from the current folder. That folder is the user's: a file `random.py` in it would
    be executed.
    """
    return [sys.executable, "-P", "-m", module]
