"""How many of an engine's answers are rejections for each reason."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from exchange.messages import ANSWER_TYPES, Rejection, records_of, sizes_by_code
from matching_engine.reasons import REASONS
from matching_engine.tape import offsets_of

_ANSWER_SIZES = sizes_by_code(ANSWER_TYPES)


class RejectionReasons:
    """Counts rejections by their reason."""

    def __init__(self) -> None:
        self._counts = np.zeros(256, np.int64)  # by the reason's number, which is a byte

    def take(self, answers: npt.NDArray[np.uint8]) -> None:
        """Count the rejections among these answers, whole records one after the other."""
        starts = offsets_of(answers, _ANSWER_SIZES)[:-1]
        _numbers, rejections = records_of(Rejection, answers, starts)
        self._counts += np.bincount(rejections["reason"], minlength=256)

    @property
    def by_reason(self) -> dict[str, int]:
        """The number of rejections for each reason that occurred, the most frequent first."""
        counts = {}
        for number in np.argsort(-self._counts, kind="stable").tolist():
            if self._counts[number]:
                counts[REASONS[number]] = int(self._counts[number])
        return counts
