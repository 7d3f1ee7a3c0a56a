"""What `exchange run --spark` prints of the sampled orders, from tables as Spark makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from exchange_simulation.reports.formats.numbers import ABSENT
from exchange_simulation.reports.run.samples_table import show_samples

FIGURES = {"mean_us": 120.0, "p50_us": 110.0, "p50_low_us": 105.0, "p50_high_us": 116.0, "max_us": 3_000.0}
RECORD = {"counts": {"orders_answered": 40_000}, "settings": {"orders_per_s": 8_000.0}}


def sampled_row(second: int, samples: int, source: str = "gateway") -> dict[str, Any]:
    return {"source": source, "second": second, "samples": samples, **FIGURES}


def write_tables(folder: Path, *sampled: dict[str, Any]) -> None:
    tables = folder / "tables"
    tables.mkdir()
    figures = {**FIGURES, "samples": sum(row["samples"] for row in sampled)}
    pq.write_table(pa.Table.from_pylist(sampled), tables / "sample_seconds.parquet")
    pq.write_table(pa.Table.from_pylist([figures]), tables / "sample_summary.parquet")
    seconds = [{"second": second, "due_p50_us": 101.0 + second} for second in range(20)]
    pq.write_table(pa.Table.from_pylist(seconds), tables / "seconds.parquet")
    pq.write_table(pa.Table.from_pylist([{"due_p50_us": 99.0}]), tables / "summary.parquet")


def shown(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_each_second_stands_beside_the_median_of_all_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tables(tmp_path, sampled_row(0, 80), sampled_row(1, 80))
    show_samples(tmp_path, RECORD)
    title, heads, *rows = shown(capsys)
    assert " ".join(title) == "Spark's figures of 160 sampled orders of 40,000, microseconds from due"
    assert heads[:3] == ["second", "samples", "p50"]
    assert rows == [
        ["0", "80", "110", "105", "to", "116", "120", "3,000", "101"],
        ["1", "80", "110", "105", "to", "116", "120", "3,000", "102"],
        ["all", "160", "110", "105", "to", "116", "120", "3,000", "99"],
    ]


def test_a_run_with_a_warm_up_has_no_median_of_all_orders_beside_that_of_all_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run's median leaves out the warm-up, which is among the samples."""
    write_tables(tmp_path, sampled_row(0, 80), sampled_row(1, 80))
    show_samples(tmp_path, {**RECORD, "settings": {"orders_per_s": 8_000.0, "warm_up_s": 1.0}})
    *_, second, whole = shown(capsys)
    assert second[-1] == "102"
    assert whole[-1] == ABSENT


def test_too_few_samples_name_the_interval_that_gives_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables(tmp_path, sampled_row(0, 2), sampled_row(1, 2))
    show_samples(tmp_path, RECORD)
    _, advice, _, *rows = shown(capsys)
    assert " ".join(advice) == "4 samples say little: --sampling-interval 400 gives 100 samples"
    assert [row[0] for row in rows] == ["all"]


@pytest.mark.parametrize(
    "sampled",
    [
        [sampled_row(second, 80) for second in range(13)],
        [sampled_row(0, 80), sampled_row(0, 80, source="gateway.2")],
    ],
    ids=["long run", "two gateways"],
)
def test_many_rows_are_left_to_the_table_on_disk(
    tmp_path: Path, sampled: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    write_tables(tmp_path, *sampled)
    show_samples(tmp_path, RECORD)
    _, place, _, *rows = shown(capsys)
    assert str(tmp_path / "tables" / "sample_seconds.parquet") in " ".join(place)
    assert [row[0] for row in rows] == ["all"]
