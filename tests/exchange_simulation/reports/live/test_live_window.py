"""The live window, over a spool that a test writes, and over a real run."""

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

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"
ERASE_LINE = "\x1b[2K"
CONTROL_SEQUENCE = r"\x1b\[[0-9;?]*[A-Za-z]"


def text_of(output: str) -> str:
    """Return a terminal's output without control sequences: all pictures, one below the other."""
    return re.sub(CONTROL_SEQUENCE, "", output).replace("\r\n", "\n").replace("\r", "\n")


def recording_console(encoding: str = "utf-8") -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return Console(file=file, force_terminal=True, force_interactive=True, width=80, height=30)


def output_on(console: Console) -> str:
    return console.file.buffer.getvalue().decode(console.encoding)  # type: ignore[attr-defined]


@pytest.fixture
def clock_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the clock go on by a second at each look."""
    clock = itertools.count(10**12, 10**9)
    monkeypatch.setattr(window_module.time, "monotonic_ns", lambda: next(clock))


@pytest.mark.usefixtures("clock_of_seconds")
def test_each_second_shows_its_spool_and_the_orders_so_far(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "spool")
    window = Window(RunSettings(), recording_console(), tmp_path)
    assert window.before_start().plain == "zeromq at 8,000 orders/s: the components get ready"
    assert "\nsent         - " in window.during(Moment(8_010, 8_000)).plain
    for second, sent in enumerate((8_000, 4_000)):
        spool.write(orjson.dumps(traffic(second, sent)))
        spool.publish()
    text = window.during(Moment(12_010, 12_000)).plain
    assert text.startswith("zeromq at 8,000 orders/s: 12,000 of 80,000 orders answered, 11 s left\n")
    assert "\nsent     4,000 " in text
    assert window.after_end().plain.startswith("zeromq at 8,000 orders/s: ended\n")


@pytest.mark.usefixtures("clock_of_seconds")
def test_a_broker_s_cores_stand_in_the_second_of_their_use(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path / "spool")
    window = Window(RunSettings(transport="amqp"), recording_console(), tmp_path)
    for second, cpu_s in enumerate((0.5, 0.75, 1.5)):
        window.during(Moment(1, 1, cpu_s))
        spool.write(orjson.dumps(traffic(second, 8_000)))
        spool.publish()
    last_row = window.during(Moment(1, 1)).plain.splitlines()[-2]
    assert last_row == "broker    0.75 " + " " * 57 + "▆▃█ 0.75"


def test_the_last_picture_stays(tmp_path: Path) -> None:
    console = recording_console()
    with live_window(RunSettings(), console, tmp_path) as on_second:
        on_second(Moment(1, 1))
    assert "zeromq at 8,000 orders/s: ended" in output_on(console)
    assert not output_on(console).endswith(ERASE_LINE)


def test_a_run_that_never_began_leaves_no_picture(tmp_path: Path) -> None:
    console = recording_console()
    with live_window(RunSettings(), console, tmp_path):
        pass
    assert "ended" not in output_on(console)
    assert output_on(console).endswith(ERASE_LINE)


def test_a_terminal_in_ascii_gets_ascii_graphs(tmp_path: Path) -> None:
    console = recording_console("ascii")
    spool = SpoolWriter(tmp_path / "spool")
    spool.write(orjson.dumps(traffic(0, 8_000)))
    spool.publish()
    with live_window(RunSettings(), console, tmp_path) as on_second:
        on_second(Moment(1, 1))
    assert re.search(r"^sent +8,000 +# ", text_of(output_on(console)), re.MULTILINE)


def test_a_terminal_that_is_closed_during_a_run_raises_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    reading_end, terminal_end = pty.openpty()
    with os.fdopen(terminal_end, "w") as file, live_window(RunSettings(), screen(file), tmp_path) as on_second:
        on_second(Moment(1, 1))
        os.close(reading_end)
        on_second(Moment(2, 2))


class Terminal:
    """`exchange run --live`, whose stderr is a terminal of 80 columns."""

    def __init__(self, results: Path, *words: object) -> None:
        self._reading_end, terminal_end = pty.openpty()
        termios.tcsetwinsize(terminal_end, (30, 80))
        words = ("run", "--live", "--no-spark", "--no-page", "--results", results, *words)
        self.process = subprocess.Popen(
            command(*words), stdout=subprocess.PIPE, stderr=terminal_end, text=True, env={**os.environ, "TERM": "xterm"}
        )
        os.close(terminal_end)
        self._output = b""

    def read(self) -> bool:
        """Read the next output; return False if the command has ended."""
        readable, _, _ = select.select([self._reading_end], [], [], PATIENCE_S)
        assert readable, f"nothing more after {self.output}"
        try:
            self._output += os.read(self._reading_end, 1 << 16)
        except OSError:  # Linux's answer once no process has the terminal open
            return False
        return True

    @property
    def output(self) -> str:
        """Return all that the command has written to the terminal."""
        return self._output.decode(errors="replace")

    @property
    def text(self) -> str:
        return text_of(self.output)

    @property
    def shows_cursor(self) -> bool:
        return self.output.rindex(SHOW_CURSOR) > self.output.rindex(HIDE_CURSOR)

    def finish(self) -> str:
        """Wait for the command's end; return its stdout."""
        while self.read():
            pass
        stdout, _ = self.process.communicate(timeout=PATIENCE_S)
        os.close(self._reading_end)
        return stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """A function that starts a run in a terminal; a run that still goes on after the test is killed."""
    terminals: list[Terminal] = []

    def start(*words: object) -> Terminal:
        terminals.append(Terminal(tmp_path, *words))
        return terminals[-1]

    yield start
    for terminal in terminals:
        if terminal.process.poll() is None:
            terminal.process.kill()
            terminal.process.communicate()


def test_a_run_s_figures_are_drawn_once_a_second(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    run = terminal("--transport", "memory", "--rate", 2000, "--orders", 3400, "--name", "live")
    stdout = run.finish()
    assert run.process.returncode == 0, stdout
    assert "3,400 orders sent and received" in stdout
    assert run.text.count("the components get ready") == run.text.count("ended") == 1
    record = orjson.loads((tmp_path / "live" / "run.json").read_bytes())
    assert 1 <= run.text.count(" orders answered") <= record["duration_s"] + 1
    _, _, last_picture = run.text.rpartition("ended")
    for row in ("sent", "answered", "answers", "p50", "p99", "max", "lag p99", "gateway", "engine", "reporter"):
        assert re.search(rf"^{row} +[\d.,k-]+ +[▁-█]", last_picture, re.MULTILINE), (row, last_picture)
    assert re.search(r"^sent +[\d.,]+ ", last_picture, re.MULTILINE)
    assert max(map(len, run.text.splitlines())) <= 80
    assert run.shows_cursor


def test_ctrl_c_ends_the_run_and_shows_the_cursor_again(terminal: Callable[..., Terminal]) -> None:
    run = terminal("--transport", "memory", "--rate", 500, "--duration", 600)
    while " orders answered" not in run.text:
        assert run.read(), run.output
    run.process.send_signal(signal.SIGINT)
    stdout = run.finish()
    assert run.process.returncode == 130
    assert stdout.splitlines()[:2] == ["partial: memory at 500 orders/s, seed 1", "  gateway: interrupted"]
    assert "ended" in run.text
    assert "Traceback" not in run.output
    assert run.shows_cursor
