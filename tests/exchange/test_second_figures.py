"""Facts say which seconds they changed, so that whoever shows rows draws only these again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exchange.measurements import NS_PER_S
from exchange.records import PROCESS, THROUGHPUT, TRAFFIC
from exchange.second_figures import Fact, Facts, PlacedMeters

SECONDS = range(5)
START_WALL_NS = 1_000_000 * NS_PER_S


def fact(kind: str, at_s: float, source: str = "gateway", **payload: int | float) -> Fact:
    at_ns = int(at_s * NS_PER_S)
    return {"kind": kind, "source": source, "wall_ns": START_WALL_NS + at_ns, "monotonic_ns": at_ns, **payload}


def traffic(second: int) -> Fact:
    return fact(TRAFFIC, second + 1, second=second, orders_sent=1, orders_answered=1, messages_received=2)


def cpu(second: int) -> Fact:
    return fact(PROCESS, second + 1, source="engine", second=second, cpu_s=0.25 * second)


def reading(second: int) -> Fact:
    return fact(THROUGHPUT, second + 0.5, meter=1, rate_per_s=100 + second)


FACTS = [make(second) for second in SECONDS for make in (traffic, cpu, reading)]


def test_a_reading_of_a_second_that_is_not_over_counts_in_the_last_row_until_then() -> None:
    facts = Facts()
    facts.take([traffic(0), traffic(1), reading(1), reading(2)])
    row_before = facts.row(1)
    assert facts.take([traffic(2)]) == {1, 2}
    assert facts.row(1) != row_before


@given(st.permutations(FACTS), st.integers(1, len(FACTS)))
def test_a_row_that_a_batch_did_not_name_is_as_before(facts_in_any_order: list[Fact], batch_size: int) -> None:
    facts = Facts()
    for start in range(0, len(FACTS), batch_size):
        rows_before = {second: facts.row(second) for second in SECONDS}
        changed = facts.take(facts_in_any_order[start : start + batch_size])
        if changed is not None:
            for second in set(SECONDS) - changed:
                assert facts.row(second) == rows_before[second]


@given(
    st.lists(
        st.tuples(st.sampled_from(["gateway.1", "gateway.2"]), st.integers(0, 4), st.integers(0, 1_000)),
        min_size=1,
        max_size=20,
    )
)
def test_the_start_of_a_clock_is_the_earliest_by_any_whole_second(records: list[tuple[str, int, int]]) -> None:
    """The last second of each gateway counts only if there are no others, in whatever order records come."""
    meters = PlacedMeters()
    start_by_second: dict[str, dict[int, int]] = {}
    for source, second, late_ns in records:
        meters.note_second_end(source, second, (second + 1) * NS_PER_S + late_ns)
        starts = start_by_second.setdefault(source, {})
        starts[second] = min(late_ns, starts.get(second, late_ns))
    whole_seconds: list[int] = []
    last_seconds: list[int] = []
    for starts in start_by_second.values():
        last = max(starts)
        last_seconds.append(starts.pop(last))
        whole_seconds += starts.values()
    at_start = fact(THROUGHPUT, 0, meter=1, rate_per_s=1)
    at_start["wall_ns"] = min(whole_seconds or last_seconds)
    meters.place([at_start])
    assert meters.second_of(at_start, last=4) == 0
    before_start = {**at_start, "wall_ns": at_start["wall_ns"] - 1}
    meters.place([before_start])
    assert sorted(meters.seconds_after(-2)) == [-1, 0]
