"""A spool that is read while the reporter writes it."""

from __future__ import annotations

from pathlib import Path

from exchange_simulation.reports.live.window import GrowingSpool
from stats_reporter.writer import SpoolWriter


def test_before_the_reporter_has_made_it_there_is_nothing(tmp_path: Path) -> None:
    assert list(GrowingSpool(tmp_path).fresh()) == []


def test_each_record_is_read_once_and_in_order(tmp_path: Path) -> None:
    writer, spool, read = SpoolWriter(tmp_path / "spool"), GrowingSpool(tmp_path), []
    for number in range(0, 24, 2):
        writer.write(b"[%d]" % number)
        writer.write(b"[%d]" % (number + 1))
        writer.publish()
        if number % 6 == 0:
            read += [list(spool.fresh())]
    read += [list(spool.fresh()), list(spool.fresh())]
    assert read == [
        [[0], [1]],
        [[n] for n in range(2, 8)],
        [[n] for n in range(8, 14)],
        [[n] for n in range(14, 20)],
        [[n] for n in range(20, 24)],
        [],
    ]


def test_a_file_that_is_half_written_waits_for_its_name(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    half, whole = tmp_path / "spool" / ".000001.jsonl.part", tmp_path / "spool" / "000001.jsonl"
    spool = GrowingSpool(tmp_path)
    half.write_bytes(b'{"kind"')
    assert list(spool.fresh()) == []
    half.write_bytes(b'{"kind":"end"}\n')
    half.rename(whole)
    assert list(spool.fresh()) == [{"kind": "end"}]


def test_a_line_that_stands_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    spool = GrowingSpool(tmp_path)
    for number in (1, 2):
        (tmp_path / "spool" / f"{number:06}.jsonl").write_bytes(b'{"kind":"end"}\n' * 2)
    assert list(spool.fresh()) == [{"kind": "end"}]


def test_the_files_of_each_reporter_are_read_in_their_order(tmp_path: Path) -> None:
    spool = GrowingSpool(tmp_path, reporters=2)
    writers = [SpoolWriter(tmp_path / "spool", instance=instance) for instance in (1, 2)]
    for line in (1, 2):
        for reporter, writer in enumerate(writers, 1):
            writer.write(b"[%d, %d]" % (reporter, line))
            writer.publish()
    assert list(spool.fresh()) == [[1, 1], [1, 2], [2, 1], [2, 2]]
