"""One figure over the last minute."""

from __future__ import annotations

SECONDS = 60


class History:
    """A value by second of the run; what was not measured in a second is None."""

    def __init__(self) -> None:
        self._values: dict[int, float] = {}

    def put(self, second: int, value: float) -> None:
        """What is said of a second again takes the place of what was said before."""
        self._values[second] = value
        for old in [known for known in self._values if known <= second - SECONDS]:
            del self._values[old]

    def until(self, newest: int, seconds: int = SECONDS) -> list[float | None]:
        """The values of so many seconds, the last of which is `newest`."""
        return [self._values.get(second) for second in range(newest - seconds + 1, newest + 1)]
