"""A run's folder: run.json is written last, so it marks a finished run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.results import run_difference
from cli.results.kind import Kind, Row
from cli.results.rerun import settings_of_record, warn_of_differences
from exchange.json_records import Record, RunRecord
from exchange.settings import RunSettings
from reports.formats import condition, plain
from reports.tables import key, plain_table, terminal, words
from runs.metrics import completion_us, orders_measured
from runs.record.noise import noise_words
from transports.registry import scheme_of


class Run(Kind):
    name, file, record = "run", "run.json", RunRecord
    marks = (file, "spool", "begun.json", "orders.bin", "answers.bin", "gateway.log", "engine.log", "reporter.log")
    page = "report.html"
    unfinished = "the run goes on, or was killed: then exchange results repair {folder} writes it"

    def row_of(self, folder: Path, record: Record) -> Row:
        settings = record.get("settings") or {}
        transport = settings.get("transport")
        return Row(
            name=folder.name,
            what="run",
            status=record["status"],
            started_at=record.get("started_at"),
            transports=(scheme_of(transport),) if transport else (),
            orders_per_s=(_offered_per_s(settings),) if "orders_per_s" in settings else (),
            p50_us=completion_us("due", "p50")(record),
            p99_us=completion_us("due", "p99")(record),
            orders_measured=orders_measured(record),
        )

    def show(self, folder: Path, record: Record) -> None:  # noqa: ARG002
        """Print the record as `exchange run` did, then the conditions of the run."""
        from reports.run.terminal import show_record

        show_record(record)
        show_conditions(record)

    def differ(self, first: Record, second: Record) -> Record:
        return run_difference.differ(first, second)

    def show_difference(self, difference: Record) -> None:
        run_difference.show(difference)

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool, as_json: bool) -> int:
        """Run again with the recorded settings. UserError if the record lacks a setting that a rerun needs."""
        from cli.run import run

        record = self.read(folder)
        settings = settings_of_record(folder / self.file, record.get("settings") or {})
        warn_of_differences(record, settings)
        return run(settings, results, name, with_spark=with_spark, with_page=True, as_json=as_json)


def _offered_per_s(settings: Record) -> float | None:
    """The offered rate of all pairs together; None means as fast as possible."""
    each = settings["orders_per_s"]
    return None if each is None else float(each * settings.get("pairs", 1))


ELSEWHERE = {"transport", "orders_per_s", "orders", "seed", "url", "network"}
"""Settings that are already shown by the headline, the counts, or a line of their own."""


def show_conditions(record: Record) -> None:
    """Print under which conditions a run was made."""
    grid = plain_table(key(), words(), header=False)
    for title, sentence in _lines(record):
        grid.add_row(title, sentence)
    terminal().print(grid)


def _lines(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (title, words) for each part that the record holds."""
    if record.get("started_at"):
        yield "started", record["started_at"]
    settings = record.get("settings") or {}
    yield "settings", _unlike_default(settings) if "transport" in settings else "not known"
    if host := record.get("host"):
        yield "host", _words(host)
    if versions := record.get("versions"):
        yield "versions", _words(versions)
    if sockets := record.get("sockets"):
        yield "TCP_NODELAY", ", ".join(_nodelay(sockets))
    yield "network", _network(record)
    if noise := noise_words(record):
        yield "noise", noise


def _unlike_default(settings: Mapping[str, Any]) -> str:
    default = RunSettings().as_dict()
    own = {n: v for n, v in settings.items() if n not in ELSEWHERE and (n not in default or v != default[n])}
    return _words(own) if own else "the defaults"


def _words(facts: Mapping[str, Any]) -> str:
    return ", ".join(" ".join(condition(name, value)) for name, value in facts.items())


def _nodelay(sockets: list[dict[str, Any]]) -> Iterator[str]:
    """Whether TCP_NODELAY was on, as each component's sockets were read back."""
    for component in dict.fromkeys(socket["component"] for socket in sockets):
        found = {socket["tcp_nodelay"] for socket in sockets if socket["component"] == component}
        yield f"{component} {'on' if found == {True} else 'off' if found == {False} else 'on and off'}"


def _network(record: Record) -> str:
    """The network that joined the components, and how it was emulated."""
    network = record.get("network")
    if not network:
        profile = (record.get("settings") or {}).get("network")
        return "none emulated" if profile in {None, "local"} else f"{profile}, which left no facts"
    facts = {name: network.get(name) for name in ("mechanism", "rate_bit_per_s", "delay_us")}
    return f"{network['profile']}: {', '.join(f'{n} {plain(v)}' for n, v in facts.items() if v is not None)}"
