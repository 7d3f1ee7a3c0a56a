"""Every decoder of a file either reads the file or raises the error that the decoder documents.

Examples are arbitrary bytes and damaged files. `make test` tries a few of each, `make test-long` many.
test_decoders_of_messages.py has the decoders of bytes from a link. The decoders of TCP streams, AMQP frames, captures
and order frames have such tests beside them (test_tcp_stream.py, test_scanner_fuzz.py, test_pcap.py).
"""

from __future__ import annotations

import contextlib
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
from exchange_simulation.launching.record.reading import Unusable, read_record, spool_records
from exchange_simulation.messaging.supply_chain.topologies import EXAMPLE, freeform
from gateway.tape import check_due, replayable_records
from matching_engine.recovering.journal import InputJournal, JournalRefused
from matching_engine.tape import order_offsets
from tests.decoders.damage import FRAMES, LINES, ORDERS, damaged
from transports.base import BadAddress
from transports.keys import Keys

IDENTITY = {"run": "first", "pair": 1}
RECORD_HEADER_BYTES = 16
"""Bytes before the orders of a journal's record."""
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


class Decoder(NamedTuple):
    decode: Callable[[Path], object]
    error: type[Exception]
    """The documented error."""
    valid: tuple[bytes, ...]
    """Contents of valid files."""


def record_decoder(kind: type) -> Decoder:
    """Return the decoder of a JSON record of this kind."""
    return Decoder(lambda path: read_record(path, kind), Unusable, (RUN_JSON,))


def decode_spool(path: Path) -> object:
    """Decode the spool of a run whose only file has this content."""
    (path.parent / "spool").mkdir(exist_ok=True)
    shutil.copy(path, path.parent / "spool" / "000001.jsonl")
    return list(spool_records(path.parent))


def valid_journal(folder: Path) -> bytes:
    """Return the content of a journal with two records of three orders each."""
    journal = InputJournal(folder / "valid", IDENTITY, sync="none")
    journal.append(np.frombuffer(bytearray(ORDERS[:30]), np.uint8))
    journal.append(np.frombuffer(bytearray(ORDERS[30:60]), np.uint8))
    journal.abandon()
    return (folder / "valid").read_bytes()


DECODERS: dict[str, Decoder] = {
    "run.json": record_decoder(RunRecord),
    "plan.json": record_decoder(PlanRecord),
    "comparison.json": record_decoder(ComparisonRecord),
    "capacity.json": record_decoder(CapacityRecord),
    "faults.json": record_decoder(FaultsRecord),
    "simulation.json": record_decoder(SimulationRecord),
    "bench.json": record_decoder(BenchRecord),
    "spool": Decoder(decode_spool, UserError, (b"\n".join(LINES), *LINES)),
    "tape": Decoder(replayable_records, MalformedMessage, (ORDERS,)),
    "tape of match": Decoder(lambda path: order_offsets(np.fromfile(path, np.uint8)), MalformedMessage, (ORDERS,)),
    "due times": Decoder(lambda path: check_due(path, 3), ValueError, (struct.pack("<3Q", 1, 2, 3), bytes(24))),
    "sweep.toml": Decoder(read_description, UserError, (TOML,)),
    "supply chain": Decoder(freeform, UserError, (EXAMPLE.encode(),)),
    "messages": Decoder(lambda path: list(decode_all(path.read_bytes())), MalformedMessage, (ORDERS, *FRAMES)),
}


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(name: str, data: st.DataObject, tmp_path_factory) -> None:
    decoder = DECODERS[name]
    path = tmp_path_factory.mktemp("damaged") / "file"
    path.write_bytes(data.draw(damaged(*decoder.valid)))
    with contextlib.suppress(decoder.error):
        decoder.decode(path)


@given(data=st.data())
def test_a_damaged_journal_is_refused_or_gives_the_first_orders(data, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("journal")
    whole = valid_journal(folder)
    head_bytes = len(whole) - 60 - 2 * RECORD_HEADER_BYTES
    path = folder / "damaged"
    path.write_bytes(data.draw(damaged(whole)))
    is_head_damaged = path.read_bytes()[:head_bytes] != whole[:head_bytes]
    try:
        journal = InputJournal(path, IDENTITY)
    except JournalRefused:
        return
    orders = b"".join(batch.span(0, batch.count).tobytes() for batch in journal.batches())
    journal.abandon()
    assert is_head_damaged or ORDERS.startswith(orders)


@given(data=st.data())
def test_a_damaged_configuration_is_read_or_refused(data: st.DataObject, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("toml") / "exchange.toml"
    path.write_bytes(data.draw(damaged(b'rate = "8k"\n[run]\nseed = 7\n[sweep]\nrepeats = 3\n')))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_command, "FILE", path)
        with contextlib.suppress(UserError):
            cli_command._sources({"rate": "orders_per_s", "seed": "seed"}, "run")


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["ca.pem", "listener.pem", "listener.key", "listener.curve"])
def test_damaged_keys_are_read_or_refused(name: str, data: st.DataObject, keys: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    if not folder.exists():  # every example damages the same file anew
        shutil.copytree(keys, folder)
    (folder / name).write_bytes(data.draw(damaged((keys / name).read_bytes())))

    with contextlib.suppress(BadAddress):
        checked = Keys.checked(folder)
        checked.tls("listener")
        checked.curve("listener")
