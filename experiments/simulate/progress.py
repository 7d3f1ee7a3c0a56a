"""How far a simulation is, on stderr: by parts, since a part's orders are heard of when it is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from experiments.simulate.ran import OnParts
from reports.live.progress import counting


@contextlib.contextmanager
def parts_bar(parts: int, orders: int) -> Iterator[OnParts]:
    """Shown as orders, of which every part has about the same number."""
    with counting("simulate", orders, f" of {orders:,} orders", "matched") as on_orders:
        yield lambda done: on_orders(done * orders // parts) if done else None
