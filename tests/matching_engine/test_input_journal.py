"""The input journal: what is in it comes back, and what is damaged is cut, or refused with its offset."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.checksum import StreamChecksum
from exchange.messages import Cancel, Message, Order, Resume, encode
from matching_engine.recovering.follower import RecentAnswers
from matching_engine.recovering.journal import InputJournal, JournalRefused
from matching_engine.recovering.journal_records import HEADER_BYTES, TROUBLE, crc32c
from matching_engine.recovering.pulse import Pulse
from tests.machine import until
from transports.frames import Bytes, FrameBatch

IDENTITY = {"run": "first", "pair": 1}


def as_bytes(*messages: Message) -> Bytes:
    return np.frombuffer(bytearray(b"".join(map(encode, messages))), np.uint8)


def orders(first: int, count: int) -> Bytes:
    return as_bytes(*(Order(n, 1, 500, 10) for n in range(first, first + count)))


def written(path: Path, *counts: int, packing: int = 1) -> list[int]:
    """Write a record of so many orders each; the offset of each record, and the file's end."""
    journal, offsets = InputJournal(path, IDENTITY, packing), []
    for count in counts:
        offsets.append(path.stat().st_size)
        journal.append(orders(journal.orders + 1, count))
    journal.close()
    return [*offsets, path.stat().st_size]


def frames(path: Path, packing: int = 1, **options: object) -> list[bytes]:
    journal = InputJournal(path, IDENTITY, packing, **options)
    found = [frame for batch in journal.batches() for frame in batch]
    journal.close()
    return found


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283
    assert crc32c(np.zeros(32, np.uint8)) == 0x8A9136AA


@given(counts=st.lists(st.integers(1, 40), max_size=6), packing=st.integers(1, 7))
def test_orders_come_back_in_the_frames_in_which_they_came(counts: list[int], packing: int, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    written(path, *counts, packing=packing)
    found = frames(path, packing)
    assert b"".join(found) == orders(1, sum(counts)).tobytes()
    assert [len(frame) // 10 for frame in found] == [
        min(packing, count - at) for count in counts for at in range(0, count, packing)
    ]


def test_cancels_are_orders_too(tmp_path: Path) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY)
    journal.append(as_bytes(Cancel(7), Order(1, 1, 500, 10)))
    assert journal.orders == 2
    journal.close()
    assert frames(tmp_path / "j") == [encode(Cancel(7)), encode(Order(1, 1, 500, 10))]


def test_more_orders_than_a_batch_of_the_reader_holds_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matching_engine.recovering.journal_records.REPLAY_BYTES", 1 << 17)
    journal = InputJournal(tmp_path / "j", IDENTITY, sync="none")
    for first in range(1, 20_001, 1_000):
        journal.append(orders(first, 1_000))
    assert len(list(journal.batches())) == 2
    journal.close()
    assert b"".join(frames(tmp_path / "j")) == orders(1, 20_000).tobytes()


@pytest.mark.parametrize("cut", range(1, HEADER_BYTES + 20))
def test_a_torn_tail_is_cut_and_said(cut: int, tmp_path: Path) -> None:
    path, sentences = tmp_path / "j", []
    *_, last, end = written(path, 3, 2)
    os.truncate(path, end - cut)
    assert len(frames(path, on_cut=sentences.append)) == 3
    assert path.stat().st_size == last
    rest = end - cut - last
    assert sentences == ([f"{path}: cut {rest} bytes behind order 3"] if rest else [])
    assert len(frames(path)) == 3


def test_a_journal_goes_on_behind_its_torn_tail(tmp_path: Path) -> None:
    path = tmp_path / "j"
    *_, end = written(path, 3, 2)
    os.truncate(path, end - 1)
    journal = InputJournal(path, IDENTITY)
    journal.append(orders(4, 2))
    journal.close()
    assert len(frames(path)) == 5


@pytest.mark.parametrize("byte", [0, 8, 12, HEADER_BYTES, HEADER_BYTES + 19], ids=str)
def test_damage_in_the_middle_is_refused_with_its_offset(byte: int, tmp_path: Path) -> None:
    """Salvage goes on before it."""
    path, sentences = tmp_path / "j", []
    _, second, _, end = written(path, 3, 2, 4)
    flip(path, second + byte)
    with pytest.raises(JournalRefused, match=f"damaged at offset {second}, behind order 3,.*--salvage"):
        frames(path)
    assert path.stat().st_size == end
    rest = path.read_bytes()[second:]
    assert len(frames(path, salvage=True, on_cut=sentences.append)) == 3
    assert (tmp_path / "j.rest").read_bytes() == rest
    assert sentences == [f"{path}: cut {end - second} bytes behind order 3, which are in j.rest"]


