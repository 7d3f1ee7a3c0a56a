"""Runs of several gateways at one engine: what each sends and gets, and what the engine's kept input reproduces."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reference_book import ReferenceBook
from exchange.market_ids import gateway_of, number_of
from exchange.messages import Message, Quote, decode_all, encode
from exchange.settings import RunSettings
from exchange_simulation.experiments.comparison_arms import comparison_arms
from exchange_simulation.reports.formats.fairness import fairness_rows
from gateway.seeded_orders import SeededOrders
from gateway.seeds import instrument_seed
from spark.run_facts import facts_of
from tests.exchange_command import (
    VALID_STATUSES,
    command,
    exchange,
    exchange_in_process,
    run_exchange,
    run_exchange_in_process,
)

pytestmark = pytest.mark.xdist_group("gateways")

MIX = ("--mix", "limit=50,cancel=30,replace=10,market=5,ioc=5", "--price-model", "two-sided")


def answers_path(folder: Path, gateway: int, stem: str = "answers") -> Path:
    return folder / (f"{stem}.bin" if gateway == 1 else f"{stem}.{gateway}.bin")


def answers_by_the_reference_book(orders: bytes, gateways: int, with_ids: bool, quotes_to: str = "all") -> list[bytes]:
    """Match the input plainly, and give each answer to the gateway whose order it names, a quote to all or to none."""
    book = ReferenceBook(with_ids=with_ids, is_shared=True)
    streams = [b""] * gateways
    for order in decode_all(orders):
        for answer in book.handle(order):
            if isinstance(answer, Quote):
                if quotes_to == "all":
                    streams = [stream + encode(answer) for stream in streams]
                continue
            own: Message = answer._replace(id=number_of(answer.id))
            streams[gateway_of(answer.id) - 1] += encode(own)
    return streams


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Three gateways over memory: the folder of the run, and its record."""
    results = tmp_path_factory.mktemp("three")
    words = ("--gateways", 3, "--rate", 6000, "--orders", 4000, "--seed", 7, "--record", "--name", "run")
    finished = run_exchange_in_process(results, *words)
    assert finished.code == 0, finished.err
    return results / "run", finished.record


def test_gateways_share_the_orders_and_the_rate_of_the_market(three: tuple[Path, dict[str, Any]]) -> None:
    _, record = three
    assert record["status"] in VALID_STATUSES, record["reasons"]
    assert [entry["orders"]["messages"] for entry in record["gateways"]] == [1334, 1333, 1333]
    assert record["counts"]["orders_sent"] == 4000
    assert record["rates"]["offered_orders_per_s"] == 6000
    assert sum(entry["share"] for entry in record["gateways"]) == pytest.approx(1)


def test_every_stream_is_conserved_for_each_gateway_and_in_all(three: tuple[Path, dict[str, Any]]) -> None:
    _, record = three
    for entry in record["gateways"]:
        assert entry["status"] in VALID_STATUSES
        assert entry["engine"]["orders"] == entry["orders"]
        assert entry["engine"]["answers"] == entry["answers"]
        assert entry["orders_answered"] == entry["orders"]["messages"]
        assert entry["completion_us"]["due"]["count"] == entry["orders"]["messages"] - 1
    assert record["counts"]["answers_sent"] == record["counts"]["answers_received"]
    total = sum(int(entry["answers"]["checksum"], 16) for entry in record["gateways"]) % 2**64
    assert int(record["checksums"]["answers"], 16) == total


def test_a_gateway_s_orders_are_a_function_of_seed_and_number(three: tuple[Path, dict[str, Any]]) -> None:
    folder, record = three
    seeds = [7, instrument_seed(7, 2), instrument_seed(7, 3)]
    assert [entry["seed"] for entry in record["gateways"]] == seeds
    for gateway, seed in enumerate(seeds, start=1):
        orders = answers_path(folder, gateway, "orders").read_bytes()
        expected = SeededOrders.of(RunSettings(seed=seed)).records(1, 1334 if gateway == 1 else 1333)
        assert orders == expected


