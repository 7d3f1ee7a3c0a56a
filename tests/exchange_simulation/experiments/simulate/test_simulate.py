"""`exchange simulate` in one process: its results, its files and its errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from benchmarks.reference_book import ReferenceBook
from exchange.checksum import StreamChecksum
from exchange.messages import ASK, BID, Message, Order, Quote, Trade, decode_all
from exchange_simulation.experiments.events.tables import TABLES
from exchange_simulation.experiments.simulate.partitions import Matched, match_in_this_process
from exchange_simulation.experiments.simulate.simulate import TITLES, _totals
from exchange_simulation.experiments.simulate.simulation import Block, InstrumentMatcher, Simulation
from exchange_simulation.reports.tables import terminal
from gateway.seeds import instrument_seed
from tests.exchange_command import exchange, exchange_in_process
from tests.exchange_simulation.experiments.simulate.sample_simulations import events, result_of, rows, simulated

MARKET = ("--instruments", 7, "--orders", 30_003, "--seed", 5)


def test_tape_and_match_give_the_same_result_for_an_instrument_s_seed(tmp_path: Path) -> None:
    options = ("--prices", "440..560", "--price-model", "normal")
    assert (
        simulated(tmp_path, *MARKET, *options, "--max-price", 500, "--policy", "exact-price", "--name", "x").code == 0
    )
    row = rows(tmp_path / "x")[2]
    tape = tmp_path / "tape"
    exchange("tape", "--seed", row["seed"], "--orders", row["orders"], *options, "--output", tape)
    matched = exchange("match", tape, "--max-price", 500, "--policy", "exact-price", "--json").record
    for count in ("orders", "trades", "confirmations", "quotes", "rejections"):
        assert row[count] == matched[count], count
    assert row["rejections"] > 0
    assert row["orders_xxh64"] == matched["checksums"]["orders"]
    assert row["answers_xxh64"] == matched["checksums"]["answers"]


def test_a_keyboard_interrupt_of_spark_s_own_handler_ends_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: pyspark's handler raises where ours would have noted the signal, and the exit code was 1."""

    def interrupted(*_: object) -> Matched:
        raise KeyboardInterrupt

    monkeypatch.setattr("exchange_simulation.experiments.simulate.simulate._match", interrupted)
    finished = exchange_in_process("simulate", "--master", "none", *MARKET, "--results", tmp_path)
    assert finished.code == 130
    assert "Error: interrupted: a simulation is kept as a whole, or not at all" in finished.err
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class SecondInstrument:
    """The second instrument of a simulation, and the reference book that got the same orders."""

    row: dict[str, Any]
    trades: list[dict[str, Any]]
    quotes: list[dict[str, Any]]
    book: ReferenceBook
    answers: list[Message]
    """The reference's answers to all orders."""


@pytest.fixture(scope="module")
def second_instrument(tmp_path_factory: pytest.TempPathFactory) -> SecondInstrument:
    folder = tmp_path_factory.mktemp("simulation")
    options = ("--instruments", 2, "--orders", 1_000, "--events", "--rate", 2_000, "--name", "x")
    assert simulated(folder, *options).code == 0
    row = rows(folder / "x")[1]
    tape = folder / "tape"
    exchange("tape", "--seed", row["seed"], "--orders", 500, "--output", tape)
    book = ReferenceBook()
    answers: list[Message] = []
    for order in decode_all(tape.read_bytes()):
        assert isinstance(order, Order)
        answers += book.handle(order)
    trades = [trade for trade in events(folder / "x", "trades").to_pylist() if trade["instrument"] == 2]
    quotes = [quote for quote in events(folder / "x", "quotes").to_pylist() if quote["instrument"] == 2]
    return SecondInstrument(row=row, trades=trades, quotes=quotes, book=book, answers=answers)


def test_an_instrument_s_book_is_that_of_the_reference(second_instrument: SecondInstrument) -> None:
    row = second_instrument.row
    book = second_instrument.book
    resting_asks = [order.volume for order in book.resting(ASK)]
    resting_bids = [order.volume for order in book.resting(BID)]
    assert row["resting_asks"] == len(resting_asks)
    assert row["resting_ask_volume"] == sum(resting_asks)
    assert row["resting_bids"] == len(resting_bids)
    assert row["resting_bid_volume"] == sum(resting_bids)
    assert row["bid"] == book.best_bid
    assert row["ask"] == book.best_ask


