"""Compiled code reads the place of every field from LAYOUTS: other layouts change the bytes and no value."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

CHANGE_LAYOUTS = """
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
for name in ("INCOMING_TYPES", "ANSWER_TYPES"):
    setattr(messages, name, tuple(others.get(kind.__name__, kind) for kind in getattr(messages, name)))
"""

MATCH_ORDERS = """
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
messages = [
    {"type": type(message).__name__, **message._asdict()} for message in decode_all(orders + b"".join(answers))
]
print(json.dumps({
    "bytes of an order": size,
    "messages": messages,
    "answered": completion.answered,
    "frames taken": taken,
    "sampled": sampled.tolist(),
    "counts": engine.counts._asdict(),
}))
"""


@pytest.fixture
def kernels(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for the kernels of the changed layouts. It stays for the next test run, as numba's usual cache does."""
    cache: pytest.Cache | None = getattr(request.config, "cache", None)
    if cache is None:
        return tmp_path
    return cache.mkdir(f"changed-layouts-{crc32(CHANGE_LAYOUTS.encode()):08x}")


def results_of(program: str, cache: Path | None = None) -> dict[str, Any]:
    """Run the program in a process; return the facts that it prints. `cache`: a folder for its kernels."""
    env = {**os.environ, "PYTHONPATH": os.getcwd()}
    if cache is not None:
        env["NUMBA_CACHE_DIR"] = str(cache)
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    results: dict[str, Any] = json.loads(run.stdout)
    return results


def test_reordered_and_widened_fields_change_bytes_and_no_value(kernels: Path) -> None:
    usual = results_of(MATCH_ORDERS)
    changed = results_of(CHANGE_LAYOUTS + MATCH_ORDERS, kernels)
    assert usual.pop("bytes of an order") == 10
    assert changed.pop("bytes of an order") == 12
    assert usual["answered"] == 300
    types = {message["type"] for message in usual["messages"]}
    assert types == {"Order", "Trade", "Quote", "Confirmation", "Rejection", "Cancelled"}
    assert changed == usual
