"""Reads the files of a run: its record, the settings in it, and its spool. Errors say why a file is unusable."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import click

from exchange.instances import instance_of
from exchange.json_records import DAMAGED, Record, UnusableRecord, cleaned
from exchange.measurements import LogBuckets
from exchange.record_kinds import decode_record
from exchange.records import COMPLETION, NEEDED_BY_FIGURES, TRAFFIC, decode_line
from exchange.second_columns import COUNTS
from exchange.seconds import Once, is_analysed, merged_by, sum_by_name
from exchange.settings import RunSettings
from exchange.words import printable
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.files import read_own_file

UNFINISHED = "unfinished"
"""The status of a folder whose run or measurement has left no record yet."""
Spool = dict[str, list[Record]]
"""A run's records by kind, each in order of arrival; a key for each kind of NEEDED_BY_FIGURES."""


class Unusable(click.ClickException):
    """A record that cannot be used; `status` is unfinished, damaged or newer."""

    def __init__(self, path: Path, status: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.status = status
        self.reason = f"{path.name} {why}"

    def format_message(self) -> str:
        return printable(self.message)


def read_record(path: Path, kind: type) -> Record:
    """Return the file's record, checked against `kind`, its texts printable. Unusable if it is damaged or newer."""
    if path.exists() and not path.is_file():
        raise Unusable(path, DAMAGED, "is no file")
    try:
        return cast(Record, cleaned(decode_record(read_own_file(path), kind)))
    except RecursionError as error:
        raise Unusable(path, DAMAGED, "is damaged: it is nested too deeply") from error
    except OSError as error:
        raise Unusable(path, DAMAGED, f"cannot be read: {error.strerror}") from error
    except UnusableRecord as error:
        raise Unusable(path, error.status, str(error)) from error


def record_for_report(path: Path, kind: type) -> Record:
    """Read a record as `read_record` does. UserError, since the user can make the report without a damaged record."""
    try:
        return read_record(path, kind)
    except Unusable as error:
        raise UserError(_with_advice(error.message, error.status)) from error


def damaged_file_error(where: str, why: str) -> UserError:
    """Return the error about a file that cannot be used for a report."""
    return UserError(_with_advice(f"{where} {why}", DAMAGED))


def _with_advice(sentence: str, status: str) -> str:
    if status != DAMAGED:
        return sentence
    return f"{sentence}; restore it, or move it away and make the report of what is left"


ERRORS_OF_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that a wrong value in a record causes in code that relies on the value."""


@contextlib.contextmanager
def damage_named(folder: Path, *others: Path) -> Iterator[None]:
    """Turn an error of ERRORS_OF_DAMAGE in the context into Unusable, which names the folders."""
    try:
        yield
    except ERRORS_OF_DAMAGE as error:
        or_others = "".join(f"or {other} " for other in others)
        raise Unusable(
            folder, DAMAGED, f"{or_others}holds a damaged record: {type(error).__name__}: {error}"
        ) from error


FIELDS_BESIDE_SETTINGS = {"url"}
"""Fields of a record's `settings` that are no settings: the URL of the run's links."""


class UnknownSettings(ValueError):
    """A record holds settings that this version does not have."""


def settings_as_written(written: Mapping[str, Any]) -> RunSettings:
    """Return the settings of a record; a setting that the record lacks has its default.

    UnknownSettings for a setting that this version lacks; BadSetting or TypeError for a bad value.
    """
    known = {field.name for field in fields(RunSettings)}
    unknown = sorted(written.keys() - known - FIELDS_BESIDE_SETTINGS)
    if unknown:
        raise UnknownSettings(f"this version of exchange has no setting {', '.join(unknown)}")
    values: dict[str, Any] = {}
    for name in known & written.keys():
        value = written[name]
        values[name] = tuple(value) if isinstance(value, list) else value
    return RunSettings(**values)


def spool_records(run_folder: Path) -> Iterator[Record]:
    """Yield every record of a run's spool once, in order of arrival. UserError at a record that cannot be read."""
    once = Once()
    for path in sorted(path for path in (run_folder / "spool").glob("[0-9]*.jsonl") if path.is_file()):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not once.is_new(line):
                continue
            try:
                record = decode_line(line)
            except UnusableRecord as error:
                raise damaged_file_error(f"{path}, line {number},", str(error)) from error
            yield record


def read_spool(run_folder: Path) -> Spool:
    """Return the spool's records of the kinds that figures need. UserError at a record that cannot be read.

    The spool of a long run takes long to read. So it is read once, for run.json, the table of seconds and the page.
    """
    spool: Spool = {kind: [] for kind in NEEDED_BY_FIGURES}
    for record in spool_records(run_folder):
        if record["kind"] in spool:
            spool[record["kind"]].append(record)
    return spool


def completion_by_pair(spool: Spool, warm_up_s: float) -> dict[int, dict[str, LogBuckets]]:
    """Return the completion times of the whole run by pair and clock, without the warm-up and the last order."""
    payloads_by_key = []
    for record in spool[COMPLETION]:
        payload = record["payload"]
        if is_analysed(payload) and payload["second"] >= warm_up_s:
            payloads_by_key.append(((instance_of(record["source"]), payload["clock"]), payload))
    by_pair: dict[int, dict[str, LogBuckets]] = {}
    for (pair, clock), buckets in merged_by(payloads_by_key).items():
        by_pair.setdefault(pair, {})[clock] = buckets
    return by_pair


def timed_orders_by_pair(spool: Spool) -> Counter[int]:
    """Count the orders whose completion time was reported, by pair, including the warm-up and the last order."""
    orders = Counter[int]()
    for record in spool[COMPLETION]:
        if record["payload"]["clock"] == "handed_over":
            orders[instance_of(record["source"])] += record["payload"]["count"]
    return orders


def traffic_by_pair(spool: Spool) -> dict[int, dict[str, int]]:
    """Sum the counts that each gateway reported second by second, by pair."""
    sums: dict[int, dict[str, int]] = {}
    for record in spool[TRAFFIC]:
        pair = instance_of(record["source"])
        payload = record["payload"]
        counts = {name: payload[name] for name in COUNTS if name in payload}
        sums[pair] = sum_by_name([sums.get(pair, {}), counts])
    return sums


def merged_by_clock(parts: Collection[dict[str, LogBuckets]]) -> dict[str, LogBuckets]:
    """Merge the completion times of all parts, by clock."""
    clocks = dict.fromkeys(clock for part in parts for clock in part)
    return {clock: LogBuckets.together(part[clock] for part in parts if clock in part) for clock in clocks}
