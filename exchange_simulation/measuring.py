"""The functions of this package: each measures as the command of its name does, prints nothing, and returns an outcome.

Options have the commands' names, with `_` for `-`: `warm_up=1.0` is `--warm-up 1`. A value is a Python value, or the
text that one would type: `rate=8000`, `rate="8k"`, `rate="max"`.

`spark_tables` measures nothing: it opens the tables of many runs, and the market's events, in a Spark session:

with spark_tables("results", events=True) as spark:
    spark.sql("select arm, due_p99_us from arms where transport = 'zeromq'").toPandas()
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ForwardRef, TypedDict, TypeVar, Unpack

import click

from exchange.allowed import BadSetting, between
from exchange.instances import MAX_ENGINES, MAX_GATEWAYS, MAX_SUBSCRIBERS
from exchange.settings import DECLARED, RunSettings
from exchange_simulation.experiments.capacity.capacity import measured_capacity
from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.comparison_arms import comparison_arms, nagle_arms
from exchange_simulation.experiments.sweep.keys import key_of, nearest
from exchange_simulation.experiments.sweep.planning import Description, levels_of, sweep_arms
from exchange_simulation.experiments.trials.plan import TrialPlan
from exchange_simulation.experiments.trials.study import NAGLE, SWEEP
from exchange_simulation.experiments.trials.trial import new_trial
from exchange_simulation.launching.errors import advice_on_missing
from exchange_simulation.launching.files import dated_name, new_run_folder, run_name
from exchange_simulation.launching.hosts.checks import check_hosts
from exchange_simulation.launching.idle_settings import refuse_idle_settings
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.notices import notices_to, say
from exchange_simulation.launching.option_table import TABLE
from exchange_simulation.launching.option_types import USUAL, Count, Listed, Rate, Scheme
from exchange_simulation.launching.record.record import exit_code
from exchange_simulation.launching.run import measured_run
from exchange_simulation.launching.transport_checks import check_transport, check_warm_up
from exchange_simulation.launching.typed_settings import run_settings
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.options import parameters, settings_from_words, suite_settings_from_words
from exchange_simulation.messaging.running import measured_benchmark, measured_suite
from exchange_simulation.outcomes import (
    Benchmark,
    Capacity,
    Comparison,
    FaultMatrix,
    MeasuredOutcome,
    PaperOutcome,
    Run,
    SimulatedMarket,
)
from exchange_simulation.reports.progress import progress_bar
from exchange_simulation.reports.run.page import write_page
from exchange_simulation.reports.run.run_folder import read_run_folder
from transports.base import TransportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from exchange_simulation.messaging.benchmark import BenchmarkDefinition

OPTIONS = {
    row.name.removeprefix("--").replace("-", "_"): row.parameter
    for row in TABLE
    if "run" in row.commands and row.field != "results"
}
"""The options of a run by their names in Python, such as warm_up for --warm-up."""
RANGES = {
    "start": (1, 10**8),
    "seconds": (0.1, 10**6),
    "longest": (0.1, 10**6),
    "precision": (0.005, 1),
    "probes": (3, 1000),
    "pause": (0, 3600),
}
"""The ranges of the arguments of `capacity`, as `exchange capacity` has them."""
OPTIONS_FOR_TERMINALS = {"json", "plan"}
"""Options of benchmarks that only say what the command prints."""
SIMULATION_OPTIONS = {"seed", "prices", "price_model", "max_price", "policy"}
"""The options of a run that `simulate` takes."""
OnProgress = Callable[[str], None]
"""A function that is called with a sentence, about once a second of a run and once a run of a trial."""
Number = int | float | str
SomeOutcome = TypeVar("SomeOutcome", bound=MeasuredOutcome)


class MeasurementError(Exception):
    """Nothing was measured, or not what was asked for."""


class BadOption(MeasurementError, ValueError):
    """An option's name or value; the message says what it takes."""


class CannotMeasure(MeasurementError):
    """The machine lacks something: a broker, a port, room on the disk."""


