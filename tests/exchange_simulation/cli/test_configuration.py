"""Defaults from exchange.toml of the current folder and from EXCHANGE_*: which counts, and what is said about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def parsed(*words: str) -> dict[str, Any]:
    """The parameters of a command, by name."""
    command = main.get_command(None, words[0])  # type: ignore[arg-type]
    assert command is not None
    with command.make_context(words[0], list(words[1:])) as context:
        return context.params


def refused(*words: str) -> str:
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2, done.output
    return done.output


def test_a_file_gives_defaults_and_a_table_those_of_one_command():
    Path("exchange.toml").write_text(
        'seed = 7\nresults = "mine"\n[run]\nrate = "4k"\ntransport = "zmq"\n[sweep]\nrepeats = 3\n'
    )
    run, compare = parsed("run"), parsed("compare")
    assert (run["seed"], run["results"], run["orders_per_s"], run["transport"]) == (7, "mine", 4000.0, "zeromq")
    assert (compare["seed"], compare["repeats"]) == (7, 10)
    assert parsed("sweep")["repeats"] == 3


def test_typed_options_override_environment_and_that_the_file(monkeypatch: pytest.MonkeyPatch):
    Path("exchange.toml").write_text("seed = 1\nwarm-up = 1\npacking = 1\n[run]\nseed = 2\nwarm-up = 2\npacking = 2\n")
    monkeypatch.setenv("EXCHANGE_WARM_UP", "3")
    monkeypatch.setenv("EXCHANGE_PACKING", "3")
    monkeypatch.setenv("EXCHANGE_SEED", "")
    found = parsed("run", "--packing", "4")
    assert (found["seed"], found["warm_up_s"], found["packing"]) == (2, 3.0, 4)


def test_one_line_says_what_was_used(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    Path("exchange.toml").write_text('rate = "4k"\nseed = 5\n')
    monkeypatch.setenv("EXCHANGE_TRANSPORT", "tcp")
    parsed("run", "--seed", "6")
    assert capsys.readouterr().err == "from exchange.toml: --rate 4k; from the environment: --transport tcp\n"
    parsed("run", "--seed", "6", "--rate", "1", "--transport", "tcp")
    assert capsys.readouterr().err == ""


def test_a_sweep_s_own_file_counts_alone():
    Path("exchange.toml").write_text("repeats = 2\nseed = 9\n")
    Path("own.toml").write_text('repeats = 4\n[vary]\ntransport = ["memory"]\nrate = [1000, 2000]\n')
    plans = [
        CliRunner().invoke(main, ["sweep", *words, "--dry-run"]).output for words in (["own.toml"], ["--rates", "1k"])
    ]
    assert "4 repeats" in plans[0]
    assert "2 repeats" in plans[1]


def test_a_sweep_of_a_file_names_only_the_defaults_that_it_uses(capsys: pytest.CaptureFixture[str]):
    Path("exchange.toml").write_text('repeats = 2\nseed = 9\nresults = "mine"\n')
    assert parsed("sweep", "own.toml")["results"] == "mine"
    assert capsys.readouterr().err == "from exchange.toml: --results mine\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rte = 1\n", "'rte' is not known: did you mean rate?"),
        ("[rum]\nrate = 1\n", "[rum] is not known: did you mean run?"),
        ("[run]\nrates = 1\n", "[run]: 'rates' is not known: did you mean rate?"),
        ("rate = [1]\n", "write what one would type"),
        ("rate =\n", "is no TOML"),
        (f"rate = {'1' * 5000}\n", "is no TOML that can be read: Exceeds the limit (4300 digits)"),
        ("#" * ((1 << 20) + 1), "it has 1,048,577 bytes, and a TOML file has at most 1,048,576"),
        ('rate = "fast"\n', "'--rate'"),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, message: str):
    Path("exchange.toml").write_text(text)
    assert message in " ".join(refused("run", "--orders", "10").split())


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("words", [("run",), ("sweep", "exchange.toml"), ("bench", "de-spsc")], ids=" ".join)
@pytest.mark.parametrize("make", [_fifo, _endless])
def test_a_file_that_never_ends_or_never_begins_is_refused(make: Callable[[Path], None], words: tuple[str, ...]):
    """A pipe was waited for, for ever; a device filled the memory."""
    make(Path("exchange.toml"))
    assert "exchange.toml: it is no regular file" in refused(*words)


def test_a_component_takes_no_defaults(monkeypatch: pytest.MonkeyPatch):
    Path("exchange.toml").write_text("seed = 7\n")
    monkeypatch.setenv("EXCHANGE_SEED", "8")
    words = ["--engine", "tcp://127.0.0.1:1", "--reporter", "tcp://127.0.0.1:2", "--run", "x"]
    assert parsed("gateway", *words)["seed"] == 1


def test_benchmarks_share_a_table_and_a_key_of_none_is_refused() -> None:
    Path("exchange.toml").write_text(
        'packing = 4\n[bench]\ntransport = "memory"\nsizes = "64"\ncount = 1000000\nrepeats = 1\n'
    )
    quiet = CliRunner().invoke(main, ["bench", "de-spsc", "-q"])
    assert quiet.exit_code == 0, quiet.output
    assert quiet.stderr == ""
    assert "memory, messages/s: " in quiet.stdout
    assert " at 64 B" in quiet.stdout
    assert "--sizes 64" in CliRunner().invoke(main, ["bench", "de-spsc"]).stderr
    Path("exchange.toml").write_text("[bench]\nsises = 64\n")
    assert "did you mean sizes?" in refused("bench", "de-spsc")


@pytest.mark.parametrize("text", ['hosts = "hosts.toml"\n', '[run]\nhosts = "hosts.toml"\n'])
def test_a_file_of_the_folder_cannot_have_commands_executed(text: str) -> None:
    Path("exchange.toml").write_text(text)
    sentence = "exchange.toml: hosts names a file with commands, and this folder may be another user's: type --hosts"
    assert sentence in refused("run")


def test_the_environment_may_name_the_hosts_of_runs_and_benchmarks_ignore_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCHANGE_HOSTS", "hosts.toml")
    assert parsed("run")["hosts"] == "hosts.toml"
    assert CliRunner().invoke(main, ["faults", "--list"]).exit_code == 0


def test_a_paper_takes_no_defaults_and_is_measured_by_its_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("exchange.toml").write_text('transport = "tcp"\nnetwork = "gige"\nresults = "mine"\nrepeats = 2\n')
    monkeypatch.setenv("EXCHANGE_TRANSPORT", "tcp")
    papers = main.get_command(None, "paper")  # type: ignore[arg-type]
    assert isinstance(papers, click.Group)
    paper = papers.get_command(click.Context(papers), "amqp")
    assert paper is not None
    with paper.make_context("amqp", []) as context:
        given = context.params
    assert given["transports"] is None
    assert given["networks"] is None
    assert given["results"] == "results"
    assert given["repeats"] is None


def test_the_matrix_of_faults_has_a_table_of_its_own() -> None:
    Path("exchange.toml").write_text('results = "mine"\n[faults]\ntransports = "tcp"\n')
    given = parsed("faults")
    assert given["results"] == "mine"
    assert given["transports"] == ["tcp"]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("rate", "nan", "nan is no rate"),
        ("rate", "inf", "inf is no rate"),
        ("rate", '"sNaN"', "'sNaN' is no rate"),
        ("duration", "inf", "inf is no duration"),
        ("duration", '"1e9999999s"', "'1e9999999s' is no duration"),
        ("orders", "nan", "nan is no whole number"),
        ("prices", f'"1..{"9" * 5_000}"', "is no range of prices"),
        ("cpus", f'"gateway={"9" * 5_000}"', "names no CPU"),
    ],
)
def test_a_default_that_is_no_finite_number_is_refused(
    key: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("exchange.toml").write_text(f"{key} = {value}\n")
    assert problem in " ".join(refused("run").split())
    Path("exchange.toml").unlink()
    monkeypatch.setenv(f"EXCHANGE_{key.upper()}", value.strip('"'))
    assert problem.partition(" ")[2] in " ".join(refused("run").split())
