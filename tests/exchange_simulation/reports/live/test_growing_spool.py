"""A spool that is read while the reporter writes it."""

from __future__ import annotations

from pathlib import Path

from exchange_simulation.reports.live.window import GrowingSpool
from stats_reporter.writer import SpoolWriter


def test_a_folder_without_spool_has_no_records(tmp_path: Path) -> None:
    assert list(GrowingSpool(tmp_path).new_records()) == []


def test_each_record_is_read_once_and_in_order(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "spool")
    spool = GrowingSpool(tmp_path)

    def publish_file(*numbers: int) -> None:
        for number in numbers:
            writer.write(b"[%d]" % number)
        writer.publish()

    publish_file(0, 1)
    assert list(spool.new_records()) == [[0], [1]]
    publish_file(2, 3)
    publish_file(4, 5)
    assert list(spool.new_records()) == [[2], [3], [4], [5]]
    assert list(spool.new_records()) == []


def test_a_file_that_is_half_written_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    half_written = tmp_path / "spool" / ".000001.jsonl.part"
    spool = GrowingSpool(tmp_path)
    half_written.write_bytes(b'{"kind"')
    assert list(spool.new_records()) == []
    half_written.write_bytes(b'{"kind":"end"}\n')
    half_written.rename(tmp_path / "spool" / "000001.jsonl")
    assert list(spool.new_records()) == [{"kind": "end"}]


def test_a_repeated_line_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    spool = GrowingSpool(tmp_path)
    for number in (1, 2):
        (tmp_path / "spool" / f"{number:06}.jsonl").write_bytes(b'{"kind":"end"}\n' * 2)
    assert list(spool.new_records()) == [{"kind": "end"}]


def test_the_files_of_each_reporter_are_read_in_their_order(tmp_path: Path) -> None:
    spool = GrowingSpool(tmp_path, reporters=2)
    writers = {reporter: SpoolWriter(tmp_path / "spool", instance=reporter) for reporter in (1, 2)}
    for file in (1, 2):
        for reporter, writer in writers.items():
            writer.write(b'["reporter %d", "file %d"]' % (reporter, file))
            writer.publish()
    assert list(spool.new_records()) == [
        ["reporter 1", "file 1"],
        ["reporter 1", "file 2"],
        ["reporter 2", "file 1"],
        ["reporter 2", "file 2"],
    ]
