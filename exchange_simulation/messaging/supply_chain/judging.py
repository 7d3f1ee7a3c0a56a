"""Whether a run kept to its plan, and its figures, from the counts of all agents together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exchange.measurements import LogBuckets
from exchange.words import counted
from exchange_simulation.messaging.cell import Figures
from exchange_simulation.messaging.roles import RoleResult, stopped_in_words
from exchange_simulation.messaging.streams import figures_of_times
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.ledger import MessageCounts
from exchange_simulation.messaging.supply_chain.messages import KILOBYTE, MESSAGES, AgentKind, Group, To
from exchange_simulation.messaging.supply_chain.plan import Flow, SupplyChainPlan
from exchange_simulation.reports.formats.few_orders import has_enough_orders

TOLERANCE = 0.05
"""The largest share by which a measured count may differ from the plan."""
TOLERATED_INITIATIONS = 2
"""A count may also differ by this many initiations, since the measured time may cut an interaction at each end."""
LEAST_MESSAGES = 10
"""Whether 90 % of a message came in time is not judged if there are fewer. (To show p90 as a figure takes more.)"""


def counts_of(results: Mapping[str, RoleResult]) -> dict[str, MessageCounts]:
    """The counts of all agents together, by message in the order of table 1."""
    counts_by_message = {message.name: MessageCounts() for message in MESSAGES}
    for result in results.values():
        for name, counts_of_agent in result.details.get("messages", {}).items():
            for field, value in counts_of_agent.items():
                _add(counts_by_message[name], field, value)
    return counts_by_message


def lost_deliveries(chain: Chain, counts_by_message: Mapping[str, MessageCounts], *, assured: bool) -> int:
    """The number of lost deliveries, of the groups whose messages are assured or of the other groups."""
    lost = 0
    for message in chain.topology.messages:
        if message.group.is_assured is assured:
            lost += _lost(counts_by_message[message.name])
    return lost


def _lost(counts: MessageCounts) -> int:
    """The number of deliveries of a message that did not come."""
    return counts.expected - counts.received + counts.doubled


def wrong_with_restarted(chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult]) -> list[str]:
    """Sentences on persistent messages that were lost, on messages that were never sent, and on those left in queues.

    A restart of the broker excuses other losses. The messages that would have followed a lost one are then not sent.
    """
    counts_by_message = counts_of(results)
    reasons = stopped_in_words(results)
    lost = lost_deliveries(chain, counts_by_message, assured=True)
    if lost:
        reasons.append(f"{lost:,} persistent messages were lost")
    expected = chain.deliveries(times)
    missing = expected - sum(counts.expected for counts in counts_by_message.values())
    unexplained = missing - _most_that_follow_lost(chain, counts_by_message)
    if unexplained > 0:
        reasons.append(f"{unexplained:,} of {expected:,} messages were never sent")
    if missing < 0:
        reasons.append(f"{-missing:,} messages more than the {expected:,} of the plan were sent")
    return [*reasons, *_left_in_queues(results)]


def _most_that_follow_lost(chain: Chain, counts_by_message: Mapping[str, MessageCounts]) -> int:
    """The largest number of messages that were not sent since a message without a guarantee was lost before them."""
    following = 0
    for message in chain.topology.messages:
        if not message.group.is_assured:
            following += _lost(counts_by_message[message.name]) * _following(message.name)
    return following


def _following(name: str) -> int:
    """The largest number of messages that follow in the interaction once a message of this name came."""
    following = 0
    for message in MESSAGES:
        if message.after == name:
            following += 1 + _following(message.name)
    return following


def losses_of(chain: Chain, results: Mapping[str, RoleResult]) -> Figures:
    """The cost of a broker's restart: lost messages without a guarantee, and copies of messages with one."""
    counts_by_message = counts_of(results)
    redelivered = sum(counts.doubled for counts in counts_by_message.values())
    return {"lost_not_persistent": lost_deliveries(chain, counts_by_message, assured=False), "redelivered": redelivered}


def _left_in_queues(results: Mapping[str, RoleResult]) -> Iterator[str]:
    left = sum(result.details.get("left_in_queues", 0) for result in results.values())
    if left:
        yield f"{left:,} messages lie in queues after the drain"


def _add(counts: MessageCounts, field: str, value: int | LogBuckets) -> None:
    """Add a value to a field of the counts."""
    if isinstance(value, LogBuckets):
        getattr(counts, field).merge(value)
    else:
        setattr(counts, field, getattr(counts, field) + value)


