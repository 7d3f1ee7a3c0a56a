"""A reporter of several pairs distinguishes sources by their instance."""

from __future__ import annotations

import dataclasses

from reporter_session import TERMS, ScriptedSource

from exchange.messages import (
    Throughput,
    Timestamp,
)
from exchange.meters import Meter, Source

SECOND_PAIR = dataclasses.replace(TERMS, instance=2)


def test_messages_are_assigned_to_the_pair_of_their_instance(session):
    second_gateway = ScriptedSource(session.link.url, Source.GATEWAY, SECOND_PAIR)
    second_engine = ScriptedSource(session.link.url, Source.ENGINE, SECOND_PAIR)
    session.reporter._sources = ("gateway", "engine", "gateway.2", "engine.2")
    session.gateway.reporting.message(Throughput(1, 8_000))
    second_gateway.reporting.message(Throughput(1, 7_000))
    second_engine.reporting.message(Throughput(2, 6_000))
    second_gateway.end()
    second_engine.end()
    result = session.run_to_the_end()
    assert result.stopped is None
    assert result.results.keys() == {"gateway", "engine", "gateway.2", "engine.2"}
    assert len(session.payloads("session", "engine.2")) == 1
    assert session.payloads("throughput", "gateway") == [{"meter": 1, "rate_per_s": 8_000}]
    assert session.payloads("throughput", "gateway.2") == [{"meter": 1, "rate_per_s": 7_000}]
    assert session.payloads("throughput", "engine.2") == [{"meter": 2, "rate_per_s": 6_000}]


def test_samples_with_one_id_are_kept_apart_by_pair(session):
    second_gateway = ScriptedSource(session.link.url, Source.GATEWAY, SECOND_PAIR)

    def stamp(source: ScriptedSource, meter: Meter, time_ns: int) -> None:
        source.reporting.message(Timestamp(meter, 10, time_ns))
        source.outbox.flush()

    stamp(session.gateway, Meter.ORDER_HANDED_OVER, 100)
    stamp(second_gateway, Meter.ORDER_HANDED_OVER, 200)
    stamp(second_gateway, Meter.ORDER_ANSWERED, 201)
    stamp(session.gateway, Meter.ORDER_ANSWERED, 101)
    assert session.run_to_the_end().samples == 2
    [first_sample] = session.payloads("sample", "gateway")
    assert first_sample["handed_over_ns"] == 100
    assert first_sample["answered_ns"] == 101
    [second_sample] = session.payloads("sample", "gateway.2")
    assert second_sample["handed_over_ns"] == 200
    assert second_sample["answered_ns"] == 201


def test_the_reason_names_a_source_that_the_reporter_does_not_expect(session):
    ScriptedSource(session.link.url, Source.ENGINE, SECOND_PAIR).outbox.flush()
    reason = "the reporter does not expect engine.2, which reports to it: see --instance, --pairs and --reporters"
    assert session.run_to_the_end().stopped == reason


def test_two_sources_with_one_name_are_a_reason_to_stop(session):
    twin = ScriptedSource(session.link.url, Source.GATEWAY)
    twin.end()
    session.gateway.end()
    assert session.run().stopped == ("two components say that they are the gateway: give each pair its own --instance")
