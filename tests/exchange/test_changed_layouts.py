"""Compiled code takes the place of every field from LAYOUTS: with other layouts it sends the same in other bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

CHANGED = """
from typing import NamedTuple
from exchange import messages
from exchange.messages import U8, U16, U32

class Order(NamedTuple):
    volume: U32
    price: U16
    id: U32
    side: U8

class Trade(NamedTuple):
    id: U32
    volume: U16
    price: U32

class Quote(NamedTuple):
    ask: U32
    bid: U16

class Rejection(NamedTuple):
    id: U32
    reason: U16

others = {message.__name__: message for message in (Order, Trade, Quote, Rejection)}
messages.TYPES.update({code: others.get(kind.__name__, kind) for code, kind in messages.TYPES.items()})
messages.LAYOUTS.clear()
messages.LAYOUTS.update({kind: messages._layout(code, kind) for code, kind in messages.TYPES.items()})
for name, message in others.items():
    setattr(messages, name, message)
for name in ("ORDER_TYPES", "ANSWER_TYPES"):
    setattr(messages, name, tuple(others.get(kind.__name__, kind) for kind in getattr(messages, name)))
"""

EXCHANGE = """
import json
import numpy as np
from exchange.messages import LAYOUTS, Order, Cancel, decode_all, encode
from gateway.completion import Completion
from gateway.seeded_orders import SeededOrders
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from transports.frames import FrameBatch

orders = SeededOrders(7, (495, 505)).records(1, 300)
size = LAYOUTS[Order].size
frames = [orders[at : at + size] for at in range(0, len(orders), size)]
frames += [encode(Cancel(order_id)) for order_id in range(1, 300, 3)]
answers = FrameBatch(2_000)
engine = MatchingEngine(OrderBook(max_price=502, with_ids=True))
engine.handle(FrameBatch.of(*frames), answers)
completion = Completion(scheduled=False, sampling_interval=1)
completion.handed_over(300, 1)
taken, sampled = completion.take(answers, 0, 2)
by_name = [[type(m).__name__, sorted(m._asdict().items())] for m in decode_all(orders + b"".join(answers))]
print(json.dumps([size, by_name, [completion.answered, taken, sampled.tolist()], list(engine.counts)]))
"""


@pytest.fixture
def kernels(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Kernels of the changed layouts, which stay for the next time as the usual ones do: numba knows which are old."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    return cache.mkdir(f"changed-layouts-{crc32(CHANGED.encode()):08x}") if cache else tmp_path


def results_of(program: str, cache: Path | None = None) -> list[Any]:
    """Size of an order, orders and answers by name, what completion counted, the engine's counts."""
    more = {"NUMBA_CACHE_DIR": str(cache)} if cache else {}
    env = {**os.environ, "PYTHONPATH": os.getcwd(), **more}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(run.stdout)
    return found


def test_reordered_and_widened_fields_change_bytes_and_no_value(kernels: Path) -> None:
    usual, changed = results_of(EXCHANGE), results_of(CHANGED + EXCHANGE, kernels)
    assert (usual[0], changed[0]) == (10, 12)
    assert usual[2][0] == 300
    assert {kind for kind, _ in usual[1]} == {"Order", "Trade", "Quote", "Confirmation", "Rejection", "Cancelled"}
    assert changed[1:] == usual[1:]
