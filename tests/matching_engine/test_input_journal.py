"""The input journal: orders are read back, and damage is cut off, or refused with its offset."""

from __future__ import annotations

import errno
import os
import resource
import signal
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.checksum import StreamChecksum
from exchange.messages import LAYOUTS, Cancel, Message, Order, Resume, encode
from matching_engine.recovering.follower import RecentAnswers
from matching_engine.recovering.journal import InputJournal, JournalRefused
from matching_engine.recovering.journal_records import HEADER_BYTES, TROUBLE, crc32c
from matching_engine.recovering.pulse import Pulse
from tests.machine import until
from transports.frames import Bytes, FrameBatch

IDENTITY = {"run": "first", "pair": 1}
ORDER_BYTES = LAYOUTS[Order].size


def records(*messages: Message) -> Bytes:
    return np.frombuffer(bytearray(b"".join(map(encode, messages))), np.uint8)


def orders(first: int, count: int) -> Bytes:
    """Return the records of `count` orders, numbered from `first` on."""
    return records(*(Order(number, 1, 500, 10) for number in range(first, first + count)))


def written(path: Path, *counts: int, packing: int = 1) -> list[int]:
    """Write a journal record for each of these numbers of orders. Returns each record's offset, and the file's end."""
    journal = InputJournal(path, IDENTITY, packing)
    offsets = []
    for count in counts:
        offsets.append(path.stat().st_size)
        journal.append(orders(journal.orders + 1, count))
    journal.close()
    return [*offsets, path.stat().st_size]


def frames(path: Path, packing: int = 1, **options: object) -> list[bytes]:
    """Open the journal and return its frames of orders."""
    journal = InputJournal(path, IDENTITY, packing, **options)
    frames = list(chain.from_iterable(journal.batches()))
    journal.close()
    return frames


