"""A run's folder: run.json is written last, so it marks a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from exchange.json_records import Record, section
from exchange.record_kinds import RunRecord
from exchange.settings import RunSettings
from exchange.unique import unique
from exchange_simulation.cli.results.difference import Parts, differing, print_lines, print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder
from exchange_simulation.cli.results.rerun import refuse_journal_elsewhere, settings_of_record, warn_of_differences
from exchange_simulation.launching.metrics import COMPARISON_METRICS, NAGLE_METRICS, Metric, number_at, orders_measured
from exchange_simulation.launching.record.begun import settings_under_way
from exchange_simulation.launching.record.noise import noise_words
from exchange_simulation.reports.formats.few_orders import has_enough_orders
from exchange_simulation.reports.formats.numbers import number_text
from exchange_simulation.reports.formats.settings import condition_in_words, setting_text
from exchange_simulation.reports.tables import key_column, plain_table, terminal, words_column
from transports.registry import scheme_of

CONDITIONS: Parts = {
    "settings": None,
    "affinity": None,
    "host": None,
    "versions": None,
    "network": ("mechanism",),
    "broker": ("product", "version", "erlang"),
    "noise": ("throttled_s",),
}
LAG = tuple(
    Metric(name=f"lag_{name}_us", title=f"lag of the gateway, {name}", unit="us", read=number_at("lag_us", name))
    for name in ("p50", "p99", "max")
)
PACKETS = tuple(metric for metric in NAGLE_METRICS if metric.name == "packets_per_order")


class RunKind(FolderKind):
    name = "run"
    file = "run.json"
    record = RunRecord
    marks = (file, "spool", "begun.json", "orders.bin", "answers.bin", "gateway.log", "engine.log", "reporter.log")
    page = "report.html"
    reported_by = "exchange_simulation.reports.run.page:report_run"
    unfinished = "the run goes on, or was killed: then exchange results repair {folder} writes it"
    parts = CONDITIONS
    conditions_title = "conditions that differ"
    no_conditions = "settings, host and versions are the same"
    caveat = "One run each carries no verdict: another run of the same settings differs, too. Use exchange compare."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        settings = record.get("settings") or {}
        transport = settings.get("transport")
        has_rate = "orders_per_s" in settings
        return self.row_with(
            folder,
            record,
            transports=(scheme_of(transport),) if transport else (),
            orders_per_s=(_offered_orders_per_s(settings),) if has_rate else (),
            p50_us=number_at("completion_us", "due", "p50")(record),
            p99_us=number_at("completion_us", "due", "p99")(record),
            orders_measured=orders_measured(record),
        )

    def is_running(self, folder: Path) -> bool:
        return settings_under_way(folder) is not None

    def show(self, folder: Path, record: Record) -> None:  # noqa: ARG002
        """Print the record as `exchange run` did, then the conditions of the run."""
        from exchange_simulation.reports.run.terminal import show_record

        show_record(record)
        show_conditions(record)

    def head(self, record: Record) -> Record:
        return {
            "name": record["name"],
            "status": record["status"],
            "reasons": record["reasons"],
            "started_at": record.get("started_at"),
            "load_before": section(record, "host").get("load_before"),
            "orders_measured": orders_measured(record),
        }

    def head_lines(self, head: Record) -> Iterator[str]:
        load = head["load_before"]
        load_words = f", load before {load[0]:.2f}" if load else ""
        yield f"{head['status']}, started {head['started_at'] or 'at an unknown time'}{load_words}"
        yield from head["reasons"]

    def findings(self, first: Record, second: Record) -> Record:
        """Counts, streams and figures. A value that was not measured is absent; `ratio` is second over first."""
        return {
            "counts": list(differing(section(first, "counts"), section(second, "counts"))),
            "same_streams": {name: _is_same_stream(first, second, name) for name in ("orders", "answers")},
            "figures": list(_figures(first, second)),
        }

    def show_findings(self, difference: Record) -> None:
        if difference["counts"]:
            print_rows("counts that differ", difference["counts"], lambda _, value: f"{value:,}")
        print_lines(_streams(difference))
        figures = []
        for figure in difference["figures"]:
            if _has_enough_orders(difference, figure):
                figures.append({**figure, "field": _title(figure)})
        print_rows("figures", figures, lambda _, value: number_text(value), with_ratio=True)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        """Run again with the recorded settings. UserError if the record lacks a setting that a rerun needs."""
        from exchange_simulation.cli.run import run

        record = self.read(folder)
        settings = settings_of_record(folder / self.file, record.get("settings") or {})
        refuse_journal_elsewhere(folder, settings)
        warn_of_differences(record, settings)
        return run(settings, results, name, with_spark=with_spark or False, with_page=True, as_json=as_json)


def _offered_orders_per_s(settings: Record) -> float | None:
    """The offered rate of all pairs together; None means as fast as possible."""
    orders_per_s = settings["orders_per_s"]
    if orders_per_s is None:
        return None
    return float(orders_per_s * settings.get("pairs", 1))


SHOWN_ELSEWHERE = {"transport", "orders_per_s", "orders", "seed", "url", "network"}
"""Settings that are already shown by the headline, the counts, or a line of their own."""


def show_conditions(record: Record) -> None:
    """Print under which conditions a run was made."""
    grid = plain_table(key_column(), words_column(), header=False)
    for title, sentence in _lines(record):
        grid.add_row(title, sentence)
    terminal().print(grid)


def _lines(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (title, words) for each part that the record holds."""
    if record.get("started_at"):
        yield "started", record["started_at"]
    settings = record.get("settings") or {}
    if "transport" in settings:
        yield "settings", _settings_unlike_default(settings)
    else:
        yield "settings", "not known"
    if record.get("host"):
        yield "host", _words(record["host"])
    if record.get("versions"):
        yield "versions", _words(record["versions"])
    if record.get("sockets"):
        yield "TCP_NODELAY", ", ".join(_nodelay(record["sockets"]))
    yield "network", _network(record)
    noise = noise_words(record)
    if noise:
        yield "noise", noise


