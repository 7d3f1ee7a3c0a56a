"""run.json, from the results and the spool of a run."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from exchange.results import ReporterResult
from exchange.settings import RunSettings
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.record.outcome import RunOutcome, counts, mean_message_size
from exchange_simulation.launching.record.reading import read_spool
from exchange_simulation.launching.record.record import Conditions, make_record
from exchange_simulation.launching.record.sampled import sampled_field
from tests.exchange_simulation.reports.live.spool_records import Record, completion


def one_order_of_1_us(source: str) -> Record:
    """Return the record of one order that a source had answered, in the run's first second, 1 us after it was due."""
    first_second = 0
    time_us = 1.0
    return completion(first_second, "due", time_us, source=source)


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        (RunSettings(orders_per_s=800.0), 800.0),
        (RunSettings(orders_per_s=800.0, arrivals="poisson"), 800.0),
        (RunSettings(orders_per_s=800.0, arrivals="ramp:0.5..1"), 600.0),
        (RunSettings(orders_per_s=800.0, arrivals="steps:0.5@10,1@10", orders=4_000), 400.0),
        (RunSettings(orders_per_s=800.0, arrivals="steps:0.5@10,1@10", orders=28_000), 700.0),
        (RunSettings(orders_per_s=None), None),
    ],
)
def test_the_offered_rate_is_the_mean_over_the_run(tmp_path: Path, settings: RunSettings, offered: float) -> None:
    known = Conditions(name="x", url=None, settings=settings.as_dict(), host={}, versions={}, started_at="")
    assert make_record(read_spool(tmp_path), known, RunOutcome())["rates"] == {"offered_orders_per_s": offered}


def test_times_of_pairs_outside_the_lineup_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    records = [one_order_of_1_us(source) for source in ("gateway.2", "gateway.3")]
    lines = (orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY) for each in records)
    (tmp_path / "spool" / "000001.jsonl").write_bytes(b"\n".join(lines))
    known = Conditions(name="x", url=None, settings={}, host={}, versions={}, started_at="")
    record = make_record(read_spool(tmp_path), known, RunOutcome(lineup=Lineup(pairs=(2,), reporters=(1,))))
    assert record["completion_us"] == record["pairs"][0]["completion_us"]
    assert record["completion_us"]["due"]["count"] == 1


def test_a_repeated_line_of_the_spool_counts_once(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    line = orjson.dumps(one_order_of_1_us("gateway"), option=orjson.OPT_SERIALIZE_NUMPY)
    for number in (1, 2):
        (tmp_path / "spool" / f"{number:06}.jsonl").write_bytes(line + b"\n" + line)
    known = Conditions(name="x", url=None, settings={}, host={}, versions={}, started_at="")
    record = make_record(read_spool(tmp_path), known, RunOutcome(lineup=Lineup(pairs=(1,), reporters=(1,))))
    assert record["completion_us"]["due"]["count"] == 1


def test_the_mean_message_weighs_each_kind_by_its_number() -> None:
    """An order has 10 bytes, a trade 9, a confirmation 5, a quote 5."""
    found = mean_message_size({"orders_sent": 2, "trades": 3, "confirmations": 1, "quotes": 4, "samples": 99})
    assert found == {"mean_message_bytes": (20 + 27 + 5 + 20) / 10}
    assert mean_message_size({"orders_received": 2}) == {}


def test_refused_handshakes_are_recorded_unless_a_broker_refuses_them() -> None:
    """Without any component's result, their number is not known."""
    reporter = ReporterResult(
        received=9, announced=9, checksums_agree=True, junk_frames=0, handshakes_refused=0, samples=0
    )
    assert counts(RunOutcome(reporters={1: reporter}))["handshakes_refused"] == 0
    assert "handshakes_refused" not in counts(RunOutcome(reporters={1: reporter}, broker={"product": "RabbitMQ"}))
    assert "handshakes_refused" not in counts(RunOutcome())


def test_the_means_of_the_samples_are_of_all_sources_together(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    lines = []
    for pair, rates_per_s in (("gateway", (90.0, 110.0)), ("gateway.2", (40.0,))):
        for rate_per_s in rates_per_s:
            lines.append(spool_line(pair, "throughput", {"meter": 1, "rate_per_s": rate_per_s}))
    for answered_ns in (2_000, 4_000):
        lines.append(spool_line("gateway", "sample", {"id": 1, "handed_over_ns": 1_000, "answered_ns": answered_ns}))
    (tmp_path / "spool" / "000001.jsonl").write_bytes(b"\n".join(lines))

    sampled = sampled_field(read_spool(tmp_path), {1: 1_000})["sampled"]

    assert sampled == {"samples": 2, "handed_over_mean_us": 2.0, "orders_sent_per_s": 140.0}


def test_the_mean_of_the_sampled_times_leaves_out_the_last_order_of_each_gateway(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    lines = []
    for source, order, answered_ns in (
        ("gateway", 100, 3_000),
        ("gateway", 200, 40_000_000),
        ("gateway.2", 200, 5_000),
    ):
        times = {"id": order, "handed_over_ns": 1_000, "answered_ns": answered_ns}
        lines.append(spool_line(source, "sample", times))
    (tmp_path / "spool" / "000001.jsonl").write_bytes(b"\n".join(lines))

    assert sampled_field(read_spool(tmp_path), {1: 200, 2: 300}) == {
        "sampled": {"samples": 3, "handed_over_mean_us": 3.0}
    }
    assert sampled_field(read_spool(tmp_path), {1: 100, 2: 200})["sampled"]["handed_over_mean_us"] == 39_999.0


def test_a_run_without_samples_has_no_field_of_samples(tmp_path: Path) -> None:
    assert sampled_field(read_spool(tmp_path), {1: 1_000}) == {}


def spool_line(source: str, kind: str, payload: dict[str, float]) -> bytes:
    record = {"schema": 1, "source": source, "kind": kind, "wall_ns": 1, "monotonic_ns": 1, "payload": payload}
    return orjson.dumps(record)
