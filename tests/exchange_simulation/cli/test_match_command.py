"""`exchange match` over requests that an engine rejects: how many, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.market_ids import market_id
from exchange.messages import (
    ASK,
    BID,
    LIMIT,
    MARKET,
    POST_ONLY,
    CancelRequest,
    InstrumentOrder,
    Message,
    Order,
    ReplaceRequest,
    TypedOrder,
    encode,
)
from tests.exchange_command import exchange_in_process

ASK_AT_500 = Order(1, ASK, 500, 5)
BID_AT_500 = Order(2, BID, 500, 5)
FIRST_OF_GATEWAY_1 = Order(market_id(1, 1), ASK, 500, 5)


@pytest.mark.parametrize(
    ("messages", "options", "line"),
    [
        ([InstrumentOrder(1, 7, ASK, 500, 5, LIMIT)], ("--instruments", 3), "1 rejection: 1 no such instrument"),
        ([ASK_AT_500, BID_AT_500, CancelRequest(3, 1)], ("--ids",), "1 rejection: 1 unknown order"),
        (
            [*[CancelRequest(number, 99) for number in range(1, 5_000)], ReplaceRequest(5_000, 99, 500, 1)],
            ("--ids",),
            "5,000 rejections: 5,000 unknown order",
        ),
        (
            [FIRST_OF_GATEWAY_1, CancelRequest(market_id(2, 1), FIRST_OF_GATEWAY_1.id)],
            ("--ids", "--gateways", 2),
            "1 rejection: 1 another gateway's order",
        ),
        (
            [*[TypedOrder(1, BID, 0, 5, MARKET)] * 2, ASK_AT_500, TypedOrder(3, BID, 500, 1, POST_ONLY)],
            (),
            "3 rejections: 2 nothing to trade with, 1 would trade",
        ),
    ],
    ids=["instrument that nobody serves", "finished order", "unknown order", "somebody else's order", "empty book"],
)
def test_rejections_are_counted_by_their_reason(
    messages: list[Message], options: tuple[object, ...], line: str, tmp_path: Path
) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(b"".join(map(encode, messages)))
    finished = exchange_in_process("match", tape, *options)
    assert finished.code == 0
    assert line in [shown.strip() for shown in finished.out.splitlines()]
    record = exchange_in_process("match", tape, *options, "--json").record
    assert sum(record["rejections_by_reason"].values()) == record["rejections"]


def test_a_replace_that_crosses_trades(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    crossing = [ASK_AT_500, Order(2, BID, 490, 5), ReplaceRequest(3, 2, 500, 5)]
    tape.write_bytes(b"".join(map(encode, crossing)))
    record = exchange_in_process("match", tape, "--ids", "--json").record
    assert (record["trades"], record["replaced"], record["rejections"]) == (2, 1, 0)
