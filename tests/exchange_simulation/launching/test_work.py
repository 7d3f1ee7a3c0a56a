"""An engine that works on each order: it takes that long, and answers as an engine that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exchange.allowed import BadSetting
from exchange.settings import RunSettings
from exchange_simulation import run

WORK_S = 0.002
ORDERS = 200


def checksums(record: dict[str, Any]) -> tuple[str, str]:
    return record["checksums"]["orders"], record["checksums"]["answers"]


@pytest.mark.parametrize("transport", ["memory", "tcp", "zeromq", "shm", "nng"])
@pytest.mark.parametrize("packing", [1, 10])
def test_each_order_takes_the_engine_so_long_and_answers_are_the_same(tmp_path: Path, transport: str, packing: int):
    options: dict[str, Any] = {"transport": transport, "rate": "max", "orders": ORDERS, "packing": packing}
    quick = run(results=tmp_path, name="quick", page=False, **options)
    slow = run(results=tmp_path, name="slow", page=False, work="2ms", **options)
    assert slow.record["status"] == "complete"
    assert slow.record["duration_s"] >= ORDERS * WORK_S
    assert checksums(slow.record) == checksums(quick.record)


def test_an_engine_that_works_uses_its_processor(tmp_path: Path):
    found = run(results=tmp_path, page=False, transport="tcp", rate="max", orders=ORDERS, work=WORK_S)
    usage = found.record["components"]["engine"]
    assert usage["cpu_s"] >= ORDERS * WORK_S / 2


def test_a_journal_has_the_orders_on_which_the_engine_worked(tmp_path: Path):
    found = run(results=tmp_path, page=False, transport="tcp", rate="max", orders=ORDERS, work=WORK_S, recover=True)
    assert found.record["status"] == "complete"
    assert found.record["duration_s"] >= ORDERS * WORK_S


def test_several_gateways_refuse_work():
    with pytest.raises(BadSetting, match="--work"):
        RunSettings(gateways=2, work_s=0.001)
