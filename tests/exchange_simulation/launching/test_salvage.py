"""An engine that is opened with --salvage reads its journal from the first order, whatever snapshot there is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from exchange.messages import ASK, Order, encode
from exchange.settings import RunSettings
from exchange_simulation.launching import services
from matching_engine.engine import MatchingEngine
from matching_engine.order_book import OrderBook
from matching_engine.recovering.journal_records import snapshot_path
from matching_engine.recovering.snapshots import write_snapshot
from matching_engine.turns import Sums


@pytest.mark.parametrize(("salvage", "orders"), [(False, 100), (True, 0)])
def test_damage_before_a_snapshot_is_cut_by_salvage_alone(salvage: bool, orders: int, tmp_path: Path) -> None:
    settings = RunSettings(journal=str(tmp_path))
    path = tmp_path / "engine.journal"
    engine = MatchingEngine(OrderBook(999))
    journal = services._open_journal("it", settings, 1)
    begins = path.stat().st_size
    for number in range(1, 101):
        journal.append(np.frombuffer(bytearray(encode(Order(number, ASK, 500, 1))), np.uint8))
    write_snapshot(journal, engine, Sums())
    journal.close()
    data = bytearray(path.read_bytes())
    data[begins] ^= 1
    path.write_bytes(data)
    gateway = cast(Any, SimpleNamespace(url="zeromq://127.0.0.1:1"))
    recovery = services._session_of_journal("it", gateway, settings, 1, engine, salvage)
    assert recovery.journal.orders == orders
    assert snapshot_path(path).exists() is not salvage
    recovery.journal.abandon()
