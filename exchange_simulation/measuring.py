"""The functions of this package: each measures as the command of its name does, prints nothing, and returns an outcome.

Options have the commands' names, with `_` for `-`: `warm_up=1.0` is `--warm-up 1`. A value is a Python value, or the
text that one would type: `rate=8000`, `rate="8k"`, `rate="max"`.

`spark_tables` measures nothing: it opens the tables of many runs, and the market's events, in a Spark session:

with spark_tables("results", events=True) as spark:
    spark.sql("select arm, due_p99_us from arms where transport = 'zeromq'").toPandas()
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from exchange.allowed import BadSetting, between
from exchange.settings import RunSettings
from exchange_simulation.experiments.capacity.capacity import measured_capacity
from exchange_simulation.experiments.capacity.exchange_rates import ExchangeRates, objective_of
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.comparison_arms import comparison_arms
from exchange_simulation.experiments.sweep.keys import key_of, nearest
from exchange_simulation.experiments.sweep.planning import Description, levels_of, sweep_arms
from exchange_simulation.experiments.trials.plan import Plan
from exchange_simulation.experiments.trials.study import SWEEP
from exchange_simulation.experiments.trials.trial import new_trial
from exchange_simulation.launching.errors import sentence_of
from exchange_simulation.launching.files import dated_name, new_run_folder, run_name
from exchange_simulation.launching.interrupts import ended_as_by_ctrl_c
from exchange_simulation.launching.notices import heard_by, say
from exchange_simulation.launching.option_types import Listed, Rate, Scheme
from exchange_simulation.launching.options import TABLE, run_settings
from exchange_simulation.launching.record.record import exit_code
from exchange_simulation.launching.run import measure
from exchange_simulation.launching.transport_settings import check_warm_up
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.options import parameters, settings_in_words
from exchange_simulation.messaging.running import measured_benchmark
from exchange_simulation.outcomes import Benchmark, Capacity, Comparison, MeasuredOutcome, Run
from exchange_simulation.reports.progress import progress_bar
from exchange_simulation.reports.run.page import write_page
from transports.base import TransportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {
    row.name.removeprefix("--").replace("-", "_"): row.parameter
    for row in TABLE
    if "run" in row.commands and row.field != "results"
}
"""The options of a run by the names they have here."""
RANGES = {
    "start": (1, 10**8),
    "seconds": (0.1, 10**6),
    "longest": (0.1, 10**6),
    "precision": (0.005, 1),
    "probes": (3, 1000),
    "pause": (0, 3600),
}
"""Numbers that a search takes, as those of `exchange capacity`."""
OnProgress = Callable[[str], None]
"""Called with a sentence, about once a second of a run and once a run of a trial."""
Number = int | float | str
Found = TypeVar("Found", bound=MeasuredOutcome)


class MeasurementError(Exception):
    """Nothing was measured, or not what was asked for."""


class BadOption(MeasurementError, ValueError):
    """An option's name or value; the message says what it takes."""


class CannotMeasure(MeasurementError):
    """The machine lacks something: a broker, a port, room on the disk."""


class NotWhole(MeasurementError):
    """A run is invalid or partial, or a trial lacks runs. `outcome` holds what there is."""

    def __init__(self, outcome: MeasuredOutcome) -> None:
        reasons = outcome.record.get("reasons") or outcome.record.get("caveats") or []
        super().__init__(f"{outcome.folder}: {outcome.status}" + "".join(f"; {reason}" for reason in reasons[:3]))
        self.outcome = outcome


class RunOptions(TypedDict, total=False):
    """The options of `exchange run`; its help explains them."""

    transport: str
    amqp_client: str
    delivery: str
    nagle: str | Sequence[str]
    topology: str
    network: str
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
    window: int | str
    tape: str
    speed: float
    pace: str
    priority: str
    record: bool
    recover: bool
    standby: bool
    journal: str
    sync: str
    pairs: int
    reporters: int
    policy: str
    max_price: int
    packing: int
    sampling_interval: int | str
    timeout: float
    warm_up: float
    cpus: str | Mapping[str, int]


