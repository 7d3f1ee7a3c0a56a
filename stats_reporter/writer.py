"""Writes the spool: records of what the sources send, as JSON lines in files that appear whole."""

from __future__ import annotations

import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from exchange.instances import named, role_of, spool_file, untagged
from exchange.json_records import Record
from exchange.measurements import Meter, Source
from exchange.messages import Message, Throughput, Timestamp
from exchange.records import PROCESS, SAMPLE, THROUGHPUT, RecordWriter
from exchange.results import Usage

FILE_SECONDS = 0.7
"""Less than a second: a reader that looks every second finds the previous one."""
FILE_BYTES = 1 << 22

GATEWAY, ENGINE = (source.name.lower() for source in (Source.GATEWAY, Source.ENGINE))
READINGS: dict[int, str] = {
    Meter.ORDER_DUE: "due_ns",
    Meter.ORDER_HANDED_OVER: "handed_over_ns",
    Meter.ORDER_ANSWERED: "answered_ns",
}
"""A sample's fields by the meters of its readings."""
ROLES: dict[type[Message], dict[int, str]] = {
    Throughput: {
        Meter.GATEWAY_ORDERS_SENT: GATEWAY,
        Meter.ENGINE_ORDERS_RECEIVED: ENGINE,
        Meter.ENGINE_MESSAGES_SENT: ENGINE,
        Meter.GATEWAY_MESSAGES_RECEIVED: GATEWAY,
    },
    Timestamp: dict.fromkeys(READINGS, GATEWAY),
}
"""The role that reports each meter, by the kind of message."""


def source_of_meter(message: Message | None) -> str | None:
    """The source that reports this reading of a meter; None for any other message."""
    if not isinstance(message, Throughput | Timestamp):
        return None
    meter, instance = untagged(message.meter)
    role = ROLES[type(message)].get(meter)
    return role and named(role, instance)


class SamplePairs:
    """Pairs the timestamps of a gateway's sampled orders by id: due, handed over, answered.

    `paired` counts complete samples; `open` has those that still wait for a reading. After the first due time there is
    a schedule, so every sample waits for a due time, too.
    """

    def __init__(self) -> None:
        self.open: dict[int, dict[str, int | None]] = {}
        self.paired = 0
        self._scheduled = False
        self._newest = self._given = 0

    def go_on_from(self, before: dict[str, Any]) -> None:
        """Take what another reporter's `vars` were."""
        vars(self).update(before, open={int(key): sample for key, sample in before["open"].items()})

    def begin_again(self) -> None:
        """Count from 0, since the gateway was started again; samples that both report are given once."""
        self._given = self._newest
        self.open.clear()
        self.paired = 0

    def take(self, stamp: Timestamp) -> dict[str, int | None] | None:
        """Take a reading. Returns the sample that it completes, None where it completes none."""
        sample = self.open.setdefault(stamp.correlation_id, {"id": stamp.correlation_id, "due_ns": None})
        meter, _ = untagged(stamp.meter)
        sample[READINGS[meter]] = stamp.time_ns
        self._scheduled |= sample["due_ns"] is not None
        waits_for_due = self._scheduled and sample["due_ns"] is None
        if waits_for_due or "answered_ns" not in sample or "handed_over_ns" not in sample:
            return None
        self.paired += 1
        self._newest = max(self._newest, stamp.correlation_id)
        found = self.open.pop(stamp.correlation_id)
        return found if stamp.correlation_id > self._given else None


