"""Results folders that others made: whatever is in them, `exchange results` ends, and sends no control characters."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from exchange.words import printable
from exchange_simulation.launching.files import write_whole
from exchange_simulation.reports.exports import print_json
from tests.exchange_command import exchange, exchange_in_process

CLEAR_SCREEN = "\x1b[2J"
RECORD = {
    "schema": 1,
    "name": f"x{CLEAR_SCREEN}",
    "status": "partial",
    "reasons": [f"bad {CLEAR_SCREEN}", "\x9b31m"],
    "settings": {"transport": f"zeromq{CLEAR_SCREEN}", "orders_per_s": 1000.0, "seed": 1},
    "counts": {},
    "completion_us": {},
    "host": {"cpu": CLEAR_SCREEN},
    "started_at": "2026-11-22T12:00:00.000+00:00",
}


def run_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(RECORD))
    return folder


@pytest.mark.parametrize(
    "words", [("list",), ("show", "evil"), ("diff", "evil", "evil"), ("show", f"no{CLEAR_SCREEN}")]
)
def test_control_characters_are_shown_and_not_sent(words: tuple[str, ...], tmp_path: Path) -> None:
    run_in(tmp_path / "evil")
    run_in(tmp_path / f"named{CLEAR_SCREEN}")
    outcome = exchange_in_process("results", *words, "--results", tmp_path, FORCE_COLOR="1", TERM="dumb")
    assert "Traceback" not in outcome.err
    assert not [c for c in outcome.out + outcome.err if c in "\x07\x1b\x9b"]


def test_printable_characters_stay_as_they_are() -> None:
    assert printable("a\tµ\n ünï — 交易") == "a\tµ\n ünï — 交易"
    assert printable("\x1b[2J\x9b\udcff\r") == "\\x1b[2J\\x9b\\udcff\\r"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_name_that_is_no_utf_8_is_listed(form: tuple[str, ...], tmp_path: Path) -> None:
    run_in(tmp_path / os.fsdecode(b"n\xffame"))
    outcome = exchange("results", "list", *form, "--results", tmp_path)
    assert outcome.code == 0
    assert outcome.err == ""
    assert "udcffame" in outcome.out


def test_a_line_break_in_a_name_breaks_no_listed_line(tmp_path: Path) -> None:
    run_in(tmp_path / "two\nlines")
    broken = {**RECORD, "settings": {**RECORD["settings"], "transport": "amqp\nlossy"}}  # type: ignore[dict-item]
    (run_in(tmp_path / "other") / "run.json").write_text(json.dumps(broken))
    outcome = exchange("results", "list", "--results", tmp_path)
    assert len(outcome.out.splitlines()) == 3
    assert "two\\nlines" in outcome.out
    assert "amqp\\nlossy" in outcome.out


def test_a_record_with_a_path_that_is_no_utf_8_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"tape": os.fsdecode(b"orders\xff.bin")})
    assert json.loads(capsys.readouterr().out) == {"tape": "orders\\udcff.bin"}


@pytest.mark.parametrize("name", [os.fsdecode(b"n\xff"), CLEAR_SCREEN, "two\nlines"])
def test_a_run_is_refused_a_name_of_unprintable_characters(name: str, tmp_path: Path) -> None:
    outcome = exchange_in_process("run", "--orders", 1, "--name", name, "--results", tmp_path)
    assert outcome.code == 2
    assert "is no name for a run" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_in_place_of_a_record_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "run.json")
    listed = exchange("results", "list", "--results", tmp_path)
    assert listed.code == 0
    assert "damaged" in listed.out
    assert "run.json is no file" in listed.out
    shown = exchange("results", "show", "pipe", "--results", tmp_path)
    assert shown.code == 1
    assert "is no file" in shown.err


@pytest.mark.parametrize("command", [("sweep",), ("bench", "supply-chain", "--topology", "freeform", "--config")])
def test_toml_that_is_nested_too_deeply_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text("a=" + "[" * 100_000)
    outcome = exchange_in_process(*command, deep)
    assert outcome.code == 2
    assert "Traceback" not in outcome.err
    assert "deep.toml" in outcome.err


def test_a_record_behind_a_link_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(RECORD))
    (tmp_path / "results" / "evil").mkdir(parents=True)
    (tmp_path / "results" / "evil" / "run.json").symlink_to(secret)
    outcome = exchange_in_process("results", "show", "evil", "--results", tmp_path / "results")
    assert outcome.code == 1
    assert "it is a symbolic link, which is not followed" in outcome.err


def test_a_page_replaces_a_link_and_spares_its_target(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    for name in ("report.html", ".report.html.part"):
        (tmp_path / name).symlink_to(outside)
    write_whole(tmp_path / "report.html", b"a page")
    assert outside.read_text() == "mine"
    assert (tmp_path / "report.html").read_text() == "a page"
    assert not (tmp_path / "report.html").is_symlink()


def test_a_page_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report.html")
    with pytest.raises(click.ClickException, match="it is no regular file: remove it"):
        write_whole(tmp_path / "report.html", b"a page")


def test_a_record_longer_than_any_of_ours_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exchange.record_kinds.MOST_RECORD_BYTES", 100)
    run_in(tmp_path / "long")
    outcome = exchange_in_process("results", "show", "long", "--results", tmp_path)
    assert outcome.code == 1
    assert "bytes, and a record has at most 100" in outcome.err
