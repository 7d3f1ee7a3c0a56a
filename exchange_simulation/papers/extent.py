"""How much of a paper is measured: in full or in short, how often each cell, over which networks and transports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exchange.allowed import BadSetting, whole
from exchange.json_records import Record
from exchange_simulation.experiments.trials.plan import MOST_REPEATS
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.point import LOCAL


@dataclass(frozen=True, kw_only=True)
class Extent:
    """What a user asks for of a paper. BadSetting if `repeats` is out of range."""

    quick: bool = False
    """The short form of `--quick`, in place of the paper's own extent."""
    repeats: int | None = None
    """How often each cell is measured; None for each part's own number."""
    networks: Sequence[str] = ()
    """In place of the paper's own; empty for these."""
    transports: Sequence[str] = ()
    """In addition to the paper's own."""

    def __post_init__(self) -> None:
        if self.repeats is not None:
            whole("repeats", self.repeats, 1, MOST_REPEATS)

    @property
    def goes_beyond_loopback(self) -> bool:
        """Whether a user named a network that is not loopback."""
        return any(network != LOCAL for network in self.networks)

    def as_dict(self) -> Record:
        """Return the extent as fields of paper.json."""
        return {
            "quick": self.quick,
            "repeats": self.repeats,
            "networks": list(self.networks),
            "transports": list(self.transports),
        }


FULL = Extent()
"""The paper's own extent."""
QUICK = Extent(quick=True)
"""The short form."""


def recorded_extent(record: Record) -> Extent:
    """Return the extent of a paper's record. UserError if its number of repeats is out of range.

    A record of an older version has no repeats, networks or transports.
    """
    try:
        return Extent(
            quick=record["quick"],
            repeats=record.get("repeats"),
            networks=record.get("networks", ()),
            transports=record.get("transports", ()),
        )
    except BadSetting as error:
        raise UserError(f"paper.json of {record['name']} is damaged: {error}") from error
