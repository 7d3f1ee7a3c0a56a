"""Statistics records: one JSON document on one line, in the shape that docs/spool.md gives."""

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
    before_ns = time.time_ns(), time.monotonic_ns()
    record = orjson.loads(WRITER.document("traffic", {"second": 3}))
    after_ns = time.time_ns(), time.monotonic_ns()
    assert list(record) == ["schema", "run", "source", "kind", "wall_ns", "monotonic_ns", "payload"]
    assert (record["schema"], record["run"]) == (1, "0000000000000abc")
    assert (record["source"], record["kind"], record["payload"]) == ("gateway", "traffic", {"second": 3})
    assert before_ns[0] <= record["wall_ns"] <= after_ns[0]
    assert before_ns[1] <= record["monotonic_ns"] <= after_ns[1]


def test_a_run_id_takes_sixteen_hex_digits_whatever_its_value():
    runs = (0, 1, 2**64 - 1)
    written = [orjson.loads(RecordWriter(run, "engine").document("end", {}))["run"] for run in runs]
    assert written == ["0" * 16, "0" * 15 + "1", "f" * 16]


def test_arrays_become_lists_of_whole_numbers():
    payload = {"bucket": np.array([0, 5_759]), "bucket_count": np.array([1, 2**40])}
    record = orjson.loads(WRITER.document("completion", payload))
    assert record["payload"] == {"bucket": [0, 5_759], "bucket_count": [1, 2**40]}


def test_a_record_is_one_line_even_where_its_text_has_several():
    assert b"\n" not in WRITER.document("result", {"stopped": "first\nsecond", "list": [1, 2]})


def test_a_frame_carries_the_document_as_a_statistics_message():
    message = decode(WRITER.frame("process", {"cpu_s": 0.5}))
    assert isinstance(message, Statistics)
    record = orjson.loads(message.document)
    assert (record["kind"], record["payload"]) == ("process", {"cpu_s": 0.5})


def test_kinds_are_the_documented_ones():
    documented = ["session", "throughput", "sample", "completion", "traffic", "process", "end"]
    assert [getattr(records, kind.upper()) for kind in documented] == documented


@pytest.mark.parametrize("kind", ["completion", "traffic", "process", "result"])
@pytest.mark.parametrize("source", ["gateway", "engine", "reporter"])
def test_what_a_source_writes_is_a_record_of_its_run(source, kind):
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
def test_a_document_of_another_shape_is_no_record(field, value):
    document = orjson.loads(WRITER.document("result", {}))
    assert decode_sent(orjson.dumps(document), 0xABC) == document
    assert decode_sent(orjson.dumps({**document, field: value}), 0xABC) is None


@pytest.mark.parametrize("field", ["schema", "run", "source", "kind", "wall_ns", "monotonic_ns", "payload"])
def test_a_record_lacks_no_field(field):
    document = orjson.loads(WRITER.document("result", {}))
    assert decode_sent(orjson.dumps({name: value for name, value in document.items() if name != field}), 0xABC) is None
