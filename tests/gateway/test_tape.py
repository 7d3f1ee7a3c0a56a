"""Files of orders and of their due times: those that a gateway can replay, and the errors for all others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.messages import MARKET, Cancel, CancelRequest, MalformedMessage, Order, ReplaceRequest, TypedOrder, encode
from exchange.order_mix import KINDS, OrderMix
from gateway import tape
from gateway.due_times import NEVER_NS, Recorded, most_at_once
from gateway.mixed_orders import LARGEST_RECORD, MixedOrders
from gateway.seeded_orders import ORDER_BYTES, SeededOrders
from gateway.tape import TapedMessages, TapedOrders, check_due, due_path, replayable_records
from gateway.tape_records import STRIDE, mix_of, read_records

RECORDS = SeededOrders(7, (450, 549)).records(1, 500)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tape.bin"


@pytest.fixture(params=[7, 1 << 20])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of the chunks in which a file is read. Results do not depend on the chunk size."""
    monkeypatch.setattr(tape, "CHUNK_ORDERS", request.param)


def tape_with(order_id: int, replacement: bytes) -> bytes:
    """Return the tape with other bytes from the start of this order on."""
    start = (order_id - 1) * ORDER_BYTES
    return RECORDS[:start] + replacement + RECORDS[start + len(replacement) :]


def test_a_tape_of_seeded_orders_is_accepted(path: Path) -> None:
    path.write_bytes(RECORDS)
    records = replayable_records(path)
    assert (records.total, records.has_plain_orders_only) == (500, True)


@pytest.mark.parametrize(
    ("content", "message", "offset"),
    [
        (b"", "the tape is empty", 0),
        (RECORDS[:-1], "truncated: 9 of 10 bytes", 4990),
        (RECORDS[:3], "truncated: 3 of 10 bytes", 0),
        (RECORDS + b"\x07", "type byte 7, where one of 1 (order), 14 (typed order)", 5000),
        (tape_with(8, b"\x02"), "type byte 2, where one of 1 (order)", 70),
        (tape_with(400, b"\x02") + b"\x01", "type byte 2", 3990),
        (RECORDS[:30] + encode(Cancel(2)) + RECORDS[30:], "a cancel without an id of its own", 30),
        (RECORDS + encode(Cancel(2)), "replay the tape with exchange match", 5000),
        (tape_with(15, encode(Order(14, 1, 500, 1))), "id 14 stands where 15 goes", 140),
        (RECORDS[ORDER_BYTES:], "id 2 stands where 1 goes", 0),
    ],
)
def test_a_tape_that_cannot_be_replayed_is_refused_with_an_offset(
    path: Path, content: bytes, message: str, offset: int
) -> None:
    path.write_bytes(content)
    with pytest.raises(MalformedMessage) as refused:
        replayable_records(path)
    assert message in str(refused.value)
    assert refused.value.offset == offset


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("due", "message"),
    [
        (list(range(49)), "392 bytes, where 50 orders take 400"),
        ([*range(10), 8, *range(39)], "order 11 is due before order 10"),
        ([*range(1, 8), 0, *range(8, 50)], "order 8 is due before order 7"),
        ([*range(49), 2**62 + 1], "the last order is due at 4611686018427387905 ns, beyond"),
    ],
)
def test_wrong_due_times_are_refused(path: Path, due: list[int], message: str) -> None:
    np.array(due, "<u8").tofile(path)
    with pytest.raises(ValueError, match=f"^{message}"):
        check_due(path, 50)


@pytest.mark.usefixtures("chunk")
def test_due_times_may_be_equal_and_start_anywhere(path: Path) -> None:
    np.array([5, 5, 5, 9], "<u8").tofile(path)
    check_due(path, 4)


def test_the_file_of_due_times_is_beside_the_tape() -> None:
    assert due_path(Path("results/x/orders.bin")) == Path("results/x/orders.due")
    assert due_path(Path("tape")) == Path("tape.due")


