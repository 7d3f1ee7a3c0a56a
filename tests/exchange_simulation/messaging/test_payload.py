"""A receiver notices every message that differs from what was sent."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from exchange_simulation.messaging.payload import BATCH_FRAMES, MessageSource, Receipt
from transports.frames import FrameBatch

SIZES = (1, 2, 6, 7, 8, 9, 15, 16, 17, 64, 100, 4096)
NUMBERED = tuple(size for size in SIZES if size >= 8)
SENT_NS = 1_000
CAME_NS = 51_000


def frames_of(size: int, count: int, publisher: int = 0) -> tuple[MessageSource, list[bytes]]:
    """Frames that a publisher sends, batch by batch."""
    source = MessageSource(size, publisher)
    frames: list[bytes] = []
    while source.count < count:
        source.fill(count - source.count, SENT_NS)
        frames += list(source.batch)
    return source, frames


def receipt_of(size: int, frames: Iterable[bytes], publishers: int = 1) -> Receipt:
    receipt = Receipt(size, publishers)
    receipt.add(FrameBatch.of(*frames), CAME_NS)
    return receipt


@pytest.mark.parametrize("size", SIZES)
def test_messages_that_came_unchanged_are_right(size: int) -> None:
    source, frames = frames_of(size, BATCH_FRAMES + 3)
    receipt = receipt_of(size, frames)
    assert {len(frame) for frame in frames} == {size}
    assert receipt.received == len(frames)
    assert receipt.checksum == source.checksum
    assert receipt.wrong == {}


@pytest.mark.parametrize("size", NUMBERED)
def test_a_lost_message_is_noticed(size: int) -> None:
    _, frames = frames_of(size, 9)
    assert receipt_of(size, frames[:4] + frames[5:]).wrong == {"left out": 1}


@pytest.mark.parametrize("size", SIZES)
def test_a_doubled_message_is_noticed(size: int) -> None:
    source, frames = frames_of(size, 9)
    receipt = receipt_of(size, [*frames[:5], *frames[4:8]])
    assert receipt.received == len(frames)
    assert receipt.checksum != source.checksum
    assert receipt.wrong["twice, or out of order"] >= 1


@pytest.mark.parametrize("size", SIZES)
def test_messages_out_of_order_are_noticed_despite_a_right_checksum(size: int) -> None:
    source, frames = frames_of(size, 9)
    frames[3], frames[4] = frames[4], frames[3]
    receipt = receipt_of(size, frames)
    assert receipt.checksum == source.checksum
    assert receipt.wrong["twice, or out of order"] >= 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("place", [0, -1])
def test_a_changed_byte_changes_the_checksum(size: int, place: int) -> None:
    source, frames = frames_of(size, 3)
    changed = bytearray(frames[1])
    changed[place] ^= 0x40
    assert receipt_of(size, [frames[0], bytes(changed), frames[2]]).checksum != source.checksum


def test_a_message_of_another_size_does_not_count() -> None:
    _, frames = frames_of(16, 2)
    receipt = receipt_of(16, [frames[0], b"reply", frames[1]])
    assert receipt.received == 2
    assert receipt.wrong == {"of another size": 1}


def frames_of_two_publishers() -> list[bytes]:
    """Four messages of each publisher, in turns."""
    _, first_frames = frames_of(64, 4, publisher=0)
    _, second_frames = frames_of(64, 4, publisher=1)
    frames: list[bytes] = []
    for first, second in zip(first_frames, second_frames, strict=True):
        frames += [first, second]
    return frames


def test_messages_of_several_publishers_are_each_in_order() -> None:
    assert receipt_of(64, frames_of_two_publishers(), publishers=2).wrong == {}


def test_messages_of_an_unknown_publisher_are_noticed() -> None:
    assert receipt_of(64, frames_of_two_publishers(), publishers=1).wrong == {"of nobody's": 4}


def test_checksums_of_two_receivers_add_up_to_the_sender_s() -> None:
    source, frames = frames_of(64, 10)
    first = receipt_of(64, frames[0::2])
    second = receipt_of(64, frames[1::2])
    assert (first.checksum + second.checksum) % 2**64 == source.checksum


def test_latency_is_from_the_stamp_to_the_receipt() -> None:
    _, frames = frames_of(16, 5)
    latency = receipt_of(16, frames).latency
    assert latency.count == 5
    assert latency.min_ns == CAME_NS - SENT_NS
    assert latency.max_ns == CAME_NS - SENT_NS
    assert latency.percentile_ns(50) == pytest.approx(CAME_NS - SENT_NS, rel=0.003)


def test_messages_with_different_stamps_are_counted_separately() -> None:
    source = MessageSource(16)
    receipt = Receipt(16)
    frames: list[bytes] = []
    for sent_ns in (1_000, 2_000):
        source.fill(3, sent_ns)
        frames += list(source.batch)
    receipt.add(FrameBatch.of(*frames), 11_000)
    assert receipt.latency.count == 6
    assert receipt.latency.min_ns == 9_000
    assert receipt.latency.max_ns == 10_000
    assert receipt.latency.sum_ns == 3 * 9_000 + 3 * 10_000


def test_the_sum_of_large_due_times_does_not_overflow() -> None:
    """Regression: on a machine up for 104 days, the sum of a batch of 1,024 was off by 2^64."""
    source = MessageSource(8)
    due_ns = 120 * 86_400 * 10**9
    source.fill(1_024, 0, np.full(1_024, due_ns))
    assert source.stamps_ns == 1_024 * due_ns


def test_a_message_too_short_for_a_stamp_has_no_latency() -> None:
    _, frames = frames_of(15, 3)
    assert receipt_of(15, frames).latency.count == 0
