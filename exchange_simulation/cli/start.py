"""Starts the `exchange` command. A signal that comes while Python imports its modules ends it with a sentence."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

BY_SIGNAL = 128


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End this process at once: it has made nothing yet, and an exception would be raised inside an import."""
    os.write(2, b"interrupted before the start\n")
    os._exit(BY_SIGNAL + number)


def start() -> None:
    """Run the command that this process was started as."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # a launcher blocks it until here
    from exchange_simulation.cli.main import main

    main(prog_name="exchange")
