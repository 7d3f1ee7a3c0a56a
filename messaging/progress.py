"""How far a cell is whose roles say how much they have, as those who share queues do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator

from messaging.roles import Role
from reports.live.progress import OnCount, counting

LOOK_EVERY_S = 1.0


@contextlib.contextmanager
def delivering(what: str, roles: Iterable[Role]) -> Iterator[OnCount]:
    """Called with how many messages all have together; nothing is said where nobody shares a queue."""
    total = sum(shares.total for shares in {role.shares for role in roles} if shares)
    if not total:
        yield lambda _count: None
        return
    with counting(what, total, f" of {total:,} messages", "delivered") as on_count:
        yield _now_and_then(on_count)


def _now_and_then(on_count: OnCount) -> OnCount:
    looked_s = time.monotonic()

    def on_each(count: int) -> None:
        nonlocal looked_s
        if time.monotonic() - looked_s >= LOOK_EVERY_S:
            looked_s = time.monotonic()
            on_count(count)

    return on_each
