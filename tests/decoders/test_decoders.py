"""Whatever a file holds, what reads it reads it, or raises the error that it documents; nothing else.

Examples are arbitrary bytes, and valid ones that were damaged. `make test` tries a few of each, `make test-long` many.
test_decoders_of_messages.py has what comes over a link. The decoders of TCP streams, AMQP frames, captures and order
frames have such tests beside them (test_tcp_stream.py, test_scanner_fuzz.py, test_pcap.py).
"""

from __future__ import annotations

import contextlib
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exchange.messages import MalformedMessage, decode_all
from exchange.record_kinds import (
    BenchRecord,
    CapacityRecord,
    ComparisonRecord,
    FaultsRecord,
    PlanRecord,
    RunRecord,
    SimulationRecord,
)
from exchange_simulation.cli import command as cli_command
from exchange_simulation.experiments.sweep.planning import read_description
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.record.reading import Unusable, read_record, records
from exchange_simulation.messaging.supply_chain.topologies import EXAMPLE, freeform
from gateway.tape import check_due, check_orders
from matching_engine.recovering.journal import InputJournal, JournalRefused
from matching_engine.tape import order_offsets
from tests.decoders.damage import FRAMES, LINES, ORDERS, damaged
from transports.base import BadAddress
from transports.keys import Keys

IDENTITY = {"run": "first", "pair": 1}
RUN_JSON = orjson.dumps(
    {
        "schema": 1,
        "name": "x",
        "status": "complete",
        "reasons": [],
        "settings": {"transport": "tcp", "pairs": 1},
        "counts": {"orders_sent": 3},
        "completion_us": {"due": {"p50": 1.5}},
        "sockets": [],
        "pairs": [{"pair": 1}],
    }
)
TOML = b"repeats = 3\npause = 0.5\n[vary]\npacking = [1, 10]\nseed = [1, 2]\n[run]\norders = 1000\n"

Decoder = tuple[Callable[[Path], object], type[Exception] | tuple[type[Exception], ...], tuple[bytes, ...]]


def of_record(kind: type) -> Decoder:
    return lambda path: read_record(path, kind), Unusable, (RUN_JSON,)


def spool(path: Path) -> object:
    (path.parent / "spool").mkdir(exist_ok=True)
    shutil.copy(path, path.parent / "spool" / "000001.jsonl")
    return list(records(path.parent))


def journal(path: Path) -> object:
    opened = InputJournal(path, IDENTITY)
    try:
        return sum(batch.count for batch in opened.batches())
    finally:
        opened.abandon()


def valid_journal(folder: Path) -> bytes:
    opened = InputJournal(folder / "valid", IDENTITY, sync="none")
    for first in (0, 30):
        opened.append(np.frombuffer(bytearray(ORDERS[first : first + 30]), np.uint8))
    opened.abandon()
    return (folder / "valid").read_bytes()


FILES: dict[str, Decoder] = {
    "run.json": of_record(RunRecord),
    "plan.json": of_record(PlanRecord),
    "comparison.json": of_record(ComparisonRecord),
    "capacity.json": of_record(CapacityRecord),
    "faults.json": of_record(FaultsRecord),
    "simulation.json": of_record(SimulationRecord),
    "bench.json": of_record(BenchRecord),
    "spool": (spool, UserError, (b"\n".join(LINES), *LINES)),
    "tape": (check_orders, MalformedMessage, (ORDERS,)),
    "tape of match": (lambda path: order_offsets(np.fromfile(path, np.uint8)), MalformedMessage, (ORDERS,)),
    "due times": (lambda path: check_due(path, 3), ValueError, (struct.pack("<3Q", 1, 2, 3), bytes(24))),
    "sweep.toml": (read_description, UserError, (TOML,)),
    "supply chain": (freeform, UserError, (EXAMPLE.encode(),)),
    "messages": (lambda path: list(decode_all(path.read_bytes())), MalformedMessage, (ORDERS, *FRAMES)),
}


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject, tmp_path_factory) -> None:
    decode, error, valid = FILES[name]
    path = tmp_path_factory.mktemp("damaged") / "file"
    path.write_bytes(data.draw(damaged(*valid)))
    with contextlib.suppress(error):
        decode(path)


@given(data=st.data())
def test_a_damaged_journal_yields_a_prefix_of_what_was_written(data, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("journal")
    whole = valid_journal(folder)
    head = len(whole) - len(ORDERS) + 20 - 2 * 16
    path = folder / "damaged"
    path.write_bytes(data.draw(damaged(whole)))
    is_head_whole = path.read_bytes()[:head] == whole[:head]
    try:
        opened = InputJournal(path, IDENTITY)
    except JournalRefused:
        return
    found = b"".join(frame for batch in opened.batches() for frame in batch)
    opened.abandon()
    assert not is_head_whole or ORDERS.startswith(found)


@given(data=st.data())
def test_a_damaged_configuration_is_refused(data: st.DataObject, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("toml") / "exchange.toml"
    path.write_bytes(data.draw(damaged(b'rate = "8k"\n[run]\nseed = 7\n[sweep]\nrepeats = 3\n')))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_command, "FILE", path)
        with contextlib.suppress(UserError):
            cli_command._sources({"rate": "orders_per_s", "seed": "seed"}, "run")


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["ca.pem", "listener.pem", "listener.key", "listener.curve"])
def test_damaged_keys_are_refused(name: str, data: st.DataObject, keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    if not folder.exists():  # of the example before, whose damage this one replaces
        shutil.copytree(keys, folder)
    (folder / name).write_bytes(data.draw(damaged((keys / name).read_bytes())))

    with contextlib.suppress(BadAddress):
        found = Keys.checked(folder)
        found.tls("listener")
        found.curve("listener")
