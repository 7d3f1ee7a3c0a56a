"""The names of files in tables of many runs, written and read back."""

from __future__ import annotations

import pytest

from spark.errors import DatasetUnreadableError
from spark.tables.paths import experiment_and_part, part_file


@pytest.mark.parametrize("experiment", ["alone", "köln", "a+b", "50%", "x=y&z", "[1] {2}", "0042"])
def test_a_file_s_name_gives_its_experiment_and_part_back(experiment: str) -> None:
    assert experiment_and_part(part_file("runs", experiment, 12)) == (experiment, 12)


@pytest.mark.parametrize("file", ["runs/part-0.parquet", "runs/experiment=a/part-x.parquet", "runs/a/part-0.parquet"])
def test_a_file_of_another_name_is_refused_by_its_name(file: str) -> None:
    with pytest.raises(DatasetUnreadableError) as refusal:
        experiment_and_part(file)
    assert file in str(refusal.value)
