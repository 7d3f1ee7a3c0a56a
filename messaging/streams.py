"""Independent streams: of each a publisher and a consumer, who share nothing with another's but broker and machine."""

from __future__ import annotations

from collections.abc import Mapping

from messaging.answer import wrong_with
from messaging.benchmark import Cell
from messaging.places import Places
from messaging.roles import Role, Told


def stream_roles(cell: Cell, places: Places, count: int, streams: int = 1, size: int | None = None) -> list[Role]:
    """Each publisher sends `count` messages, and awaits one empty reply once its consumer has them."""
    from messaging.flow import Consume, Publish

    found, size = [], size or cell.size
    for consumer, publisher in names(streams):
        listener, connector = places.pair(size, name=_number(consumer), one_way=True)
        found += [
            Role(consumer, Consume(size, count), (listener,)),
            Role(publisher, Publish(size, count), (connector,), begins=True),
        ]
    return found


def names(streams: int) -> list[tuple[str, str]]:
    """(consumer, publisher) of each; one alone has no number."""
    numbers = [""] if streams == 1 else [f" {number}" for number in range(1, streams + 1)]
    return [(f"consumer{number}", f"publisher{number}") for number in numbers]


def _number(name: str) -> str:
    return name.partition(" ")[2]


def wrong_with_streams(told: Mapping[str, Told], count: int, streams: int = 1) -> list[str]:
    """Stream by stream, so that what one got of another's would be seen."""
    return [
        wrong
        for consumer, publisher in names(streams)
        for wrong in wrong_with({publisher: told[publisher]}, {consumer: told[consumer]}, count)
    ]


def consumers_of(told: Mapping[str, Told]) -> list[Told]:
    return [of_role for name, of_role in told.items() if name.startswith("consumer")]
