"""Every option that changes nothing where it stands is refused with a sentence: all commands, all options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from exchange_simulation.cli.idle_options import CheckedCommand, Mode, modes_of, needs_of, refuse_idle_options
from exchange_simulation.cli.main import main

SAMPLES = {
    "FILE": "file",
    "NAME": "first",
    "DIR": "folder",
    "URL": "place",
    "CONDITION": "p50 of tcp over 2x zeromq",
    "NAME=VALUE[,...]": "packing=1,2",
    "SCHEME[,...]": "zeromq,tcp",
    "RATE[,...]": "1000",
    "PERCENT": "10%",
    "KIND=PERCENT,...": "limit=100",
    "N": "2",
}
"""A value for options without a default, by what the help calls it."""
SAMPLES_BY_NAME = {
    "nagle": "none",
    "orders": "10",
    "duration_s": "1",
    "window": "10",
    "name": "first",
    "journal": "folder",
    "repeats": "6",
    "pause_s": "1",
    "max_repeats": "20",
    "seconds": "1",
    "count": "10",
    "speed": "1",
    "delivery": "lossy",
    "amqp_client": "compiled",
    "config": "file",
    "restart_after_s": "1",
    "partitions": "2",
    "vary": "packing=1,2",
    "arrivals": "poisson",
    "junit": "file",
    "slow_subscriber": "wait",
}


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that has no subcommands, with the words that call it."""
    context = click.Context(group, info_name=" ".join(path))
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL_COMMANDS = dict(commands())


def sample_of(param: click.Parameter) -> list[str]:
    """Return words that give the parameter a value."""
    if not isinstance(param, click.Option):
        return ["value"]
    name = max(param.opts, key=len)
    return [name] if param.is_flag else [name, value_for(param)]


def value_for(param: click.Option) -> str:
    """Return a value that the option takes."""
    if param.name in SAMPLES_BY_NAME:
        return SAMPLES_BY_NAME[str(param.name)]
    if param.name == "cpus":
        return "gateway=0" if "gateway" in (param.help or "") else "publisher=0"
    if isinstance(param.type, click.Choice):
        return str(param.type.choices[0])
    if isinstance(param.default, str | int | float):
        return str(param.default)
    return SAMPLES.get(param.metavar or "", "1")


def is_refused(words: tuple[str, ...], command: click.Command, typed: list[str]) -> bool:
    """Return whether these words after the command are refused as options that change nothing."""
    with command.make_context(words[-1], typed, parent=context_of_group(words)) as context:
        try:
            refuse_idle_options(context)
        except click.UsageError:
            return True
    return False


def context_of_group(words: tuple[str, ...]) -> click.Context:
    """Return the context of the group of the command that these words call, within those of the groups above."""
    context = click.Context(main, info_name="exchange")
    for name in words[:-1]:
        assert isinstance(context.command, click.Group)
        group = context.command.get_command(context, name)
        assert group is not None
        context = click.Context(group, info_name=name, parent=context)
    return context


def is_mode_of(words: tuple[str, ...], param: click.Parameter) -> bool:
    return param.name in {mode.parameter for mode in modes_of(words)}


def is_refused_everywhere(param: click.Parameter) -> bool:
    """True for a hidden option, which the command refuses with the reason why it cannot have it."""
    return isinstance(param, click.Option) and param.hidden and not param.expose_value


PAIRS_IN_MODES = [
    (words, mode, str(param.name))
    for words, command in ALL_COMMANDS.items()
    for mode in modes_of(words)
    if any(param.name == mode.parameter for param in command.params)
    for param in command.get_params(click.Context(command))
    if not is_mode_of(words, param) and "--help" not in param.opts and not is_refused_everywhere(param)
]


