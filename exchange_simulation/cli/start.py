"""Starts the `exchange` command. A signal that comes while Python imports its modules ends it with a sentence.

The help texts are docstrings. A Python that was started without them, by `-OO` or PYTHONOPTIMIZE=2, starts anew with
them.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

BY_SIGNAL = 128
OPTIMIZE = "PYTHONOPTIMIZE"
WITH_DOCSTRINGS = "1"
"""The highest level of optimization at which Python keeps docstrings."""


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End this process at once: it has made nothing yet, and an exception would be raised inside an import."""
    os.write(2, b"interrupted before the start\n")
    os._exit(BY_SIGNAL + number)


def _start_with_docstrings() -> NoReturn:
    """Replace this process by the same command, in a Python that keeps docstrings."""
    environment = {**os.environ, OPTIMIZE: WITH_DOCSTRINGS}
    words = ["-O" if word == "-OO" else word for word in sys.orig_argv[1:]]
    os.execve(sys.executable, [sys.executable, *words], environment)


def start() -> None:
    """Run the command that this process was started as."""
    if sys.flags.optimize > int(WITH_DOCSTRINGS) and os.environ.get(OPTIMIZE) != WITH_DOCSTRINGS:
        _start_with_docstrings()
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # a launcher blocks it until here
    from exchange_simulation.cli.main import main

    main(prog_name="exchange")
