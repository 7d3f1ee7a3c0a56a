"""Reporters of several pairs: sources are told apart by their instance."""

from __future__ import annotations

import dataclasses

from reporter_session import TERMS, ScriptedSource

from exchange.measurements import Meter, Source
from exchange.messages import (
    Throughput,
    Timestamp,
)

SECOND_PAIR = dataclasses.replace(TERMS, instance=2)


def test_pairs_are_told_apart_by_the_instance_in_their_messages(session):
    second = [ScriptedSource(session.link.url, source, SECOND_PAIR) for source in (Source.GATEWAY, Source.ENGINE)]
    session.reporter._sources = ("gateway", "engine", "gateway.2", "engine.2")
    session.gateway.reporting.message(Throughput(1, 8_000))
    second[0].reporting.message(Throughput(1, 7_000))
    second[1].reporting.message(Throughput(2, 6_000))
    for source in second:
        source.end()
    result = session.run_to_the_end()
    assert (result.stopped, result.results.keys()) == (None, {"gateway", "engine", "gateway.2", "engine.2"})
    assert len(session.payloads("session", "engine.2")) == 1
    said = {source: session.payloads("throughput", source) for source in ("gateway", "gateway.2", "engine.2")}
    rates = {source: [(rate["meter"], rate["rate_per_s"]) for rate in rates] for source, rates in said.items()}
    assert rates == {"gateway": [(1, 8_000)], "gateway.2": [(1, 7_000)], "engine.2": [(2, 6_000)]}


def test_samples_of_two_pairs_with_the_same_ids_are_paired_apart(session):
    second = ScriptedSource(session.link.url, Source.GATEWAY, SECOND_PAIR)
    handed_over, answered = Meter.ORDER_HANDED_OVER, Meter.ORDER_ANSWERED
    readings = [(session.gateway, handed_over, 100), (second, handed_over, 200), (second, answered, 201)]
    for source, meter, time_ns in [*readings, (session.gateway, answered, 101)]:
        source.reporting.message(Timestamp(meter, 10, time_ns))
        source.outbox.flush()
    assert session.run_to_the_end().samples == 2
    for source, handed_over_ns in (("gateway", 100), ("gateway.2", 200)):
        [sample] = session.payloads("sample", source)
        assert (sample["handed_over_ns"], sample["answered_ns"]) == (handed_over_ns, handed_over_ns + 1)


def test_who_is_none_of_the_reporter_s_own_sources_is_named(session):
    ScriptedSource(session.link.url, Source.ENGINE, SECOND_PAIR).outbox.flush()
    told = "engine.2, which is none of its own, reports to the reporter: see --instance, --pairs and --reporters"
    assert session.run_to_the_end().stopped == told


def test_two_sources_of_one_name_are_no_healthy_run(session):
    twin = ScriptedSource(session.link.url, Source.GATEWAY)
    twin.end()
    session.gateway.end()
    assert session.run().stopped == ("two components say that they are the gateway: give each pair its own --instance")