class SpoolRecords:
    """Writes into the spool what the sources of a run send, and what the reporter itself uses."""

    def __init__(self, run: int, reporter: str, spool: SpoolWriter, of_thread: bool = False) -> None:
        self._run, self._reporter, self._spool = run, reporter, spool
        self._of_thread = of_thread
        self._pairs: defaultdict[str, SamplePairs] = defaultdict(SamplePairs)
        """By gateway, since each gateway counts its orders from 1."""
        self._second = -1
        self.start()

    def start(self) -> None:
        """Count the reporter's usage from now on."""
        self._at_start = Usage.now(self._of_thread)

    def usage(self) -> dict[str, Any]:
        return Usage.now(self._of_thread).since(self._at_start)

    def write(self, source: str, kind: str, payload: dict[str, Any], read_ns: tuple[int, int] | None = None) -> None:
        """Write a record that the reporter makes of a source's other messages."""
        self._spool.write(RecordWriter(self._run, source).document(kind, payload, read_ns))

    def take(self, record: Record, document: bytes) -> None:
        """Write a source's record as it came.

        The reporter has no clock of the run, so it reports its own usage for a second when the first gateway does.
        """
        self._spool.write(document)
        if record["kind"] == PROCESS and role_of(record["source"]) == GATEWAY:
            second = record["payload"]["second"]
            if second > self._second:
                self._second = second
                self.write(self._reporter, PROCESS, {"second": second, **self.usage()})

    def take_reading(self, source: str, message: Message) -> None:
        """Write a record of a meter's reading."""
        if isinstance(message, Throughput):
            meter, _ = untagged(message.meter)
            self.write(source, THROUGHPUT, {"meter": meter, "rate_per_s": message.rate_per_s})
        elif isinstance(message, Timestamp) and (sample := self._pairs[source].take(message)):
            self.write(source, SAMPLE, sample)

    @property
    def samples(self) -> int:
        """The number of complete samples."""
        return sum(pairs.paired for pairs in self._pairs.values())

    def begin_again(self, source: str) -> None:
        """Another process stands for the source."""
        self._pairs[source].begin_again()

    def state(self) -> dict[str, Any]:
        """What another reporter has to know to go on with these records."""
        return {"second": self._second, "pairs": {source: vars(pairs) for source, pairs in self._pairs.items()}}

    def go_on_from(self, before: dict[str, Any]) -> None:
        """Take the state of a reporter that was killed."""
        self._second = before["second"]
        for source, pairs in before["pairs"].items():
            self._pairs[source].go_on_from(pairs)


class SpoolWriter:
    """Collects lines: a file FILE_SECONDS after the first of them, or at FILE_BYTES. OSError where the disk refuses.

    A file is written under a name that begins with a dot, then renamed, so readers find whole files only.
    One that `recovers` goes on behind the files that are there, and notes beside the newest what `state` is with it.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.monotonic, instance: int = 1, recovers: bool = False
    ) -> None:
        self._folder, self._clock = folder, clock
        self._instance, self.recovers = instance, recovers
        self.state: Callable[[], dict[str, Any]] = dict
        self.state_before: dict[str, Any] | None = None
        """The state with the newest file; None for the first writer."""
        self._lines: list[bytes] = []
        self._bytes = 0
        self._opened_s = clock()
        self.files = 0
        folder.mkdir(parents=True, exist_ok=True)
        if recovers:
            self._recover()

    def _recover(self) -> None:
        while self._path(self.files + 1).exists():
            self.files += 1
        with contextlib.suppress(FileNotFoundError, orjson.JSONDecodeError):  # or it was killed as it wrote its first
            self.state_before = orjson.loads(self._state_path(self.files).read_bytes())

    def _path(self, number: int) -> Path:
        return self._folder / spool_file(number, self._instance)

    def _state_path(self, number: int) -> Path:
        return self._folder / f".{spool_file(number, self._instance)}.state"

    def note_state(self) -> None:
        """Note the state that goes with the files so far, before the newest of them appears."""
        if self.recovers:
            self._state_path(self.files).write_bytes(orjson.dumps(self.state(), option=orjson.OPT_NON_STR_KEYS))

    def close(self) -> None:
        self._state_path(self.files).unlink(missing_ok=True)

    def write(self, line: bytes) -> None:
        if not self._lines:
            self._opened_s = self._clock()
        self._lines.append(line)
        self._bytes += len(line) + 1

    @property
    def left_s(self) -> float:
        """The time until `roll` will publish; endless without any line."""
        return max(self._opened_s + FILE_SECONDS - self._clock(), 0.0) if self._lines else math.inf

    def roll(self) -> None:
        """Publish the lines, if it is time."""
        if self._bytes >= FILE_BYTES or self.left_s < 0.001:
            self.publish()

    def publish(self) -> None:
        """Publish the lines, if there are any."""
        if not self._lines:
            return
        self.files += 1
        final = self._path(self.files)
        hidden = self._folder / f".{final.name}.part"
        try:
            hidden.write_bytes(b"\n".join(self._lines) + b"\n")
            self.note_state()
            hidden.rename(final)
            self._state_path(self.files - 1).unlink(missing_ok=True)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(final)) from error
        self._lines, self._bytes = [], 0