@pytest.mark.parametrize(
    ("words", "mode", "parameter"),
    PAIRS_IN_MODES,
    ids=[f"{' '.join(words)} {mode.parameter} {parameter}" for words, mode, parameter in PAIRS_IN_MODES],
)
def test_beside_a_mode_every_option_is_refused_or_changes_something(
    words: tuple[str, ...], mode: Mode, parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ALL_COMMANDS[words]
    by_name = {str(param.name): param for param in command.get_params(click.Context(command))}
    typed = [*sample_of(by_name[mode.parameter]), *sample_of(by_name[parameter])]
    assert is_refused(words, command, typed) == mode.is_idle(parameter)


def test_every_option_that_runs_nothing_is_a_mode() -> None:
    """A new option whose help says that nothing is run belongs into MODES, with the options that it makes idle.

    `--dry-run` makes none idle.
    """
    words_of_modes = re.compile(r"(run|measure|make)s? nothing|Print a file")
    for words, command in ALL_COMMANDS.items():
        for param in command.params:
            is_mode = isinstance(param, click.Option) and words_of_modes.search(param.help or "")
            if is_mode and param.name != "dry_run":
                declared = {mode.parameter for mode in modes_of(words)}
                assert param.name in declared, (words, param.name)


WITH_A_PLAN = {
    words: command
    for words, command in ALL_COMMANDS.items()
    if any(param.name == "dry_run" for param in command.params)
}


def test_a_plan_takes_every_option_of_the_command_that_it_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user adds --dry-run to the command that is about to be started."""
    monkeypatch.chdir(tmp_path)
    assert {words[0] for words in WITH_A_PLAN} == {"compare", "nagle", "sweep", "capacity", "paper"}
    refused = []
    for words, command in WITH_A_PLAN.items():
        for param in command.get_params(click.Context(command)):
            is_of_click = "--help" in param.opts or is_refused_everywhere(param)
            is_another_mode = is_mode_of(words, param)
            if not is_of_click and not is_another_mode and is_refused(words, command, ["--dry-run", *sample_of(param)]):
                refused.append((words, param.name))
    assert refused == []


PLANS = {
    "compare --repeats 2 --no-spark --junit gate.xml --markdown gate.md -v": "zeromq, tcp; 5 rates",
    "nagle --repeats 2 --no-spark": "Nagle off",
    "sweep --rates 1000 --transports zeromq,tcp --yes": "zeromq, tcp; 1 block",
    "capacity --transport tcp --keep-noisy": "tcp: the highest rate",
    "paper supply-chain --quick --export out": "exchange bench supply-chain",
}


@pytest.mark.parametrize("line", PLANS)
def test_a_plan_says_where_the_results_would_be_and_leaves_nothing(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = line.split()
    planned = CliRunner().invoke(main, [*words, "--name", "mine", "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert PLANS[line] in planned.stdout
    assert "the results will be in results/mine" in planned.stdout
    unnamed = CliRunner().invoke(main, [*words, "--dry-run"])
    assert "the results will be in a new folder of results" in unnamed.stdout
    in_one_line = CliRunner().invoke(main, [*(word for word in words if word != "-v"), "-q", "--dry-run"])
    assert len(in_one_line.stdout.splitlines()) == 1
    as_json = CliRunner().invoke(main, [*words, "--json", "--dry-run"])
    assert json.loads(as_json.stdout)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "results" / "mine").mkdir(parents=True)
    refused = CliRunner().invoke(main, [*words, "--name", "mine", "--dry-run"])
    assert (refused.exit_code, "results/mine exists already" in refused.stderr) == (2, True)


def test_modes_and_needs_name_options_that_exist() -> None:
    for words, command in ALL_COMMANDS.items():
        names = {param.name for param in command.get_params(click.Context(command))}
        for mode in modes_of(words):
            if mode.kept is not None and mode.parameter in names:
                assert mode.kept <= names, words
        for need in needs_of(words, command):
            assert need.parameter in names, words


def test_commands_with_needs_and_modes_check_them() -> None:
    for words, command in ALL_COMMANDS.items():
        if modes_of(words) or needs_of(words, command):
            assert isinstance(command, CheckedCommand), words


def test_quiet_and_verbose_contradict_each_other_in_every_command_that_has_both() -> None:
    checked = []
    for words, command in ALL_COMMANDS.items():
        names = {param.name for param in command.get_params(click.Context(command))}
        if {"quiet", "verbose"} <= names:
            checked.append(words)
            assert isinstance(command, CheckedCommand), words
    assert len(checked) > 10
    refused = CliRunner().invoke(main, ["run", "-q", "-v", "--transport", "memory"])
    assert (refused.exit_code, "contradict each other" in refused.stderr) == (2, True)


REFUSED = {
    "faults --list --json": "--json changes nothing beside --list, which lists the faults and runs nothing",
    "faults --list --transports nosuch": "--transports changes nothing beside --list",
    "bench supply-chain --plan --json": "--json changes nothing beside --plan, which prints what will flow",
    "sweep --example --json": "--json changes nothing beside --example",
    "bench de-spsc --seconds 2": "--seconds is how long messages are offered at a rate: give a --rate too",
    "bench perftest --seconds 2": "--seconds is how long messages are offered at a rate: give a --rate too",
    "bench request-reply --rate 100@1s,200@1s --sample 2": "replies are counted as long as a load over time lasts",
    "simulate --rate 500": "--rate is for the times of events: give --events, --trades or --quotes too",
    "simulate --events --trades": "--trades is part of --events",
    "run --live-spark --no-spark": "--no-spark leaves Spark out: give one",
    "run --rate max --pace spin:50": "at --rate max no order is due",
    "run --transport memory --orders 10 --depth": "--depth is for market data: give --subscribers too",
    "run --transport memory --orders 10 --slow-subscriber wait": "--slow-subscriber is for market data",
    "sweep --transports zeromq,tcp --depth --dry-run": "--depth is for market data: give --subscribers too",
    "sweep --transports zeromq,tcp --rates max --pace spin:50 --dry-run": "at --rate max no order is due",
    "capacity --slow-subscriber wait --dry-run": "--slow-subscriber is for market data: give --subscribers too",
    "tape --output t.bin --max-price 500": "--max-price bounds the prices of --price-model wide alone",
    "tape --output t.bin --arrivals fixed": "--arrivals says when orders are due",
}


@pytest.mark.parametrize("line", REFUSED)
def test_an_option_without_effect_is_refused_with_a_sentence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(main, line.split())
    assert refused.exit_code == 2, refused.output
    assert REFUSED[line] in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_exchange_toml_says_is_never_called_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exchange.toml").write_text('[compare]\nname = "mine"\n')
    assert CliRunner().invoke(main, ["compare", "--dry-run"]).exit_code == 0


def test_a_tape_is_replaced_only_if_the_user_says_so(tmp_path: Path) -> None:
    tape = tmp_path / "tape.bin"
    words = ["tape", "--orders", "10", "--output", str(tape)]
    assert CliRunner().invoke(main, words).exit_code == 0
    first = tape.read_bytes()
    refused = CliRunner().invoke(main, [*words, "--seed", "2"])
    assert refused.exit_code == 2
    assert "exists already: choose another name, or replace it with --overwrite" in refused.stderr
    assert tape.read_bytes() == first
    assert CliRunner().invoke(main, [*words, "--seed", "2", "--overwrite"]).exit_code == 0
    assert tape.read_bytes() != first


def test_a_search_for_a_capacity_has_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planned = CliRunner().invoke(main, ["capacity", "--dry-run", "--transport", "tcp", "--probes", "12"])
    assert planned.exit_code == 0, planned.output
    lines = planned.stdout.splitlines()
    assert lines[0].startswith(
        "tcp: the highest rate that holds p99 <= 1ms, from 2,000 orders/s on: up to 12 probes of 2"
    )
    assert lines[1] == "it ends sooner once the interval is 5.0% to either side"
    assert list(tmp_path.iterdir()) == []


def test_quiet_prints_one_line(tmp_path: Path) -> None:
    words = ["--transport", "memory", "--results", str(tmp_path), "-q"]
    run = CliRunner().invoke(main, ["run", "--rate", "max", "--orders", "2000", *words])
    assert len(run.stdout.splitlines()) == 1, run.output
    assert run.stdout.startswith("complete: memory as fast as it goes, seed 1: p50 ")
    bench = CliRunner().invoke(main, ["bench", "de-spsc", "--sizes", "64", "--repeats", "1", *words])
    assert len(bench.stdout.splitlines()) == 1, bench.output
