"""The field `sampled` of run.json: figures of sampled orders alone.

The paper that `exchange paper amqp` repeats has such figures (docs/samples.md). All other figures are of every order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from exchange.instances import instance_of
from exchange.json_records import Record
from exchange.meters import Meter
from exchange.records import SAMPLE, THROUGHPUT
from exchange_simulation.launching.record.reading import Spool

FIGURES_OF_METERS = {
    Meter.GATEWAY_ORDERS_SENT: "orders_sent_per_s",
    Meter.ENGINE_ORDERS_RECEIVED: "orders_received_per_s",
    Meter.ENGINE_MESSAGES_SENT: "messages_sent_per_s",
    Meter.GATEWAY_MESSAGES_RECEIVED: "messages_received_per_s",
}


def sampled_field(spool: Spool, last_orders: Mapping[int, int]) -> dict[str, Any]:
    """Return {"sampled": means of all samples}, the warm-up's included; an empty dictionary for a run without samples.

    `samples` counts the sampled orders; `handed_over_mean_us` is their mean time from handing over to the first answer.
    It leaves out a sample of the last order, `last_orders` by gateway, as all completion times do: no later order
    pushes its answer on, so with Nagle's algorithm that waits for a delayed acknowledgement.
    """
    samples = spool[SAMPLE]
    if not samples:
        return {}
    figures: dict[str, float] = {"samples": len(samples)}
    completions_ns = [_completion_ns(sample) for sample in samples if not _is_last(sample, last_orders)]
    if completions_ns:
        figures["handed_over_mean_us"] = fmean(completions_ns) / 1e3
    figures |= dict(_rates(spool[THROUGHPUT]))
    return {"sampled": figures}


def _is_last(sample: Record, last_orders: Mapping[int, int]) -> bool:
    return bool(sample["payload"]["id"] == last_orders.get(instance_of(sample["source"])))


def _completion_ns(sample: Record) -> int:
    return int(sample["payload"]["answered_ns"] - sample["payload"]["handed_over_ns"])


def _rates(readings: Iterable[Record]) -> Iterator[tuple[str, float]]:
    """Yield (figure, rate) of each meter: the mean of its readings, summed over the sources that have such a meter."""
    readings_by_meter: defaultdict[int, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for reading in readings:
        payload = reading["payload"]
        readings_by_meter[payload["meter"]][reading["source"]].append(payload["rate_per_s"])
    for meter, figure in FIGURES_OF_METERS.items():
        by_source = readings_by_meter.get(meter)
        if by_source:
            yield figure, sum(fmean(rates_per_s) for rates_per_s in by_source.values())
