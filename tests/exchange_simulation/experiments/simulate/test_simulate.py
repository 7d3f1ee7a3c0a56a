"""`exchange simulate` in one process: what it computes, what it leaves, what it refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from benchmarks.reference_book import ReferenceBook
from exchange.checksum import StreamChecksum
from exchange.messages import Order, Quote, Trade, decode_all
from exchange_simulation.experiments.events import TABLES
from exchange_simulation.experiments.simulate.simulate import TITLES, _totals
from exchange_simulation.experiments.simulate.simulation import Block, InstrumentMatcher, InstrumentRow, Simulation
from exchange_simulation.reports.tables import terminal
from gateway.seeds import instrument_seed
from tests.exchange_command import exchange
from tests.exchange_simulation.experiments.simulate.sample_simulations import events, rows, same, simulated

MARKET = ("--instruments", 7, "--orders", 30_003, "--seed", 5)


def test_an_instrument_is_what_tape_and_match_make_of_its_seed(tmp_path: Path) -> None:
    words = ("--prices", "440..560", "--price-model", "normal", "--max-price", 500)
    assert simulated(tmp_path, *MARKET, *words, "--policy", "exact-price", "--name", "x").code == 0
    row = rows(tmp_path / "x")[2]
    tape = tmp_path / "tape"
    exchange("tape", "--seed", row["seed"], "--orders", row["orders"], *words, "--output", tape)
    matched = exchange("match", tape, "--max-price", 500, "--policy", "exact-price", "--json").record
    counts = ("orders", "trades", "confirmations", "quotes", "rejections")
    assert {name: row[name] for name in counts} == {name: matched[name] for name in counts}
    assert row["rejections"] > 0
    sums = {"orders": row["orders_xxh64"], "answers": row["answers_xxh64"]}
    assert sums == {name: matched["checksums"][name] for name in sums}


def test_volumes_books_and_events_are_the_reference_s(tmp_path: Path) -> None:
    words = ("--instruments", 2, "--orders", 1_000, "--events", "--rate", 2_000, "--name", "x")
    assert simulated(tmp_path, *words).code == 0
    row, book = rows(tmp_path / "x")[1], ReferenceBook()
    tape = tmp_path / "tape"
    exchange("tape", "--seed", row["seed"], "--orders", 500, "--output", tape)
    answers = [a for order in decode_all(tape.read_bytes()) if isinstance(order, Order) for a in book.handle(order)]
    expected = [answer for answer in answers if isinstance(answer, Trade)]
    assert row["volume_traded"] * 2 == sum(trade.volume for trade in expected)
    resting = {name: [o.volume for o in book.resting(side)] for side, name in ((1, "ask"), (2, "bid"))}
    for side, volumes in resting.items():
        assert (row[f"resting_{side}s"], row[f"resting_{side}_volume"]) == (len(volumes), sum(volumes))
    assert (row["bid"], row["ask"]) == (book.best_bid, book.best_ask)
    traded = [trade for trade in events(tmp_path / "x", "trades").to_pylist() if trade["instrument"] == 2]
    resting_trades = {(number, answer) for number, answer in enumerate(answers, 1) if isinstance(answer, Trade)}
    assert traded
    for trade in traded:
        assert (trade["sequence"], Trade(trade["resting_id"], trade["price"], trade["volume"])) in resting_trades
        assert trade["time_ns"] == (trade["incoming_id"] - 1) * 500_000
    assert sum(trade["volume"] for trade in traded) == row["volume_traded"]
    quoted = [quote for quote in events(tmp_path / "x", "quotes").to_pylist() if quote["instrument"] == 2]
    assert [(quote["sequence"], quote["bid"] or 0, quote["ask"] or 1_000) for quote in quoted] == [
        (number, answer.bid, answer.ask) for number, answer in enumerate(answers, 1) if isinstance(answer, Quote)
    ]


def test_the_number_of_partitions_changes_nothing(tmp_path: Path) -> None:
    records = [
        simulated(tmp_path, *MARKET, "--events", "--partitions", parts, "--name", f"in {parts}").record
        for parts in (1, 3, 7)
    ]
    assert all(same(records[0], record) for record in records[1:])
    assert rows(tmp_path / "in 1") == rows(tmp_path / "in 3") == rows(tmp_path / "in 7")
    for table in TABLES:
        assert len({events(tmp_path / f"in {parts}", table).to_pandas().to_csv() for parts in (1, 3, 7)}) == 1
    assert [record["events"]["trades"]["files"] for record in records] == [1, 3, 7]


def test_orders_and_totals_are_those_that_were_asked_for(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "x").record
    found = rows(tmp_path / "x")
    assert [row["instrument"] for row in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["orders"] for row in found] == [4287, 4286, 4286, 4286, 4286, 4286, 4286]
    assert [row["seed"] for row in found] == [instrument_seed(5, instrument) for instrument in range(1, 8)]
    assert record["totals"]["orders"] == 30_003
    assert record["totals"]["trades"] == sum(row["trades"] for row in found)
    assert record["checksums"]["orders"] == f"{sum(int(row['orders_xxh64'], 16) for row in found) % 2**64:016x}"


def test_the_second_block_of_a_narrow_table_is_of_an_instrument_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said `most` alone, and stood right below the first block."""
    monkeypatch.setenv("COLUMNS", "60")
    numbers = dict.fromkeys(("least", "median", "most"), 1e9)
    terminal().print(_totals({"totals": dict.fromkeys(TITLES, 1e10), "per_instrument": dict.fromkeys(TITLES, numbers)}))
    assert capsys.readouterr().out.count("an instrument") == 2


