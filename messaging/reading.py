"""Reads bench.json back: it is there from the first measurement on, and says whether the benchmark came to its end."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.study_records import BenchRecord
from runs.record.reading import read_record

FILE = "bench.json"


def read(folder: Path) -> Record:
    """bench.json's content."""
    return read_record(folder / FILE, BenchRecord)
