"""What a user types who does not know the tool well: other names, short numbers, slips of the keyboard."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from exchange.settings import RunSettings
from exchange_simulation.cli.command import HEADINGS
from exchange_simulation.cli.main import COMMANDS, main
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.option_types import Count, Listed, Number, Rate, Scheme
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate


def output(*words: str) -> str:
    return CliRunner().invoke(main, list(words)).output


def settings_of(*words: str) -> RunSettings:
    """The settings of `exchange run` with these words."""
    command = import_module("exchange_simulation.cli.run").command
    with command.make_context("run", list(words)) as context:
        fields = {option.field for option in TABLE if "run" in option.commands} - {"results"}
        return run_settings(**without_default_rate({name: context.params[name] for name in fields}))


def test_help_names_every_command_once_under_what_one_wants():
    lines = output("--help").splitlines()
    headings = [line.rstrip(":") for line in lines if line.endswith(":")]
    assert headings == ["Options", "Measure", "Compare", "Look", "Spark", "By hand"]
    assert [name for name in COMMANDS if sum(line.startswith(f"  {name} ") for line in lines) != 1] == []


def test_help_loads_no_command():
    program = "import sys; from click.testing import CliRunner; from exchange_simulation.cli.main import main;"
    program += "CliRunner().invoke(main, ['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {f"exchange_simulation.cli.{name}" for name in COMMANDS} & set(done.stdout.split()) == set()
    assert "exchange_simulation.cli.main" in done.stdout.split()


@pytest.mark.parametrize("name", ["run", "sweep", "compare", "nagle", "capacity"])
def test_seconds_and_duration_are_two_names_of_one_option(name: str):
    command = import_module(f"exchange_simulation.cli.{name}").command
    both = [param.name for param in command.params if {"--seconds", "--duration"} <= {*param.opts}]
    assert len(both) == 1
    for option in ("--seconds", "--duration"):
        with command.make_context(name, [option, "7"]) as context:
            assert context.params[both[0]] == 7.0


@pytest.mark.parametrize("name", ["run", "compare", "sweep", "capacity", "nagle"])
def test_options_stand_under_headings(name: str):
    help_text = output(name, "--help")
    assert [heading for heading in HEADINGS if f"{heading} options:" not in help_text] == []
    assert help_text.index("Load options:") < help_text.index("--seed") < help_text.index("Transport options:")
    others = help_text.partition("Other options:")[2].split()
    assert [word for word in others if word.startswith("--") and word != "--help"] == []


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rum"], "Did you mean 'run'?"),
        (["comapre"], "Did you mean 'compare'?"),
        (["run", "--rte", "8000"], "--rate"),
        (["run", "--transport", "zeromk"], "did you mean zeromq?"),
        (["run", "--transport", "tpc"], "did you mean tcp?"),
        (["run", "--transport", "rabitmq"], "did you mean amqp?"),
        (["run", "--delivery", "durabl"], "did you mean 'durable'?"),
        (["run", "--price-model", "normale"], "did you mean 'normal'?"),
        (["results", "list", "--status", "complet"], "did you mean 'complete'?"),
        (["bench", "role", "publsh"], "did you mean 'publish'?"),
        (["capacity", "--bench", "perftst"], "did you mean 'perftest'?"),
        (["bench", "suit"], "Did you mean 'suite'?"),
        (["bench", "de-spcs"], "Did you mean 'de-spsc'?"),
        (["results", "lst"], "Did you mean 'list'?"),
    ],
)
def test_a_slip_gets_a_suggestion(words: list[str], meant: str):
    done = CliRunner().invoke(main, words)
    assert done.exit_code != 0
    assert meant in done.output


@pytest.mark.parametrize("words", [["RUN"], ["Bench", "DE-SPSC"], ["paper", "AMQP"], ["results", "List"]])
def test_a_command_is_known_in_any_case(words: list[str]):
    in_lower_case = [word.lower() for word in words]
    assert output(*words, "--help") == output(*in_lower_case, "--help")


@pytest.mark.parametrize(
    ("typed", "transport"),
    [
        ("zmq", "zeromq"),
        ("zmq+ipc", "zeromq+ipc"),
        ("zmq?calls=plain", "zeromq?calls=plain"),
        ("rabbitmq", "amqp"),
        ("tcp", "tcp"),
        ("zeromq", "zeromq"),
        ("rabbitmq://host:5672", "amqp://host:5672"),
    ],
)
def test_a_transport_goes_by_its_product_s_name_too(typed: str, transport: str):
    assert Scheme().convert(typed, None, None) == transport
    assert Listed(Scheme()).convert(f"tcp,{typed}", None, None) == ["tcp", transport]


def test_a_sweep_names_an_arm_by_its_transport_not_by_what_was_typed():
    assert "zeromq at 1,000" in output("sweep", "--transports", "zmq,tcp", "--rates", "1k", "--dry-run")


@pytest.mark.parametrize(
    ("kind", "typed", "value"),
    [
        (Rate(), "8k", 8000.0),
        (Rate(), "1e4", 10_000.0),
        (Rate(), "1.5M", 1_500_000.0),
        (Rate(), "max", None),
        (Count(), "80k", 80_000),
        (Count(), "1M", 1_000_000),
        (Count(), "1e9", 10**9),
        (Count(), "2G", 2 * 10**9),
        (Count(), "8K", 8000),
        (Count(), 7, 7),
        (Number(1, 10**8), "8k", 8000.0),
        (Listed(Rate()), "1k,2e3,max", [1000.0, 2000.0, None]),
    ],
)
def test_numbers_are_read_as_people_write_them(kind: click.ParamType[Any], typed: Any, value: object):
    assert kind.convert(typed, None, None) == value


@pytest.mark.parametrize("typed", ["k", "8kk", "8 k k", "1.5", "0.5k1", "", "nan", "inf"])
def test_a_count_that_is_none_is_refused(typed: str):
    with pytest.raises(click.BadParameter, match="no whole number"):
        Count().convert(typed, None, None)


def test_short_numbers_reach_the_settings():
    settings = settings_of("--transport", "zmq", "--rate", "8k", "--orders", "1M", "--sampling-interval", "5k")
    assert (settings.transport, settings.orders_per_s, settings.orders) == ("zeromq", 8000.0, 1_000_000)
    assert settings.sampling_interval == 5_000


@pytest.mark.parametrize(
    ("words", "incomplete", "first"),
    [
        (["compare", "--transports"], "tcp,zer", ["tcp,zeromq", "tcp,zeromq+inproc"]),
        (["run", "--delivery"], "d", ["durable"]),
        (["run", "--network"], "wan", ["wan1", "wan10"]),
        (["run", "--arrivals"], "p", ["poisson"]),
        (["run", "--nagle"], "gateway,b", ["gateway,broker"]),
        (["bench"], "de-s", ["de-spsc"]),
        (["results", "show"], "run-z", ["run-zeromq"]),
    ],
)
def test_the_shell_completes_commands_and_values(
    words: list[str], incomplete: str, first: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = tmp_path / "results" / "run-zeromq"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    found = ShellComplete(main, {}, "exchange", "_EXCHANGE_COMPLETE").get_completions(words, incomplete)
    assert [item.value for item in found][:2] == first


def test_the_command_is_a_module_too():
    for module in ("exchange_simulation.cli", "exchange_simulation.cli.main"):
        done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
        assert "exchange, version" in done.stdout


@pytest.mark.parametrize("module", ["exchange_simulation.cli.run", "exchange_simulation.cli.compare"])
def test_a_module_that_is_no_command_says_what_to_type(module: str):
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"type: exchange {module.rpartition('.')[2]}" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--no-page", "--no-spark", "--orders", "300"),
        (
            "compare",
            "--transports",
            "memory,memory",
            "--rates",
            "4k",
            "--repeats",
            "1",
            "--seconds",
            "0.05",
            "--keep-noisy",
            "--no-spark",
        ),
    ],
)
def test_quiet_leaves_only_the_outcome(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXCHANGE_SEED", "7")
    own = ["--transport", "memory"] if words[0] == "run" else []
    done = CliRunner().invoke(main, [*words, *own, "--results", str(tmp_path), "--quiet"])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert "memory" in done.stdout
    assert "warm-ups" not in done.stdout
