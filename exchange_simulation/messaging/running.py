"""`exchange bench NAME` and `exchange bench suite`: measure in a new folder; then the record, the table, the page."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from exchange.json_records import Record
from exchange.unique import unique
from exchange.words import printable
from exchange_simulation.launching.errors import UserError, sentence
from exchange_simulation.launching.files import dated_name
from exchange_simulation.launching.interrupts import interruption_noted
from exchange_simulation.launching.launch.brokers import Brokers
from exchange_simulation.launching.notices import prints_one_line
from exchange_simulation.launching.record.reading import damage_named
from exchange_simulation.launching.transport_checks import check_server, check_settings_fit_a_transport
from exchange_simulation.messaging.benchmark import BenchmarkDefinition
from exchange_simulation.messaging.benchmark_record import (
    ERRORS_OF_A_BENCHMARK,
    INTERRUPTED,
    OnMeasured,
    measure_benchmark,
)
from exchange_simulation.messaging.benchmarks import benchmark_of
from exchange_simulation.messaging.measurements import lacks_intervals
from exchange_simulation.messaging.measuring import COMPLETE
from exchange_simulation.messaging.options import settings_again
from exchange_simulation.messaging.point import Settings
from exchange_simulation.messaging.report import PAGE, is_long, line_of, show, write_page
from exchange_simulation.messaging.results import ResultsFolder, read
from exchange_simulation.messaging.suite import SUITE, check_that_one_can_be_measured, jobs_of_suite, measure_suite
from exchange_simulation.messaging.verdicts import with_verdicts
from exchange_simulation.reports.exports import print_json
from exchange_simulation.reports.report import page_unless_missing, place_line


class BenchmarkOutput(NamedTuple):
    """The folder of a benchmark, and the form in which its command shows the outcome."""

    results: str
    name: str | None
    as_json: bool


class MeasuredBenchmark(NamedTuple):
    """A benchmark that was measured: its folder with the record, and with the page if it could be drawn."""

    folder: Path
    record: Record


def run_benchmark(benchmark: BenchmarkDefinition, settings: Settings, output: BenchmarkOutput) -> int:
    """Measure one benchmark and show it; returns the exit code: 0 if every answer was right."""
    return _show(measured_benchmark(benchmark, settings, output.results, output.name), output)


def measured_benchmark(
    benchmark: BenchmarkDefinition, settings: Settings, results: str, name: str | None
) -> MeasuredBenchmark:
    """Measure one benchmark in a new folder of `results`."""
    check_settings_fit_a_transport(settings, settings["transport"])
    folder = ResultsFolder(Path(results), name or dated_name(benchmark.name))
    return _measured(partial(measure_benchmark, benchmark, settings), folder)


def resumed_benchmark(benchmark: BenchmarkDefinition, settings: Settings, folder: Path) -> MeasuredBenchmark:
    """Measure what an interrupted benchmark lacks, in its own folder. Unusable if its record is damaged."""
    check_settings_fit_a_transport(settings, settings["transport"])
    measure_all = partial(measure_benchmark, benchmark, settings, earlier=read(folder))
    return _measured(measure_all, ResultsFolder(folder.parent, folder.name, goes_on=True))


def run_suite(settings: Settings, output: BenchmarkOutput) -> int:
    """Measure every benchmark over those of the user's transports that support it; returns the exit code."""
    return _show(measured_suite(settings, output.results, output.name), output)


def measured_suite(settings: Settings, results: str, name: str | None) -> MeasuredBenchmark:
    """Measure every benchmark over those of the user's transports that support it, in a new folder of `results`.

    UserError if no benchmark supports them, if the server of one that the user named is missing, or for settings with
    which none can be measured.
    """
    for transport in settings.get("transport") or ():
        check_server(transport)
    jobs = list(jobs_of_suite(settings))
    if not jobs:
        raise UserError(f"no benchmark can be measured over {', '.join(settings['transport'])}")
    transports = unique(transport for job in jobs for transport in job.settings["transport"])
    check_settings_fit_a_transport(settings, transports)
    check_that_one_can_be_measured(jobs)
    folder = ResultsFolder(Path(results), name or dated_name(SUITE))
    return _measured(partial(measure_suite, jobs, settings), folder)


def run_again(folder: Path, record: Record, output: BenchmarkOutput) -> int:
    """Repeat the measurements of a folder's record; returns the exit code. Unusable if its settings are damaged."""
    benchmark = None if "parts" in record else benchmark_of(record["benchmark"])
    with damage_named(folder):
        settings = settings_again(record, benchmark)
    if benchmark is None:
        return run_suite(settings, output)
    return run_benchmark(benchmark, settings, output)


def _measured(
    measure_all: Callable[[str, Brokers, OnMeasured], Record], results_folder: ResultsFolder
) -> MeasuredBenchmark:
    """Measure; write the record as it grows, then the page. UserError or ClickException if nothing was measured."""
    folder = results_folder.folder
    with interruption_noted(), results_folder:
        try:
            with Brokers() as brokers, brokers.broker_end_as_cannot_start():
                record = measure_all(folder.name, brokers, results_folder.write_now_and_then)
        except KeyboardInterrupt:
            raise click.ClickException(INTERRUPTED) from None
        except click.ClickException:
            raise
        except ERRORS_OF_A_BENCHMARK as error:
            if isinstance(error, OSError):
                raise click.ClickException(sentence(error)) from error
            raise UserError(sentence(error)) from error
        record = with_verdicts(record)
        results_folder.write(record)
        page_unless_missing(lambda: write_page(folder, record))
        return MeasuredBenchmark(folder, record)


def _missing_figures(record: Record) -> list[str]:
    """Return the names of figures that the record lacks since scipy is not installed."""
    if not lacks_intervals(record):
        return []
    try:
        importlib.import_module("scipy")
    except ModuleNotFoundError:
        return ["intervals of medians"]
    return []


def _show(measured: MeasuredBenchmark, output: BenchmarkOutput) -> int:
    """Print the record as a table, or as JSON; returns the exit code."""
    page = measured.folder / PAGE
    missing = _missing_figures(measured.record)
    place = place_line(measured.folder, page if page.exists() else None, missing)
    if output.as_json:
        print_json(measured.record)
        if missing or not page.exists():
            click.echo(place, err=True)
    elif prints_one_line():
        click.echo(line_of(measured.record))
    else:
        show(measured.record, whole=False)
        if is_long(measured.record):
            click.echo(printable(f"all tables: exchange report {measured.folder}"))
        click.echo(place)
    return 0 if measured.record["status"] == COMPLETE else 1