def flip(path: Path, offset: int) -> None:
    """Flip a bit of the byte at this offset."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283
    assert crc32c(np.zeros(32, np.uint8)) == 0x8A9136AA


@given(counts=st.lists(st.integers(1, 40), max_size=6), packing=st.integers(1, 7))
def test_orders_are_read_back_in_frames_of_the_packing(counts: list[int], packing: int, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    written(path, *counts, packing=packing)
    read_back = frames(path, packing)
    assert b"".join(read_back) == orders(1, sum(counts)).tobytes()
    expected_sizes = []
    for count in counts:
        whole_frames, rest = divmod(count, packing)
        expected_sizes += [packing] * whole_frames
        if rest:
            expected_sizes.append(rest)
    assert [len(frame) // ORDER_BYTES for frame in read_back] == expected_sizes


def test_cancels_are_read_back_and_counted_like_orders(tmp_path: Path) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY)
    journal.append(records(Cancel(7), Order(1, 1, 500, 10)))
    assert journal.orders == 2
    journal.close()
    assert frames(tmp_path / "j") == [encode(Cancel(7)), encode(Order(1, 1, 500, 10))]


def test_a_journal_larger_than_a_reader_s_batch_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matching_engine.recovering.journal_records.REPLAY_BYTES", 1 << 17)
    journal = InputJournal(tmp_path / "j", IDENTITY, sync="none")
    for first in range(1, 20_001, 1_000):
        journal.append(orders(first, 1_000))
    assert len(list(journal.batches())) == 2
    journal.close()
    assert b"".join(frames(tmp_path / "j")) == orders(1, 20_000).tobytes()


@pytest.mark.parametrize("cut", range(1, HEADER_BYTES + 20))
def test_a_torn_tail_is_cut_off_and_reported(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "j"
    sentences: list[str] = []
    *_, last_record, end = written(path, 3, 2)
    os.truncate(path, end - cut)
    assert len(frames(path, on_cut=sentences.append)) == 3
    assert path.stat().st_size == last_record
    rest = end - cut - last_record
    if rest:
        assert sentences == [f"{path}: cut {rest} bytes behind order 3"]
    else:
        assert sentences == []
    assert len(frames(path)) == 3


def test_a_journal_goes_on_after_its_torn_tail_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "j"
    *_, end = written(path, 3, 2)
    os.truncate(path, end - 1)
    journal = InputJournal(path, IDENTITY)
    journal.append(orders(4, 2))
    journal.close()
    assert len(frames(path)) == 5


@pytest.mark.parametrize("byte", [0, 8, 12, HEADER_BYTES, HEADER_BYTES + 19], ids=str)
def test_damage_in_the_middle_is_refused_and_can_be_salvaged(byte: int, tmp_path: Path) -> None:
    """Salvaging keeps the orders before the damage, and moves the rest into another file."""
    path = tmp_path / "j"
    sentences: list[str] = []
    _, second, _, end = written(path, 3, 2, 4)
    flip(path, second + byte)
    with pytest.raises(JournalRefused, match=f"damaged at offset {second}, behind order 3,.*--salvage"):
        frames(path)
    assert path.stat().st_size == end
    rest = path.read_bytes()[second:]
    assert len(frames(path, salvage=True, on_cut=sentences.append)) == 3
    assert (tmp_path / "j.rest").read_bytes() == rest
    assert sentences == [f"{path}: cut {end - second} bytes behind order 3, which are in j.rest"]


def test_each_salvage_leaves_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "j"
    rests = []
    for _ in range(2):
        *_, second, _, end = written(path, 3, 2, 4)
        flip(path, second)
        rests.append(path.read_bytes()[second:end])
        frames(path, salvage=True)
    first_rest, second_rest = rests
    assert (tmp_path / "j.rest").read_bytes() == first_rest
    assert (tmp_path / "j.rest2").read_bytes() == second_rest


def test_a_damaged_start_of_a_session_before_orders_is_no_torn_tail(tmp_path: Path) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY)
    session_start = (tmp_path / "j").stat().st_size
    journal.begin(Resume(1, 0, 0))
    journal.append(orders(1, 3))
    journal.close()
    flip(tmp_path / "j", session_start + HEADER_BYTES + 1)
    with pytest.raises(JournalRefused, match=f"damaged at offset {session_start}, behind order 0"):
        frames(tmp_path / "j")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": "second"}, "is of another run, with run first \\(here second\\)"),
        ({"pair": 2}, "is of another run, with pair 1 \\(here 2\\)"),
    ],
)
def test_a_journal_of_another_run_is_refused(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    written(tmp_path / "j", 1)
    with pytest.raises(JournalRefused, match=reason):
        InputJournal(tmp_path / "j", {**IDENTITY, **change})


def test_a_file_of_another_version_or_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, 1)
    path.write_bytes(path.read_bytes().replace(b"EXJRNL01", b"EXJRNL02"))
    with pytest.raises(JournalRefused, match="is a journal of version 02, and this is 01"):
        InputJournal(path, IDENTITY)
    path.write_bytes(b"a file of somebody else's, which is longer")
    with pytest.raises(JournalRefused, match="is no journal"):
        InputJournal(path, IDENTITY)
    assert path.read_bytes().startswith(b"a file of somebody")


def test_a_short_file_that_is_no_journal_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"short")
    with pytest.raises(JournalRefused, match="is no journal"):
        InputJournal(path, IDENTITY)
    assert path.read_bytes() == b"short"


def test_a_journal_in_a_symbolic_link_or_a_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JournalRefused, match="link is a symbolic link"):
        InputJournal(tmp_path / "link", IDENTITY)
    with pytest.raises(JournalRefused, match="pipe is no regular file"):
        InputJournal(tmp_path / "pipe", IDENTITY)
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_damaged_head_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "j", 1)
    flip(tmp_path / "j", 20)
    with pytest.raises(JournalRefused, match="damaged at offset 16: its head"):
        InputJournal(tmp_path / "j", IDENTITY)


@pytest.mark.parametrize("size", [0, 5, 16, 30])
def test_a_file_with_an_unfinished_head_becomes_a_new_journal(size: int, tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path)
    os.truncate(path, size)
    written(path, 2)
    assert len(frames(path)) == 2


def test_a_second_engine_on_one_journal_is_refused(tmp_path: Path) -> None:
    first = InputJournal(tmp_path / "j", IDENTITY)
    with pytest.raises(JournalRefused, match="is the journal of an engine that runs"):
        InputJournal(tmp_path / "j", IDENTITY)
    first.close()
    InputJournal(tmp_path / "j", IDENTITY).close()


def test_a_record_that_does_not_fit_on_the_disk_leaves_no_bytes(tmp_path: Path) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY)
    journal.append(orders(1, 5))
    size = (tmp_path / "j").stat().st_size
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limit[1]))
    try:
        with pytest.raises(OSError, match=r"cannot write .*; orders behind 5 are refused"):
            journal.append(orders(6, 5))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "j").stat().st_size == size
    assert journal.orders == 5
    journal.append(orders(6, 5))
    journal.close()
    assert len(frames(tmp_path / "j")) == 10


@pytest.mark.parametrize(("sync", "syncs"), [("always", 3), ("batch", 1), ("none", 0)])
def test_the_sync_option_sets_how_often_the_journal_is_synced(
    sync: str, syncs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY, sync=sync)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    for first in (1, 2, 3):
        journal.append(orders(first, 1))
    assert len(synced) == (3 if sync == "always" else 0)
    journal.start_syncing()
    until(lambda: len(synced) == syncs, "a sync")
    journal.abandon()
    assert len(synced) == syncs, "without new orders there is no sync"


def test_a_failed_sync_is_an_error_at_the_next_check_or_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds also if the system refuses the thread a lower priority, as a sandbox may."""

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = InputJournal(tmp_path / "j", IDENTITY)
    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "sched_setscheduler", fail)
    journal.check()
    journal.start_syncing()
    until(lambda: journal.numbers[TROUBLE], "trouble")
    with pytest.raises(OSError, match=r"cannot sync .*j: Input/output error"):
        journal.check()
    with pytest.raises(OSError, match=r"cannot sync .*j: Input/output error"):
        journal.append(orders(1, 1))
    journal.abandon()


def test_recent_answers_enlarge_a_batch_that_is_too_small() -> None:
    sent = FrameBatch.of(*[bytes([number]) * 40 for number in range(10)])
    answers = FrameBatch(4, 64, 64)
    recent = RecentAnswers(
        answers_before=0, checksum_before=StreamChecksum(), buffer=sent.span(0, 10), offsets=sent.offsets[:11]
    )
    recent.copy_into(answers)
    assert list(answers) == list(sent)


def test_a_standby_that_opens_a_new_pulse_keeps_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engine and standby both find no file. If the standby wrote zeros, it would take the engine for unstarted."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    engine = Pulse(tmp_path / "engine.pulse")
    engine.begin(goes_on=False)
    engine.beat()
    standby = Pulse(tmp_path / "engine.pulse")
    assert standby.pid == os.getpid()
    assert standby.beats == 1
    assert not standby.is_ended
