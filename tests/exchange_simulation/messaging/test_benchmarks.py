"""Every benchmark over transports without a broker: few messages, right answers, and the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.measurements import _packets
from exchange_simulation.messaging.measuring import _as_record
from exchange_simulation.messaging.roles import RoleResult
from tests.exchange_simulation.messaging.bench_commands import Outcome, benches

pytestmark = pytest.mark.xdist_group("benchmarks")

SHORT = "--repeats 1 --count"
FLOOD = "--repeats 1 --quick"
"""As many messages as a measurement needs to be timed."""
COMMANDS = {
    "de-spsc": f"de-spsc --transport zeromq,tcp,memory --sizes 8,64 {FLOOD}",
    "de-pp": f"de-pp --transport zeromq,tcp,memory --sizes 1,1MiB {SHORT} 20",
    "de-mpmc": f"de-mpmc --transport zeromq,tcp --sizes 64 --pairs 3 {FLOOD}",
    "perftest": f"perftest --transport zeromq --npubs 3 --nsubs 2 --qt 2 {SHORT} 19999",
    "perftest, fanout": f"perftest --transport zeromq --mode fanout --npubs 3 --nsubs 2 --qt 2 {SHORT} 19999",
    "perftest, topic": f"perftest --transport zeromq+ipc --mode topic --npubs 2 --nsubs 3 --qt 2 {SHORT} 19999",
    "latency": f"latency --transport zeromq,tcp --sizes 64 {SHORT} 20",
    "throughput": "throughput --transport zeromq --sizes 64 --repeats 2 --quick",
    "throughput, simplex": f"throughput --transport zeromq?topology=simplex --sizes 64 {FLOOD}",
    "density": f"density --transport zeromq --sizes 64 {FLOOD}",
    "streams": f"streams --transport zeromq --sizes 32 --streams 3 {FLOOD}",
    "batch-size": f"batch-size --transport zeromq --sizes 8,2KiB {FLOOD}",
    "fe-spmc": f"fe-spmc --transport zeromq --sizes 1,1MiB --consumers 3 {FLOOD}",
    "te-spsc": f"te-spsc --transport zeromq+ipc --sizes 1,1MiB --patterns 64 {FLOOD}",
    "te-spsc, each": f"te-spsc --transport zeromq --sizes 64 --patterns 4 --consumers each {FLOOD}",
    "request-reply": "request-reply --transport zeromq --clients 2 --threads 2 --ahead 1,20 --sample 0.1 "
    "--warm-up 0.05 --repeats 1",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def outcomes(results: Path) -> dict[str, Outcome]:
    return dict(zip(COMMANDS, benches(results, *COMMANDS.values(), pages=True), strict=True))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_answer_of_a_benchmark_is_right(name: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[name]
    assert outcome["record"], outcome["err"]
    assert outcome["record"]["reasons"] == [], outcome["err"]
    assert outcome["record"]["status"] == "complete"
    assert outcome["code"] == 0, outcome["err"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_cell_has_the_repeats_that_were_asked_for(name: str, outcomes: dict[str, Outcome]) -> None:
    expected_repeats = [1, 2] if name == "throughput" else [1]
    for row in outcomes[name]["record"]["rows"]:
        assert [repeat["repeat"] for repeat in row["repeats"]] == expected_repeats
        for repeat in row["repeats"]:
            assert repeat["noise"]["window_s"] > 0
            for role in repeat["roles"].values():
                assert role["usage"]["cpu_s"] >= 0


@pytest.mark.parametrize("name", COMMANDS)
def test_page_and_table_have_every_cell(name: str, results: Path, outcomes: dict[str, Outcome]) -> None:
    folder = results / str(list(COMMANDS).index(name))
    page = (folder / "bench.html").read_text()
    record = outcomes[name]["record"]
    assert f"<h2>{record['benchmark']}</h2>" in page
    for row in record["rows"]:
        assert row["transport"] in outcomes[name]["out"]
        for value in row["figures"].values():
            assert value["n"] == 1 or 0.999 * value["low"] <= value["median"] <= 1.001 * value["high"]


def test_shared_queues_deliver_exactly_what_was_published(outcomes: dict[str, Outcome]) -> None:
    """19,999 messages are rounded up to a multiple of the subscribers."""
    (row,) = outcomes["perftest"]["record"]["rows"]
    assert row["figures"]["transfers"]["median"] == 2 * 2 * 3 * 20_000
    for repeat in row["repeats"]:
        subscribers = [role for name, role in repeat["roles"].items() if name.startswith("subscriber 1.")]
        assert sum(subscriber["received"] for subscriber in subscribers) == 3 * 20_000


@pytest.mark.parametrize(("mode", "npubs", "nsubs"), [("fanout", 3, 2), ("topic", 2, 3)])
def test_every_subscriber_of_an_exchange_has_all_its_messages(
    mode: str, npubs: int, nsubs: int, outcomes: dict[str, Outcome]
) -> None:
    """19,999 messages are not rounded up."""
    (row,) = outcomes[f"perftest, {mode}"]["record"]["rows"]
    assert row["point"] == {"size_bytes": 256, "exchanges": 2, "mode": mode}
    assert row["figures"]["transfers"]["median"] == 2 * npubs * 19_999 * (1 + nsubs)
    roles = row["repeats"][0]["roles"]
    subscribers = [role for name, role in roles.items() if name.startswith("subscriber")]
    assert len(subscribers) == 2 * nsubs
    for subscriber in subscribers:
        assert subscriber["received"] == npubs * 19_999


def test_a_bounce_over_tcp_takes_one_to_two_packets(outcomes: dict[str, Outcome]) -> None:
    """A bounce is a packet each way; acknowledgements without data, and opening the link, add a few."""
    (tcp_row,) = [row for row in outcomes["latency"]["record"]["rows"] if row["transport"] == "tcp"]
    assert 1 <= tcp_row["figures"]["packets_per_message"]["median"] < 2


def test_links_in_memory_have_no_packets(outcomes: dict[str, Outcome]) -> None:
    memory_rows = [row for row in outcomes["de-pp"]["record"]["rows"] if row["transport"] == "memory"]
    assert memory_rows
    for row in memory_rows:
        assert "packets_per_message" not in row["figures"]


def test_perftest_s_count_is_rounded_to_that_of_the_paper() -> None:
    settings = {"mode": "shared", "count": 100_000, "nsubs": 6, "npubs": 6, "queues": 10}
    from exchange_simulation.messaging.benchmarks.perftest import count_of

    count = count_of(Cell("amqp", {"size_bytes": 256}, settings))
    assert count == 100_002
    assert 2 * settings["npubs"] * settings["queues"] * count == 12_000_240


def test_more_roles_at_an_exchange_than_descriptors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from exchange_simulation.messaging.benchmarks.perftest import points

    monkeypatch.setattr("resource.getrlimit", lambda _which: (150, 150))
    settings = {"size": 64, "queues": 1, "npubs": 50, "nsubs": 1, "mode": "topic", "transport": ("zeromq",)}
    with pytest.raises(UserError, match="a role that meets 50 others has up to two connections with each"):
        points(settings)
    single_point = [{"size_bytes": 64, "exchanges": 1, "mode": "topic"}]
    assert points(settings | {"npubs": 40}) == single_point
    assert points(settings | {"transport": ("amqp",)}) == single_point, "at a broker a role has one connection"


def test_latency_has_percentiles_from_16_bytes_on_and_always_a_mean(outcomes: dict[str, Outcome]) -> None:
    figures = {row["point"]["size_bytes"]: row["figures"] for row in outcomes["de-spsc"]["record"]["rows"]}
    assert "latency_p99_us" in figures[64]
    assert "latency_p99_us" not in figures[8]
    assert figures[8]["latency_mean_us"]["median"] > 0
    assert figures[64]["latency_mean_us"]["median"] > 0


def test_percentiles_of_round_trips_count_all_of_them(outcomes: dict[str, Outcome]) -> None:
    for row in outcomes["de-pp"]["record"]["rows"]:
        for repeat in row["repeats"]:
            assert repeat["roles"]["publisher"]["latency_us"]["count"] == 20


def test_benchmarks_are_listed_shown_and_compared(results: Path, outcomes: dict[str, Outcome]) -> None:
    def exchange(*words: str) -> Any:
        return CliRunner().invoke(main, ["results", *words, "--results", str(results)])

    assert "bench de-spsc" in exchange("list").output
    shown = exchange("show", "0")
    assert shown.exit_code == 0
    assert "messages/s" in shown.output
    assert "B / A" in exchange("diff", "0", "0").output


def test_the_list_has_a_line_for_each_benchmark_with_its_paper() -> None:
    lines = CliRunner().invoke(main, ["bench"], env={"COLUMNS": "250"}).output.splitlines()
    for name, line in zip(names(), lines, strict=True):
        assert line.startswith(name)
        assert f"[{benchmark_of(name).paper}]" in line


def test_only_the_consumer_of_the_matching_pattern_gets_messages(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["te-spsc, each"]["record"]["rows"]
    (repeat,) = row["repeats"]
    roles = repeat["roles"]
    received = {name: role["received"] for name, role in roles.items() if name != "publisher"}
    assert received == {"consumer": roles["publisher"]["sent"], "idle 1": 0, "idle 2": 0, "idle 3": 0}


def socket(port: int, tcp_nodelay: bool) -> dict[str, Any]:
    """A socket that sent `port` segments and received one."""
    return {
        "local": f"here:{port}",
        "peer": "there:1",
        "tcp_nodelay": tcp_nodelay,
        "segments_out": port,
        "segments_in": 1,
    }


SOCKETS = [socket(10, tcp_nodelay=True), socket(11, tcp_nodelay=True), socket(12, tcp_nodelay=False)]


def test_sockets_that_differ_in_counts_only_are_summed_up() -> None:
    record = _as_record(RoleResult(sockets=SOCKETS))
    assert record["sockets"] == [
        {"tcp_nodelay": True, "segments_out": 21, "segments_in": 2, "many": 2},
        {"local": "here:12", "peer": "there:1", "tcp_nodelay": False, "segments_out": 12, "segments_in": 1},
    ]


def test_facts_that_differ_in_counts_only_are_summed_up() -> None:
    facts = [{"published": 5, "confirmed": None, "knobs": {"queue": "classic"}}] * 3
    record = _as_record(RoleResult(facts=facts))
    assert record["facts"] == [{"published": 15, "confirmed": None, "knobs": {"queue": "classic"}, "many": 3}]


def test_an_unknown_count_is_not_added_to_a_known_one() -> None:
    uncounted = RoleResult(sockets=[{"segments_out": None}, {"segments_out": 3}])
    assert _as_record(uncounted)["sockets"] == [{"segments_out": None}, {"segments_out": 3}]


@pytest.mark.parametrize(("has_broker", "packets"), [(True, 36), (False, 33)])
def test_packets_of_sockets_and_of_their_sums_are_equal(has_broker: bool, packets: int) -> None:
    summed = _as_record(RoleResult(sockets=SOCKETS))["sockets"]
    assert _packets({"roles": {"client": {"sockets": SOCKETS}}}, has_broker) == packets
    assert _packets({"roles": {"client": {"sockets": summed}}}, has_broker) == packets