def _settings_unlike_default(settings: Mapping[str, Any]) -> str:
    """Return the settings that differ from their defaults, in words."""
    defaults = RunSettings().as_dict()
    unlike = {}
    for name, value in settings.items():
        is_default = name in defaults and value == defaults[name]
        if name not in SHOWN_ELSEWHERE and not is_default:
            unlike[name] = value
    return _words(unlike) if unlike else "the defaults"


def _words(facts: Mapping[str, Any]) -> str:
    return ", ".join(" ".join(condition_in_words(name, value)) for name, value in facts.items())


def _nodelay(sockets: list[dict[str, Any]]) -> Iterator[str]:
    """Yield for each component whether TCP_NODELAY was on, as its sockets were read back."""
    for component in unique(socket["component"] for socket in sockets):
        values = {socket["tcp_nodelay"] for socket in sockets if socket["component"] == component}
        if values == {True}:
            yield f"{component} on"
        elif values == {False}:
            yield f"{component} off"
        else:
            yield f"{component} on and off"


def _network(record: Record) -> str:
    """The network that joined the components, and how it was emulated."""
    network = record.get("network")
    if not network:
        profile = (record.get("settings") or {}).get("network")
        return "none emulated" if profile in {None, "local"} else f"{profile}, which left no facts"
    facts = []
    for name in ("mechanism", "rate_bit_per_s", "delay_us"):
        if network.get(name) is not None:
            facts.append(f"{name} {setting_text(network[name])}")
    return f"{network['profile']}: {', '.join(facts)}"


def _is_same_stream(first: Record, second: Record, name: str) -> bool | None:
    """True if the checksums agree; None if either is unknown."""
    first_sum = section(first, "checksums").get(name)
    second_sum = section(second, "checksums").get(name)
    if first_sum is None or second_sum is None:
        return None
    return bool(first_sum == second_sum)


def _figures(first: Record, second: Record) -> Iterator[Record]:
    """Yield each metric that was measured in a record; `ratio` is the second value over the first."""
    for metric in (*COMPARISON_METRICS, *LAG, *PACKETS):
        first_value = metric.read(first)
        second_value = metric.read(second)
        if first_value is None and second_value is None:
            continue
        row: Record = {"metric": metric.name, "title": metric.title, "unit": metric.unit}
        if first_value is not None:
            row["first"] = first_value
        if second_value is not None:
            row["second"] = second_value
        if first_value and second_value is not None and first_value > 0:
            row["ratio"] = second_value / first_value
        yield row


def _streams(difference: Record) -> str:
    words = {True: "the same", False: "different", None: "not known of both"}
    streams = [f"{name} are {words[same]}" for name, same in difference["same_streams"].items()]
    counts = "" if difference["counts"] else "all counts are the same; "
    return f"{counts}{', '.join(streams)} (by their checksums)"


def _has_enough_orders(difference: Record, figure: Record) -> bool:
    """Return whether both runs have enough orders for the figure; True if it is no percentile."""
    _, _, percentile = figure["metric"].removesuffix("_us").rpartition("_")
    return all(has_enough_orders(percentile, difference[side]["orders_measured"]) for side in ("first", "second"))


def _title(figure: Record) -> str:
    """The figure's title with its unit, unless the title begins with the unit."""
    title = figure["title"]
    unit = figure["unit"]
    return title if title.startswith(unit) else f"{title}, {unit}"