def test_another_seed_gives_another_market(tmp_path: Path) -> None:
    first = simulated(tmp_path, *MARKET, "--name", "x").record
    second = simulated(tmp_path, *MARKET[:4], "--seed", 6, "--name", "y").record
    assert first["checksums"] != second["checksums"]


def test_a_book_without_bids_or_asks_has_none_and_not_0(tmp_path: Path) -> None:
    simulated(tmp_path, "--instruments", 40, "--orders", 40, "--name", "x")
    found = rows(tmp_path / "x")
    assert all((row["bid"] is None) + (row["ask"] is None) == 1 for row in found)


def test_files_are_full_and_numbered_and_hold_every_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (*MARKET, "--trades", "--quotes", "--partitions", 2)
    whole = simulated(tmp_path, *words, "--name", "whole").record
    for name, size in (("BLOCK_ORDERS", 64), ("ROWS_A_GROUP", 500), ("ROWS_A_FILE", 2_000)):
        monkeypatch.setattr(f"exchange_simulation.experiments.simulate.events.{name}", size)
    monkeypatch.setattr("exchange_simulation.experiments.simulate.parts.BLOCK_ORDERS", 64)
    cut = simulated(tmp_path, *words, "--name", "cut").record
    for table in ("trades", "quotes"):
        assert events(tmp_path / "cut", table) == events(tmp_path / "whole", table)
        assert cut["events"][table]["rows"] == whole["events"][table]["rows"]
        files = sorted((tmp_path / "cut" / "market" / table / "experiment=cut").iterdir())
        assert len(files) == cut["events"][table]["files"] > whole["events"][table]["files"]
        assert {file.name for file in files} == {f"part-{number}.parquet" for number in range(len(files))}
    assert cut["events"]["quotes"]["rows"] == cut["totals"]["quotes"]


def test_tables_of_two_simulations_lie_side_by_side_but_not_under_one_name(tmp_path: Path) -> None:
    """A file: URL with one stroke once made a folder of that name."""
    for name, tables in (("one", tmp_path / "tables"), ("two", f"file:{tmp_path}/tables")):
        assert simulated(tmp_path, *MARKET, "--quotes", "--tables", tables, "--name", name).code == 0
    again = simulated(tmp_path / "other", *MARKET, "--quotes", "--tables", tmp_path / "tables", "--name", "two")
    assert again.code == 2
    assert f"{tmp_path}/tables holds quotes of two already: choose another --name" in again.err
    there = ds.dataset(tmp_path / "tables" / "quotes", partitioning="hive").to_table(columns=["experiment", "run"])
    assert Counter(there["experiment"].to_pylist()) == Counter(there["run"].to_pylist())
    assert set(there["run"].to_pylist()) == {"one", "two"}


def test_blocks_are_of_bounded_memory_and_give_the_stream_of_one_piece() -> None:
    simulation, taken = Simulation(instruments=1, orders=10_000), StreamChecksum()
    matcher, longest = InstrumentMatcher(simulation, by_order=True), 0
    *_, row = matcher.match(1)
    for block in matcher.match(1):
        if isinstance(block, Block):
            answers = block.answers.span(0, block.answers.count)
            taken.update(answers)
            longest = max(longest, len(answers))
    assert isinstance(row, InstrumentRow)
    assert (taken.hex, longest < 150_000) == (row.answers_xxh64, True)
    assert list(matcher.match(1))[-1] == row


def test_a_book_that_no_memory_holds_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matching_engine.order_book.HIGHEST_CAPACITY", 1_000)
    hardly_meeting = ("--price-model", "wide", "--max-price", 65534, "--policy", "exact-price")
    said = simulated(tmp_path, "--instruments", 2, "--orders", 20_001, *hardly_meeting)
    assert (said.code, list(tmp_path.iterdir())) == (1, [])
    assert "no memory for a book of 10,001 orders" in said.err
    assert "give fewer orders, or more instruments" in said.err


REFUSED = {
    ("--instruments", "0"): "--instruments is 0; allowed is a whole number from 1 to 1,000,000",
    ("--instruments", "10", "--orders", "9"): "--orders is 9; allowed is a whole number from 10 to",
    ("--orders", "1.5"): "'1.5' is no whole number: give one, as 1000000, 1M or 1e6",
    ("--orders", "many"): "'many' is no whole number",
    ("--orders", "1e999999999"): "'1e999999999' is no whole number",
    ("--orders", "nan"): "'nan' is no whole number",
    ("--orders", "-1e3"): "--orders is -1000; allowed is",
    ("--seed", "-1"): "--seed is -1; allowed is",
    ("--prices", "9..1"): "--prices is 9..1; allowed is",
    ("--max-price", "65535"): "--max-price is 65535; allowed is",
    ("--instruments", "3", "--partitions", "4"): "partitions is 4; allowed is a whole number from 1 to 3",
    ("--name", "a/b"): "'a/b' is no name for a run",
    ("--tables", "x"): "--tables is a place for events: give --trades, --quotes or --events, too",
    ("--trades", "--tables", "s3a://x/y"): "--master none writes to this machine only",
    ("--trades", "--rate", "0"): "0 is not in the range",
    ("--name", "there"): "exists already: choose another name",
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_mistake_is_a_sentence_and_leaves_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    said = simulated(tmp_path, *words)
    assert said.code == 2
    assert REFUSED[words] in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_1e4_is_ten_thousand(tmp_path: Path) -> None:
    assert simulated(tmp_path, "--instruments", "1e1", "--orders", "1e4").record["settings"]["orders"] == 10_000


def test_prices_outside_the_book_are_warned_of(tmp_path: Path) -> None:
    said = simulated(tmp_path, "--instruments", 1, "--orders", 100, "--prices", "0..9")
    assert said.err == "warning: --prices 0..9 leave the book's 1..999: such orders will be rejected\n"
