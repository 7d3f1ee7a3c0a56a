"""A receiver notices what is not as it was sent."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from exchange_simulation.messaging.payload import BATCH_FRAMES, MessageSource, Receipt
from transports.frames import FrameBatch

SIZES = (1, 2, 6, 7, 8, 9, 15, 16, 17, 64, 100, 4096)
NUMBERED = tuple(size for size in SIZES if size >= 8)
SENT_NS, CAME_NS = 1_000, 51_000


def frames_of(size: int, many: int, publisher: int = 0) -> tuple[MessageSource, list[bytes]]:
    """Frames that a publisher sends, batch by batch."""
    source, frames = MessageSource(size, publisher), []
    while source.count < many:
        source.fill(many - source.count, SENT_NS)
        frames += list(source.batch)
    return source, frames


def receipt_of(size: int, frames: Iterable[bytes], publishers: int = 1) -> Receipt:
    receipt = Receipt(size, publishers)
    receipt.add(FrameBatch.of(*frames), CAME_NS)
    return receipt


@pytest.mark.parametrize("size", SIZES)
def test_what_was_sent_is_what_came(size: int) -> None:
    source, frames = frames_of(size, BATCH_FRAMES + 3)
    receipt = receipt_of(size, frames)
    assert {len(frame) for frame in frames} == {size}
    assert (receipt.received, receipt.checksum, receipt.wrong) == (len(frames), source.checksum, {})


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
def test_messages_out_of_order_are_noticed_although_their_sum_is_right(size: int) -> None:
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
    assert (receipt.received, receipt.wrong) == (2, {"of another size": 1})


def test_publishers_are_told_apart_and_each_is_in_order() -> None:
    (_, one), (_, other) = frames_of(64, 4), frames_of(64, 4, publisher=1)
    mixed = [frame for pair in zip(one, other, strict=True) for frame in pair]
    assert receipt_of(64, mixed, publishers=2).wrong == {}
    assert receipt_of(64, mixed, publishers=1).wrong == {"of nobody's": 4}


def test_two_who_share_a_queue_have_its_checksum_together() -> None:
    source, frames = frames_of(64, 10)
    shares = [receipt_of(64, frames[first::2]) for first in (0, 1)]
    assert sum(share.checksum for share in shares) % 2**64 == source.checksum


def test_latency_is_from_the_stamp_to_the_receipt() -> None:
    _, frames = frames_of(16, 5)
    latency = receipt_of(16, frames).latency
    assert (latency.count, latency.min_ns, latency.max_ns) == (5, CAME_NS - SENT_NS, CAME_NS - SENT_NS)
    assert latency.percentile_ns(50) == pytest.approx(CAME_NS - SENT_NS, rel=0.003)


def test_messages_with_different_stamps_are_counted_apart() -> None:
    source, receipt = MessageSource(16), Receipt(16)
    frames = []
    for sent_ns in (1_000, 2_000):
        source.fill(3, sent_ns)
        frames += list(source.batch)
    receipt.add(FrameBatch.of(*frames), 11_000)
    assert (receipt.latency.count, receipt.latency.min_ns, receipt.latency.max_ns) == (6, 9_000, 10_000)
    assert receipt.latency.sum_ns == 3 * 9_000 + 3 * 10_000


def test_due_times_of_a_machine_that_is_up_for_long_have_a_right_sum() -> None:
    """From 104 days on the sum of a batch of 1,024 was off by 2^64, and so was each mean."""
    source, due_ns = MessageSource(8), 120 * 86_400 * 10**9
    source.fill(1_024, 0, np.full(1_024, due_ns))
    assert source.stamps_ns == 1_024 * due_ns


def test_what_is_too_short_for_a_stamp_has_no_latency() -> None:
    _, frames = frames_of(15, 3)
    assert receipt_of(15, frames).latency.count == 0
