"""`exchange run` does nothing twice: its spool is parsed once, and its transport is checked once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exchange.json_records import Record
from exchange.records import decode_line
from exchange.settings import RunSettings
from exchange_simulation.launching import run as launching_run
from exchange_simulation.launching import transport_checks
from exchange_simulation.launching.record import reading
from tests.exchange_command import exchange_in_process

WORDS: tuple[Any, ...] = ("run", "--transport", "memory", "--orders", 200, "--rate", "max", "--no-spark")


def test_a_spool_is_parsed_once_for_record_table_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    def decode_and_note(line: bytes) -> Record:
        parsed.append(line)
        return decode_line(line)

    monkeypatch.setattr(reading, "decode_line", decode_and_note)
    outcome = exchange_in_process(*WORDS, "--results", tmp_path, "--name", "first")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "first" / "report.html").exists()
    files = sorted((tmp_path / "first" / "spool").glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    assert lines
    assert sorted(parsed) == sorted(lines)


def test_a_transport_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[RunSettings] = []
    check = transport_checks.check_transport

    def check_and_note(settings: RunSettings) -> None:
        checked.append(settings)
        check(settings)

    for each_caller in (transport_checks, launching_run):
        monkeypatch.setattr(each_caller, "check_transport", check_and_note, raising=False)
    outcome = exchange_in_process(*WORDS, "--results", tmp_path)
    assert outcome.code == 0, outcome.err
    assert len(checked) == 1
