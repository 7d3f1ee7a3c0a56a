"""A benchmark over transports with unlike guarantees says so in its first caveat."""

from __future__ import annotations

import pytest

from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.measurements import Measurements


def caveats(*transports: str, **settings: object) -> list[str]:
    cells = [Cell(transport, {"size_bytes": 64}, settings) for transport in transports]
    return list(Measurements(cells, rule=None).record()["caveats"])


def test_unlike_guarantees_are_the_first_caveat() -> None:
    assert caveats("zeromq", "redis?kind=stream", delivery=None)[0] == (
        "the guarantees differ, so this is not like against like: zeromq is lossy; "
        "redis?kind=stream is durable, synced once a second"
    )
    assert "amqp is acknowledged" in caveats("zeromq", "amqp", delivery="acked")[0]


@pytest.mark.parametrize("settings", [{"delivery": None}, {}], ids=["alike", "links of several guarantees"])
def test_like_guarantees_and_links_of_several_are_not_spoken_of(settings: dict[str, object]) -> None:
    transports = ("zeromq", "nats") if settings else ("zeromq", "redis?kind=stream")
    assert not any("guarantees" in caveat for caveat in caveats(*transports, **settings))
