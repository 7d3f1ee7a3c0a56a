"""What a component tells the reporter: hello, messages and records, its result, end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from exchange.instances import named, tagged
from exchange.measurements import Source
from exchange.messages import End, Throughput, Timestamp, encode
from exchange.records import PROCESS, RESULT, RecordWriter
from exchange.session import Terms
from exchange.usage import Usage

SECOND_NS = 1_000_000_000


class Sink(Protocol):
    """Where the frames go: a transport's outbox."""

    posted: int
    checksum: int

    def post(self, frame: bytes, counted: bool = True) -> None: ...


class Reporting:
    """One source's side of the statistics flow, second by second since its clock started."""

    def __init__(self, sink: Sink, terms: Terms, source: Source, of_thread: bool = False) -> None:
        self._sink, self._terms, self._source = sink, terms, source
        self._records = RecordWriter(terms.run, named(source.name.lower(), terms.instance))
        self._usage: Callable[[], Usage] = lambda: Usage.now(of_thread)
        self._start_ns = 0
        self._at_start = self._at_stop = self._usage()
        self.second = 0
        sink.post(encode(terms.hello(source)), counted=False)

    def start(self, now_ns: int) -> None:
        """The clock starts: usage and seconds count from here."""
        self._start_ns = now_ns
        self._at_start = self._usage()

    def stop(self) -> None:
        """The end's answer is there: CPU that comes later does not count."""
        self._at_stop = self._usage()
        self._process(self._at_stop)

    @property
    def next_second_ns(self) -> int:
        return self._start_ns + (self.second + 1) * SECOND_NS

    def next_second(self, now_ns: int) -> None:
        """Close the current second; the one that `now_ns` is in begins."""
        self._process(self._usage())
        self.second = (now_ns - self._start_ns) // SECOND_NS

    def _process(self, usage: Usage) -> None:
        self.record(PROCESS, {"second": self.second, **usage.since(self._at_start)})

    def usage(self) -> dict[str, Any]:
        """Between start and stop."""
        return self._at_stop.since(self._at_start)

    def message(self, message: Throughput | Timestamp) -> None:
        """A reading of one of our meters."""
        self._sink.post(encode(message._replace(meter=tagged(message.meter, self._terms.instance))))

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self._sink.post(self._records.frame(kind, payload))

    def close(self, result: dict[str, Any]) -> None:
        """The result as the last record, then the end, with the count and checksum of all but hello and end."""
        self.record(RESULT, result)
        self._sink.post(encode(End(self._sink.posted, self._sink.checksum, 0, 0)), counted=False)
