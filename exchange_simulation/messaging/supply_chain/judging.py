"""Whether a run kept to its plan, and its figures: all agents' counts together, message by message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from exchange.measurements import LogBuckets
from exchange.words import counted
from exchange_simulation.messaging.cell import Figures
from exchange_simulation.messaging.roles import RoleResult, stopped_in_words
from exchange_simulation.messaging.supply_chain.chain import Chain, ChainTimes
from exchange_simulation.messaging.supply_chain.ledger import MessageCounts
from exchange_simulation.messaging.supply_chain.messages import KILOBYTE, MESSAGES, AgentKind, Group, To
from exchange_simulation.messaging.supply_chain.plan import Flow, SupplyChainPlan

TOLERANCE = 0.05
"""Largest share by which a measured count may differ from the plan."""
WHOLE_INTERACTIONS = 2
"""It may also differ by so many initiations, since a window may cut one at each end."""
FEWEST = 10
"""A percentile of fewer messages is not judged."""


def counts_of(results: Mapping[str, RoleResult]) -> dict[str, MessageCounts]:
    """The counts of all agents together, by message in the order of table 1."""
    found = {message.name: MessageCounts() for message in MESSAGES}
    for result in results.values():
        for name, counts in result.details.get("messages", {}).items():
            for what, value in counts.items():
                _add(found[name], what, value)
    return found


def lost_of(found: Mapping[str, MessageCounts], assured: bool) -> int:
    """Deliveries that did not come, of the groups that promise them or of the others."""
    return sum(
        (counts := found[message.name]).expected - counts.received + counts.doubled
        for message in MESSAGES
        if message.group.is_assured is assured
    )


def wrong_with_restarted(chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult]) -> list[str]:
    """Sentences on what was lost although it was persistent, or never sent: a restart excuses the others."""
    found = counts_of(results)
    wrong = stopped_in_words(results)
    if lost := lost_of(found, assured=True):
        wrong.append(f"{lost:,} persistent messages were lost")
    expected = chain.deliveries(times)
    missing = expected - sum(counts.expected for counts in found.values())
    if missing:
        wrong.append(f"{missing:,} of {expected:,} messages were never sent")
    return [*wrong, *_left(results)]


def losses_of(results: Mapping[str, RoleResult]) -> Figures:
    """The cost of a broker's restart: lost messages without a guarantee, and copies of messages with one."""
    counts_by_message = counts_of(results)
    redelivered = sum(counts.doubled for counts in counts_by_message.values())
    return {"lost_not_persistent": lost_of(counts_by_message, assured=False), "redelivered": redelivered}


def _left(results: Mapping[str, RoleResult]) -> Iterator[str]:
    if left := sum(result.details.get("left_in_queues", 0) for result in results.values()):
        yield f"{left:,} messages lie in queues after the drain"


def _add(counts: MessageCounts, what: str, value: int | LogBuckets) -> None:
    if isinstance(value, LogBuckets):
        getattr(counts, what).merge(value)
    else:
        setattr(counts, what, getattr(counts, what) + value)


def wrong_with(chain: Chain, times: ChainTimes, bound_s: float, results: Mapping[str, RoleResult]) -> list[str]:
    """Sentences on what was lost, doubled or left, on counts that are off the plan, and on slow deliveries."""
    found = counts_of(results)
    plan = SupplyChainPlan.of(chain.topology)
    wrong = [*stopped_in_words(results), *_not_delivered(chain, times, results, found)]
    each = [(flow, found[flow.message.name]) for flow in plan.flows]
    off = [
        why
        for flow, counts in each
        for why in _off_plan(flow, counts, chain.topology.initiations_per_s(flow.message.interaction), times.measured_s)
    ]
    slow = [why for flow, counts in each for why in _slow(flow, counts, bound_s)]
    return [*wrong, *_in_all(plan, found, times.measured_s, len(off), len(slow)), *slow, *off]


def _in_all(
    plan: SupplyChainPlan, found: Mapping[str, MessageCounts], measured_s: float, off: int, slow: int
) -> Iterator[str]:
    """The answer first, where it takes many sentences."""
    if off + slow > 1:
        received = sum(counts.measured_received for counts in found.values()) / measured_s
        yield (
            f"{received:,.0f} messages/s were delivered of {plan.received:,.0f} planned; {slow} of "
            f"{len(plan.flows)} messages were late, and {counted(off, 'counts')} off the plan"
        )


def _not_delivered(
    chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult], found: Mapping[str, MessageCounts]
) -> Iterator[str]:
    for name, counts in found.items():
        if counts.doubled:
            yield f"{counts.doubled:,} messages {name} came twice"
    missing = chain.deliveries(times) - sum(counts.received - counts.doubled for counts in found.values())
    if missing > 0:
        yield f"{missing:,} messages had not come {times.drain_s:g} s after the last interaction began, or are lost"
    yield from _left(results)


def _off_plan(flow: Flow, counts: MessageCounts, initiations_per_s: float, measured_s: float) -> Iterator[str]:
    for what, per_s, measured in (
        ("sent", flow.sent, counts.measured_sent),
        ("received", flow.received, counts.measured_received),
    ):
        planned = per_s * measured_s
        of_one = per_s / initiations_per_s
        if abs(measured - planned) > max(TOLERANCE * planned, WHOLE_INTERACTIONS * of_one):
            yield (
                f"{flow.message.name}: {measured:,} were {what} in {measured_s:g} s, and {planned:,.0f} were planned: "
                f"more than {TOLERANCE:.0%} off"
            )


