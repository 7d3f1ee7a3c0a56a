"""Opens each component's service: its links, its recorded streams, and the loop, which it imports only when needed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from exchange.instances import named
from exchange.messages import LAYOUTS, PROTOCOL_VERSION, Order
from exchange.results import Stream, StreamChecksum
from exchange.session import Terms
from exchange.settings import RunSettings
from runs.errors import UserError
from runs.lineup import Lineup
from runs.notices import say
from transports.base import Link, Pattern
from transports.registry import connect, has_broker, listen

if TYPE_CHECKING:
    from gateway.service import Gateway
    from matching_engine.recovery import Recovery
    from matching_engine.service import EngineService
    from stats_reporter.service import Reporter


TOKEN = "EXCHANGE_TOKEN"
"""The environment variable that holds a run's secret: arguments are visible to every user of a host, it is not."""


def link_token(name: str, url: str) -> str:
    """What each link asks of its peer: the secret in EXCHANGE_TOKEN, or the run's name where none was agreed on.

    At a broker it is always the name: queues are called by it, and a broker's tools list them.
    """
    return (not has_broker(url) and os.environ.get(TOKEN)) or name


def run_id(name: str) -> int:
    """The run's 64-bit number on the wire, a hash of its name."""
    return int(xxhash.xxh64_intdigest(name.encode()))


def _deadline_ns(timeout_s: float) -> int:
    return time.monotonic_ns() + int(timeout_s * 1e9)


def open_reporter(
    name: str, url: str, folder: Callable[[], Path], settings: RunSettings, of_thread: bool = False, instance: int = 1
) -> tuple[Reporter, Link]:
    """Listen, then let `folder` make the run's folder, so that a listener that fails leaves none behind."""
    from stats_reporter.service import Reporter
    from stats_reporter.writer import SpoolWriter

    link = listen(url, link_token(name, url), pattern=Pattern.FAN_IN)
    spool, sources = SpoolWriter(folder() / "spool", instance=instance), Lineup.of(settings).part_of(instance).sources
    return Reporter(
        run_id(name), link, spool, settings.timeout_s, sources, of_thread, instance, settings.reporters
    ), link


def open_engine(
    name: str, url: str, reporter_url: str, settings: RunSettings, of_thread: bool = False,
    capacity: int | None = None, with_ids: bool = False, instance: int = 1, salvage: bool = False,
) -> tuple[EngineService, Link]:  # fmt: skip
    """The service, and the link on which it waits for its gateway. With a journal, that link can be opened again."""
    from matching_engine.engine import MatchingEngine
    from matching_engine.order_book import OrderBook
    from matching_engine.service import EngineService

    recovery, gateway = None, listen(url, link_token(name, url))
    if settings.journal:
        recovery = _recovery(name, gateway, settings, instance, salvage)
        gateway = recovery.link
    reporter = connect(
        reporter_url, link_token(name, reporter_url), _deadline_ns(settings.timeout_s), pattern=Pattern.FAN_IN
    )
    book = OrderBook(settings.max_price, settings.policy, capacity, with_ids)
    terms = Terms(run_id(name), settings.policy, settings.packing, settings.max_price, instance)
    engine = MatchingEngine(book, settings.packing)
    return EngineService(
        engine, terms, gateway, reporter, settings.sampling_interval, settings.timeout_s, of_thread, recovery
    ), gateway


def _recovery(name: str, gateway: Link, settings: RunSettings, instance: int, salvage: bool) -> Recovery:
    """The engine's journal, which it goes on with if it has one. UserError if that is another's, or damaged."""
    from matching_engine.journal import InputJournal, JournalRefused
    from matching_engine.recovery import Recovery
    from transports.renewable import RenewableLink

    identity = {
        "run": name, "pair": instance, "policy": settings.policy, "packing": settings.packing,
        "max_price": settings.max_price, "protocol": PROTOCOL_VERSION,
    }  # fmt: skip
    path, url = Path(str(settings.journal)) / f"{named('engine', instance)}.journal", gateway.url
    try:
        journal = InputJournal(path, identity, settings.packing, settings.sync, salvage, say)
    except JournalRefused as error:
        gateway.close(0)
        raise UserError(str(error)) from error
    return Recovery(journal, RenewableLink(gateway, lambda _: listen(url, link_token(name, url))))


def open_gateway(
    name: str, engine_url: str, reporter_url: str, settings: RunSettings, streams: tuple[Stream, Stream],
    of_thread: bool = False, instance: int = 1,
) -> Gateway:  # fmt: skip
    """The service, which gives the bytes of orders and of answers to the two `streams`."""
    from gateway.service import Gateway

    until_ns = _deadline_ns(settings.timeout_s)
    reporter = connect(reporter_url, link_token(name, reporter_url), until_ns, pattern=Pattern.FAN_IN)
    engine = connect(engine_url, link_token(name, engine_url), until_ns)
    if settings.journals:
        from transports.renewable import RenewableLink

        engine = RenewableLink(engine, lambda until_ns: connect(engine_url, link_token(name, engine_url), until_ns))
    return Gateway(settings, run_id(name), engine, reporter, streams, of_thread, instance)


class RecordedStream(StreamChecksum):
    """A checksum that also writes every byte to a file; `exchange match` replays it. OSError names the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.size = 0
        self._file = path.open("xb", buffering=1 << 20)

    def update(self, data: npt.NDArray[np.uint8]) -> None:
        super().update(data)
        self.size += len(data)
        try:
            self._file.write(data.data)
        except OSError as error:
            raise _named(error, self._path) from error

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise _named(error, self._path) from error


def _named(error: OSError, path: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(path))


@contextlib.contextmanager
def open_streams(folder: Path, settings: RunSettings, instance: int = 1) -> Iterator[tuple[Stream, Stream]]:
    """The streams of a pair's orders and answers: files in this folder where `record` is set, else checksums alone."""
    if not settings.record:
        yield StreamChecksum(), StreamChecksum()
        return
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files = [folder / f"{named(stream, instance)}.bin" for stream in ("orders", "answers")]
            orders, answers = (RecordedStream(file) for file in files)
        except FileExistsError as error:
            raise UserError(f"{error.filename} exists already: choose another name with --run") from error
        for stream in (orders, answers):
            stack.callback(stream.close)
        yield orders, answers
        _write_due(files[0], settings, instance, orders.size // LAYOUTS[Order].size)


def _write_due(tape: Path, settings: RunSettings, instance: int, orders: int) -> None:
    """Write the planned due times, not the times of sending, so that a replay offers the same load."""
    from gateway.seeds import settings_of_pair
    from gateway.tape import due_path
    from runs.tape import write_due

    path = due_path(tape)
    try:
        write_due(path, settings_of_pair(settings, instance), orders)
    except OSError as error:
        raise _named(error, path) from error