def run(
    *,
    results: str | Path = "results",
    name: str | None = None,
    page: bool = True,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Run:
    """Run the exchange once. NotWhole if the run is invalid or partial."""
    with _asking(on_progress):
        settings = run_settings(**_fields(options))
        check_warm_up(settings)
        folder = new_run_folder(Path(results), name or run_name(settings))
        with ended_as_by_ctrl_c():
            found = Run(folder, measure(folder, settings, progress_bar(settings)))
        if page:
            write_page(folder)
    return _whole(found, not exit_code(dict(found.record)))


def compare(
    transports: Sequence[str] | str = ("zeromq", "tcp"),
    rates: Sequence[Number | None] | str = (1000, 4000, 16000),
    *,
    repeats: int = 10,
    seconds: float = 5.0,
    redo_noisy: bool = True,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> Comparison:
    """Run transports at the same rates, interleaved and repeated, and judge which is faster."""
    with _asking(on_progress):
        between("seconds", seconds, 0.01, 10**6)
        fields = _fields(options, besides={"transport", "rate"})
        arms = comparison_arms(_listed(Scheme(), transports), _listed(Rate(), rates), seconds, fields)
        plan = Plan(arms=arms, repeats=repeats, seed=int(options.get("seed", RunSettings.seed)))
        trial = new_trial(plan.with_redo(redo_noisy), str(results), name, _say_all)
    return _whole(Comparison(trial.folder, trial.record), not trial.exit_code)


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
    """Find the highest rate that holds an objective. `start` is the rate to begin with, `--from` of the command."""
    with _asking(on_progress):
        objective, first_per_s = objective_of(slo), Rate().convert(start, None, None)
        if first_per_s is None:
            raise BadOption("start is max; it takes orders a second")
        numbers = (first_per_s, seconds, longest, precision, probes, pause)
        for (option, range_), value in zip(RANGES.items(), numbers, strict=True):
            between(option, value, *range_)
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
        folder = Path(results) / (name or dated_name("capacity"))
        measured = measured_capacity(ExchangeRates(run_settings(**fields), objective, search), search, folder)
    return _whole(Capacity(folder, measured.record), measured.is_whole)


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
    """Run every combination of values: `sweep({"transport": ["zeromq", "tcp"], "packing": [1, 10]}, rate="4k")`."""
    with _asking(on_progress):
        keys = {option: key_of(option.replace("_", "-"), "vary") for option in vary}
        varied = {keys[option].name: levels_of(keys[option], list(values), "vary") for option, values in vary.items()}
        fields = _fields(options, besides=set(vary))
        run_values = {key_of(option.replace("_", "-"), "run").name: fields[_field_of(option)] for option in options}
        arms = sweep_arms(Description(repeats=repeats, pause_s=pause, vary=varied, run=run_values))
        seed = int(options.get("seed", RunSettings.seed))
        plan = Plan(arms=arms, repeats=repeats, seed=seed, study=SWEEP, pause_s=pause).with_redo(redo_noisy)
        trial = new_trial(plan, str(results), name, _say_all)
    return _whole(Comparison(trial.folder, trial.record), not trial.exit_code)


def bench(
    benchmark: str,
    *,
    results: str | Path = "results",
    name: str | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Benchmark:
    """Measure a messaging benchmark of the papers, with the options of `exchange bench BENCHMARK`, as sizes="8,64"."""
    with _asking(on_progress):
        if benchmark not in names():
            raise BadOption(f"benchmark is {benchmark!r}{nearest(benchmark, names())}")
        declared = benchmark_of(benchmark)
        known = {param.opts[0].removeprefix("--").replace("-", "_"): param for param in parameters(declared)}
        words = [word for option, value in options.items() for word in _typed(option, value, known)]
        settings, _ = settings_in_words(declared, words)
        measured = measured_benchmark(declared, settings, str(results), name)
    found = Benchmark(measured.folder, measured.record)
    return _whole(found, found.status == "complete")


@contextlib.contextmanager
def spark_tables(
    results: str | Path = "results",
    *,
    tables: str | None = None,
    events: bool = False,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkSession]:
    """Make tables of the runs below `results`, as `exchange spark ingest` and `summary` do; each is a view by its name.

    `events` are orders, trades, confirmations and quotes of the runs that were made with `record=True`. `settings` are
    Spark's. CannotMeasure where there is no Spark, BadOption where there are no runs.
    """
    with contextlib.ExitStack() as stack, _asking(None):
        from exchange_simulation.experiments.pipeline.jobs import INGEST_MASTER, ingest_and_summarize
        from spark.dataset.views import create_views
        from spark.errors import SparkError
        from spark.sessions.session import open_session

        try:
            spark = stack.enter_context(open_session(INGEST_MASTER, settings=settings))
            create_views(spark, ingest_and_summarize(spark, Path(results), tables, events))
        except SparkError as error:
            raise CannotMeasure(str(error)) from error
        session = stack.pop_all()
    with session:
        yield spark


def _typed(option: str, value: object, known: Mapping[str, click.Parameter]) -> list[str]:
    """The words that set the option."""
    if option not in known:
        raise BadOption(f"{option!r} is no option{nearest(option, known)}")
    words = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    name = known[option].opts[0]
    return [name] * bool(value) if isinstance(value, bool) else [name, words]


@contextlib.contextmanager
def _asking(on_progress: OnProgress | None) -> Iterator[None]:
    """Turn the commands' errors into exceptions, and what they say into calls of `on_progress`."""
    if threading.current_thread() is not threading.main_thread():
        raise CannotMeasure("only the main thread can measure: Ctrl-C is handled there; start a process instead")
    try:
        with heard_by(on_progress or (lambda _: None)):
            yield
    except (click.UsageError, BadSetting) as error:
        raise BadOption(error.format_message() if isinstance(error, click.ClickException) else str(error)) from error
    except click.ClickException as error:
        raise (BadOption if error.exit_code == 2 else CannotMeasure)(error.format_message()) from error
    except (TransportError, OSError) as error:
        raise CannotMeasure(str(error)) from error
    except ModuleNotFoundError as error:
        raise CannotMeasure(sentence_of(error) or str(error)) from error


def _say_all(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(" ".join(sentence.split()))


def _whole(found: Found, is_whole: bool) -> Found:
    if not is_whole:
        raise NotWhole(found)
    return found


def _listed(of: click.ParamType[Any], values: Sequence[Any] | str) -> list[Any]:
    if isinstance(values, str):
        return Listed(of).convert(values, None, None)
    return [of.convert(value, None, None) for value in values]


def _field_of(option: str) -> str:
    if option not in OPTIONS:
        raise BadOption(f"{option!r} is no option{nearest(option, OPTIONS)}")
    return str(OPTIONS[option].name)


def _fields(options: Mapping[str, Any], besides: Set[str] = frozenset()) -> dict[str, Any]:
    """The settings' fields and values of these options. BadOption for a name or value that is none, or of `besides`."""
    if twice := sorted(options.keys() & besides):
        raise BadOption(f"{twice[0]} is no option here: it varies, or is said in another way")
    return {_field_of(option): _value(option, value) for option, value in options.items()}


def _value(option: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    written = tuple(value) if isinstance(value, list) else value
    try:
        return OPTIONS[option].type.convert(written, None, None)
    except click.BadParameter as error:
        raise BadOption(f"{option} is {value!r}: {error.message}") from error
