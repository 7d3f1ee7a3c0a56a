"""Sentences about the hosts of a run, and about the one-way times between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exchange.words import counted
from exchange_simulation.reports.formats.numbers import whole_number


def host_sentences(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each host of a run over several, and one about the one-way times.

    For example: engine and reporter on ssh engine1: AMD EPYC 7B13, 2 cores, Linux 6.18
    """
    for host in record.get("hosts") or ():
        facts = host.get("facts", {})
        parts: list[str] = []
        if "cpu" in facts:
            parts.append(str(facts["cpu"]))
        if "cores" in facts:
            parts.append(counted(facts["cores"], "cores"))
        if "kernel" in facts:
            parts.append(str(facts["kernel"]))
        place = f"{' and '.join(host['components'])} on {host['host']}"
        yield f"{place}: {', '.join(parts)}" if parts else place
    times = record.get("one_way_us")
    if times:
        yield _one_way_sentence(times)


def _one_way_sentence(times: dict[str, Any]) -> str:
    """Return a sentence with the median one-way times in us and their bound.

    If the bound is as large as a time, the sentence says that the times are not known.
    """
    bound_us = times["bound"]
    samples = counted(times["count"], "sampled orders")
    if bound_us >= min(times["to_engine"]["p50"], times["back"]["p50"]):
        return f"one-way times: not known, since the clocks' offset is only known to +- {whole_number(bound_us)} us"
    to_engine_us = whole_number(times["to_engine"]["p50"])
    back_us = whole_number(times["back"]["p50"])
    return (
        f"one-way times of {samples}: to the engine and through it p50 {to_engine_us} us, back p50 {back_us} us, each "
        f"+- {whole_number(bound_us)} us"
    )