def test_an_instrument_s_trades_are_those_of_the_reference(second_instrument: SecondInstrument) -> None:
    reference_trades = {}
    for sequence, answer in enumerate(second_instrument.answers, 1):
        if isinstance(answer, Trade):
            reference_trades[sequence] = answer
    assert second_instrument.trades
    for trade in second_instrument.trades:
        expected = Trade(trade["resting_id"], trade["price"], trade["volume"])
        assert reference_trades[trade["sequence"]] == expected
        assert trade["time_ns"] == (trade["incoming_id"] - 1) * 500_000  # 2,000 orders/s
    traded = sum(trade["volume"] for trade in second_instrument.trades)
    assert second_instrument.row["volume_traded"] == traded
    volume_of_both_sides = sum(trade.volume for trade in reference_trades.values())
    assert volume_of_both_sides == 2 * traded


def test_an_instrument_s_quotes_are_those_of_the_reference(second_instrument: SecondInstrument) -> None:
    """The reference has the prices 0 and 1,000 for a side without orders; the table has null."""
    reference_quotes = []
    for sequence, answer in enumerate(second_instrument.answers, 1):
        if isinstance(answer, Quote):
            reference_quotes.append((sequence, answer.bid, answer.ask))
    quotes = [(quote["sequence"], quote["bid"] or 0, quote["ask"] or 1_000) for quote in second_instrument.quotes]
    assert quotes == reference_quotes


def test_the_number_of_partitions_changes_only_the_number_of_files(tmp_path: Path) -> None:
    in_one = simulated(tmp_path, *MARKET, "--events", "--partitions", 1, "--name", "in 1").record
    assert in_one["events"]["trades"]["files"] == 1
    for partitions in (3, 7):
        name = f"in {partitions}"
        record = simulated(tmp_path, *MARKET, "--events", "--partitions", partitions, "--name", name).record
        assert result_of(record) == result_of(in_one)
        assert rows(tmp_path / name) == rows(tmp_path / "in 1")
        for table in TABLES:
            assert events(tmp_path / name, table) == events(tmp_path / "in 1", table), table
        assert record["events"]["trades"]["files"] == partitions


def test_orders_are_divided_among_instruments_and_totals_are_sums(tmp_path: Path) -> None:
    record = simulated(tmp_path, *MARKET, "--name", "x").record
    instruments = rows(tmp_path / "x")
    assert [row["instrument"] for row in instruments] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["orders"] for row in instruments] == [4287, 4286, 4286, 4286, 4286, 4286, 4286]
    assert [row["seed"] for row in instruments] == [instrument_seed(5, instrument) for instrument in range(1, 8)]
    assert record["totals"]["orders"] == 30_003
    assert record["totals"]["trades"] == sum(row["trades"] for row in instruments)
    checksum = sum(int(row["orders_xxh64"], 16) for row in instruments) % 2**64
    assert record["checksums"]["orders"] == f"{checksum:016x}"


def test_each_block_of_a_narrow_table_names_its_columns_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    spread = {"min": 1e9, "median": 1e9, "max": 1e9}
    record = {"totals": dict.fromkeys(TITLES, 1e10), "per_instrument": dict.fromkeys(TITLES, spread)}
    terminal().print(_totals(record))
    assert capsys.readouterr().out.count("an instrument") == 2


def test_another_seed_gives_another_market(tmp_path: Path) -> None:
    first = simulated(tmp_path, *MARKET, "--name", "x").record
    second = simulated(tmp_path, *MARKET[:4], "--seed", 6, "--name", "y").record
    assert first["checksums"] != second["checksums"]


def test_the_price_of_a_side_without_orders_is_null(tmp_path: Path) -> None:
    """Each book gets one order, so one of its sides is empty."""
    simulated(tmp_path, "--instruments", 40, "--orders", 40, "--name", "x")
    for row in rows(tmp_path / "x"):
        assert (row["bid"] is None) != (row["ask"] is None)


def test_small_files_are_numbered_and_hold_the_same_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (*MARKET, "--trades", "--quotes", "--partitions", 2)
    large = simulated(tmp_path, *options, "--name", "large").record
    monkeypatch.setattr("spark.tables.table_writer.ROWS_A_GROUP", 500)
    for name, size in (("BLOCK_ORDERS", 64), ("ROWS_A_FILE", 2_000)):
        monkeypatch.setattr(f"exchange_simulation.experiments.simulate.events.{name}", size)
    monkeypatch.setattr("exchange_simulation.experiments.simulate.partitions.BLOCK_ORDERS", 64)
    small = simulated(tmp_path, *options, "--name", "small").record
    for table in ("trades", "quotes"):
        assert events(tmp_path / "small", table) == events(tmp_path / "large", table)
        assert small["events"][table]["rows"] == large["events"][table]["rows"]
        names = {file.name for file in (tmp_path / "small" / "market" / table / "experiment=small").iterdir()}
        assert len(names) == small["events"][table]["files"]
        assert len(names) > large["events"][table]["files"]
        assert names == {f"part-{number}.parquet" for number in range(len(names))}
    assert small["events"]["quotes"]["rows"] == small["totals"]["quotes"]


