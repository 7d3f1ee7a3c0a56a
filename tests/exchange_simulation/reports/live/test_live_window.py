"""The window, over a spool that a synthetic run writes, and over a run."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import select
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from exchange.settings import RunSettings
from exchange_simulation.launching.launch.watch import Moment
from exchange_simulation.reports.live import window as window_module
from exchange_simulation.reports.live.window import Window, live_window
from exchange_simulation.reports.progress import screen
from stats_reporter.writer import SpoolWriter
from tests.exchange_command import command
from tests.exchange_simulation.reports.live.spool_records import traffic
from tests.machine import PATIENCE_S

SHOW_CURSOR, HIDE_CURSOR, ERASE_LINE = "\x1b[?25h", "\x1b[?25l", "\x1b[2K"


def seen(shown: str) -> str:
    """Without colours, and with all that was drawn one below the other."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n").replace("\r", "\n")


def recorded(encoding: str = "utf-8") -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return Console(file=file, force_terminal=True, force_interactive=True, width=80, height=30)


def shown_on(console: Console) -> str:
    return console.file.buffer.getvalue().decode(console.encoding)  # type: ignore[attr-defined]


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the time asks a second after who asked before."""
    clock = itertools.count(10**12, 10**9)
    monkeypatch.setattr(window_module.time, "monotonic_ns", lambda: next(clock))


@pytest.mark.usefixtures("seconds")
def test_each_second_shows_its_spool_and_the_orders_so_far(tmp_path: Path) -> None:
    spool, window = SpoolWriter(tmp_path / "spool"), Window(RunSettings(), recorded(), tmp_path)
    assert window.before().plain == "zeromq at 8,000 orders/s: the components get ready"
    assert "\nsent         - " in window.at(Moment(8_010, 8_000)).plain
    for second, sent in enumerate((8_000, 4_000)):
        spool.write(orjson.dumps(traffic(second, sent)))
        spool.publish()
    text = window.at(Moment(12_010, 12_000)).plain
    assert text.startswith("zeromq at 8,000 orders/s: 12,000 of 80,000 orders answered, 11 s left\n")
    assert "\nsent     4,000 " in text
    assert window.at_the_end().plain.startswith("zeromq at 8,000 orders/s: ended\n")


@pytest.mark.usefixtures("seconds")
def test_a_broker_s_cores_stand_in_the_second_in_which_it_used_them(tmp_path: Path) -> None:
    spool, window = SpoolWriter(tmp_path / "spool"), Window(RunSettings(transport="amqp"), recorded(), tmp_path)
    for second, cpu_s in enumerate((0.5, 0.75, 1.5)):
        window.at(Moment(1, 1, cpu_s))
        spool.write(orjson.dumps(traffic(second, 8_000)))
        spool.publish()
    assert window.at(Moment(1, 1)).plain.splitlines()[-1] == "broker    0.75 " + " " * 57 + "▆▃█ 0.75"


def test_the_last_picture_stays(tmp_path: Path) -> None:
    """A run that never began leaves nothing."""
    for began in (True, False):
        console = recorded()
        with live_window(RunSettings(), console, tmp_path) as on_second:
            if began:
                on_second(Moment(1, 1))
        assert ("zeromq at 8,000 orders/s: ended" in shown_on(console)) == began
        assert shown_on(console).endswith(ERASE_LINE) != began


def test_a_terminal_without_blocks_is_given_none(tmp_path: Path) -> None:
    spool, console = SpoolWriter(tmp_path / "spool"), recorded("ascii")
    spool.write(orjson.dumps(traffic(0, 8_000)))
    spool.publish()
    with live_window(RunSettings(), console, tmp_path) as on_second:
        on_second(Moment(1, 1))
    assert re.search(r"^sent +8,000 +# ", seen(shown_on(console)), re.MULTILINE)


def test_a_terminal_that_is_closed_in_the_middle_takes_no_run_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as file, live_window(RunSettings(), screen(file), tmp_path) as on_second:
        on_second(Moment(1, 1))
        os.close(ours)
        on_second(Moment(2, 2))


class Terminal:
    """`exchange run --live`, whose stderr is a terminal of 80 columns."""

    def __init__(self, results: Path, *words: object) -> None:
        self._screen, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (30, 80))
        words = ("run", "--live", "--no-spark", "--no-page", "--results", results, *words)
        self.process = subprocess.Popen(
            command(*words), stdout=subprocess.PIPE, stderr=theirs, text=True, env={**os.environ, "TERM": "xterm"}
        )
        os.close(theirs)
        self._shown = b""

    def read(self) -> bool:
        """Whether there is more to come."""
        assert select.select([self._screen], [], [], PATIENCE_S)[0], f"nothing more after {self.shown}"
        try:
            self._shown += os.read(self._screen, 1 << 16)
        except OSError:  # as Linux says that nobody is left at the other end
            return False
        return True

    @property
    def shown(self) -> str:
        return self._shown.decode(errors="replace")

    def finish(self) -> tuple[int, str]:
        """(exit code, stdout)."""
        while self.read():
            pass
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        os.close(self._screen)
        return self.process.returncode, out


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """None outlives its test."""
    started: list[Terminal] = []

    def start(*words: object) -> Terminal:
        started.append(Terminal(tmp_path, *words))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def test_a_run_s_rates_stand_on_the_screen_drawn_once_a_second(
    terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    run = terminal("--transport", "memory", "--rate", 2000, "--orders", 3400, "--name", "looked-at")
    code, out = run.finish()
    assert code == 0, out
    assert "3,400 orders sent and received" in out
    screen = seen(run.shown)
    assert screen.count("the components get ready") == screen.count("ended") == 1
    record = orjson.loads((tmp_path / "looked-at" / "run.json").read_bytes())
    assert 1 <= screen.count(" orders answered") <= record["duration_s"] + 1
    last = screen.rpartition("ended")[2]
    for row in ("sent", "answered", "answers", "p50", "p99", "max", "lag p99", "gateway", "engine", "reporter"):
        assert re.search(rf"^{row} +[\d.,k-]+ +[▁-█]", last, re.MULTILINE), (row, last)
    assert re.search(r"^sent +[\d.,]+ ", last, re.MULTILINE)
    assert max(map(len, screen.splitlines())) <= 80
    assert run.shown.rindex(SHOW_CURSOR) > run.shown.rindex(HIDE_CURSOR)


def test_ctrl_c_ends_the_run_in_band_and_gives_the_cursor_back(terminal: Callable[..., Terminal]) -> None:
    run = terminal("--transport", "memory", "--rate", 500, "--duration", 600)
    while " orders answered" not in seen(run.shown):
        assert run.read(), run.shown
    run.process.send_signal(signal.SIGINT)
    code, out = run.finish()
    assert (code, out.splitlines()[:2]) == (
        130,
        ["partial: memory at 500 orders/s, seed 1", "  gateway: interrupted"],
    )
    assert "ended" in seen(run.shown)
    assert "Traceback" not in run.shown
    assert run.shown.rindex(SHOW_CURSOR) > run.shown.rindex(HIDE_CURSOR)