class NotWhole(MeasurementError):
    """A run is invalid or partial, or a trial lacks runs. `outcome` holds the part that was measured."""

    def __init__(self, outcome: MeasuredOutcome) -> None:
        reasons = outcome.record.get("reasons") or outcome.record.get("caveats") or []
        super().__init__("; ".join([f"{outcome.folder}: {outcome.status}", *map(str, reasons[:3])]))
        self.outcome = outcome


class OptionsOfArms(TypedDict, total=False):
    """The options of `exchange run` that all runs of a comparison share; its help explains them."""

    transport: str
    amqp_client: str
    delivery: str
    nagle: str | Sequence[str]
    topology: str
    network: str
    hosts: str
    secure: str
    insecure: bool
    capture: bool
    rate: Number | None
    arrivals: str
    orders: int | str
    duration: float
    seed: int
    prices: str | tuple[int, int]
    price_model: str
    mix: str
    instruments: int
    window: int | str
    tape: str
    speed: float
    pace: str
    priority: str
    record: bool
    quotes_to: str
    recover: bool
    standby: bool
    journal: str
    opening: str
    sync: str
    pairs: int
    reporters: int
    depth: bool
    slow_subscriber: str
    policy: str
    max_price: int
    work: str | float
    packing: int
    sampling_interval: int | str
    timeout: float
    warm_up: float
    cpus: str | Mapping[str, int]


class RunOptions(OptionsOfArms, total=False):
    """The options of `exchange run`."""

    gateways: int
    engines: int
    subscribers: int


