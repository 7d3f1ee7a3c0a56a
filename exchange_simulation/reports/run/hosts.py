"""Sentences about the hosts of a run, and about times one way between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from exchange.words import counted
from exchange_simulation.reports.formats.numbers import whole_number


def host_sentences(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each host of a run over several, and one about times one way.

    For example: engine and reporter on ssh engine1: AMD EPYC 7B13, 2 cores, Linux 6.18
    """
    for host in record.get("hosts") or ():
        facts = host.get("facts", {})
        parts = [str(facts[name]) for name in ("cpu", "kernel") if name in facts]
        if "cores" in facts:
            parts.insert(1, counted(facts["cores"], "cores"))
        place = f"{' and '.join(host['components'])} on {host['host']}"
        yield f"{place}: {', '.join(parts)}" if parts else place
    times = record.get("one_way_us")
    if times:
        yield _one_way(times)


def _one_way(times: dict[str, Any]) -> str:
    """Return the times one way with their bound; if the bound is as large as a time, say that they are not known."""
    bound_us = times["bound"]
    samples = counted(times["count"], "sampled orders")
    if bound_us >= min(times["to_engine"]["p50"], times["back"]["p50"]):
        return f"one way: not known, since the clocks' offset is known to +- {whole_number(bound_us)} us only"
    to_engine_us = whole_number(times["to_engine"]["p50"])
    back_us = whole_number(times["back"]["p50"])
    return (
        f"one way, {samples}: to the engine and through it p50 {to_engine_us} us, back p50 {back_us} us, each "
        f"+- {whole_number(bound_us)} us"
    )