@pytest.mark.parametrize("seed", [1, 2])  # the threads interleave otherwise each time
@pytest.mark.parametrize("mix", [(), MIX], ids=["plain", "mix"])
@pytest.mark.parametrize("quotes_to", ["all", "none"])
def test_the_kept_input_reproduces_every_gateway_s_answers(
    tmp_path: Path, seed: int, mix: tuple[str, ...], quotes_to: str
) -> None:
    words = ("--gateways", 3, "--rate", "max", "--orders", 3000, "--seed", seed, "--record", "--name", "run")
    finished = run_exchange_in_process(tmp_path, *words, *mix, "--quotes-to", quotes_to)
    assert finished.code == 0, finished.err
    folder = tmp_path / "run"
    received = [answers_path(folder, gateway).read_bytes() for gateway in (1, 2, 3)]

    kept = (folder / "input.bin").read_bytes()
    by_reference = answers_by_the_reference_book(kept, 3, bool(mix), quotes_to)
    assert by_reference == received

    matched = tmp_path / "matched.bin"
    with_ids = ("--ids",) if mix else ()
    words = ("match", folder / "input.bin", "--gateways", 3, "--answers", matched, "--json", *with_ids)
    record = exchange(*words, "--quotes-to", quotes_to).record
    by_match = [answers_path(tmp_path, gateway, "matched").read_bytes() for gateway in (1, 2, 3)]
    assert by_match == received
    checksums = [entry["answers"]["checksum"] for entry in finished.record["gateways"]]
    assert [entry["checksum"] for entry in record["gateways"]] == checksums


