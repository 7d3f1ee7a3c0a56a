"""Statistics records: a JSON document on one line, as docs/spool.md describes."""

from __future__ import annotations

import time

import numpy as np
import orjson
import pytest

from exchange import records
from exchange.measurements import LogBuckets
from exchange.messages import Statistics, decode
from exchange.records import RecordWriter, decode_sent

WRITER = RecordWriter(run=0xABC, source="gateway")
PAYLOADS = {
    "completion": {"second": 0, "clock": "due", "last_order": False, **LogBuckets().sparse()},
    "traffic": {"second": 0, "orders_sent": 1, "orders_answered": 1, "messages_received": 2},
    "process": {"second": 0, "cpu_s": 0.5},
}


def test_a_record_has_the_documented_shape():
    wall_before_ns = time.time_ns()
    monotonic_before_ns = time.monotonic_ns()
    record = orjson.loads(WRITER.document("traffic", {"second": 3}))
    assert list(record) == ["schema", "run", "source", "kind", "wall_ns", "monotonic_ns", "payload"]
    assert record["schema"] == 1
    assert record["run"] == "0000000000000abc"
    assert record["source"] == "gateway"
    assert record["kind"] == "traffic"
    assert record["payload"] == {"second": 3}
    assert wall_before_ns <= record["wall_ns"] <= time.time_ns()
    assert monotonic_before_ns <= record["monotonic_ns"] <= time.monotonic_ns()


def test_a_run_id_always_has_sixteen_hex_digits():
    def run_id(run: int) -> str:
        document = RecordWriter(run, "engine").document("end", {})
        return orjson.loads(document)["run"]

    assert run_id(0) == "0" * 16
    assert run_id(1) == "0" * 15 + "1"
    assert run_id(2**64 - 1) == "f" * 16


def test_arrays_become_lists_of_whole_numbers():
    payload = {"bucket": np.array([0, 5_759]), "bucket_count": np.array([1, 2**40])}
    record = orjson.loads(WRITER.document("completion", payload))
    assert record["payload"] == {"bucket": [0, 5_759], "bucket_count": [1, 2**40]}


def test_a_record_is_one_line_even_if_its_text_has_several():
    assert b"\n" not in WRITER.document("result", {"stopped": "first\nsecond", "list": [1, 2]})


def test_a_frame_carries_the_document_as_a_statistics_message():
    message = decode(WRITER.frame("process", {"cpu_s": 0.5}))
    assert isinstance(message, Statistics)
    record = orjson.loads(message.document)
    assert record["kind"] == "process"
    assert record["payload"] == {"cpu_s": 0.5}


def test_every_documented_kind_is_declared():
    documented = ["session", "throughput", "matched", "sample", "completion", "traffic", "process", "end"]
    assert [getattr(records, kind.upper()) for kind in documented] == documented


@pytest.mark.parametrize("kind", ["completion", "traffic", "process", "result"])
@pytest.mark.parametrize("source", ["gateway", "engine", "reporter"])
def test_a_source_s_document_is_a_record_only_of_its_run(source, kind):
    document = RecordWriter(0xABC, source).document(kind, PAYLOADS.get(kind, {}))
    assert decode_sent(document, 0xABC) == orjson.loads(document)
    assert decode_sent(document, 0xABD) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 2),
        ("schema", None),
        ("run", "abc"),
        ("run", 0xABC),
        ("source", "broker"),
        ("source", ["gateway"]),
        ("kind", "session"),
        ("kind", "sample"),
        ("kind", "throughput"),
        ("kind", "end"),
        ("kind", 5),
        ("wall_ns", "now"),
        ("wall_ns", 1.5),
        ("monotonic_ns", None),
        ("payload", []),
        ("payload", None),
    ],
)
def test_a_document_with_a_wrong_field_is_no_record(field, value):
    document = orjson.loads(WRITER.document("result", {}))
    assert decode_sent(orjson.dumps(document), 0xABC) == document
    assert decode_sent(orjson.dumps({**document, field: value}), 0xABC) is None


@pytest.mark.parametrize("field", ["schema", "run", "source", "kind", "wall_ns", "monotonic_ns", "payload"])
def test_a_document_without_a_field_is_no_record(field):
    document = orjson.loads(WRITER.document("result", {}))
    del document[field]
    assert decode_sent(orjson.dumps(document), 0xABC) is None
