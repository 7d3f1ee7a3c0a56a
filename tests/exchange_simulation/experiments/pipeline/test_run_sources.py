"""Finding the runs below a folder, also beside damaged records. No JVM is started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from exchange_simulation.experiments.pipeline.run_sources import find_runs


def run_of(results: Path, name: str, **fields: Any) -> Path:
    """A folder with a record and an empty spool."""
    folder = results / name
    (folder / "spool").mkdir(parents=True)
    record = {"schema": 1, "name": "x", "status": "complete", "reasons": [], "settings": {"transport": "tcp"}}
    (folder / "run.json").write_text(json.dumps(record | fields))
    return folder


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"settings": {"arrivals": "x\x1b"}}, "'x\\x1b' are no arrivals - at `$.settings.arrivals`"),
        ({"settings": {"pairs": 10**12}}, "settings.pairs is 1000000000000"),
    ],
)
def test_a_damaged_record_is_left_out_and_other_runs_are_found(
    tmp_path: Path, fields: dict[str, Any], named: str
) -> None:
    good = run_of(tmp_path, "good")
    strange = run_of(tmp_path, "strange", **fields)
    sources = find_runs(tmp_path)
    assert [source.spool.parent for source in sources.sources] == [good]
    assert list(sources.left_out) == [str(strange)]
    assert f"{strange / 'run.json'} is damaged: {named}" in sources.left_out[str(strange)]


def test_a_run_whose_name_is_no_utf8_is_left_out(tmp_path: Path) -> None:
    good = run_of(tmp_path, "good")
    run_of(tmp_path, os.fsdecode(b"bad\xff"))
    sources = find_runs(tmp_path)
    assert [source.spool.parent for source in sources.sources] == [good]
    (reason,) = sources.left_out.values()
    assert "is no UTF-8: rename it" in reason