def run(
    *,
    results: str | Path = "results",
    name: str | None = None,
    page: bool = True,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Run:
    """Run the exchange once, and return its figures.

    For example: `run(transport="zeromq", rate="8k", orders=80_000).p50_us`. `exchange run --help` explains the options.

    The run gets a folder in `results`, called `name`, or by its time, transport and rate. `page=False` leaves out its
    page. `on_progress` is called with a sentence about once a second.

    BadOption if an option is wrong; CannotMeasure if the machine lacks something, such as a broker or a free port;
    NotWhole if the run is invalid or partial: the exception's `outcome` has what was measured.
    """
    with _called_from_python(on_progress):
        fields = _fields(options)
        settings = run_settings(**fields)
        refuse_idle_settings(_set_in(fields), [settings])
        check_warm_up(settings)
        check_transport(settings)
        check_hosts(settings)
        folder = new_run_folder(Path(results), name or run_name(settings))
        with ended_as_by_ctrl_c():
            measured = measured_run(folder, settings, progress_bar(settings))
        if page:
            write_page(folder, read_run_folder(folder, measured.spool))
    return _checked(Run(folder, measured.record), is_whole=exit_code(measured.record) == 0)


def compare(
    transports: Sequence[str] | str = ("zeromq", "tcp"),
    rates: Sequence[Number | None] | str = (1000, 4000, 16000),
    *,
    repeats: int = 10,
    seconds: float = 5.0,
    gateways: int | Sequence[int] | str = 1,
    engines: int | Sequence[int] | str = 1,
    subscribers: int | Sequence[int] | str = 0,
    redo_noisy: bool = True,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[OptionsOfArms],
) -> Comparison:
    """Run transports at the same rates, repeated in turns, and judge which is faster.

    For example: `compare(["zeromq", "amqp"], rates=["1k", "8k"]).verdicts`.

    A run offers orders for `seconds`, and each transport at each rate is run `repeats` times. `gateways`, `engines` and
    `subscribers` take one number or several: transports are compared at each number. With `redo_noisy`, a run that
    other work on the machine disturbed is made again. `results`, `name`, `on_progress` and the exceptions are as in
    `run`; NotWhole if a planned run is missing.
    """
    with _called_from_python(on_progress):
        between("seconds", seconds, 0.01, 10**6)
        fields = _fields(options, besides={"transport", "rate"})
        arms = comparison_arms(
            _listed(Scheme(), transports),
            _listed(Rate(), rates),
            seconds,
            fields,
            _numbers(Count(1, MAX_GATEWAYS), gateways),
            _numbers(Count(0, MAX_SUBSCRIBERS), subscribers),
            _numbers(Count(1, MAX_ENGINES), engines),
        )
        refuse_idle_settings(_set_in(fields), [arm.settings for arm in arms])
        plan = TrialPlan(arms=arms, repeats=repeats, seed=int(options.get("seed", RunSettings.seed)))
        trial = new_trial(plan.with_redo(redo_noisy), str(results), name, _say_all)
    return _checked(Comparison(trial.folder, trial.record), is_whole=trial.exit_code == 0)


def capacity(
    slo: str = "p99 <= 1ms",
    *,
    start: Number = 2000,
    seconds: float = 2.0,
    longest: float = 10.0,
    precision: float = 0.05,
    probes: int = 30,
    pause: float = 0.5,
    redo_noisy: bool = True,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Capacity:
    """Find the highest rate at which an objective holds, in orders a second.

    For example: `capacity("p99 <= 1ms", transport="zeromq").orders_per_s`. `slo` is the objective: bounds on
    completion time, separated by commas.

    Each try is a run of `seconds`, and of up to `longest` seconds at low rates; the first is at the rate `start`
    (`--from` of the command), and `pause` seconds lie between two. The search ends once its interval is `precision` of
    the capacity to either side, or after `probes` runs. `results`, `name`, `on_progress` and the exceptions are as in
    `run`; NotWhole if the search was stopped early.
    """
    with _called_from_python(on_progress):
        objective = objective_of(slo)
        first_per_s = Rate().convert(start, None, None)
        if first_per_s is None:
            raise BadOption("start is max; it takes orders a second")
        between("start", first_per_s, *RANGES["start"])
        between("seconds", seconds, *RANGES["seconds"])
        between("longest", longest, *RANGES["longest"])
        between("precision", precision, *RANGES["precision"])
        between("probes", probes, *RANGES["probes"])
        between("pause", pause, *RANGES["pause"])
        fields = _fields(options, besides={"rate", "orders", "duration", "pairs", "reporters"})
        fields |= {"orders_per_s": first_per_s, "orders": None, "duration_s": seconds}
        search = SearchSettings(
            start_per_s=first_per_s,
            precision=precision,
            most_probes=probes,
            pause_s=pause,
            seconds=seconds,
            longest_s=longest,
            redo_noisy=redo_noisy,
        )
        settings = run_settings(**fields)
        refuse_idle_settings(_set_in(fields), [settings])
        folder = Path(results) / (name or dated_name("capacity"))
        measured = measured_capacity(ExchangeRates(settings, objective, search), search, folder)
    return _checked(Capacity(folder, measured.record), is_whole=measured.is_complete)


def sweep(
    vary: Mapping[str, Sequence[Any]],
    *,
    repeats: int = 10,
    pause: float = 0.5,
    redo_noisy: bool = True,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Comparison:
    """Run every combination of the values in `vary`, repeated in turns, and judge which differ.

    For example: `sweep({"transport": ["zeromq", "tcp"], "packing": [1, 10]}, rate="4k")`. The keys of `vary` are
    options of `run`; all runs share the other options.

    Each combination is run `repeats` times, with `pause` seconds between two runs. `redo_noisy` is as in `compare`,
    `results`, `name`, `on_progress` and the exceptions are as in `run`; NotWhole if a planned run is missing.
    """
    with _called_from_python(on_progress):
        varied = {}
        for option, values in vary.items():
            key = key_of(option.replace("_", "-"), "vary")
            varied[key.name] = levels_of(key, list(values), "vary")
        fields = _fields(options, besides=set(vary))
        run_values = {}
        for option in options:
            key = key_of(option.replace("_", "-"), "run")
            run_values[key.name] = fields[_field_of(option)]
        arms = sweep_arms(Description(repeats=repeats, pause_s=pause, vary=varied, run=run_values))
        refuse_idle_settings(_set_in(fields), [arm.settings for arm in arms])
        seed = int(options.get("seed", RunSettings.seed))
        plan = TrialPlan(arms=arms, repeats=repeats, seed=seed, study=SWEEP, pause_s=pause).with_redo(redo_noisy)
        trial = new_trial(plan, str(results), name, _say_all)
    return _checked(Comparison(trial.folder, trial.record), is_whole=trial.exit_code == 0)


def bench(
    benchmark: str,
    *,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Benchmark:
    """Measure one of the papers' messaging benchmarks.

    For example: `bench("throughput", sizes=[8, 64]).rows()`. `exchange bench --help` lists the benchmarks, and
    `exchange bench throughput --help` explains the options of one. An option that a benchmark lacks is a BadOption.

    `results`, `name`, `on_progress` and the exceptions are as in `run`; NotWhole if an answer was wrong, or the
    benchmark ended early.
    """
    with _called_from_python(on_progress):
        if benchmark not in names():
            raise BadOption(f"benchmark is {benchmark!r}{nearest(benchmark, names())}")
        declared = benchmark_of(benchmark)
        settings, _ = settings_from_words(declared, _words_of(options, declared))
        measured = measured_benchmark(declared, settings, str(results), name)
    outcome = Benchmark(measured.folder, measured.record)
    return _checked(outcome, is_whole=outcome.status == "complete")


def nagle(
    transports: Sequence[str] | str = ("tcp", "zeromq", "amqp"),
    rates: Sequence[Number | None] | str = (1000, 2000, 4000, 6000, 8000),
    roles: Sequence[str] | str = (USUAL,),
    *,
    repeats: int = 10,
    seconds: float = 5.0,
    redo_noisy: bool = True,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Comparison:
    """Run each transport at each rate with Nagle's algorithm off and on, and judge what it costs.

    For example: `nagle(["tcp"], rates=["1k"]).verdicts`. `roles` says where the algorithm is on: roles joined by +, as
    "gateway+engine", or "all"; "usual" is the broker alone, or every role if there is no broker.

    `repeats`, `seconds` and `redo_noisy` are as in `compare`, `results`, `name`, `on_progress` and the exceptions are
    as in `run`; NotWhole if a planned run is missing.
    """
    with _called_from_python(on_progress):
        between("seconds", seconds, 0.01, 10**6)
        fields = _fields(options, besides={"transport", "rate", "nagle"})
        levels = _listed(click.STRING, roles)
        arms = nagle_arms(_listed(Scheme(), transports), _listed(Rate(), rates), levels, seconds, fields)
        refuse_idle_settings(_set_in(fields), [arm.settings for arm in arms])
        seed = int(options.get("seed", RunSettings.seed))
        plan = TrialPlan(arms=arms, repeats=repeats, seed=seed, study=NAGLE).with_redo(redo_noisy)
        trial = new_trial(plan, str(results), name, _say_all)
    return _checked(Comparison(trial.folder, trial.record), is_whole=trial.exit_code == 0)


def faults(
    transports: Sequence[str] | str = ("zeromq", "tcp", "amqp"),
    faults: Sequence[str] | str | None = None,
    deliveries: Sequence[str] | str = ("lossy", "confirmed", "durable"),
    *,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
) -> FaultMatrix:
    """Break one thing in each of many runs, and count the orders that are lost.

    For example: `faults(["tcp"], ["engine-kill"]).rows()`. `exchange faults --list` names the faults; None tries all.
    `deliveries` are the guarantees that are tried over a transport with a broker.

    `results`, `name`, `on_progress` and the exceptions are as in `run`; NotWhole if an order is missing from a record,
    a run hung, or no fault could be tried.
    """
    with _called_from_python(on_progress):
        from exchange_simulation.experiments.faults.injection import FAULTS
        from exchange_simulation.experiments.faults.load import FaultLoad
        from exchange_simulation.experiments.faults.matrix import measured_matrix, planned
        from exchange_simulation.reports.faults.table import fails

        chosen = list(FAULTS) if faults is None else _listed(click.STRING, faults)
        guarantees = _listed(click.STRING, deliveries)
        plan = planned(_listed(Scheme(), transports), guarantees, chosen, FaultLoad(), ())
        measured = measured_matrix(plan, str(results), name)
    return _checked(FaultMatrix(measured.folder, measured.record), is_whole=not fails(measured.record))


def simulate(
    instruments: int | str = 1000,
    orders: int | str = "1e8",
    *,
    master: str = "none",
    partitions: int | None = None,
    events: Sequence[str] = (),
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> SimulatedMarket:
    """Match seeded orders of many instruments by the engine alone: no messages are sent.

    For example: `simulate(instruments=100, orders="1e6").orders_per_s`.

    `master` is the address of a Spark master, as local[2], which matches in `partitions` parts; with "none" this
    process matches alone. `events` are tables to write: orders, trades, confirmations, quotes. Options are seed,
    prices, price_model, max_price and policy. `results`, `name`, `on_progress`, BadOption and CannotMeasure are as in
    `run`.
    """
    with _called_from_python(on_progress):
        from exchange_simulation.experiments.simulate.simulate import match_simulation
        from exchange_simulation.experiments.simulate.simulation import Simulation

        unknown = sorted(options.keys() - SIMULATION_OPTIONS)
        if unknown:
            raise BadOption(f"{unknown[0]!r} is no option{nearest(unknown[0], SIMULATION_OPTIONS)}")
        simulation = Simulation(
            instruments=Count().convert(instruments, None, None),
            orders=Count().convert(orders, None, None),
            **_fields(options),
        )
        measured = match_simulation(simulation, master, partitions, str(results), name, events=events)
    return SimulatedMarket(measured.folder, measured.record)


def suite(
    *,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Benchmark:
    """Measure all messaging benchmarks, one after the other.

    For example: `suite(quick=True).rows()`. `exchange bench suite --help` explains the options.

    `results`, `name`, `on_progress` and the exceptions are as in `run`; NotWhole if an answer was wrong, or a benchmark
    ended early.
    """
    with _called_from_python(on_progress):
        settings = suite_settings_from_words(_words_of(options, benchmark=None))
        measured = measured_suite(settings, str(results), name)
    outcome = Benchmark(measured.folder, measured.record)
    return _checked(outcome, is_whole=outcome.status == "complete")


def paper(
    paper: str,
    *,
    quick: bool = False,
    repeats: int | None = None,
    networks: Sequence[str] | str = (),
    transports: Sequence[str] | str = (),
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
) -> PaperOutcome:
    """Measure everything that one paper measures, by its own rules, and test its claims.

    For example: `paper("amqp", quick=True).rows()`. `exchange paper list` lists the papers.

    `repeats` says how often each cell is measured, in place of the paper's own six; a claim needs six. `networks` take
    the place of the paper's own; `transports` are measured beside its own.

    `results`, `name`, `on_progress` and the exceptions are as in `run`; NotWhole if a part is missing, or its answers
    were wrong.
    """
    with _called_from_python(on_progress):
        from exchange_simulation.launching.network.profile import parse
        from exchange_simulation.papers.catalogue import PAPERS
        from exchange_simulation.papers.extent import Extent
        from exchange_simulation.papers.measuring import measure_paper

        if paper not in PAPERS:
            raise BadOption(f"paper is {paper!r}{nearest(paper, PAPERS)}")
        profiles = _listed(click.STRING, networks)
        for profile in profiles:
            parse(profile)
        extent = Extent(quick=quick, repeats=repeats, networks=profiles, transports=_listed(Scheme(), transports))
        measured = measure_paper(PAPERS[paper], extent, results=str(results), name=name)
    return _checked(PaperOutcome(measured.folder, measured.record), is_whole=measured.exit_code == 0)


@contextlib.contextmanager
def spark_tables(
    results: str | Path = "results",
    *,
    tables: str | None = None,
    events: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkSession]:
    """Make tables of the runs below `results`, as `exchange spark ingest` and `summary` do, and yield a Spark session.

    For example: `with spark_tables("results") as spark: spark.sql("select * from arms").show()`.

    Each table is a view of the session, by its name. `events` adds orders, trades, confirmations and quotes of the runs
    that were made with `record=True`. `settings` are Spark's. The session is that of `exchange spark server` if a
    server runs for the tables and there are no settings; else a new one.

    CannotMeasure if Spark is missing or fails, BadOption if there are no runs.
    """
    with contextlib.ExitStack() as stack, _called_from_python(None):
        from exchange_simulation.experiments.pipeline.jobs import session_with_tables
        from spark.dataset.views import create_views
        from spark.errors import SparkError
        from spark.gold.views import create_gold_views

        try:
            opened = session_with_tables(Path(results), tables, events, settings)
            spark, folder = stack.enter_context(opened)
            create_gold_views(spark, create_views(spark, folder))
        except SparkError as error:
            raise CannotMeasure(str(error)) from error
        session = stack.pop_all()
    with session:  # outside of _called_from_python, since errors in the caller's own statements are no errors of ours
        yield spark


def _python_name(parameter: click.Parameter) -> str:
    """Return the name of a command's option as an argument in Python. For example: warm_up"""
    return parameter.opts[0].removeprefix("--").replace("-", "_")


def _words_of(options: Mapping[str, object], benchmark: BenchmarkDefinition | None) -> list[str]:
    """Return the words that set the options on the command line of a benchmark, or of the suite if it is None.

    BadOption if there is no such option.
    """
    known = {_python_name(parameter): parameter for parameter in parameters(benchmark)}
    words: list[str] = []
    for option, value in options.items():
        if option not in known:
            raise BadOption(f"{option!r} is no option{nearest(option, known)}")
        words += _typed(known[option].opts[0], value)
    return words


def _typed(name: str, value: object) -> list[str]:
    """Return the words that give the option of this name a value."""
    if isinstance(value, bool):
        return [name] if value else []
    if isinstance(value, list | tuple):
        return [name, ",".join(map(str, value))]
    return [name, str(value)]


@contextlib.contextmanager
def _called_from_python(on_progress: OnProgress | None) -> Iterator[None]:
    """Turn the commands' errors into exceptions, and the commands' messages into calls of `on_progress`."""
    if threading.current_thread() is not threading.main_thread():
        raise CannotMeasure("only the main thread can measure: Ctrl-C is handled there; start a process instead")
    try:
        with notices_to(on_progress or (lambda _: None)):
            yield
    except (click.UsageError, BadSetting) as error:
        sentence = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise BadOption(sentence) from error
    except click.ClickException as error:
        if error.exit_code == 2:
            raise BadOption(error.format_message()) from error
        raise CannotMeasure(error.format_message()) from error
    except (TransportError, OSError) as error:
        raise CannotMeasure(str(error)) from error
    except ModuleNotFoundError as error:
        raise CannotMeasure(advice_on_missing(error) or str(error)) from error


def _say_all(sentences: Iterable[str]) -> None:
    """Say each sentence on one line. A trial's sentences have line breaks for a terminal."""
    for sentence in sentences:
        say(" ".join(sentence.split()))


def _checked(outcome: SomeOutcome, *, is_whole: bool) -> SomeOutcome:
    """Return the outcome. NotWhole if it is not whole."""
    if not is_whole:
        raise NotWhole(outcome)
    return outcome


def _listed(value_type: click.ParamType[Any], values: Sequence[Any] | str) -> list[Any]:
    """Return the values, converted: from a list, or from text with commas. BadOption for one value that is no list."""
    if isinstance(values, int | float) or not hasattr(values, "__iter__"):
        raise BadOption(f"{values!r} is one value, where a list is needed: give [{values!r}]")
    if isinstance(values, str):
        return Listed(value_type).convert(values, None, None)
    return [value_type.convert(value, None, None) for value in values]


def _numbers(number_type: click.ParamType[Any], values: int | Sequence[int] | str) -> list[int]:
    """Return one number, or several, as a list. BadOption for a number that `number_type` does not take."""
    return _listed(number_type, [values] if isinstance(values, int) else values)


def _field_of(option: str) -> str:
    """Return the field of the settings that the option sets. BadOption if there is no such option."""
    if option not in OPTIONS:
        raise BadOption(f"{option!r} is no option{nearest(option, OPTIONS)}")
    return str(OPTIONS[option].name)


def _fields(options: Mapping[str, Any], besides: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the settings' fields and values of these options.

    BadOption for an unknown name, for a value that the option does not take, and for an option of `besides`, which the
    calling function sets itself.
    """
    refused = sorted(options.keys() & besides)
    if refused:
        raise BadOption(f"{refused[0]} is no option here: it varies, or is said in another way")
    return {_field_of(option): _value(option, value) for option, value in options.items()}


def _set_in(fields: Mapping[str, Any]) -> set[str]:
    """Return the fields with a value; None and False ask for nothing."""
    return {field for field, value in fields.items() if value is not None and value is not False}


def _value(option: str, value: Any) -> Any:
    """Return the value as the settings hold it. BadOption if the option does not take it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        value = tuple(value)
    try:
        return OPTIONS[option].type.convert(value, None, None)
    except click.BadParameter as error:
        raise BadOption(f"{option} is {value!r}: {error.message}") from error


OPTIONS_THAT_VARY: dict[Callable[..., Any], Set[str]] = {
    run: set(),
    compare: {"transport", "rate"},
    nagle: {"transport", "rate", "nagle"},
    sweep: set(),
    capacity: {"rate", "orders", "duration", "pairs", "reporters"},
    simulate: OPTIONS.keys() - SIMULATION_OPTIONS,
}
"""By function: the options of a run that it does not take, since it varies them or names them otherwise."""


def _signature_of(function: Callable[..., Any], besides: Set[str]) -> inspect.Signature:
    """Return the function's signature with every option of a run by its name and default, for help() and editors."""
    signature = inspect.signature(function)
    named_parameters = _named_parameters(signature)
    options = []
    for option, annotation in RunOptions.__annotations__.items():
        if option in besides or option in named_parameters:
            continue
        default = DECLARED[_field_of(option)].default
        text = annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
        options.append(inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=text))
    return signature.replace(parameters=[*named_parameters.values(), *options])


def _named_parameters(signature: inspect.Signature) -> dict[str, inspect.Parameter]:
    """Return the parameters of a signature by their names, without **options."""
    named: dict[str, inspect.Parameter] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            named[name] = parameter
    return named


for _function, _besides in OPTIONS_THAT_VARY.items():
    vars(_function)["__signature__"] = _signature_of(_function, _besides)


def _signature_with(
    function: Callable[..., Any], benchmarks: Sequence[BenchmarkDefinition | None]
) -> inspect.Signature:
    """Return the function's signature with every option of the benchmarks; None stands for the suite.

    An option whose default differs between benchmarks has the default None here: each benchmark then takes its own.
    """
    signature = inspect.signature(function)
    named_parameters = _named_parameters(signature)
    defaults: dict[str, list[Any]] = {}
    for benchmark in benchmarks:
        for parameter in parameters(benchmark):
            option = _python_name(parameter)
            is_for_terminals = option in OPTIONS_FOR_TERMINALS or getattr(parameter, "hidden", False)
            if is_for_terminals or option in named_parameters:
                continue
            has_default = isinstance(parameter.default, bool | int | float | str | tuple | list)
            defaults.setdefault(option, []).append(parameter.default if has_default else None)
    options = []
    for option, values in defaults.items():
        default = values[0] if all(value == values[0] for value in values) else None
        options.append(inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation="Any"))
    return signature.replace(parameters=[*named_parameters.values(), *options])


vars(bench)["__signature__"] = _signature_with(bench, [benchmark_of(name) for name in names()])
vars(suite)["__signature__"] = _signature_with(suite, [None])
