"""A user's mistake: one sentence that names the field, exit code 2, nothing left behind."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange.messages import Order, encode
from exchange_simulation.cli.main import main
from exchange_simulation.launching.option_table import MAX_CAPACITY
from matching_engine.order_book import HIGHEST_CAPACITY
from tests.exchange_command import exchange, exchange_in_process


def refused(*words: object) -> str:
    """The error of a command that must end with exit code 2 and no traceback."""
    outcome = CliRunner().invoke(main, [str(word) for word in words])
    assert outcome.exit_code == 2, outcome.output
    assert "Traceback" not in outcome.output
    return " ".join(outcome.output.split())


@pytest.mark.parametrize("rate", ["0", "-5", "fast", "1e12", "1e999999k", "nan", ""])
def test_a_rate_out_of_range_is_refused_with_its_range(rate: str, tmp_path: Path) -> None:
    error = refused("run", f"--rate={rate}", "--results", tmp_path)
    assert "--rate" in error
    assert rate in error
    assert "100,000,000" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["--orders", "0"], "orders"),
        (["--arrivals", "often"], "--arrivals is often; allowed is fixed, poisson, bursts:ORDERS"),
        (["--arrivals", "bursts"], "as bursts:100"),
        (["--arrivals", "poisson", "--rate", "max"], "--arrivals is poisson; allowed is fixed, where there is no rate"),
        (["--orders", "-1"], "orders"),
        (["--duration", "0"], "duration"),
        (["--seed", "-1"], "seed"),
        (["--sampling-interval", "0"], "sampling-interval"),
        (["--packing", "0"], "packing"),
        (["--window", "0"], "window"),
        (["--window", "3", "--packing", "4"], "window"),
        (["--max-price", "65535"], "max-price"),
        (["--prices", "9..1"], "prices"),
        (["--prices", "cheap"], "LOW..HIGH"),
        (["--policy", "fair"], "price-time"),
        (["--warm-up", "-1"], "warm-up"),
        (["--timeout", "0"], "timeout"),
        (["--cpus", "broker=1"], "one of gateway, engine, reporter; zeromq has no broker"),
        (["--cpus", "gateway=x"], "'gateway=x' names no CPU: give ROLE=CPU pairs of gateway, engine"),
        (["--cpus", "subscriber=4000", "--subscribers", "1"], "processor 4000"),
        (["--cpus", "subscriber=0"], "allowed is one of gateway, engine, reporter, broker, or one of several"),
        (["--cpus", "gateway=0", "--transport", "memory"], "--cpus places processes on processors; memory has one"),
        (["--gateways", "2", "--rate", "0.001"], "allowed is at least 0.002, 0.001 for each gateway"),
        (["--cpus", "gateway=4000"], "processor 4000"),
        (["--transport", "pigeon"], "known are amqp, amqps, memory, nats"),
        pytest.param(["--transport", "tcp://nowhere"], "host:port", marks=pytest.mark.long),
        pytest.param(["--transport", "tcp://127.0.0.1:99999"], "host:port", marks=pytest.mark.long),
        (["--transport", "zeromq?calls=slow"], "compiled, plain"),
        pytest.param(["--transport", "zeromq://"], "lacks a place", marks=pytest.mark.long),
        (["--duration", "0"], "--duration is 0; allowed"),
        (["--warm-up", "-1"], "--warm-up is -1; allowed"),
        (["--timeout", "nan"], "'--timeout': 'nan' is no duration: give seconds, or a unit"),
        (["--duration", "sNaN"], "'--duration' / '--seconds': 'sNaN' is no duration"),
        (["--duration", "inf"], "'--duration' / '--seconds': 'inf' is no duration"),
        (["--duration", "1e9999999s"], "'--duration' / '--seconds': '1e9999999s' is no duration"),
        (["--rate", "1000@sNaN,2000"], "'1000@sNaN,2000' is no load"),
        (["--prices", f"1..{'9' * 5_000}"], "is no range of prices: give LOW..HIGH in ticks"),
        (["--cpus", f"gateway={'9' * 5_000}"], "names no CPU: give ROLE=CPU pairs"),
        (["--pace", f"spin:{'9' * 5_000}"], "allowed is sleep, or spin:US with 1..1000000"),
        (["--warm-up", "5", "--orders", "8000"], "--warm-up 5 leaves nothing of a run of 1 s"),
        (["--warm-up", "1.5", "--duration", "2", "--rate", "max"], "--warm-up 1.5 leaves nothing"),
        (["--name", "a/b"], "name"),
        (["--nagle", "broker"], "zeromq has no broker"),
        (["--orders", "1e999999k"], "is no whole number"),
        (["--cpus", "gateway=0,gateway=1"], "each once"),
        (["--transport", "tcp://127.0.0.1:0"], "say tcp alone to have one found"),
        (["--nagle", "gateway,pope"], "--nagle is pope; allowed is gateway, engine, reporter"),
        (["--nagle", "all", "--transport", "zeromq+ipc"], "zeromq+ipc has no TCP sockets"),
        (["--nagle", "engine", "--transport", "memory"], "memory has no TCP sockets"),
        (["--capture", "--transport", "memory"], "memory has no packets"),
        (["--live"], "stderr is none: leave it out"),
        (["--live", "--json"], "--live draws for a person, and --json prints for a program: give one of them"),
        (["--live-spark", "--json"], "--live-spark draws for a person, and --json prints for a program: give one"),
        (["--live-spark", "--live"], "--live and --live-spark both draw in the terminal: give one of them"),
        (["--transport", "tcp://127.0.0.1:0?nodelay=maybe"], "it takes on or off"),
        pytest.param(["--transport", "tcp?quickack=maybe"], "it takes off, on", marks=pytest.mark.long),
        (["--topology", "simplex", "--transport", "zeromq+ipc"], "no connection for each direction"),
        pytest.param(["--transport", "zeromq?back=7001"], "second port of topology=simplex", marks=pytest.mark.long),
        (["--sync", "always"], "--sync is always; allowed is batch, unless a journal is kept, by recover or journal"),
        (["--network", "moon"], "there are local, veth, gige, wan1, wan10"),
        (["--network", "veth", "--transport", "memory"], "memory cannot be there"),
        (["--transport", "amqp://u@h:99999"], "Error: amqp://u@h:99999: the port is to be 1..65535"),
        (["--network", "veth", "--transport", "shm"], "shm cannot be there"),
        (["--transport", "shm://otherhost/tmp/x"], "shm joins processes of one host"),
        (["--network", "veth", "--transport", "tcp://127.0.0.1:7000"], ", without an address"),
    ],
)
def test_an_impossible_setting_is_refused_by_its_name(words: list[str], field: str, tmp_path: Path) -> None:
    assert field in refused("run", *words, "--no-spark", "--results", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_cannot_be_kept_is_named_and_no_run_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "journal"
    words = ("--transport", "memory", "--orders", 10, "--no-spark", "--results", tmp_path / "results")
    error = refused("run", *words, "--journal", folder)
    assert f"cannot keep a journal in {folder}: Not a directory" in error
    assert list((tmp_path / "results").iterdir()) == []


def test_an_engine_salvages_no_journal_that_it_was_not_given() -> None:
    words = ("engine", "--listen", "tcp://127.0.0.1:0", "--reporter", "tcp://127.0.0.1:1", "--run", "first")
    assert "--salvage goes on with a journal: say which with --journal DIR" in refused(*words, "--salvage")


def test_an_option_of_a_transport_in_threads_is_named_too(tmp_path: Path) -> None:
    outcome = exchange_in_process("run", "--transport", "zeromq+inproc?calls=slow", "--no-spark", "--results", tmp_path)
    assert outcome.code == 2
    assert outcome.err.startswith("Error: zeromq+inproc?calls=slow: ")
    assert "compiled, plain" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "--rate=nan"),
        ("capacity", "--slo=p99 <= 1ms", "--pause=nan"),
        ("doctor", "--seconds=nan"),
        ("compare", "--transports=zeromq,tcp", "--seconds=nan"),
        ("compare", "--transports=zeromq,tcp", "--warm-up=nan"),
        ("compare", "--transports=zeromq,tcp", "--seconds=sNaN"),
        ("bench", "de-spsc", "--rate=sNaN"),
        ("bench", "de-spsc", "--timeout=1e9999999h"),
        ("bench", "fe-spmc", f"--consumers={'9' * 5_000}"),
        ("bench", "de-spsc", f"--sizes={'9' * 5_000}"),
    ],
)
def test_what_is_no_finite_number_is_refused_by_every_option_of_a_number(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    option, _, value = words[-1].partition("=")
    error = refused(*words, "--results", tmp_path)
    assert option in error
    assert f"'{value}' is no " in error


@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_a_warm_up_as_long_as_the_run_is_refused_at_once(command: str, tmp_path: Path) -> None:
    """Once a comparison made all its runs, and measured no times."""
    words = ("--transports", "memory,tcp", "--rates", "2000", "--duration", "0.3", "--warm-up", "0.1")
    assert "--warm-up 0.1 leaves nothing of a run of 0.3 s" in refused(command, *words, "--results", tmp_path)


@pytest.mark.parametrize("scheme", ["tcp", pytest.param("zeromq", marks=pytest.mark.long)])
def test_a_port_in_use_is_named(scheme: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"
        error = refused("run", "--transport", url, "--no-spark", "--results", tmp_path)
    assert url in error
    assert "choose another" in error
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_that_exists_is_never_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "exists already" in refused("run", "--name", "mine", "--results", tmp_path)
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_results_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "--results" in refused("run", "--results", tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_results_directory_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot write" in refused("run", "--results", tmp_path)


@pytest.mark.parametrize(
    ("tape", "error"),
    [
        (b"", "the tape is empty"),
        (encode(Order(1, 1, 500, 1)) * 2 + b"\x01\x02", "truncated: 2 of 10 bytes at offset 20"),
        (
            encode(Order(1, 1, 500, 1)) + b"\x63" + bytes(9),
            "type byte 99, where 1 (order), 10 (cancel), 14 (typed order), 15 (replace request), "
            "17 (cancel request) or 18 (instrument order) goes at offset 10",
        ),
    ],
)
def test_a_damaged_tape_is_refused_with_the_offset(tape: bytes, error: str, tmp_path: Path) -> None:
    (tmp_path / "tape").write_bytes(tape)
    assert error in refused("match", tmp_path / "tape")


@pytest.mark.parametrize("words", [("match",), ("run", "--transport", "memory", "--tape")], ids=" ".join)
def test_a_pipe_in_the_tape_s_place_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    """Once `match` waited for it, for ever."""
    tape = tmp_path / "tape.bin"
    os.mkfifo(tape)
    outcome = exchange_in_process(*words, tape)
    assert outcome.code == 2
    assert outcome.err == f"Error: cannot read {tape}: it is no regular file\n"


def test_a_pipe_in_the_place_of_due_times_is_refused(tmp_path: Path) -> None:
    exchange_in_process("tape", "--orders", 10, "--output", tmp_path / "tape.bin")
    due_times = tmp_path / "tape.due"
    os.mkfifo(due_times)
    outcome = exchange_in_process("run", "--transport", "memory", "--tape", tmp_path / "tape.bin")
    assert outcome.code == 2
    assert outcome.err == f"Error: cannot read {due_times}: it is no regular file\n"


def test_a_tape_that_cannot_be_written_is_named() -> None:
    assert "/proc/none" in refused("tape", "--orders", 10, "--output", "/proc/none")


def test_an_unknown_subcommand_is_no_traceback() -> None:
    assert "No such command" in refused("trade")


def test_a_peer_that_never_comes_is_named_when_the_time_is_up() -> None:
    outcome = exchange(
        "engine", "--listen", "tcp://127.0.0.1:0", "--reporter", "tcp://127.0.0.1:1", "--run", "x", "--timeout", 0.3
    )
    assert outcome.code == 1
    assert "nobody listens on tcp://127.0.0.1:1" in outcome.err
    assert "Traceback" not in outcome.err


LISTEN = ["--listen", "tcp://127.0.0.1:0", "--run", "x"]
ENGINE = ["engine", *LISTEN, "--reporter", "tcp://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([*ENGINE, "--capacity", "0"], "--capacity"),
        ([*ENGINE, "--cpu", "-1"], "--cpu"),
        ([*ENGINE, "--timeout", "nan"], "'nan' is no duration"),
        (["reporter", *LISTEN, "--timeout", "nan"], "'nan' is no duration"),
        (["reporter", "--listen", "tcp://127.0.0.1:99999", "--run", "x"], "host:port"),
        (["reporter", "--listen", "tcp://192.0.2.1:7000", "--run", "x"], "192.0.2.1"),
        (["match", "Makefile", "--capacity", "0"], "--capacity"),
    ],
)
def test_a_component_s_mistake_is_named_and_leaves_nothing(
    words: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").touch()
    assert named in refused(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]


def test_the_book_s_largest_capacity_is_the_option_s() -> None:
    assert MAX_CAPACITY == HIGHEST_CAPACITY


def test_prices_beyond_the_book_are_warned_of(tmp_path: Path) -> None:
    words = ["run", "--transport", "memory", "--rate", "1000", "--orders", "10", "--no-spark", "--results", tmp_path]
    outcome = CliRunner().invoke(main, [*map(str, words), "--prices", "600..1200"])
    assert outcome.exit_code == 0, outcome.output
    assert "--prices 600..1200 leave the book's 1..999: such orders will be rejected" in outcome.stderr


def test_a_gateway_that_spins_on_one_processor_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    words = ["run", "--transport", "memory", "--rate", "1000", "--orders", "10", "--no-spark", "--results", tmp_path]
    outcome = CliRunner().invoke(main, [*map(str, words), "--pace", "spin:20"])
    assert outcome.exit_code == 0, outcome.output
    assert "--pace spin:20 with one processor" in outcome.stderr
    planned = CliRunner().invoke(main, ["sweep", "--vary", "pace=sleep,spin:30", "--transports", "memory", "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "--pace spin:30 with one processor" in planned.stderr


def test_events_of_a_run_that_is_not_recorded_are_refused() -> None:
    assert "--events needs the streams of orders and answers: give --record too" in refused("run", "--events")


def test_a_gateway_that_spins_without_a_rate_is_warned_of() -> None:
    words = ["sweep", "--rates", "1000,max", "--pace", "spin:20", "--transports", "memory", "--dry-run"]
    assert "--pace spin does nothing at --rate max" in CliRunner().invoke(main, words).stderr
    assert "spin" not in CliRunner().invoke(main, [*words, "--quiet"]).stderr


def test_answers_never_replace_their_tape(tmp_path: Path) -> None:
    tape = tmp_path / "tape"
    tape.write_bytes(encode(Order(1, 1, 500, 1)))
    (tmp_path / "same").symlink_to(tape)
    assert "is the tape itself" in refused("match", tape, "--answers", tmp_path / "same")
    assert tape.read_bytes() == encode(Order(1, 1, 500, 1))


def test_a_damaged_tape_leaves_the_answers_that_were_there(tmp_path: Path) -> None:
    (tmp_path / "tape").write_bytes(encode(Order(1, 1, 500, 1)) + b"c")
    (tmp_path / "answers").write_text("before")
    refused("match", tmp_path / "tape", "--answers", tmp_path / "answers")
    assert (tmp_path / "answers").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "tape"]


def test_a_tape_is_written_into_a_device_and_never_replaces_it(tmp_path: Path) -> None:
    outcome = exchange("tape", "--orders", 10, "--output", "/dev/null")
    assert outcome.code == 0, outcome.err
    assert not Path("/dev/null").is_file()


TOO_LONG = "x" * 256


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["serve", "--results", TOO_LONG], "is no folder: choose another one with --results"),
        (["results", "repair", "--results", TOO_LONG], "File name too long; choose another place with --results"),
        (["results", "repair", TOO_LONG, "--results", "."], "holds no run or trial called"),
        (["compare", "--resume", TOO_LONG, "--results", "."], "holds no run or trial called"),
        (["spark", "summary", TOO_LONG], "is no folder: give the folder of a run"),
        (["keys", TOO_LONG], "File name too long"),
    ],
)
def test_a_folder_whose_name_no_file_system_takes_is_refused(words: list[str], why: str) -> None:
    """Each once ended with a stack trace."""
    assert why in refused(*words)


def test_answers_into_a_file_that_cannot_be_looked_up_are_refused(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    tape.write_bytes(encode(Order(1, 1, 500, 1)))
    assert "File name too long" in refused("match", tape, "--answers", TOO_LONG)


@pytest.mark.parametrize("words", [["serve"], ["results", "repair"]], ids=" ".join)
def test_results_that_cannot_be_read_are_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once serve showed an error page, and repair said that no run was left unfinished."""

    def unreadable(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", unreadable)
    monkeypatch.setattr("exchange_simulation.cli.serve.server.Server.run", lambda _: None)
    assert f"cannot read {tmp_path}: Permission denied" in refused(*words, "--results", tmp_path)


def test_a_folder_whose_spool_is_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "spool").touch()
    outcome = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert outcome.exit_code == 2
    assert "is not a run's folder" in outcome.output
    assert not (tmp_path / "report.html").exists()
