"""How long who plays a part waits for another, and what is said of a broker that has gone."""

from __future__ import annotations

from multiprocessing import Pipe
from typing import Any

import pytest

from messaging.crew import Died
from messaging.measuring import used_by
from messaging.player import Player, Silence


class Stuck:
    """A link on which nothing goes."""

    def wait(self, *_: Any, **__: Any) -> None: ...


def waits(player: Player, times: int) -> None:
    for _ in range(times):
        player.wait(player.link, "no message could be sent", writable=True)


def test_who_waits_for_one_peer_alone_loses_patience() -> None:
    player = Player([Stuck()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        waits(player, 2)


def test_who_shares_a_queue_is_patient_until_the_crew_sees_nobody_get_on() -> None:
    theirs, ours = Pipe()
    player = Player([Stuck()], theirs, 0.0, until_told=True)  # type: ignore[list-item]
    waits(player, 3)
    ours.send(("stop",))
    with pytest.raises(Silence):
        waits(player, 1)


class Gone:
    """A node that was killed."""

    def usage(self) -> None:
        raise ProcessLookupError("process 7 has ended")


def test_a_broker_that_was_lost_is_named_and_not_its_process() -> None:
    with pytest.raises(Died, match="the broker ended in the middle"):
        used_by(Gone())  # type: ignore[arg-type]
