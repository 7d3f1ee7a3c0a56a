"""Completion times and answers of a gateway whose session may break."""

from __future__ import annotations

import numpy as np

from exchange.messages import Resume, read
from exchange.results import HashedStream
from gateway.completion import Completion
from gateway.intake import Intake
from transports.base import Link
from transports.frames import Longs


class RecoveringCompletion(Completion):
    """Completion times of a gateway that may take over the orders of a killed one."""

    def take_over(self, handed: Longs, due: Longs) -> None:
        """Note when the killed gateway handed over each of the next orders, and when they were due."""
        first_id = self.newest + 1
        self.handed_over(len(handed), 0, due)  # the zeros are replaced by each order's time below
        ids = np.arange(first_id, self.newest + 1)
        slots = ids & (len(self.tables.handed) - 1)
        self.tables.handed[slots] = handed

    def skip(self, answered: int) -> None:
        """Leave out the first orders, whose completion times the killed gateway has reported."""
        self.newest = answered
        self.answered = answered


class RecoveringIntake(Intake):
    """Takes answers, and notes when an engine that was started again asks to resume the session."""

    def __init__(self, link: Link, completion: Completion, stream: HashedStream) -> None:
        super().__init__(link, completion, stream)
        self.asked_to_resume = False

    def _read_foreign(self, frame: bytes) -> None:
        match read(frame):
            case Resume(session=0):
                self.asked_to_resume = True
            case _:
                super()._read_foreign(frame)
