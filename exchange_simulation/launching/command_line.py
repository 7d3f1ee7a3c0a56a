"""The words that start `exchange` again, as a process of its own."""

from __future__ import annotations

import sys


def exchange_command(*words: object) -> list[str]:
    """The command `exchange WORDS`, run by this Python."""
    return [*python_module("exchange_simulation.cli"), *map(str, words)]


def python_module(module: str) -> list[str]:
    """The words that run a module of ours as a program.

    `-P`: Python imports nothing from the folder that it is started in. That folder is the user's, and a file
    `random.py` in it would be executed.
    """
    return [sys.executable, "-P", "-m", module]
