"""A full disk: an error with exit code 1, and no partial files."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from exchange.checksum import StreamChecksum
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import new_run_folder, write_json
from exchange_simulation.launching.recorded_streams import RecordedStream
from exchange_simulation.reports.run.page import write_page
from matching_engine.recovering.journal import InputJournal
from tests.exchange_command import exchange, exchange_in_process, run_exchange, run_exchange_in_process

FULL = "No space left on device"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 12)):
            pass


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_full_disk_leaves_no_tape_and_no_answers(disk: Path, tmp_path: Path) -> None:
    finished = exchange("tape", "--orders", 50_000, "--output", disk / "tape")
    assert finished.code == 1
    assert finished.err == f"Error: cannot write {disk / 'tape'}: {FULL}\n"
    exchange("tape", "--orders", 50_000, "--output", tmp_path / "tape")
    finished = exchange("match", tmp_path / "tape", "--answers", disk / "answers")
    assert finished.code == 1
    assert finished.err == f"Error: cannot write {disk / 'answers'}: {FULL}\n"
    assert names(disk) == []


@pytest.mark.parametrize("transport", ["memory", pytest.param("zeromq", marks=pytest.mark.long)])
def test_recorded_streams_that_do_not_fit_make_a_partial_run(transport: str, disk: Path) -> None:
    words = ("--transport", transport, "--rate", "max", "--orders", 75_000, "--record", "--no-spark", "--name", "x")
    finished = (exchange_in_process if transport == "memory" else exchange)("run", *words, "--results", disk)
    assert finished.code == 1
    assert FULL in finished.err + finished.out
    assert "Traceback" not in finished.err
    assert [name for name in names(disk / "x") if "part" in name and "spool" not in name] == []


def test_orders_that_do_not_fit_into_the_journal_get_no_answer(disk: Path, tmp_path: Path) -> None:
    finished = run_exchange(
        tmp_path, "--rate", "max", "--orders", 40_000, "--recover", "--journal", disk, "--timeout", 400
    )
    record = finished.record
    assert finished.code == 1
    assert record["status"] == "partial"
    assert any(f"cannot write {disk / 'engine.journal'}: {FULL}; orders behind" in each for each in record["reasons"])
    assert "restarts" not in record.get("recovered", {}), "it was not killed"
    journal = InputJournal(disk / "engine.journal", {}, sync="none")
    answered = record["counts"]["orders_answered"]
    assert 0 < answered <= journal.orders
    journal.close()


def test_a_full_disk_leaves_no_partial_record_and_no_partial_page(disk: Path) -> None:
    (disk / "spool").mkdir()
    fill(disk)
    before = names(disk)
    for write in (lambda: write_json(disk / "run.json", {"schema": 1}), lambda: write_page(disk)):
        with pytest.raises(click.ClickException, match=FULL) as output:
            write()
        assert output.value.exit_code == 1
    assert names(disk) == before


def test_a_run_makes_no_folder_on_a_full_disk(disk: Path) -> None:
    fill(disk)
    with pytest.raises(UserError, match=FULL):
        new_run_folder(disk, "x")
    assert names(disk) == ["filling"]


@pytest.mark.parametrize("master", ["none", pytest.param("local[2]", marks=pytest.mark.long)])
def test_a_full_disk_leaves_no_simulation(master: str, disk: Path) -> None:
    words = ("--instruments", 4, "--orders", 250_000, "--trades", "--master", master, "--name", "x")
    finished = (exchange_in_process if master == "none" else exchange)("simulate", *words, "--results", disk)
    assert finished.code == 1
    assert FULL in finished.err.splitlines()[-1]
    assert str(disk / "x" / "market") in finished.err.splitlines()[-1]
    assert "Traceback" not in finished.err
    assert names(disk) == []


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no /dev/full here")
def test_an_error_at_the_close_of_a_recorded_stream_names_the_file(tmp_path: Path) -> None:
    stream = RecordedStream(StreamChecksum(), tmp_path / "orders.bin")
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), stream._file.fileno())
    stream.update(np.zeros(1, np.uint8))
    with pytest.raises(OSError, match=r"orders\.bin"):
        stream.close()


def test_a_recorded_stream_is_flushed_every_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = [100.0]
    monkeypatch.setattr("exchange_simulation.launching.services.time.monotonic", lambda: clock_s[0])
    stream = RecordedStream(StreamChecksum(), tmp_path / "orders.bin")
    for clock_s[0] in (100.0, 100.9, 101.0, 101.5):
        stream.update(np.zeros(10, np.uint8))
    assert (tmp_path / "orders.bin").stat().st_size == 30
    stream.close()


def test_a_disk_full_at_the_end_loses_run_json_but_not_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, record: dict[str, object]) -> None:
        raise click.ClickException(f"cannot write {folder / 'run.json'}: No space left on device")

    monkeypatch.setattr("exchange_simulation.launching.run.write_record", full)
    finished = run_exchange_in_process(tmp_path, "--rate", "max", "--orders", 100, "--name", "here")
    assert finished.code == 1
    assert finished.record["counts"]["orders_answered"] == 100
    assert "No space left on device; make room, then: exchange results repair" in finished.err
    assert (tmp_path / "here" / "begun.json").exists()
