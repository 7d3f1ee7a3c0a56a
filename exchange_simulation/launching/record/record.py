"""run.json: the public record of a run, made from the results of its components. docs/run-record.md documents it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from exchange.confirms import with_confirm_figures
from exchange.json_records import SCHEMA
from exchange.measurements import LogBuckets
from exchange.results import ReporterResult, SubscriberResult
from exchange.scheduled_load import scheduled_load_of_record
from exchange_simulation.launching.files import write_json
from exchange_simulation.launching.record.backlog import backlog_of
from exchange_simulation.launching.record.engines import engines_field
from exchange_simulation.launching.record.gateways import gateways_of
from exchange_simulation.launching.record.market_data import market_data_field
from exchange_simulation.launching.record.outcome import (
    RunOutcome,
    checksums,
    components,
    counts,
    duration_s,
    mean_message_size,
    rates,
    recovery_facts,
)
from exchange_simulation.launching.record.reading import (
    Spool,
    completion_by_pair,
    merged_by_clock,
    timed_orders_by_pair,
    traffic_by_pair,
)
from exchange_simulation.launching.record.sampled import sampled_field
from exchange_simulation.launching.record.status import judge


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The launcher's knowledge of a run. An unknown field is None; unknown settings are left out."""

    name: str
    url: str | None
    settings: dict[str, Any]
    host: dict[str, Any]
    versions: dict[str, str]
    started_at: str


def write_record(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Write run.json, the last file that a run itself writes; return its content."""
    write_json(folder / "run.json", record)
    return record


def exit_code(record: dict[str, Any]) -> int:
    """Return the exit code of a run: 0 for complete and saturated, 1 for invalid and partial."""
    return 0 if record["status"] in {"complete", "saturated"} else 1


def make_record(spool: Spool, conditions: Conditions, outcome: RunOutcome) -> dict[str, Any]:
    """Return run.json's content: sums over all pairs, and the figures of each pair. `spool` has the run's records."""
    settings = conditions.settings
    if outcome.lacks_a_gateway:
        outcome = replace(outcome, traffic=traffic_by_pair(spool))
    if outcome.restarts:
        outcome = replace(outcome, timed=timed_orders_by_pair(spool))
    warm_up_s = settings.get("warm_up_s")
    offered_orders_per_s = _offered_orders_per_s(settings)
    recorded_times = completion_by_pair(spool, warm_up_s or 0.0)
    times_by_gateway = {number: recorded_times.get(number, {}) for number in outcome.lineup.gateway_numbers}
    lag_p99_us = {}
    for number, times in times_by_gateway.items():
        if "lag" in times:
            lag_p99_us[number] = times["lag"].percentile_ns(99.0) / 1e3
    status, reasons = judge(outcome, offered_orders_per_s, lag_p99_us)
    record: dict[str, Any] = {"schema": SCHEMA, "name": conditions.name, "status": status, "reasons": reasons}
    recovered = recovery_facts(outcome)
    if recovered:
        record["recovered"] = recovered
    record["settings"] = {**settings, "url": conditions.url}
    times_of_run = merged_by_clock(times_by_gateway.values())
    record |= _measured(outcome, offered_orders_per_s, times_of_run)
    last_orders = {number: gateway.orders.messages for number, gateway in outcome.gateways.items()}
    record |= sampled_field(spool, last_orders)
    record["pairs"] = []
    for pair in outcome.lineup.pairs:
        times_of_pair = times_of_run if outcome.lineup.is_market else times_by_gateway[pair]
        record["pairs"].append(_pair(outcome, pair, offered_orders_per_s, times_of_pair, lag_p99_us))
    if outcome.lineup.is_market:
        record["gateways"] = gateways_of(outcome, times_by_gateway, offered_orders_per_s, lag_p99_us)
    record |= engines_field(outcome)
    record |= _backlog_field(spool, settings, record["duration_s"])
    left_out = "the warm-up's seconds, and the last order of each pair"
    record["analysis"] = {"warm_up_s": warm_up_s, "left_out": left_out}
    record["sockets"] = []
    for name, sockets in outcome.sockets.items():
        record["sockets"] += [{"component": name, **socket} for socket in sockets]
    if outcome.broker is not None:
        record["broker"] = {**outcome.broker, "links": _links(outcome)}
    if outcome.noise:
        record["noise"] = outcome.noise.as_record(components(outcome))
    record |= market_data_field(outcome)
    if any(outcome.affinity.values()):
        record["affinity"] = outcome.affinity
    record |= _places(outcome)
    record["host"] = conditions.host
    record["versions"] = conditions.versions
    record["started_at"] = conditions.started_at
    return record


def _places(outcome: RunOutcome) -> dict[str, Any]:
    """Return the fields about an emulated network, and about several hosts; empty for a run on loopback."""
    fields: dict[str, Any] = {}
    if outcome.network:
        fields["network"] = outcome.network
    if outcome.hosts:
        fields["hosts"] = outcome.hosts
    if outcome.one_way_us:
        fields["one_way_us"] = outcome.one_way_us
    return fields


def _offered_orders_per_s(settings: dict[str, Any]) -> float | None:
    """Return the mean rate that each gateway is offered; None without a schedule, or if the settings are unknown."""
    load = scheduled_load_of_record(settings)
    if load is None:
        return None
    return float(load.mean_per_s / settings.get("gateways", 1))


def _backlog_field(spool: Spool, settings: dict[str, Any], duration_s: float | None) -> dict[str, Any]:
    """Return the field `backlog`; nothing without a schedule, if settings are unknown, or if no orders queued up."""
    orders_per_s = settings.get("orders_per_s")
    if orders_per_s is None:
        return {}
    backlog = backlog_of(spool, orders_per_s * settings.get("pairs", 1), duration_s)
    return {"backlog": asdict(backlog)} if backlog else {}


def _measured(outcome: RunOutcome, offered_orders_per_s: float | None, times: dict[str, LogBuckets]) -> dict[str, Any]:
    """Return the fields that both the run and each of its pairs have."""
    figures = {clock: buckets.figures_us() for clock, buckets in times.items()}
    counts_of_messages = counts(outcome)
    return {
        "counts": counts_of_messages,
        **mean_message_size(counts_of_messages),
        "checksums": checksums(outcome),
        "rates": rates(outcome, offered_orders_per_s),
        "completion_us": {clock: of_clock for clock, of_clock in figures.items() if clock != "lag"},
        "lag_us": figures.get("lag", {}),
        "components": components(outcome),
        "duration_s": duration_s(outcome),
    }


def _pair(
    outcome: RunOutcome,
    pair: int,
    offered_orders_per_s: float | None,
    times: dict[str, LogBuckets],
    lag_p99_us: dict[int, float],
) -> dict[str, Any]:
    """Return a pair's entry in `pairs`."""
    outcome_of_pair = outcome.of_pair(pair)
    gateway = outcome.gateways.get(pair)
    status, reasons = judge(outcome_of_pair, offered_orders_per_s, lag_p99_us)
    return {
        "pair": pair,
        "seed": gateway.seed if gateway else None,
        "status": status,
        "reasons": reasons,
        **_measured(outcome_of_pair, offered_orders_per_s, times),
    }


def _links(outcome: RunOutcome) -> dict[str, Any]:
    """Return the facts about the messages of each gateway and engine at the broker, by component."""
    links = {}
    for name, result in outcome.results.items():
        if not isinstance(result, ReporterResult | SubscriberResult):
            links[name] = with_confirm_figures(result.link) if result.link else result.link
    return links