def wrong_with(chain: Chain, times: ChainTimes, bound_s: float, results: Mapping[str, RoleResult]) -> list[str]:
    """Sentences on messages lost, doubled or left in queues, on slow deliveries, and on counts off the plan."""
    counts_by_message = counts_of(results)
    plan = SupplyChainPlan.of(chain.topology)
    not_delivered = _not_delivered(chain, times, results, counts_by_message)
    off_plan: list[str] = []
    slow: list[str] = []
    for flow in plan.flows:
        counts = counts_by_message[flow.message.name]
        initiations_per_s = chain.topology.initiations_per_s(flow.message.interaction)
        off_plan += _off_plan(flow, counts, initiations_per_s, times.measured_s)
        slow += _slow(flow, counts, bound_s)
    overview: list[str] = []
    if len(off_plan) + len(slow) > 1:
        received_per_s = sum(counts.measured_received for counts in counts_by_message.values()) / times.measured_s
        overview.append(
            f"{received_per_s:,.0f} messages/s were delivered of {plan.received:,.0f} planned; {len(slow)} of "
            f"{len(plan.flows)} messages were late, and {counted(len(off_plan), 'counts')} off the plan"
        )
    return [*stopped_in_words(results), *not_delivered, *overview, *slow, *off_plan]


def _not_delivered(
    chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult], counts_by_message: Mapping[str, MessageCounts]
) -> Iterator[str]:
    """Yield sentences on messages that came twice, did not come, or lie in queues."""
    for name, counts in counts_by_message.items():
        if counts.doubled:
            yield f"{counts.doubled:,} messages {name} came twice"
    missing = chain.deliveries(times) - sum(counts.received - counts.doubled for counts in counts_by_message.values())
    if missing > 0:
        yield f"{missing:,} messages had not come {times.drain_s:g} s after the last interaction began, or are lost"
    yield from _left_in_queues(results)


def _off_plan(flow: Flow, counts: MessageCounts, initiations_per_s: float, measured_s: float) -> Iterator[str]:
    """Yield sentences if the message's counts of the measured time are too far from the plan."""
    for verb, planned_per_s, measured in (
        ("sent", flow.sent, counts.measured_sent),
        ("received", flow.received, counts.measured_received),
    ):
        planned = planned_per_s * measured_s
        messages_per_initiation = planned_per_s / initiations_per_s
        tolerated = max(TOLERANCE * planned, TOLERATED_INITIATIONS * messages_per_initiation)
        if abs(measured - planned) > tolerated:
            yield (
                f"{flow.message.name}: {measured:,} were {verb} in {measured_s:g} s, and {planned:,.0f} were planned: "
                f"more than {TOLERANCE:.0%} off"
            )


def _slow(flow: Flow, counts: MessageCounts, bound_s: float) -> Iterator[str]:
    """Yield a sentence if 90 % of the message took longer than the bound."""
    took_s = _p90_s(counts)
    if took_s is not None and took_s > bound_s:
        yield (
            f"{flow.message.name}: 90 % were delivered within {1e3 * took_s:,.0f} ms, "
            f"and the bound is {1e3 * bound_s:,.0f} ms"
        )


def _p90_s(counts: MessageCounts) -> float | None:
    """The time within which 90 % were delivered; None if there are too few messages to judge."""
    if counts.delivery.count < LEAST_MESSAGES:
        return None
    return counts.delivery.percentile_ns(90) / 1e9


def strain_of(bound_s: float, results: Mapping[str, RoleResult]) -> float | None:
    """The p90 of the slowest message divided by the bound; None if there are too few messages to judge."""
    p90s_s = [_p90_s(counts) for counts in counts_of(results).values()]
    judged_s = [p90_s for p90_s in p90s_s if p90_s is not None]
    return max(judged_s) / bound_s if judged_s else None