def _slow(flow: Flow, counts: MessageCounts, bound_s: float) -> Iterator[str]:
    took_s = _p90_s(counts)
    if took_s is not None and took_s > bound_s:
        yield (
            f"{flow.message.name}: 90 % were delivered within {1e3 * took_s:,.0f} ms, "
            f"and the bound is {1e3 * bound_s:,.0f} ms"
        )


def _p90_s(counts: MessageCounts) -> float | None:
    """The time within which 90 % were delivered; None if there were too few to judge."""
    return counts.delivery.percentile_ns(90) / 1e9 if counts.delivery.count >= FEWEST else None


def strain_of(bound_s: float, results: Mapping[str, RoleResult]) -> float | None:
    """How long 90 % of the slowest message took, over the bound; None if there were too few to judge."""
    took_s = [p90_s for counts in counts_of(results).values() if (p90_s := _p90_s(counts)) is not None]
    return max(took_s) / bound_s if took_s else None


def figures_of(chain: Chain, times: ChainTimes, results: Mapping[str, RoleResult]) -> Figures:
    """Rates, mix and times of the measured seconds; `off_plan_percent` is that of the interaction furthest off."""
    found = counts_of(results)
    plan = SupplyChainPlan.of(chain.topology)
    received = sum(counts.measured_received for counts in found.values())
    kb = sum(counts.measured_bytes for counts in found.values()) / KILOBYTE
    lag = LogBuckets.together(result.details["lag"] for result in results.values() if "lag" in result.details)
    delivery = LogBuckets.together(counts.delivery for counts in found.values())
    by_interaction = dict(_by_interaction(plan, found, times.measured_s))
    return {
        "delivered_per_s": received / times.measured_s,
        "planned_per_s": plan.received,
        "off_plan_percent": max(abs(value) for name, value in by_interaction.items() if "off_plan" in name),
        "kb_per_s": kb / times.measured_s,
        **dict(_mix(plan, found, times.measured_s, received, kb)),
        **dict(_by_location(plan, found, times.measured_s)),
        **{f"delivery_{name}_ms": value / 1e3 for name, value in delivery.figures_us().items() if name != "count"},
        **{f"lag_{name}_ms": value / 1e3 for name, value in lag.figures_us().items() if name == "p99"},
        **by_interaction,
        **{
            f"{name}_kb": counts.measured_bytes / KILOBYTE / counts.measured_received
            for name, counts in found.items()
            if counts.measured_received
        },
        **{
            f"{name}_p90_ms": counts.delivery.percentile_ns(90) / 1e6
            for name, counts in found.items()
            if counts.delivery.count
        },
    }


def _mix(
    plan: SupplyChainPlan, found: Mapping[str, MessageCounts], measured_s: float, received: int, kb: float
) -> Iterator[tuple[str, float]]:
    for group in Group:
        own = [found[flow.message.name] for flow in plan.of_group(group).flows]
        if own and received:
            count = sum(counts.measured_received for counts in own)
            size = sum(counts.measured_bytes for counts in own)
            yield f"{group.value}_percent", 100 * count / received
            yield f"{group.value}_kb_percent", 100 * size / KILOBYTE / kb
            yield f"{group.value}_per_s", count / measured_s
            yield f"{group.value}_kb_per_s", size / KILOBYTE / measured_s


def _by_location(
    plan: SupplyChainPlan, found: Mapping[str, MessageCounts], measured_s: float
) -> Iterator[tuple[str, float]]:
    """How many locations there are, and what each of a kind sends and receives a second."""
    for kind in AgentKind:
        many = plan.topology.locations[kind]
        messages = [flow.message for flow in plan.flows]
        sent = sum(found[each.name].measured_sent for each in messages if each.source is kind)
        received = sum(found[each.name].measured_received for each in messages if each.target is kind)
        if sent or received:
            yield f"{kind.name}_locations", float(many)
            yield f"{kind.name}_messages_per_s", (sent + received) / many / measured_s


def _by_interaction(
    plan: SupplyChainPlan, found: Mapping[str, MessageCounts], measured_s: float
) -> Iterator[tuple[str, float]]:
    """Yield each interaction's deliveries a second, their distance from the plan, and the time from due to its end."""
    for number in plan.topology.interactions:
        own = plan.of_interaction(number)
        per_s = sum(found[flow.message.name].measured_received for flow in own.flows) / measured_s
        yield f"interaction_{number}_per_s", per_s
        yield f"interaction_{number}_off_plan_percent", 100 * (per_s / own.received - 1)
        ends = _last_ones(own.flows, found)
        if ends.count:
            yield f"interaction_{number}_p90_ms", ends.percentile_ns(90) / 1e6


def _last_ones(flows: Sequence[Flow], found: Mapping[str, MessageCounts]) -> LogBuckets:
    """From due to receipt of the messages that nobody answers."""
    answered = {flow.message.after for flow in flows}
    messages = [flow.message for flow in flows]
    last = [each.name for each in messages if each.name not in answered and each.to is not To.FAMILY]
    return LogBuckets.together(found[name].since_due for name in last)
