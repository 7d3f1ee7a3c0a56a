"""The examples of docs/matching.md, line by line, against the compiled book and the reference book."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from order_streams import Compiled, Reference

from exchange.messages import (
    ASK,
    BID,
    FILL_OR_KILL,
    IMMEDIATE_OR_CANCEL,
    LIMIT,
    MARKET,
    POST_ONLY,
    Cancelled,
    CancelRequest,
    Confirmation,
    Message,
    Quote,
    Rejection,
    Replaced,
    ReplaceRequest,
    Trade,
    TypedOrder,
)

PAGE = Path(__file__).parents[2] / "docs" / "matching.md"
EXAMPLE = re.compile(r"^    ((?:order|cancel|replace) .+?) {2,}(.+)$", re.MULTILINE)
TYPES = {"": LIMIT, "market": MARKET, "ioc": IMMEDIATE_OR_CANCEL, "fok": FILL_OR_KILL, "post": POST_ONLY}
REASONS = {"unknown order": 6, "would trade": 8}


def message_of(text: str) -> Message:
    """Read the left column. For example: order 5: ioc bid 7 at 500"""
    if match := re.fullmatch(r"order (\d+): (?:(\w+) )?(ask|bid) (\d+)(?: at (\d+))?", text):
        number, order_type, side, volume, price = match.groups()
        side_byte = ASK if side == "ask" else BID
        return TypedOrder(int(number), side_byte, int(price or 0), int(volume), TYPES[order_type or ""])
    if match := re.fullmatch(r"cancel (\d+) of (\d+)", text):
        return CancelRequest(int(match[1]), int(match[2]))
    match = re.fullmatch(r"replace (\d+) of (\d+): (\d+) at (\d+)", text)
    assert match, text
    return ReplaceRequest(int(match[1]), int(match[2]), price=int(match[4]), volume=int(match[3]))


def answer_of(text: str) -> Message:
    """Read one answer of the right column. For example: trade 1 6 at 500"""
    kind, _, rest = text.partition(" ")
    if kind == "reject":
        number, _, reason = rest.partition(" ")
        return Rejection(int(number), REASONS[reason])
    numbers = [int(number) for number in re.findall(r"\d+", rest)]
    if kind == "quote":
        return Quote(bid=numbers[0], ask=numbers[1])
    if kind == "confirm":
        return Confirmation(*numbers)
    if kind == "cancelled":
        return Cancelled(*numbers)
    order_id, volume, price = numbers
    return Trade(order_id, price, volume) if kind == "trade" else Replaced(order_id, price, volume)


@pytest.mark.parametrize("make", [Compiled, Reference])
def test_the_book_answers_as_the_page_says(make):
    book = make(with_ids=True)
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == 14
    for message, answers in examples:
        assert book.handle(message_of(message)) == [answer_of(answer) for answer in answers.split(", ")], message
