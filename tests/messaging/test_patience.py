"""A session loses patience in time; a broker that has gone is named."""

from __future__ import annotations

from multiprocessing import Pipe
from typing import Any

import pytest

from messaging.measuring import RoleLost, usage_of
from messaging.session import Session, Silence


class Stuck:
    """A link on which nothing goes."""

    def wait(self, *_: Any, **__: Any) -> None: ...


def waits(session: Session, times: int) -> None:
    for _ in range(times):
        session.wait(session.link, "no message could be sent", writable=True)


def test_who_waits_for_one_peer_alone_loses_patience() -> None:
    session = Session([Stuck()], Pipe()[0], 0.0)  # type: ignore[list-item]
    with pytest.raises(Silence, match="no message could be sent for 0 s"):
        waits(session, 2)


def test_who_shares_a_queue_is_patient_until_the_launcher_sees_nobody_get_on() -> None:
    theirs, ours = Pipe()
    session = Session([Stuck()], theirs, 0.0, until_stopped=True)  # type: ignore[list-item]
    waits(session, 3)
    ours.send(("stop",))
    with pytest.raises(Silence):
        waits(session, 1)


class Gone:
    """A node that was killed."""

    def usage(self) -> None:
        raise ProcessLookupError("process 7 has ended")


def test_a_broker_that_was_lost_is_named_and_not_its_process() -> None:
    with pytest.raises(RoleLost, match="the broker ended in the middle"):
        usage_of(Gone())  # type: ignore[arg-type]