def figures_of(chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult]) -> Figures:
    """Rates, mix and times of the measured seconds; `off_plan_percent` is that of the interaction farthest off."""
    counts_by_message = counts_of(results)
    plan = SupplyChainPlan.of(chain.topology)
    received = sum(counts.measured_received for counts in counts_by_message.values())
    kb = sum(counts.measured_bytes for counts in counts_by_message.values()) / KILOBYTE
    lag = LogBuckets.together(result.details["lag"] for result in results.values() if "lag" in result.details)
    delivery = LogBuckets.together(counts.delivery for counts in counts_by_message.values())
    figures_of_interactions = dict(_interaction_figures(plan, counts_by_message, times.measured_s))
    off_plan = [abs(value) for name, value in figures_of_interactions.items() if "off_plan" in name]
    figures: Figures = {
        "delivered_per_s": received / times.measured_s,
        "planned_per_s": plan.received,
        "off_plan_percent": max(off_plan),
        "kb_per_s": kb / times.measured_s,
        **dict(_mix_figures(plan, counts_by_message, times.measured_s, received, kb)),
        **dict(_location_figures(plan, counts_by_message, times.measured_s)),
    }
    figures |= _figures_in_ms(delivery, "delivery")
    figures |= _figures_in_ms(lag, "lag")
    figures |= figures_of_interactions
    for name, counts in counts_by_message.items():
        if counts.measured_received:
            figures[f"{name}_kb"] = counts.measured_bytes / KILOBYTE / counts.measured_received
    for name, counts in counts_by_message.items():
        if has_enough_orders("p90", counts.delivery.count):
            figures[f"{name}_p90_ms"] = counts.delivery.percentile_ns(90) / 1e6
    return figures


def _figures_in_ms(times: LogBuckets, name: str) -> Figures:
    """The figures of these times, as `delivery_p99_ms`, without percentiles for which there are too few times."""
    figures_us = figures_of_times(times, name)
    return {f"{figure.removesuffix('_us')}_ms": value_us / 1e3 for figure, value_us in figures_us.items()}


def _mix_figures(
    plan: SupplyChainPlan, counts_by_message: Mapping[str, MessageCounts], measured_s: float, received: int, kb: float
) -> Iterator[tuple[str, float]]:
    """Yield (name, value) of the figures of each group; `received` and `kb` are those of all groups together."""
    for group in Group:
        counts_of_group = [counts_by_message[flow.message.name] for flow in plan.of_group(group).flows]
        if counts_of_group and received:
            received_of_group = sum(counts.measured_received for counts in counts_of_group)
            kb_of_group = sum(counts.measured_bytes for counts in counts_of_group) / KILOBYTE
            yield f"{group.value}_percent", 100 * received_of_group / received
            yield f"{group.value}_kb_percent", 100 * kb_of_group / kb
            yield f"{group.value}_per_s", received_of_group / measured_s
            yield f"{group.value}_kb_per_s", kb_of_group / measured_s


def _location_figures(
    plan: SupplyChainPlan, counts_by_message: Mapping[str, MessageCounts], measured_s: float
) -> Iterator[tuple[str, float]]:
    """Yield (name, value) for each kind of location: the number of locations, and the messages a second of each."""
    for kind in AgentKind:
        locations = plan.topology.locations[kind]
        sent = 0
        received = 0
        for flow in plan.flows:
            counts = counts_by_message[flow.message.name]
            if flow.message.source is kind:
                sent += counts.measured_sent
            if flow.message.target is kind:
                received += counts.measured_received
        if sent or received:
            yield f"{kind.name}_locations", float(locations)
            yield f"{kind.name}_messages_per_s", (sent + received) / locations / measured_s


def _interaction_figures(
    plan: SupplyChainPlan, counts_by_message: Mapping[str, MessageCounts], measured_s: float
) -> Iterator[tuple[str, float]]:
    """Yield (name, value) of each interaction: deliveries a second, distance from the plan, and times from due to end.

    The times are those of its last messages: their number, the maximum, and with enough of them p90.
    """
    for number in plan.topology.interactions:
        part = plan.of_interaction(number)
        received = sum(counts_by_message[flow.message.name].measured_received for flow in part.flows)
        per_s = received / measured_s
        yield f"interaction_{number}_per_s", per_s
        yield f"interaction_{number}_off_plan_percent", 100 * (received / (part.received * measured_s) - 1)
        times_to_end = _times_to_end(part.flows, counts_by_message)
        if times_to_end.count:
            yield f"interaction_{number}_last_messages", float(times_to_end.count)
            yield f"interaction_{number}_max_ms", times_to_end.max_ns / 1e6
        if has_enough_orders("p90", times_to_end.count):
            yield f"interaction_{number}_p90_ms", times_to_end.percentile_ns(90) / 1e6


def _times_to_end(flows: Sequence[Flow], counts_by_message: Mapping[str, MessageCounts]) -> LogBuckets:
    """The times from due to receipt of the messages that nobody answers."""
    answered = {flow.message.after for flow in flows}
    last_messages = [
        flow.message for flow in flows if flow.message.name not in answered and flow.message.to is not To.FAMILY
    ]
    return LogBuckets.together(counts_by_message[message.name].since_due for message in last_messages)