@given(counts=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_batches_of_any_size_hold_the_same_orders(tmp_path_factory: pytest.TempPathFactory, counts: list[int]) -> None:
    path = tmp_path_factory.getbasetemp() / "tape.bin"
    path.write_bytes(RECORDS)
    orders = TapedOrders(path)
    sent = 0
    for count in counts:
        buffer = np.zeros(1_000, np.uint8)
        orders.write(buffer, sent + 1, count)
        expected = RECORDS[sent * ORDER_BYTES : (sent + count) * ORDER_BYTES]
        assert buffer[: len(expected)].tobytes() == expected
        assert not buffer[len(expected) :].any()
        sent += count


@given(
    gaps=st.lists(st.integers(0, 10**12), min_size=1, max_size=80),
    speed=st.sampled_from([0.5, 1.0, 3.0, 1000.0]),
    block=st.integers(1, 100),
)
def test_recorded_due_times_are_divided_by_the_speed(gaps: list[int], speed: float, block: int) -> None:
    recorded_ns = np.cumsum(gaps)
    recorded = Recorded(recorded_ns, speed)
    due = np.zeros(100, np.int64)
    for first in range(0, 100, block):
        recorded.write(due[first : first + block], first)
    since_first_ns = [int(time_ns) - gaps[0] for time_ns in recorded_ns]
    expected = [int(time_ns / speed) for time_ns in since_first_ns]
    assert due.tolist() == expected + [NEVER_NS] * (100 - len(gaps))


def test_at_speed_1_recorded_due_times_are_exact_to_the_nanosecond() -> None:
    recorded_ns = np.array([3, 4, 10, 10**15 + 1])
    due = np.zeros(4, np.int64)
    Recorded(recorded_ns, 1.0).write(due, 0)
    assert due.tolist() == [0, 1, 7, 10**15 - 2]


@given(
    runs=st.lists(st.integers(1, 12), min_size=1, max_size=20),
    size=st.sampled_from([1, 2, 3, 1000]),
)
def test_the_most_orders_due_at_once_are_the_longest_run_of_equal_times(runs: list[int], size: int) -> None:
    due = np.repeat(np.arange(len(runs)), runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.tape.CHUNK_ORDERS", size)
        assert most_at_once(due) == max(runs)


@given(
    gaps=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    speed=st.sampled_from([0.5, 1.0, 10.0, 1000.0]),
    size=st.sampled_from([1, 2, 3, 1000]),
)
def test_the_most_orders_due_at_once_are_counted_at_the_speed_of_the_replay(
    gaps: list[int], speed: float, size: int
) -> None:
    """Regression: times that only a high speed makes equal were not counted."""
    recorded_ns = np.cumsum(gaps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.tape.CHUNK_ORDERS", size)
        recorded = Recorded(recorded_ns, speed)
    due = np.zeros(len(gaps), np.int64)
    recorded.write(due, 0)
    assert recorded.at_once == max(Counter(due.tolist()).values())


MIX = "limit=50,post=10,market=5,ioc=3,fok=2,cancel=20,replace=10"
MESSAGES = 3 * STRIDE + 7


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixed") / "tape.bin"
    path.write_bytes(MixedOrders(OrderMix.parse(MIX), 7, (450, 549), "two-sided").records(1, MESSAGES))
    return path


def test_a_mixed_tape_is_accepted_with_the_shares_of_its_mix(mixed: Path) -> None:
    records = replayable_records(mixed)
    assert (records.total, records.end, records.has_plain_orders_only) == (MESSAGES, mixed.stat().st_size, False)
    for part in mix_of(records.by_kind).split(","):
        kind, _, percent = part.partition("=")
        assert float(percent) == pytest.approx(100 * records.by_kind[kind] / MESSAGES, abs=1e-5)


@given(data=st.data())
def test_parts_of_a_mixed_tape_are_the_bytes_of_the_tape(mixed: Path, data: st.DataObject) -> None:
    messages = TapedMessages(mixed)
    first_id = data.draw(st.integers(1, MESSAGES))
    count = data.draw(st.integers(1, MESSAGES + 1 - first_id))
    buffer = np.zeros(count * LARGEST_RECORD, np.uint8)
    ends = np.zeros(count, np.int64)
    messages.write(buffer, ends, first_id, count)
    part = buffer[: ends[-1]].tobytes()
    assert part == MixedOrders(OrderMix.parse(MIX), 7, (450, 549), "two-sided").records(first_id, count)


def test_a_tape_with_any_ids_has_kinds_too() -> None:
    tape = b"".join(
        encode(message)
        for message in (
            Order(9, 1, 500, 1),
            Cancel(9),
            TypedOrder(9, 1, 500, 1, MARKET),
            ReplaceRequest(4, 9, 501, 2),
            CancelRequest(5, 9),
        )
    )
    kinds = read_records(np.frombuffer(tape, np.uint8)).by_kind
    assert {kind: count for kind, count in kinds.items() if count} == {
        "limit": 1,
        "market": 1,
        "cancel": 2,
        "replace": 1,
    }


@given(
    st.dictionaries(st.sampled_from(KINDS), st.integers(0, 10**9)).filter(
        lambda kinds: kinds.get("limit", 0) + kinds.get("post", 0) > 0
    )
)
def test_the_mix_of_a_tape_is_a_mix_and_leaves_out_no_kind(kinds: dict[str, int]) -> None:
    percentages = dict(zip(KINDS, OrderMix.parse(mix_of(kinds)).percentages, strict=True))
    for kind in KINDS:
        assert (percentages[kind] > 0) == (kinds.get(kind, 0) > 0)
