"""The tables' columns are derived from the kinds of records."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import pytest

from exchange.records import Int32
from spark.tables.schemas import experiment_and_part, part_file, schema_of


class Reading(TypedDict):
    place: str
    second: Int32
    count: int
    mean: float
    is_last: bool
    bucket: list[Int32]
    due_ns: NotRequired[int | None]
    new: NotRequired[Int32]


class Strange(TypedDict):
    second: Int32
    phase: complex


def test_a_field_is_a_column_of_its_type_null_if_optional() -> None:
    columns = {field.name: (str(field.type), field.nullable) for field in schema_of(Reading)}
    assert columns == {
        "place": ("string", False),
        "second": ("int32", False),
        "count": ("int64", False),
        "mean": ("double", False),
        "is_last": ("bool", False),
        "bucket": ("list<element: int32 not null>", False),
        "due_ns": ("int64", True),
        "new": ("int32", True),
    }


def test_a_type_that_no_column_can_have_is_refused_with_its_field() -> None:
    with pytest.raises(TypeError, match=r"^Strange\.phase is of type <class 'complex'>"):
        schema_of(Strange)


@pytest.mark.parametrize("experiment", ["alone", "köln", "a+b", "50%", "x=y&z", "[1] {2}", "0042"])
def test_a_file_s_name_gives_its_experiment_and_part_back(experiment: str) -> None:
    assert experiment_and_part(part_file("runs", experiment, 12)) == (experiment, 12)


@pytest.mark.parametrize("file", ["runs/part-0.parquet", "runs/experiment=a/part-x.parquet", "runs/a/part-0.parquet"])
def test_a_file_of_another_name_has_neither(file: str) -> None:
    assert experiment_and_part(file) is None
