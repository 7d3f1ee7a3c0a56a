"""The spool: whole files of whole lines, in order. A reader never sees a half-written file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats_reporter import writer as writer_module
from stats_reporter.recovering.spool import ReplaceableSpool
from stats_reporter.writer import FILE_BYTES, FILE_SECONDS, SpoolWriter

SPOOL_GLOB = "[!.]*.jsonl"


class SecondsClock:
    """Stands in for a clock in seconds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def seconds():
    return SecondsClock()


@pytest.fixture
def spool(tmp_path, seconds):
    return SpoolWriter(tmp_path / "results" / "spool", seconds)


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob(SPOOL_GLOB))


def lines_of(folder: Path) -> list[bytes]:
    """Return the lines of all files of the spool."""
    return b"".join(path.read_bytes() for path in files_of(folder)).splitlines()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "results" / "spool"


def test_the_folder_exists_from_the_start(spool, folder):
    assert folder.is_dir()
    assert list(folder.iterdir()) == []


def test_a_published_file_has_a_line_for_each_record(spool, folder):
    spool.write(b'{"a":1}')
    spool.write(b'{"b":2}')
    spool.publish()
    assert [path.name for path in folder.iterdir()] == ["000001.jsonl"]
    assert (folder / "000001.jsonl").read_bytes() == b'{"a":1}\n{"b":2}\n'


def test_files_are_numbered_in_the_order_of_arrival(spool, folder):
    for number in range(12):
        spool.write(b"%d" % number)
        spool.publish()
    assert [path.name for path in files_of(folder)] == [f"{number:06}.jsonl" for number in range(1, 13)]
    assert lines_of(folder) == [b"%d" % number for number in range(12)]
    assert spool.files == 12


def test_a_file_is_published_after_file_seconds(spool, folder, seconds):
    spool.write(b"first")
    seconds.now_s += FILE_SECONDS - 0.01
    spool.roll()
    assert files_of(folder) == []
    seconds.now_s += 0.01
    spool.roll()
    assert lines_of(folder) == [b"first"]
    spool.write(b"second")
    spool.roll()
    assert len(files_of(folder)) == 1
    seconds.now_s += FILE_SECONDS
    spool.roll()
    assert len(files_of(folder)) == 2


def test_a_file_is_published_early_at_file_bytes(spool, folder):
    line = b"x" * 1_023
    for _ in range(FILE_BYTES // 1_024 - 1):
        spool.write(line)
    spool.roll()
    assert files_of(folder) == []
    spool.write(line)
    spool.roll()
    assert [path.stat().st_size for path in files_of(folder)] == [FILE_BYTES]
    spool.write(line)
    spool.roll()
    assert len(files_of(folder)) == 1, "the bytes are counted anew"


def test_no_empty_file_is_published(spool, folder, seconds):
    seconds.now_s += 100
    spool.roll()
    spool.publish()
    assert list(folder.iterdir()) == []
    assert spool.files == 0


def test_a_file_is_complete_before_it_gets_its_name(spool, folder, monkeypatch):
    renames = []
    rename = Path.rename

    def check_and_rename(hidden: Path, final: Path) -> Path:
        assert hidden.name.startswith(".")
        assert hidden.parent == final.parent
        assert hidden.read_bytes() == b"whole\n"
        assert files_of(folder) == []
        renames.append(final)
        return rename(hidden, final)

    monkeypatch.setattr(Path, "rename", check_and_rename)
    spool.write(b"whole")
    spool.publish()
    assert len(renames) == 1
    assert [path.name for path in folder.iterdir()] == ["000001.jsonl"]


def test_a_full_disk_is_an_error_and_loses_no_line(spool, folder, monkeypatch):
    def refuse(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    spool.write(b"kept")
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left"):
        spool.publish()
    monkeypatch.undo()
    assert files_of(folder) == []
    spool.write(b"next")
    spool.publish()
    assert lines_of(folder) == [b"kept", b"next"]


STEPS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=30).map(lambda line: line.hex().encode()),
        st.floats(0, 2),
        st.just("publish"),
    ),
    max_size=40,
)


@given(STEPS)
def test_lines_keep_their_number_and_order_in_all_files(steps):
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "FILE_BYTES", 100)
        folder = Path(place)
        seconds = SecondsClock()
        spool = SpoolWriter(folder, seconds)
        written = []
        for step in steps:
            match step:
                case bytes():
                    spool.write(step)
                    written.append(step)
                case float():
                    seconds.now_s += step
                    spool.roll()
                case _:
                    spool.publish()
            published = lines_of(folder)
            assert published == written[: len(published)]
        spool.publish()
        assert lines_of(folder) == written
        assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
        assert all(path.read_bytes().endswith(b"\n") for path in files_of(folder))


def test_an_empty_state_file_of_a_killed_reporter_is_ignored(tmp_path: Path) -> None:
    """The reporter was killed as it wrote its first state, from which a successor would go on."""
    (tmp_path / ".000000.jsonl.state").touch()
    assert ReplaceableSpool(tmp_path).state_before is None
