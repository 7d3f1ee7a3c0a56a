"""Every benchmark over whatever needs no broker: few messages, the answer right, all that a reader is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.measurements import _packets
from exchange_simulation.messaging.measuring import _as_record
from exchange_simulation.messaging.roles import RoleResult
from tests.exchange_simulation.messaging.bench_commands import Outcome, benches

pytestmark = pytest.mark.xdist_group("benchmarks")

SHORT = "--repeats 1 --count"
FLOOD = "--repeats 1 --quick"
"""As many messages as it takes to be timed."""
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
def test_its_answer_is_right(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name]["record"], outcomes[name]["err"]
    assert (outcomes[name]["code"], outcomes[name]["record"]["reasons"]) == (0, []), outcomes[name]["err"]
    assert outcomes[name]["record"]["status"] == "complete"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_cell_was_measured_as_often_as_asked(name: str, outcomes: dict[str, Outcome]) -> None:
    for row in outcomes[name]["record"]["rows"]:
        assert [repeat["repeat"] for repeat in row["repeats"]] == ([1, 2] if name == "throughput" else [1])
        assert all(repeat["noise"]["window_s"] > 0 for repeat in row["repeats"])
        assert all(told["usage"]["cpu_s"] >= 0 for repeat in row["repeats"] for told in repeat["roles"].values())


@pytest.mark.parametrize("name", COMMANDS)
def test_its_page_and_table_have_every_cell(name: str, results: Path, outcomes: dict[str, Outcome]) -> None:
    page, table = (results / str(list(COMMANDS).index(name)) / "bench.html").read_text(), outcomes[name]["out"]
    assert f"<h2>{outcomes[name]['record']['benchmark']}</h2>" in page
    for row in outcomes[name]["record"]["rows"]:
        assert row["transport"] in table
        for value in row["figures"].values():
            assert value["n"] == 1 or 0.999 * value["low"] <= value["median"] <= 1.001 * value["high"]


def test_shared_queues_deliver_exactly_what_was_published(outcomes: dict[str, Outcome]) -> None:
    """19,999 messages are rounded up to a multiple of the subscribers."""
    (row,) = outcomes["perftest"]["record"]["rows"]
    assert row["figures"]["transfers"]["median"] == 2 * 2 * 3 * 20_000
    for repeat in row["repeats"]:
        subscribers = [told for name, told in repeat["roles"].items() if name.startswith("subscriber 1.")]
        assert sum(told["received"] for told in subscribers) == 3 * 20_000


@pytest.mark.parametrize(("mode", "npubs", "nsubs"), [("fanout", 3, 2), ("topic", 2, 3)])
def test_every_subscriber_of_an_exchange_has_all_of_each_publisher_of_its(
    mode: str, npubs: int, nsubs: int, outcomes: dict[str, Outcome]
) -> None:
    """19,999 messages stay as many."""
    (row,) = outcomes[f"perftest, {mode}"]["record"]["rows"]
    assert row["point"] == {"size_bytes": 256, "exchanges": 2, "mode": mode}
    assert row["figures"]["transfers"]["median"] == 2 * npubs * 19_999 * (1 + nsubs)
    roles = row["repeats"][0]["roles"]
    subscribers = [told["received"] for name, told in roles.items() if name.startswith("subscriber")]
    assert subscribers == [npubs * 19_999] * 2 * nsubs


def test_packets_are_counted_where_there_are_any(outcomes: dict[str, Outcome]) -> None:
    """A message that bounces is a packet each way; acknowledgements alone, and opening the link, are few more."""
    packets = {
        row["transport"]: row["figures"].get("packets_per_message") for row in outcomes["latency"]["record"]["rows"]
    }
    assert 1 <= packets["tcp"]["median"] < 2
    assert all(
        "packets_per_message" not in row["figures"] for row in outcomes["de-pp"]["record"]["rows"][2::3]
    )  # memory


def test_perftest_s_count_is_rounded_to_the_report_s() -> None:
    asked = {"mode": "shared", "count": 100_000, "nsubs": 6, "npubs": 6, "queues": 10}
    from exchange_simulation.messaging.benchmarks.perftest import count_of

    assert count_of(asked) == 100_002
    assert 2 * asked["npubs"] * asked["queues"] * count_of(asked) == 12_000_240


def test_more_at_an_exchange_than_descriptors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from exchange_simulation.messaging.benchmarks.perftest import points

    monkeypatch.setattr("resource.getrlimit", lambda _which: (150, 150))
    asked = {"size": 64, "queues": 1, "npubs": 50, "nsubs": 1, "mode": "topic", "transport": ("zeromq",)}
    with pytest.raises(UserError, match="a role that meets 50 others has up to two connections with each"):
        points(asked)
    whole = [{"size_bytes": 64, "exchanges": 1, "mode": "topic"}]
    assert points(asked | {"npubs": 40}) == whole
    assert points(asked | {"transport": ("amqp",)}) == whole, "at a broker a role has one connection"


def test_percentiles_are_there_from_16_bytes_on_and_the_mean_of_every_size(outcomes: dict[str, Outcome]) -> None:
    figures = {row["point"]["size_bytes"]: row["figures"] for row in outcomes["de-spsc"]["record"]["rows"]}
    assert "latency_p99_us" in figures[64]
    assert "latency_p99_us" not in figures[8]
    assert all(figures[size]["latency_mean_us"]["median"] > 0 for size in (8, 64))


def test_a_round_trip_s_percentiles_are_of_all_round_trips(outcomes: dict[str, Outcome]) -> None:
    for row in outcomes["de-pp"]["record"]["rows"]:
        for repeat in row["repeats"]:
            assert repeat["roles"]["publisher"]["latency_us"]["count"] == 20


def test_they_are_listed_and_shown_and_compared(results: Path, outcomes: dict[str, Outcome]) -> None:
    def exchange(*words: str) -> Any:
        return CliRunner().invoke(main, ["results", *words, "--results", str(results)])

    assert "bench de-spsc" in exchange("list").output
    shown = exchange("show", "0")
    assert shown.exit_code == 0
    assert "messages/s" in shown.output
    assert "B / A" in exchange("diff", "0", "0").output


def test_the_list_has_a_line_for_each_with_its_paper() -> None:
    listed = CliRunner().invoke(main, ["bench"], env={"COLUMNS": "250"}).output.splitlines()
    assert [line.split()[0] for line in listed] == names()
    assert all(f"[{benchmark_of(name).paper}]" in line for name, line in zip(names(), listed, strict=True))


def test_a_consumer_for_each_pattern_and_one_of_them_gets_everything(outcomes: dict[str, Outcome]) -> None:
    (row,) = outcomes["te-spsc, each"]["record"]["rows"]
    (repeat,) = row["repeats"]
    roles = repeat["roles"]
    received = {name: role["received"] for name, role in roles.items() if name != "publisher"}
    assert received == {"consumer": roles["publisher"]["sent"], "idle 1": 0, "idle 2": 0, "idle 3": 0}


def test_a_record_has_the_sums_of_links_that_differ_in_counts_only() -> None:
    """A record of many roles consisted mostly of their connections, one by one."""
    sockets = [
        {"local": f"here:{port}", "peer": "there:1", "tcp_nodelay": port < 12, "segments_out": port, "segments_in": 1}
        for port in range(10, 13)
    ]
    facts = [{"published": 5, "confirmed": None, "knobs": {"queue": "classic"}}] * 3
    record = _as_record(RoleResult(sockets=sockets, facts=facts))
    assert record["sockets"] == [
        {"tcp_nodelay": True, "segments_out": 21, "segments_in": 2, "many": 2},
        {"local": "here:12", "peer": "there:1", "tcp_nodelay": False, "segments_out": 12, "segments_in": 1},
    ]
    assert record["facts"] == [{"published": 15, "confirmed": None, "knobs": {"queue": "classic"}, "many": 3}]
    uncounted = RoleResult(sockets=[{"segments_out": None}, {"segments_out": 3}])
    assert _as_record(uncounted)["sockets"] == [{"segments_out": None}, {"segments_out": 3}]
    for has_broker, packets in ((True, 36), (False, 33)):
        for own in (sockets, record["sockets"]):
            assert _packets({"roles": {"client": {"sockets": own}}}, has_broker) == packets