def test_the_input_has_each_gateway_s_orders_in_its_own_order(three: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = three
    by_gateway: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for order in decode_all((folder / "input.bin").read_bytes()):
        by_gateway[gateway_of(order.id)].append(number_of(order.id))
    assert by_gateway == {1: [*range(1, 1335)], 2: [*range(1, 1334)], 3: [*range(1, 1334)]}


def test_one_gateway_has_the_same_bytes_as_ever(tmp_path: Path) -> None:
    words = ("--rate", "max", "--orders", 2000, "--record")
    plain = run_exchange_in_process(tmp_path, *words, "--name", "plain")
    one = run_exchange_in_process(tmp_path, *words, "--gateways", 1, "--name", "one")
    assert one.record["checksums"] == plain.record["checksums"]
    assert "gateways" not in one.record
    assert not (tmp_path / "one" / "input.bin").exists()


TRANSPORTS = (
    "zeromq",
    "zeromq?calls=plain",
    "tcp",
    "shm",
    "nng",
    pytest.param("nats", marks=pytest.mark.long),
    pytest.param("redis", marks=pytest.mark.long),
    pytest.param("amqp", marks=pytest.mark.long),
)


def test_without_quotes_each_gateway_gets_the_answers_to_its_orders_alone(tmp_path: Path) -> None:
    """Processes over zeromq, where compiled turns route the answers."""
    words = ("--gateways", 2, "--rate", 4000, "--orders", 2000, "--timeout", 30, "--quotes-to", "none")
    finished = run_exchange(tmp_path, *words, "--record", "--name", "run")
    assert finished.code == 0, finished.err
    assert finished.record["counts"]["quotes"] == 0
    kept = (tmp_path / "run" / "input.bin").read_bytes()
    received = [answers_path(tmp_path / "run", gateway).read_bytes() for gateway in (1, 2)]
    assert answers_by_the_reference_book(kept, 2, False, "none") == received


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_input_of_processes_reproduces_every_gateway_s_answers(tmp_path: Path, transport: str) -> None:
    """Over a transport that lends its calls, compiled turns serve the gateways."""
    words = ("--transport", transport, "--gateways", 2, "--rate", 4000, "--orders", 2000, "--timeout", 30)
    finished = run_exchange(tmp_path, *words, *MIX, "--record", "--name", "run")
    assert finished.code == 0, finished.err
    assert finished.record["status"] in VALID_STATUSES, finished.record["reasons"]
    for entry in finished.record["gateways"]:
        assert entry["engine"]["answers"] == entry["answers"]
    folder = tmp_path / "run"
    received = [answers_path(folder, gateway).read_bytes() for gateway in (1, 2)]
    kept = (folder / "input.bin").read_bytes()
    assert answers_by_the_reference_book(kept, 2, with_ids=True) == received


REFUSED = [
    (("--gateways", 0), "--gateways is 0"),
    (("--gateways", 17), "--gateways is 17"),
    (("--quotes-to", "none"), "--quotes-to is none; allowed is all with --gateways 1"),
    (("--gateways", 2, "--pairs", 2), "--gateways is 2; allowed is 1 with --pairs: each pair has one gateway"),
    (("--gateways", 2, "--recover"), "--gateways is 2; allowed is 1 with --recover"),
    (("--gateways", 2, "--standby"), "--gateways is 2; allowed is 1 with --standby"),
    (("--gateways", 2, "--journal", "kept"), "--gateways is 2; allowed is 1 with --journal"),
    (("--gateways", 2, "--packing", 10), "--gateways is 2; allowed is 1 with --packing"),
    (("--gateways", 2, "--orders", 1), "--orders is 1; allowed is at least one for each gateway, 2"),
    (("--gateways", 2, "--transport", "tcp://127.0.0.1:7000"), "leave out --gateways"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_what_does_not_go_with_gateways_is_refused_by_a_sentence(
    tmp_path: Path, words: tuple[object, ...], sentence: str
) -> None:
    finished = run_exchange_in_process(tmp_path, "--transport", "memory", *words)
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    assert not list(itertools.chain(tmp_path.iterdir()))


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (("--gateways", 16), "--gateways is 16: for that a process may need 320 open files"),
        (("--instruments", 99, "--engines", 16), "--engines is 16: for that a process may need 320 open files"),
        (("--subscribers", 32), "--subscribers is 32: for that a process may need 272 open files"),
        (
            ("--instruments", 9, "--gateways", 9, "--engines", 2),
            "--gateways is 9, --engines is 2: for that a process may need 224 open files",
        ),
    ],
)
def test_more_components_than_open_files_allow_are_refused_by_a_sentence(
    tmp_path: Path, options: tuple[object, ...], numbers: str
) -> None:
    run = command("run", *options, "--results", tmp_path)
    finished = subprocess.run(
        ["bash", "-c", 'ulimit -n 200; exec "$@"', "bash", *run], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 2
    words = " ".join(finished.stderr.split())
    assert f"{numbers}, and this system allows 200: raise that with ulimit -n" in words
    assert not list(tmp_path.iterdir())


def test_transports_are_compared_at_each_number_of_gateways() -> None:
    arms = comparison_arms(["zeromq", "tcp"], [2000.0], 1.0, {}, [1, 4])
    assert [arm.label for arm in arms] == [
        "zeromq at 2,000 orders/s, 1 gateway",
        "tcp at 2,000 orders/s, 1 gateway",
        "zeromq at 2,000 orders/s, 4 gateways",
        "tcp at 2,000 orders/s, 4 gateways",
    ]
    assert [arm.settings.gateways for arm in arms] == [1, 1, 4, 4]
    assert comparison_arms(["zeromq", "tcp"], [2000.0], 1.0, {})[0].label == "zeromq at 2,000 orders/s"


def test_a_sweep_varies_the_number_of_gateways(tmp_path: Path) -> None:
    words = ("sweep", "--gateways", "1,4", "--rates", 2000, "--dry-run", "--results", tmp_path)
    finished = exchange_in_process(*words)
    assert finished.code == 0, finished.err
    assert "gateways 4 at 2,000 orders/s" in finished.out + finished.err


def test_terminal_and_page_show_the_fairness(three: tuple[Path, dict[str, Any]]) -> None:
    folder, record = three
    shown = exchange_in_process("report", folder)
    assert shown.code == 0, shown.err
    assert "gateway  status" in shown.out
    page = (folder / "report.html").read_text()
    assert "Gateways: share of the orders" in page
    for entry in record["gateways"]:
        assert f"{100 * entry['share']:.2f} %" in page


def test_of_many_gateways_the_best_the_median_and_the_worst_are_shown() -> None:
    entries = [{"gateway": n, "status": "complete", "completion_us": {"due": {"p99": 100.0 * n}}} for n in range(1, 17)]
    assert [row.title for row in fairness_rows(entries)] == ["1, best", "9, median", "16, worst"]


def test_spark_adds_up_the_seconds_of_all_gateways(three: tuple[Path, dict[str, Any]]) -> None:
    folder, record = three
    assert facts_of(folder, record).gateways == 3
