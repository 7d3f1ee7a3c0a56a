"""Sentences about the hosts of a run."""

from __future__ import annotations

from exchange_simulation.reports.run.hosts import host_sentences

HOSTS = [
    {"host": "this host", "components": ["gateway"], "facts": {"cpu": "EPYC", "cores": 2, "kernel": "Linux 6"}},
    {"host": "ssh engine1", "components": ["engine", "reporter"], "facts": {}},
]


def times(bound: float) -> dict[str, object]:
    return {"count": 80, "bound": bound, "to_engine": {"p50": 1080.4}, "back": {"p50": 1060.0}}


def test_each_host_is_named_with_its_components_and_facts() -> None:
    first, second = host_sentences({"hosts": HOSTS})
    assert first == "gateway on this host: EPYC, 2 cores, Linux 6"
    assert second == "engine and reporter on ssh engine1"


def test_times_one_way_stand_beside_their_bound() -> None:
    [sentence] = host_sentences({"one_way_us": times(bound=85.2)})
    assert sentence == (
        "one-way times of 80 sampled orders: to the engine and through it p50 1,080 us, back p50 1,060 us, each "
        "+- 85 us"
    )


def test_times_one_way_are_left_out_where_the_bound_is_as_large() -> None:
    [sentence] = host_sentences({"one_way_us": times(bound=1060.0)})
    assert sentence == "one-way times: not known, since the clocks' offset is only known to +- 1,060 us"


def test_a_run_on_one_host_has_no_such_sentence() -> None:
    assert list(host_sentences({"counts": {}})) == []
