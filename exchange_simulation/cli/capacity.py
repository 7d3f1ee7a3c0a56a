"""`exchange capacity`: the highest offered load that holds an objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from exchange.instances import MAX_ENGINES, MAX_GATEWAYS, MAX_SUBSCRIBERS
from exchange.percentiles import LABELS
from exchange_simulation.cli.command import Command, configured_values
from exchange_simulation.cli.participant_options import numbers_option
from exchange_simulation.cli.trial_options import redo_option, typed_options
from exchange_simulation.experiments.sweep.keys import shared_options
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.idle_settings import refuse_idle_settings
from exchange_simulation.launching.option_types import Number, Scheme, Seconds
from exchange_simulation.launching.options import json_option, results_option
from exchange_simulation.launching.setting_warnings import warn_of_spinning
from exchange_simulation.launching.typed_settings import run_settings, without_default_rate

if TYPE_CHECKING:
    from exchange_simulation.experiments.capacity.planned_search import PlannedSearch
    from exchange_simulation.experiments.capacity.search import SearchSettings
    from exchange_simulation.experiments.capacity.searched_load import SearchedLoad

OPTIONS_OF_BENCHMARKS = {
    "bench",
    "slo",
    "start_per_s",
    "precision",
    "most_probes",
    "pause_s",
    "redo_noisy",
    "results",
    "name",
    "dry_run",
    "as_json",
}
"""Parameters whose options may be given beside --bench."""


@click.command(cls=Command)
@click.option(
    "--transport",
    type=Scheme(),
    default="zeromq",
    show_default=True,
    metavar="SCHEME",
    help="The transport between the components.",
)
@click.option(
    "--slo",
    default="p99 <= 1ms",
    show_default=True,
    metavar="OBJECTIVE",
    help=f"What must hold: {', '.join(LABELS.values())}, mean or max of completion from due, or of lag; several with "
    "commas.",
)
@click.option(
    "--bench",
    metavar="'NAME OPTIONS'",
    help="Search a benchmark's highest rate, or supply-chain's scale, not the exchange's.",
)
@click.option(
    "--from", "start_per_s", type=Number(1, 10**8), default=2000.0, show_default=True, help="The rate to begin with."
)
@click.option(
    "--seconds",
    "--duration",
    type=Seconds(0.1, 10**6),
    default=2.0,
    show_default=True,
    help="How long a probe offers orders; longer at a low rate, so that there are enough.",
)
@click.option(
    "--longest", "longest_s", type=Seconds(0.1, 10**6), default=10.0, show_default=True, help="Longest probe, seconds."
)
@click.option(
    "--precision",
    type=Number(0.005, 1.0),
    default=0.05,
    show_default=True,
    help="The search ends once its interval is this share of the capacity to either side ...",
)
@click.option(
    "--probes",
    "most_probes",
    type=click.IntRange(3, 1000),
    default=30,
    show_default=True,
    help="... or after this many probes.",
)
@click.option(
    "--pause", "pause_s", type=Seconds(0, 3600), default=0.5, show_default=True, help="Seconds between two runs."
)
@numbers_option(
    "--gateways",
    "numbers_of_gateways",
    1,
    MAX_GATEWAYS,
    "Numbers of gateways at one engine, which share the rate; each has a search of its own.",
)
@numbers_option(
    "--engines",
    "numbers_of_engines",
    1,
    MAX_ENGINES,
    "Numbers of engines, among which --instruments are shared out; each has a search of its own.",
)
@numbers_option(
    "--subscribers",
    "numbers_of_subscribers",
    0,
    MAX_SUBSCRIBERS,
    "Numbers of subscribers to market data; each has a search of its own.",
)
@redo_option
@results_option
@click.option("--name", help="The folder in DIR.  [default: time and command]")
@click.option("--dry-run", is_flag=True, help="Print what would be searched and how long it takes; run nothing.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    /,
    slo: str,
    bench: str | None,
    results: str,
    name: str | None,
    dry_run: bool,
    as_json: bool,
    numbers_of_gateways: list[int],
    numbers_of_engines: list[int],
    numbers_of_subscribers: list[int],
    **given: Any,
) -> None:
    """Find the highest rate that holds an objective, with its interval.

    It makes one run after another, each at one rate: these are probes, which hold or fail. The capacity is the rate at
    which half of the probes hold.

    Example: exchange capacity --transport zeromq --slo "p99 <= 1ms, lag p99 <= 500us"

    Example: exchange capacity --transport amqp --gateways 1,4,16 --subscribers 0,8
    """
    from exchange_simulation.experiments.capacity.capacity import capacity
    from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of
    from exchange_simulation.experiments.capacity.planned_search import PlannedSearch
    from exchange_simulation.experiments.capacity.search import SearchSettings
    from exchange_simulation.launching.files import dated_name, planned_place

    search = SearchSettings(**{field.name: given.pop(field.name) for field in fields(SearchSettings)})
    loads: dict[str, SearchedLoad] = {}
    if bench is not None:
        loads[""], search = _load_of_benchmark(context, bench, slo, search)
    else:
        objective = objective_of(slo)
        numbers = {
            "gateways": numbers_of_gateways,
            "engines": numbers_of_engines,
            "subscribers": numbers_of_subscribers,
        }
        all_settings = []
        for participants in _combinations(numbers, as_json):
            settings = run_settings(
                **without_default_rate(given),
                **participants,
                orders_per_s=search.start_per_s,
                orders=None,
                duration_s=search.seconds,
            )
            all_settings.append(settings)
            loads[_ending(participants, numbers)] = ExchangeRates(settings, objective, search)
        refuse_idle_settings(typed_options(context), all_settings)
        warn_of_spinning(*all_settings)
    if dry_run:
        for ending, load in loads.items():
            place = planned_place(Path(results), f"{name}{ending}" if name else None)
            _show_plan(PlannedSearch.of(load, search), place, as_json)
        return
    folder_name = name or dated_name("capacity")
    for ending, load in loads.items():
        exit_code = capacity(load, search, Path(results) / f"{folder_name}{ending}", as_json)
        if exit_code:
            raise SystemExit(exit_code)
    raise SystemExit(0)


def _show_plan(planned: PlannedSearch, place: str, as_json: bool) -> None:
    """Print what would be searched; `place` is the sentence on the folder of the results."""
    from exchange_simulation.launching.notices import prints_one_line
    from exchange_simulation.reports.exports import print_json

    if as_json:
        print_json(planned.as_dict())
    elif prints_one_line():
        click.echo(planned.in_one_line)
    else:
        for line in [*planned.lines(), place]:
            click.echo(line)


def _combinations(numbers: Mapping[str, list[int]], as_json: bool) -> list[dict[str, int]]:
    """Return every combination of the participants' numbers, by option.

    UsageError for an option without a number, for a number that is there twice, and for several as one JSON record.
    """
    for option, numbers_of_option in numbers.items():
        if not numbers_of_option:
            raise click.UsageError(f"--{option} is empty: give one number or more, each once, as 1,4,16")
        for number in numbers_of_option:
            if numbers_of_option.count(number) > 1:
                raise click.UsageError(f"--{option} has {number} twice: give each number once, as 1,4,16")
        if as_json and len(numbers_of_option) > 1:
            raise click.UsageError(f"--json prints the record of one search: give one number of --{option}")
    return [dict(zip(numbers, combination, strict=True)) for combination in product(*numbers.values())]


def _ending(participants: Mapping[str, int], numbers: Mapping[str, list[int]]) -> str:
    """Return the end of a search's folder: the participants of which there are several numbers.

    For example: -gateways-4-subscribers-8
    """
    ending = ""
    for option, number in participants.items():
        if len(numbers[option]) > 1:
            ending += f"-{option}-{number}"
    return ending


def _load_of_benchmark(
    context: click.Context, text: str, slo: str, search: SearchSettings
) -> tuple[SearchedLoad, SearchSettings]:
    """Return the benchmark as a load, and a search that begins at the rate of --from, or at the load's own rate.

    UserError for an option that is only of runs of the exchange.
    """
    from exchange_simulation.experiments.capacity.exchange_rates import objective_of
    from exchange_simulation.messaging.turned_up import load_of

    on_command_line = typed_options(context)
    for parameter in context.command.params:
        if parameter.name in on_command_line and parameter.name not in OPTIONS_OF_BENCHMARKS:
            raise UserError(f"{parameter.opts[0]} is of runs of the exchange: give a benchmark its options in --bench")
    given = {**configured_values(context), **on_command_line}
    start_per_s = search.start_per_s if "start_per_s" in given else None
    objective = objective_of(slo) if "slo" in given else None
    load = load_of(text, start_per_s, objective)
    return load, replace(search, start_per_s=load.begins_at)


command.params += shared_options(besides=("orders", "duration", "pairs", "reporters"))
