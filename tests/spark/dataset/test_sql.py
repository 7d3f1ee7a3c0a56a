"""`exchange spark sql`: tables by name, four outputs, and mistakes in a sentence."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.dataset.conftest import Dataset, SparkCommand

pytestmark = [pytest.mark.jvm, pytest.mark.xdist_group("second Spark session")]

ORDERS = "select experiment, run, sum(orders_sent) as orders from traffic group by all order by experiment, run"
EXPECTED = [("a-trial", "first", 201), ("a-trial", "second", 401), ("alone", "run [2]", 1001)]
MISTAKES = [
    ("selec 1", "this SQL does not parse: "),
    ("select * from trade", "there is no table trade; there are: arms, comparison, completion"),
    ("select cpu from summary", "there is no column cpu; near it are: "),
    ("drop view traffic", "this SQL would write"),
    ("/* a /* b */ show views */ drop view traffic", "this SQL would write"),
    ("select 1; " + "-" * 80 + "\nselect 2", "this SQL does not parse: "),
    ("; -- nothing", "this SQL does not parse: "),
    ("create table x as select 1", "this SQL would write"),
    ("insert into traffic select * from traffic", "this SQL would write"),
    ("select sum(arm, 1) from arms", "this SQL cannot be answered: "),
]


def test_tables_have_their_names_and_every_run_its_orders(dataset: Dataset, spark_command: SparkCommand) -> None:
    done = spark_command("sql", ORDERS, "--tables", dataset.folder.url)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0] == ["experiment", "run", "orders"]
    assert [(line[0], " ".join(line[1:-1]), int(line[-1])) for line in lines[1:-1]] == EXPECTED
    assert lines[-1] == ["3", "rows"]


def test_rows_of_one_run_name_it_once_above_the_table(dataset: Dataset, spark_command: SparkCommand) -> None:
    statement = "select experiment, run, second, orders_sent from traffic where run = 'run [2]' order by second"
    done = spark_command("sql", statement, "--tables", dataset.folder.url)
    lines = done.stdout.splitlines()
    assert lines[0] == "experiment alone, run run [2]"
    assert lines[1].split() == ["second", "orders_sent"]
    assert [line.split()[0] for line in lines[2:-1]] == [str(second) for second in range(len(lines) - 3)]


def test_csv_json_and_parquet_hold_the_same_rows(dataset: Dataset, spark_command: SparkCommand, tmp_path: Path) -> None:
    where, file = ("--tables", dataset.folder.url), tmp_path / "orders.parquet"
    (tmp_path / "orders.sql").write_text(ORDERS)
    as_csv = spark_command("sql", "--file", tmp_path / "orders.sql", "--csv", *where).stdout
    as_json = spark_command("sql", ORDERS, "--json", *where).stdout
    assert spark_command("sql", ORDERS, "--parquet", file, *where).exit_code == 0
    rows = [dict(zip(("experiment", "run", "orders"), row, strict=True)) for row in EXPECTED]
    assert [row | {"orders": int(row["orders"])} for row in csv.DictReader(io.StringIO(as_csv))] == rows
    assert list(map(json.loads, as_json.splitlines())) == rows
    assert pq.read_table(file).to_pylist() == rows
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(("statement", "message"), MISTAKES)
def test_a_mistake_in_sql_is_one_sentence(
    dataset: Dataset, spark_command: SparkCommand, statement: str, message: str
) -> None:
    done = spark_command("sql", statement, "--tables", dataset.folder.url)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "SQLSTATE" not in done.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "-- which\nshow views; -- all",
        "/* which */ show views",
        "select 1; -- one\n",
        "select ';--x' as text;; /* all */",
        "with a as (select 1) from a",
    ],
)
def test_a_statement_may_have_comments_and_an_end(
    dataset: Dataset, spark_command: SparkCommand, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "statement.sql").write_text(statement)
    done = spark_command("sql", "--file", tmp_path / "statement.sql", "--tables", dataset.folder.url)
    assert done.exit_code == 0, done.output


def test_a_list_is_for_json_and_not_for_csv(dataset: Dataset, spark_command: SparkCommand) -> None:
    where = ("--tables", dataset.folder.url)
    refused = spark_command("sql", "select bucket from completion", "--csv", *where)
    assert "bucket" in refused.stderr
    assert "use --json" in refused.stderr
    assert "values]" in spark_command("sql", "select bucket from completion limit 1", *where).stdout


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_columns_of_one_name_are_refused_where_one_would_hide_the_other(
    output: tuple[str, ...], dataset: Dataset, spark_command: SparkCommand
) -> None:
    statement = "select a.run, b.run from summary a join summary b using (experiment)"
    refused = spark_command("sql", statement, *output, "--tables", dataset.folder.url)
    assert refused.exit_code == 2
    assert "two columns are called run: name one of them with AS, or use --csv" in refused.stderr


def test_tables_that_are_not_there_are_named(spark_command: SparkCommand, tmp_path: Path) -> None:
    done = spark_command("sql", "select 1", "--tables", tmp_path)
    assert done.exit_code == 2
    assert f"no runs have tables at file://{tmp_path}: make them first, with exchange spark ingest" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no statement: give one as an argument, or with --file"),
        (["select 1", "--file", "-"], "--file and the argument are two statements: give one of them"),
        (["select 1", "--csv", "--parquet", "x"], "--csv and --parquet are two outputs: give one"),
    ],
)
def test_one_statement_and_one_output_are_asked_for(
    spark_command: SparkCommand, words: list[str], message: str
) -> None:
    done = spark_command("sql", *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_exports_hold_more_rows_than_the_driver_could(
    dataset: Dataset, spark_command: SparkCommand, tmp_path: Path
) -> None:
    """Each of the 400,000 rows has 4 KB of text: 1.6 GB, where Spark's driver has 1 GB."""
    statement = "select id, repeat(uuid(), 110) as text from range(400000)"
    where = ("--tables", dataset.folder.url)
    done = spark_command("sql", statement, "--parquet", tmp_path / "rows.parquet", *where)
    assert done.exit_code == 0, done.output
    assert "400,000 rows" in done.stdout
    assert pq.read_table(tmp_path / "rows.parquet", columns=["id"])["id"].to_pylist() == list(range(400_000))
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("output", ["--csv", "--json"])
def test_rows_keep_their_order_and_their_types_in_exports(
    dataset: Dataset, spark_command: SparkCommand, output: str
) -> None:
    statement = (
        "select id, id / 4 as share, timestamp_seconds(id) as at, null as nothing from range(50000) order by id desc"
    )
    done = spark_command("sql", statement, output, "--tables", dataset.folder.url)
    lines = done.stdout.splitlines()
    if output == "--json":
        rows = list(map(json.loads, lines))
        assert rows[0] == {"id": 49_999, "share": 12_499.75, "at": "1970-01-01 13:53:19+00:00", "nothing": None}
    else:
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert rows[0] == {"id": "49999", "share": "12499.75", "at": "1970-01-01 13:53:19.000000Z", "nothing": ""}
    assert [int(row["id"]) for row in rows] == list(range(49_999, -1, -1))
