"""The lines about a run's progress, its checksums, and the page of a killed run."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from exchange.settings import RunSettings
from exchange_simulation.launching.launch.watch import Moment
from exchange_simulation.launching.notices import say
from exchange_simulation.reports import progress
from tests.exchange_command import exchange, exchange_in_process


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (RunSettings(), "zeromq: 1,234 of 80,000 orders answered\n"),
        (RunSettings(orders_per_s=None, orders=None, duration_s=1.0), "zeromq: 1,234 orders answered\n"),
    ],
)
def test_without_a_terminal_there_is_a_line_now_and_then(
    settings: RunSettings, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.progress_bar(settings) as on_second:
        on_second(Moment(sent=2_000, answered=1_234))
        monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
        on_second(Moment(sent=2_000, answered=1_234))
    assert capsys.readouterr() == ("", expected)


def test_the_bar_of_a_run_bounded_by_time_has_no_total() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress._bar(console, "zeromq", None, " orders") as on_count:
        on_count(1_234)
        assert "1,234 orders" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_bar_shows_the_whole_number_and_the_time_in_every_terminal(width: int) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, no_color=True, width=width)
    work = "request-reply, amqp, match indexed, 4 clients, 8 threads, 1 KiB, 0 preloaded"
    with progress._bar(console, work, 800_000, " of 800,000 messages") as on_count:
        on_count(123_456)
        *_, line = file.getvalue().split("\r")
    assert line.rstrip().endswith("123,456 of 800,000 messages -:--:--")


def test_a_bar_begins_with_the_place_of_its_work_in_a_larger_one(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, no_color=True, width=80)
    monkeypatch.setattr(progress, "screen", lambda: console)
    with (
        progress.part_of_whole("3 of 12:"),
        progress.counting("de-pp, tcp, 64 B", 800, " of 800 messages", "sent") as on_count,
    ):
        on_count(1)
        *_, line = file.getvalue().split("\r")
    assert "3 of 12: de-pp, tcp, 64 B" in line


def test_a_sentence_beside_a_bar_stands_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80)
    sentence = "waiting for engine, gateway to be ready (a first run compiles kernels), for 10 s so far"
    with progress._bar(console, "zeromq", 800, " of 800 orders"):
        shown = len(file.getvalue())
        say(sentence)
        printed = file.getvalue()[shown:]
    assert capsys.readouterr().err == ""
    assert re.fullmatch(r"(\r|\x1b\[2K)+" + re.escape(sentence) + r"\n.*0 of 800 orders.*", printed, re.DOTALL)


def test_a_run_prints_the_checksums_that_match_prints(tmp_path: Path) -> None:
    run = exchange_in_process(
        "run", "--orders", 1, "--rate", 100, "--transport", "memory", "--no-spark", "--results", tmp_path
    )
    exchange("tape", "--orders", 1, "--output", tmp_path / "tape")
    match = exchange("match", tmp_path / "tape")
    assert "1 order sent and received" in run.out
    sums = [line.split("orders ")[1] for line in (run.out + match.out).splitlines() if "xxh64" in line]
    assert len(sums) == 2
    assert sums[0] == sums[1]


def test_a_killed_run_gets_a_page_from_its_spool(tmp_path: Path) -> None:
    words = ("--orders", 1, "--rate", 100, "--transport", "memory", "--no-spark", "--results", tmp_path, "--name", "x")
    exchange_in_process("run", *words)
    (tmp_path / "x" / "run.json").unlink()
    (tmp_path / "x" / "report.html").unlink()
    result = exchange("report", tmp_path / "x")
    assert result.code == 0, result.err
    assert "has no run.json" in result.out
    assert (tmp_path / "x" / "report.html").exists()


@pytest.mark.parametrize(("content", "error"), [(None, "is no folder of ours"), (b"{", "unexpected end")])
def test_a_folder_without_a_usable_record_is_refused(content: bytes | None, error: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    result = exchange("report", tmp_path)
    assert result.code == 2
    assert error in result.err
