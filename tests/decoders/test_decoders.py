"""Whatever bytes come from outside, a decoder reads them, or raises the error that it documents; nothing else.

Examples are arbitrary bytes, and valid ones that were damaged: bytes changed, left out, put in, doubled, cut off, or
taken from another valid one. `make test` tries a few of each, `make test-long` many. The decoders of TCP streams, AMQP
frames, captures and order frames have such tests beside them (test_tcp_stream.py, test_scanner_fuzz.py, test_pcap.py).
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli import command as cli_command
from exchange.checksum import StreamChecksum
from exchange.instances import role_of
from exchange.json_records import (
    BenchRecord,
    CapacityRecord,
    ComparisonRecord,
    FaultsRecord,
    PlanRecord,
    RunRecord,
    SimulationRecord,
)
from exchange.measurements import Source
from exchange.messages import (
    Hello,
    MalformedMessage,
    Order,
    Quote,
    Statistics,
    Throughput,
    Timestamp,
    Trade,
    decode_all,
    encode,
)
from exchange.messages import decode as decode_frame
from exchange.records import RecordWriter
from exchange.session import Terms
from experiments.sweep.planning import read_description
from gateway.completion import Completion, Intake
from gateway.tape import check_due, check_orders
from matching_engine.journal import InputJournal, JournalRefused
from matching_engine.tape import cut
from messaging.supply_chain.topologies import EXAMPLE, freeform
from runs.errors import UserError
from runs.record.reading import Unusable, completion, read_record, records, traffic
from stats_reporter.service import Reporter
from stats_reporter.writer import SpoolWriter
from tests.transports.conftest import TOKEN, connect_while_serving, greet
from transports.base import BadAddress, Link
from transports.frames import FrameBatch
from transports.keys import Keys
from transports.rabbitmq.node import CONNECTION_START, FRAME_HEADER, greeting_of
from transports.registry import listen

RUN = 0xFEED
IDENTITY = {"run": "first", "pair": 1}
ORDERS = b"".join(encode(Order(number, 1, 500, 10)) for number in range(1, 9))
RECORD = RecordWriter(RUN, "gateway")
TRAFFIC = {"second": 1, "orders_sent": 2, "orders_answered": 2, "messages_received": 5}
BUCKETS = {"second": 1, "clock": "due", "last_order": False, "count": 2, "sum_ns": 9, "min_ns": 4, "max_ns": 5,
           "bucket": [3, 4], "bucket_count": [1, 1]}  # fmt: skip
LINES = [RECORD.document("traffic", TRAFFIC), RECORD.document("completion", BUCKETS), RECORD.document("end", {})]
RUN_JSON = orjson.dumps({
    "schema": 1, "name": "x", "status": "complete", "reasons": [], "settings": {"transport": "tcp", "pairs": 1},
    "counts": {"orders_sent": 3}, "completion_us": {"due": {"p50": 1.5}}, "sockets": [], "pairs": [{"pair": 1}],
})  # fmt: skip
HELLO = Terms(RUN, "price-time", 1, 999).hello(Source.GATEWAY)
FRAMES = [encode(each) for each in (HELLO, Throughput(1, 2), Timestamp(2, 1, 1), Trade(1, 500, 1), Quote(1, 2))]
FRAMES += [encode(Statistics(line)) for line in LINES]
GREETING = CONNECTION_START + b"\0\x09" + struct.pack(">I", 12) + b"\x07productS" + struct.pack(">I", 3) + b"abc"
TOML = b"repeats = 3\npause = 0.5\n[vary]\npacking = [1, 10]\nseed = [1, 2]\n[run]\norders = 1000\n"
DEEP = [b"a=" + b"[" * 3000, b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\0" * 64, b"1e999999", b"-" * 40]
"""What decoders have stumbled over."""


@st.composite
def damaged(draw: st.DrawFn, *valid: bytes) -> bytes:
    """Arbitrary bytes, or one of the valid ones with some damage."""
    if not draw(st.integers(0, 3)):
        return draw(st.binary(max_size=200) | st.sampled_from(DEEP))
    data = draw(st.sampled_from(valid))
    for _ in range(draw(st.integers(0, 4))):
        begin, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        piece = draw(
            st.sampled_from([b"", data[begin:end] * 2, b"\0", b"\xff", b"null", b"-1", b'"x"', b"[]", b"{}", b"1e400"])
            | st.binary(max_size=9)
            | st.sampled_from(valid).map(lambda other: other[begin:end])  # noqa: B023
        )
        data = data[:begin] + piece + data[draw(st.sampled_from([begin, begin + len(piece), end])) :]
    return data


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
    "tape of match": (lambda path: cut(np.fromfile(path, np.uint8)), MalformedMessage, (ORDERS,)),
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
def test_what_is_left_of_a_damaged_journal_is_the_beginning_of_what_was_written(data, tmp_path_factory) -> None:
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
def test_damaged_keys_are_refused(name: str, data: st.DataObject, keys: Path, tmp_path_factory) -> None:
    folder = Path(shutil.copytree(keys, tmp_path_factory.mktemp("keys") / "own"))
    (folder / name).write_bytes(data.draw(damaged((keys / name).read_bytes())))

    with contextlib.suppress(BadAddress):
        found = Keys.checked(folder)
        found.tls("listener")
        found.curve("listener")


class Frames(Link):
    """A link that has brought some frames."""

    url = "scripted://peer"

    def __init__(self, frames: list[bytes]) -> None:
        self._frames = frames

    def receive(self, batch: FrameBatch) -> int:
        frames, self._frames = self._frames, []
        for frame in frames:
            batch.append(frame)
        return len(frames)

    def send(self, batch: FrameBatch, first: int) -> int:
        return batch.count

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None: ...

    def close(self, linger_s: float = 1.0) -> None: ...


@given(frames=st.lists(damaged(*FRAMES), max_size=8))
def test_a_reporter_counts_or_writes_whatever_comes(frames: list[bytes], tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("spool")
    reporter = Reporter(RUN, Frames(frames), SpoolWriter(folder / "spool"), 1.0)
    assert reporter._take() == len(frames)
    reporter._spool.publish()
    for record in records(folder):
        assert role_of(record["source"]) in ("gateway", "engine", "reporter")
    completion(folder, warm_up_s=0)
    traffic(folder)


@given(frames=st.lists(damaged(*FRAMES, ORDERS), max_size=8))
def test_a_gateway_counts_whatever_comes_and_hashes_answers_alone(frames: list[bytes]) -> None:
    completion, stream = Completion(scheduled=False, sampling_interval=2), StreamChecksum()
    completion.handed_over(10, 1)
    intake = Intake(Frames(frames), completion, stream)
    assert intake.take() == len(frames)
    answers = int(completion.by_type.sum())
    greetings = (intake.hello is not None) + (intake.end is not None) + intake.asked_to_resume
    assert intake.junk + answers + greetings >= len(frames)


@given(frame=damaged(*FRAMES, encode(Hello(1, 2, 1, 0, 1, 999, 3, 4))))
def test_a_frame_is_a_message_or_malformed(frame: bytes) -> None:
    with contextlib.suppress(MalformedMessage):
        assert encode(decode_frame(frame)) == frame


PREAMBLES = tuple(way + struct.pack("<H", 5) + b"a-run" for way in (b"exchange", b"exchang>", b"exchang<"))
ZMTP = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00PLAIN" + bytes(47)


@given(said=st.lists(damaged(*PREAMBLES, ZMTP, b"GET / HTTP/1.1\r\n\r\n"), min_size=1, max_size=4))
@pytest.mark.parametrize("scheme", ["tcp", "zeromq"])
def test_a_listener_admits_nobody_who_shows_no_token_and_serves_who_does(scheme: str, said: list[bytes]) -> None:
    """Each stranger shows something else, and stays while the peer comes."""
    with contextlib.ExitStack() as stack:
        listener = listen(f"{scheme}://127.0.0.1:0", TOKEN)
        stack.callback(listener.close)
        host, port = listener.url.partition("://")[2].split(":")
        for each in said:
            if each.startswith(PREAMBLES[0]):
                continue  # that is the token
            stranger = stack.enter_context(socket.create_connection((host, int(port))))
            with contextlib.suppress(OSError):
                stranger.sendall(each)
        connector = connect_while_serving(listener)
        stack.callback(connector.close)
        greet(connector, listener)
        assert listener.receive(FrameBatch()) == 0


class Brokers:
    """A socket to a broker that says these bytes."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def __enter__(self) -> Brokers:
        return self

    def __exit__(self, *_: object) -> None: ...

    def settimeout(self, _s: float) -> None: ...

    def connect(self, _place: tuple[str, int]) -> None: ...

    def sendall(self, _data: bytes) -> None: ...

    def recv(self, most: int) -> bytes:
        piece, self._said = self._said[:most], self._said[most:]
        return piece


@given(said=damaged(FRAME_HEADER.pack(1, 0, len(GREETING)) + GREETING, GREETING))
def test_a_broker_s_greeting_is_one_or_none(said: bytes) -> None:
    greeting = greeting_of("127.0.0.1", 1, 1.0, lambda: Brokers(said))  # type: ignore[arg-type, return-value]
    assert greeting is None or isinstance(greeting.product, str)
