"""What the user asks of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a report is to hold."""

    with_spark: bool = True
    figures: bool = False
    hlog: bool = False
    as_json: bool = False
    as_csv: bool = False

    @property
    def quiet(self) -> bool:
        """The record alone goes to stdout."""
        return self.as_json or self.as_csv
