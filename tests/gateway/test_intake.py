"""How a gateway takes answers in: it hashes, counts and pairs them, and keeps foreign frames out of the stream."""

from __future__ import annotations

import pytest
import xxhash
from scripted_links import START_NS, ScriptedLink

from exchange.checksum import StreamChecksum
from exchange.messages import Confirmation, End, Hello, Order, Quote, Statistics, Trade, encode
from gateway.completion import ANSWERED_COLUMN, Completion
from gateway.intake import Intake

END = End(sent=1, sent_checksum=2, received=3, received_checksum=4)
HELLO = Hello(1, 2, 2, 1, 1, 999, 5, 6, 1, 1, 1, 1)
JUNK = [b"", b"\x00junk", encode(Order(1, 1, 500, 1)), encode(Statistics(b"{}")), encode(Confirmation(1)) + b"\x03"]


@pytest.fixture
def link():
    return ScriptedLink()


@pytest.fixture
def intake(link):
    completion = Completion(scheduled=False, sampling_interval=2)
    completion.handed_over(10, START_NS)
    intake = Intake(link, completion, StreamChecksum())
    intake.completion = completion
    return intake


def deliver(link, *messages) -> None:
    """Put messages, or frames of bytes, into the link's inbox."""
    link.inbox += [message if isinstance(message, bytes) else encode(message) for message in messages]


def test_the_checksum_covers_the_answers_without_foreign_frames(link, intake):
    answers = [Quote(bid=1, ask=2), Confirmation(1), Trade(2, 500, 3), Trade(1, 500, 3)]
    deliver(link, HELLO, answers[0], JUNK[1], answers[1], answers[2])
    assert intake.take() == 5
    deliver(link, JUNK[2], answers[3], END)
    assert intake.take() == 3
    assert intake.stream.value == xxhash.xxh64_intdigest(b"".join(map(encode, answers)))
    assert intake.hello == HELLO
    assert intake.end == END
    assert intake.junk == 2
    assert intake.completion.answered == 2
    assert intake.completion.received == 4


@pytest.mark.parametrize("junk", JUNK, ids=bytes.hex)
def test_junk_is_counted_and_changes_nothing(link, intake, junk):
    deliver(link, junk, junk)
    intake.take()
    if junk:
        assert intake.junk == 2
    else:
        assert intake.junk == 0, "an empty frame only shows that the engine is there"
    assert intake.end is None
    assert intake.last_answer_ns == 0
    assert intake.completion.received == 0
    assert intake.stream.value == StreamChecksum().value


def test_answers_after_junk_and_after_the_end_are_counted(link, intake):
    deliver(link, b"\x00", Confirmation(1), END, Confirmation(2))
    intake.take()
    assert intake.completion.answered == 2
    assert intake.end == END


def test_a_packed_frame_of_answers_is_taken_whole(link, intake):
    packed = encode(Confirmation(1)) + encode(Quote(bid=1, ask=2)) + encode(Trade(2, 500, 1))
    deliver(link, packed)
    assert intake.take() == 1
    assert intake.completion.answered == 2
    assert intake.stream.value == xxhash.xxh64_intdigest(packed)


def test_a_second_hello_and_a_second_end_are_junk(link, intake):
    deliver(link, HELLO, HELLO._replace(packing=2), END, END._replace(sent=9))
    intake.take()
    assert intake.hello == HELLO
    assert intake.end == END
    assert intake.junk == 2


def test_an_empty_inbox_gives_no_answer(link, intake):
    assert intake.take() == 0
    assert intake.last_answer_ns == 0


def test_each_batch_is_read_once(link, intake):
    deliver(link, Confirmation(1))
    assert intake.take() == 1
    assert intake.take() == 0
    assert intake.completion.received == 1


def test_all_answers_of_a_batch_get_one_reading_of_the_clock(link, intake, clock):
    sampled = []
    intake.on_sampled = lambda orders: sampled.extend(orders[:, [0, ANSWERED_COLUMN]].tolist())  # column 0: the id
    clock.now_ns = START_NS + 700
    deliver(link, Confirmation(1), b"\x00", Confirmation(2), Confirmation(4), Confirmation(5))
    intake.take()
    assert intake.last_answer_ns == START_NS + 700
    assert sampled == [[2, START_NS + 700], [4, START_NS + 700]]
    [(_, buckets)] = intake.completion.close_second()
    assert buckets.count == 4
    assert buckets.min_ns == 700
    assert buckets.max_ns == 700


def test_only_answers_move_the_time_of_the_last_answer(link, intake, clock):
    deliver(link, Confirmation(1))
    intake.take()
    clock.now_ns += 5_000
    deliver(link, END, b"\x00", HELLO)
    intake.take()
    assert intake.last_answer_ns == START_NS


def test_more_answers_than_fit_a_batch_take_several_batches(link, intake):
    deliver(link, *[Quote(bid=1, ask=2)] * 20_000)
    batch_sizes = []
    while link.inbox:
        batch_sizes.append(intake.take())
    assert sum(batch_sizes) == 20_000
    assert len(batch_sizes) > 1
    assert intake.completion.received == 20_000