def test_what_is_salvaged_twice_goes_into_two_files(tmp_path: Path) -> None:
    path, rests = tmp_path / "j", []
    for _ in range(2):
        *_, second, _, end = written(path, 3, 2, 4)
        flip(path, second)
        rests.append(path.read_bytes()[second:end])
        frames(path, salvage=True)
    assert [(tmp_path / name).read_bytes() for name in ("j.rest", "j.rest2")] == rests


def test_a_damaged_start_with_orders_behind_it_is_no_torn_tail(tmp_path: Path) -> None:
    """The start is that of a session."""
    journal = InputJournal(tmp_path / "j", IDENTITY)
    begins = (tmp_path / "j").stat().st_size
    journal.begin(Resume(1, 0, 0))
    journal.append(orders(1, 3))
    journal.close()
    flip(tmp_path / "j", begins + HEADER_BYTES + 1)
    with pytest.raises(JournalRefused, match=f"damaged at offset {begins}, behind order 0"):
        frames(tmp_path / "j")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"run": "second"}, "is of another run, with run first \\(here second\\)"),
        ({"pair": 2}, "is of another run, with pair 1 \\(here 2\\)"),
    ],
)
def test_a_journal_of_another_run_is_refused(change: dict[str, object], why: str, tmp_path: Path) -> None:
    written(tmp_path / "j", 1)
    with pytest.raises(JournalRefused, match=why):
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


def test_a_short_file_of_somebody_else_s_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"short")
    with pytest.raises(JournalRefused, match="is no journal"):
        InputJournal(path, IDENTITY)
    assert path.read_bytes() == b"short"


def test_a_link_or_a_pipe_is_no_place_for_a_journal(tmp_path: Path) -> None:
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
def test_a_file_whose_head_was_never_finished_begins_anew(size: int, tmp_path: Path) -> None:
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


def test_a_record_that_does_not_fit_on_the_disk_leaves_nothing_of_itself(tmp_path: Path) -> None:
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
    assert ((tmp_path / "j").stat().st_size, journal.orders) == (size, 5)
    journal.append(orders(6, 5))
    journal.close()
    assert len(frames(tmp_path / "j")) == 10


@pytest.mark.parametrize(("sync", "syncs"), [("always", 3), ("batch", 1), ("none", 0)])
def test_sync_says_when_the_disk_has_it(sync: str, syncs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = InputJournal(tmp_path / "j", IDENTITY, sync=sync)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    for first in (1, 2, 3):
        journal.append(orders(first, 1))
    assert len(synced) == (3 if sync == "always" else 0)
    journal.start_syncing()
    until(lambda: len(synced) == syncs, "a sync")
    journal.abandon()
    assert len(synced) == syncs, "nothing new is not synced"


def test_a_disk_that_cannot_sync_is_told_by_the_next_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system refuses a thread its lower priority, as a sandbox may."""

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = InputJournal(tmp_path / "j", IDENTITY)
    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "sched_setscheduler", fail)
    journal.check()
    journal.start_syncing()
    until(lambda: journal.numbers[TROUBLE], "trouble")
    for look in (journal.check, lambda: journal.append(orders(1, 1))):
        with pytest.raises(OSError, match=r"cannot sync .*j: Input/output error"):
            look()
    journal.abandon()


def test_answers_of_a_grown_batch_fit_into_one_that_did_not_grow() -> None:
    """The grown batch is a standby's."""
    sent = FrameBatch.of(*[bytes([number]) * 40 for number in range(10)])
    answers = FrameBatch(4, 64, 64)
    RecentAnswers(0, StreamChecksum(), sent.span(0, 10), sent.offsets[:11]).copy_into(answers)
    assert list(answers) == list(sent)


def test_a_standby_that_opens_a_new_pulse_leaves_it_beating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find no file. A standby that wrote zeros into it would never take the place of an engine that freezes."""
    monkeypatch.setattr(Path, "exists", lambda path: False)
    engine = Pulse(tmp_path / "engine.pulse")
    engine.begin(goes_on=False)
    engine.beat()
    standby = Pulse(tmp_path / "engine.pulse")
    assert (standby.pid, standby.beats, standby.is_ended) == (os.getpid(), 1, False)