def test_simulations_of_different_names_share_tables(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    assert simulated(tmp_path, *MARKET, "--quotes", "--tables", tables, "--name", "one").code == 0
    assert simulated(tmp_path, *MARKET, "--quotes", "--tables", f"file:{tables}", "--name", "two").code == 0
    quotes = ds.dataset(tables / "quotes", partitioning="hive").to_table(columns=["experiment", "run"])
    assert set(quotes["run"].to_pylist()) == {"one", "two"}
    assert quotes["experiment"].to_pylist() == quotes["run"].to_pylist()


def test_a_simulation_is_refused_if_the_tables_hold_its_name(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    assert simulated(tmp_path, *MARKET, "--quotes", "--tables", tables, "--name", "two").code == 0
    refused = simulated(tmp_path / "other", *MARKET, "--quotes", "--tables", tables, "--name", "two")
    assert refused.code == 2
    assert f"{tables} holds quotes of two already: choose another --name" in refused.err


def test_blocks_of_bounded_size_make_the_stream_of_the_row_s_checksum() -> None:
    matcher = InstrumentMatcher(Simulation(instruments=1, orders=10_000), by_order=True)
    checksum = StreamChecksum()
    longest = 0
    for block_or_row in matcher.match(1):
        if isinstance(block_or_row, Block):
            answers = block_or_row.answers.span(0, block_or_row.answers.count)
            checksum.update(answers)
            longest = max(longest, len(answers))
        else:
            row = block_or_row
    assert row.answers_xxh64 == checksum.hex
    assert longest < 150_000


def test_a_matcher_gives_the_same_row_for_the_same_instrument_again() -> None:
    matcher = InstrumentMatcher(Simulation(instruments=1, orders=10_000), by_order=True)
    first_row = list(matcher.match(1))[-1]
    second_row = list(matcher.match(1))[-1]
    assert first_row == second_row


def test_a_book_larger_than_memory_gets_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matching_engine.order_book.HIGHEST_CAPACITY", 1_000)
    few_trades = ("--price-model", "wide", "--max-price", 65534, "--policy", "exact-price")
    finished = simulated(tmp_path, "--instruments", 2, "--orders", 20_001, *few_trades)
    assert finished.code == 1
    assert list(tmp_path.iterdir()) == []
    assert "no memory for a book of 10,001 orders" in finished.err
    assert "give fewer orders, or more instruments" in finished.err


def test_an_instrument_whose_row_is_missing_is_an_error_about_instruments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All orders came back, so the error does not speak of orders."""

    def match_and_lose_a_row(*arguments: Any) -> Matched:
        matched = match_in_this_process(*arguments)
        rows_left = matched.rows.slice(1)
        orders = rows_left["orders"].to_numpy().copy()
        orders[0] += matched.rows["orders"][0].as_py()
        place = rows_left.schema.get_field_index("orders")
        column = pa.array(orders, rows_left.schema.field(place).type)
        return replace(matched, rows=rows_left.set_column(place, rows_left.schema.field(place), column))

    name = "exchange_simulation.experiments.simulate.simulate.match_in_this_process"
    monkeypatch.setattr(name, match_and_lose_a_row)
    finished = simulated(tmp_path, "--instruments", 3, "--orders", 300)
    assert finished.code == 1
    assert "2 of 3 instruments came back matched" in finished.err
    assert list(tmp_path.iterdir()) == []


# The error of each mistake, by the options. A folder of the name `there` exists.
REFUSED = {
    ("--instruments", "0"): "--instruments is 0; allowed is a whole number from 1 to 1,000,000",
    ("--instruments", "10", "--orders", "9"): "--orders is 9; allowed is a whole number from 10 to",
    ("--orders", "1.5"): "'1.5' is no whole number: give one, as 1000000, 1,000,000, 1M or 1e6",
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


@pytest.mark.parametrize("options", REFUSED)
def test_a_mistake_gets_an_error_and_leaves_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    finished = simulated(tmp_path, *options)
    assert finished.code == 2
    assert REFUSED[options] in finished.err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_numbers_may_have_an_exponent(tmp_path: Path) -> None:
    record = simulated(tmp_path, "--instruments", "1e1", "--orders", "1e4").record
    assert record["settings"]["orders"] == 10_000


def test_prices_outside_the_book_are_warned_of(tmp_path: Path) -> None:
    finished = simulated(tmp_path, "--instruments", 1, "--orders", 100, "--prices", "0..9")
    assert finished.err == "warning: --prices 0..9 leave the book's 1..999: such orders will be rejected\n"
