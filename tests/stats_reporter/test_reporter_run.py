"""The reporter's session: two sources over memory, each with the outbox that it has in a run.

gateway's Reporting ─Outbox─▶
                              Reporter ─▶ spool/*.jsonl
engine's Reporting  ─Outbox─▶
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import threading
import time
from pathlib import Path

import pytest

from exchange.measurements import Meter, Source
from exchange.messages import (
    Confirmation,
    End,
    Hello,
    Message,
    Order,
    Statistics,
    Throughput,
    Timestamp,
    decode,
    encode,
)
from exchange.records import RecordWriter
from exchange.reporting import Reporting
from exchange.results import ReporterResult
from exchange.session import Terms
from stats_reporter.service import Reporter
from stats_reporter.writer import SpoolWriter
from transports import registry
from transports.base import PeerGone
from transports.frames import FrameBatch
from transports.outbox import Outbox
from transports.pattern import Pattern

RUN = 0xFEED
TERMS = Terms(RUN, policy="price-time", packing=1, max_price=999)
TIMEOUT_S = 5.0
places = (f"memory://reporter-run-{number}" for number in itertools.count())


JUNK = [
    b"", b"\x00", b"\xff" * 40, encode(Throughput(1, 1))[:-1], encode(Throughput(1, 1)) + b"\x00",
    encode(Throughput(0, 1)), encode(Throughput(5, 1)), encode(Timestamp(4, 1, 1)), encode(Timestamp(8, 1, 1)),
    encode(Order(1, 1, 500, 1)), encode(Confirmation(1)),
    encode(Statistics(b"")), encode(Statistics(b"{")), encode(Statistics(b"[]")), encode(Statistics(b"7")),
    encode(Statistics(b"{}")), encode(Statistics(b'{"run":"000000000000feed"}')), encode(Statistics(b"\xff")),
]  # fmt: skip


class TellingSource:
    """One end of the statistics flow, as a component holds it."""

    def __init__(self, url: str, source: Source, terms: Terms = TERMS) -> None:
        self.link = registry.connect(url, "token", time.monotonic_ns(), pattern=Pattern.FAN_IN)
        self.outbox = Outbox(self.link)
        self.reporting = Reporting(self.outbox, terms, source)

    def say(self, *what: Message | bytes) -> None:
        """Messages, or frames as they are."""
        for one in what:
            self.outbox.post(one if isinstance(one, bytes) else encode(one))
        self.outbox.flush()

    def end(self, **result) -> None:
        self.reporting.close(result)
        self.outbox.flush()

    @property
    def reply(self) -> Message | None:
        """What the reporter said at the end."""
        batch = FrameBatch(16)
        self.link.receive(batch)
        [frame] = list(filter(None, batch)) or [None]
        return decode(frame) if frame is not None else None


class Bureau:
    """A reporter with a gateway and an engine that report to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.link = registry.listen(next(places), "token", pattern=Pattern.FAN_IN)
        self.reporter = Reporter(RUN, self.link, SpoolWriter(folder), TIMEOUT_S)
        self.gateway = TellingSource(self.link.url, Source.GATEWAY)
        self.engine = TellingSource(self.link.url, Source.ENGINE)

    def run(self) -> ReporterResult:
        self.gateway.outbox.flush()
        self.engine.outbox.flush()
        return self.reporter.run()

    def run_to_the_end(self) -> ReporterResult:
        """Both sources end; what they say stands in the link's buffer already."""
        self.gateway.end()
        self.engine.end()
        return self.run()

    def close(self) -> None:
        for end in (self.gateway.link, self.engine.link, self.link):
            end.close()

    @property
    def records(self) -> list[dict]:
        paths = sorted(self.folder.glob("[!.]*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def payloads(self, kind: str, source: str | None = None) -> list[dict]:
        return [r["payload"] for r in self.records if r["kind"] == kind and source in (None, r["source"])]


@pytest.fixture
def bureau(tmp_path):
    bureau = Bureau(tmp_path / "spool")
    yield bureau
    bureau.close()


class Clock:
    """Stands in for `time.monotonic_ns`; waiting on the link moves it."""

    now_ns = 10**12

    def __call__(self) -> int:
        return self.now_ns

    def wait(self, until_ns: int, readable: bool = True, writable: bool = False) -> None:
        self.now_ns = max(self.now_ns, until_ns)


@pytest.fixture
def clock(bureau, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(time, "monotonic_ns", clock)
    monkeypatch.setattr(bureau.link, "wait", clock.wait)
    return clock


def test_counts_and_checksums_of_both_sources_agree(bureau):
    bureau.gateway.say(Throughput(1, 8_000), Timestamp(Meter.ORDER_HANDED_OVER, 10, 5))
    bureau.engine.say(Throughput(2, 7_999))
    bureau.gateway.reporting.record("traffic", {"second": 0})
    result = bureau.run_to_the_end()
    said = bureau.gateway.outbox.posted + bureau.engine.outbox.posted
    assert (result.received, result.announced, said) == (6, 6, 6)  # two results in
    assert (result.checksums_agree, result.stopped) == (True, None)
    assert (result.junk_frames, result.handshakes_refused) == (0, 0)


def test_every_source_is_told_at_the_end_what_was_received(bureau):
    bureau.gateway.say(Throughput(1, 8_000))
    result = bureau.run_to_the_end()
    checksum = (bureau.gateway.outbox.checksum + bureau.engine.outbox.checksum) % 2**64
    expected = End(sent=0, sent_checksum=0, received=result.received, received_checksum=checksum)
    assert (bureau.gateway.reply, bureau.engine.reply) == (expected, expected)


def test_the_end_is_answered_once_everything_is_in_the_spool(bureau, monkeypatch):
    in_the_spool = []
    send = bureau.link.send

    def watched(batch, first):
        in_the_spool.append([record["kind"] for record in bureau.records])
        return send(batch, first)

    monkeypatch.setattr(bureau.link, "send", watched)
    bureau.run_to_the_end()
    assert in_the_spool == [["session", "session", "end"]]


def test_hellos_become_session_records(bureau):
    bureau.run_to_the_end()
    terms = {"version": 1, "policy": "price-time", "packing": 1, "max_price": 999}
    assert bureau.payloads("session", "gateway") == [terms]
    assert bureau.payloads("session", "engine") == [terms]


def test_a_session_record_has_the_clocks_that_its_source_read_together(bureau):
    hello = TERMS.hello(Source.GATEWAY)._replace(wall_ns=111, monotonic_ns=222)
    bureau.gateway.say(hello)
    bureau.run_to_the_end()
    sessions = [(r["wall_ns"], r["monotonic_ns"]) for r in bureau.records if r["kind"] == "session"]
    assert (111, 222) in sessions


def test_statistics_reach_the_spool_as_they_were_written(bureau):
    document = RecordWriter(RUN, "gateway").document("completion", {"bucket": [1, 2], "clock": "due"})
    bureau.gateway.say(Statistics(document))
    bureau.run_to_the_end()
    lines = b"".join(path.read_bytes() for path in sorted(bureau.folder.iterdir())).splitlines()
    assert document in lines


def test_the_reporter_says_what_it_has_used_in_each_second_of_the_gateway(bureau):
    bureau.engine.reporting.next_second(0)
    for second in (0, 3):
        bureau.gateway.reporting.record("process", {"second": second})
    bureau.gateway.reporting.record("process", {"second": "?"})
    bureau.run_to_the_end()
    own = bureau.payloads("process", "reporter")
    assert [used["second"] for used in own] == [0, 3]
    assert 0 <= own[0]["cpu_s"] <= own[1]["cpu_s"]
    assert set(own[0]) == set(bureau.payloads("process", "engine")[0])


def test_who_looks_once_a_second_finds_what_was_told_a_second_before(bureau, clock, monkeypatch):
    """Also what came just after a file was closed, with nothing else to wake the reporter."""
    bureau.reporter._spool = SpoolWriter(bureau.folder, lambda: clock.now_ns / 1e9)
    told_ns: list[int] = []
    late_ns: list[int] = []

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        if len(bureau.payloads("traffic")) > len(late_ns):
            late_ns.append(clock.now_ns - told_ns[-1])
        if len(late_ns) == 20:
            bureau.gateway.end()
            bureau.engine.end()
        elif len(late_ns) == len(told_ns):
            told_ns.append(clock.now_ns)
            bureau.gateway.reporting.record("traffic", {})
            bureau.gateway.outbox.flush()
        else:
            clock.wait(until_ns - 13_000_000)

    monkeypatch.setattr(bureau.link, "wait", wait)
    bureau.run()
    assert len(late_ns) == 20
    assert max(late_ns) < 1_000_000_000


def test_a_throughput_belongs_to_the_source_whose_meter_it_is(bureau):
    bureau.gateway.say(*(Throughput(meter, 100 * meter) for meter in (1, 2, 3, 4)))
    bureau.run_to_the_end()
    assert bureau.payloads("throughput", "gateway") == [{"meter": m, "rate_per_s": 100 * m} for m in (1, 4)]
    assert bureau.payloads("throughput", "engine") == [{"meter": m, "rate_per_s": 100 * m} for m in (2, 3)]


def test_timestamps_become_samples(bureau):
    bureau.gateway.say(
        Timestamp(Meter.ORDER_HANDED_OVER, 10, 105),
        Timestamp(Meter.ORDER_DUE, 10, 100),
        Timestamp(Meter.ORDER_HANDED_OVER, 20, 205),
        Timestamp(Meter.ORDER_ANSWERED, 20, 260),
        Timestamp(Meter.ORDER_DUE, 20, 200),
        Timestamp(Meter.ORDER_ANSWERED, 10, 150),
        Timestamp(Meter.ORDER_HANDED_OVER, 30, 305),
    )
    result = bureau.run_to_the_end()
    assert bureau.payloads("sample") == [
        {"id": 20, "due_ns": 200, "handed_over_ns": 205, "answered_ns": 260},
        {"id": 10, "due_ns": 100, "handed_over_ns": 105, "answered_ns": 150},
    ]
    assert result.samples == 2


def test_results_are_handed_on_and_stay_out_of_the_spool(bureau):
    bureau.gateway.end(orders_answered=7)
    bureau.engine.end(orders_answered=8)
    result = bureau.run()
    assert result.results == {"gateway": {"orders_answered": 7}, "engine": {"orders_answered": 8}}
    assert bureau.payloads("result") == []


def test_the_closing_record_is_the_last_and_says_what_came(bureau):
    bureau.gateway.say(Throughput(1, 1))
    bureau.run_to_the_end()
    *_, last = bureau.records
    assert (last["kind"], last["source"], last["run"]) == ("end", "reporter", f"{RUN:016x}")
    assert last["payload"] == {"announced": 3, "received": 3, "reporters": 1}


def test_records_of_another_run_are_junk_and_not_written(bureau):
    stranger = RecordWriter(RUN + 1, "stranger")
    bureau.engine.link.send(FrameBatch.of(stranger.frame("traffic", {}), stranger.frame("result", {"a": 1})), 0)
    result = bureau.run_to_the_end()
    assert (result.junk_frames, result.received, result.announced) == (2, 2, 2)
    assert "traffic" not in {record["kind"] for record in bureau.records}
    assert set(result.results) == {"gateway", "engine"}
    assert result.checksums_agree


def test_junk_is_counted_and_leaves_no_trace(bureau):
    bureau.gateway.link.send(FrameBatch.of(*JUNK), 0)
    result = bureau.run_to_the_end()
    assert (result.junk_frames, result.received, result.announced) == (len(JUNK), 2, 2)
    assert result.checksums_agree
    assert [record["kind"] for record in bureau.records] == ["session", "session", "end"]


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        (b',"payload":{}', b""),
        (b'"payload":{}', b'"payload":7'),
        (b'"gateway"', b'["gateway"]'),
        (b'"gateway"', b'"broker"'),
        (b'"kind":"', b'"kind":"un'),
        (b'"schema":1', b'"schema":2'),
        (b",", b",\n"),
    ],
    ids=["no payload", "payload", "a list of sources", "source", "kind", "schema", "two lines"],
)
@pytest.mark.parametrize("kind", ["traffic", "result"])
def test_a_record_of_this_run_that_breaks_the_shape_is_junk(bureau, kind, part, instead):
    whole = RecordWriter(RUN, "gateway").document(kind, {})
    assert part in whole
    document = whole.replace(part, instead, 1)
    bureau.gateway.link.send(FrameBatch.of(encode(Statistics(document))), 0)
    assert bureau.run_to_the_end().junk_frames == 1
    assert [record["kind"] for record in bureau.records] == ["session", "session", "end"]


def test_the_last_end_ends_the_session_at_once(bureau, monkeypatch):
    waits = []
    monkeypatch.setattr(bureau.link, "wait", lambda *until: waits.append(until))
    bureau.run_to_the_end()
    assert waits == []


def test_a_message_that_was_lost_shows(bureau):
    bureau.gateway.outbox.posted += 1
    bureau.gateway.outbox.checksum += 12_345
    result = bureau.run_to_the_end()
    assert (result.announced, result.received, result.checksums_agree) == (3, 2, False)


def test_a_message_that_was_changed_on_its_way_shows(bureau):
    bureau.gateway.outbox.posted += 1
    bureau.gateway.outbox.checksum += 1
    bureau.gateway.link.send(FrameBatch.of(encode(Throughput(1, 1))), 0)
    result = bureau.run_to_the_end()
    assert result.announced == result.received
    assert not result.checksums_agree


@pytest.mark.parametrize(
    "hello",
    [
        Terms(RUN + 1, "price-time", 1, 999).hello(Source.GATEWAY),
        TERMS.hello(Source.GATEWAY)._replace(source=7),
    ],
    ids=["another run", "no source of ours"],
)
def test_a_hello_of_a_stranger_is_refused_and_counted(bureau, hello: Hello):
    bureau.gateway.link.send(FrameBatch.of(encode(hello)), 0)
    result = bureau.run_to_the_end()
    assert result.handshakes_refused == 1
    assert len(bureau.payloads("session")) == 2


def test_who_shows_no_token_is_counted_as_refused(bureau):
    with pytest.raises(PeerGone):
        registry.connect(bureau.link.url, "guess", time.monotonic_ns(), pattern=Pattern.FAN_IN)
    assert bureau.run_to_the_end().handshakes_refused == 1


def test_a_source_that_never_ends_is_given_up_after_the_timeout(bureau, clock):
    bureau.gateway.say(Throughput(1, 8_000))
    bureau.gateway.end(orders_answered=7)
    result = bureau.run()
    assert re.fullmatch(r"the reporter heard nothing for [\d.]+ s", result.stopped)
    assert TIMEOUT_S <= (clock.now_ns - Clock.now_ns) / 1e9 <= TIMEOUT_S + 3
    assert (result.received, result.announced, result.checksums_agree) == (2, 2, True)
    assert result.results == {"gateway": {"orders_answered": 7}}
    assert bureau.payloads("end") == [{"announced": 2, "received": 2, "reporters": 1}]
    assert isinstance(bureau.gateway.reply, End)


def test_a_source_that_speaks_now_and_then_is_not_given_up(bureau, clock, monkeypatch):
    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        bureau.gateway.say(Throughput(1, 8_000))
        if clock.now_ns > Clock.now_ns + 10 * TIMEOUT_S * 10**9:
            bureau.gateway.end()
            bureau.engine.end()

    monkeypatch.setattr(bureau.link, "wait", wait)
    assert bureau.run().stopped is None


def test_sources_that_leave_without_an_end_leave_what_they_said(bureau):
    bureau.gateway.say(Throughput(1, 8_000))
    bureau.engine.outbox.flush()
    bureau.gateway.link.close()
    bureau.engine.link.close()
    result = bureau.run()
    assert "closed its end" in result.stopped
    assert (result.received, result.announced) == (1, 0)
    assert len(bureau.payloads("throughput")) == 1


def test_a_stop_gives_its_reason_and_still_takes_what_comes(bureau, clock):
    bureau.reporter.stop("interrupted")
    bureau.reporter.stop("again")
    bureau.gateway.say(Throughput(1, 8_000))
    result = bureau.run()
    assert (result.stopped, result.received) == ("interrupted", 1)
    assert (clock.now_ns - Clock.now_ns) / 1e9 < TIMEOUT_S  # nobody is waited for as long as in a run


def test_a_disk_that_refuses_stops_the_reporter_loudly(bureau, monkeypatch):
    def refuse(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(OSError, match="No space left"):
        bureau.run_to_the_end()


def test_while_it_runs_sources_may_come_talk_and_end_from_threads_of_their_own(bureau):
    results = []
    thread = threading.Thread(target=lambda: results.append(bureau.run()))
    thread.start()

    def talk(source: TellingSource, meter: int) -> None:
        for number in range(1, 2_001):
            source.say(Throughput(meter, number))
        source.end()

    talkers = [threading.Thread(target=talk, args=pair) for pair in ((bureau.gateway, 1), (bureau.engine, 2))]
    for talker in talkers:
        talker.start()
    for joined in (*talkers, thread):
        joined.join(timeout=20)
    [result] = results
    assert (result.received, result.announced, result.checksums_agree) == (4_002, 4_002, True)
    for source in ("gateway", "engine"):
        rates = [payload["rate_per_s"] for payload in bureau.payloads("throughput", source)]
        assert rates == list(range(1, 2_001))


SECOND_PAIR = dataclasses.replace(TERMS, instance=2)


def test_pairs_are_told_apart_by_the_instance_in_their_messages(bureau):
    second = [TellingSource(bureau.link.url, source, SECOND_PAIR) for source in (Source.GATEWAY, Source.ENGINE)]
    bureau.reporter._sources = ("gateway", "engine", "gateway.2", "engine.2")
    bureau.gateway.reporting.message(Throughput(1, 8_000))
    second[0].reporting.message(Throughput(1, 7_000))
    second[1].reporting.message(Throughput(2, 6_000))
    for source in second:
        source.end()
    result = bureau.run_to_the_end()
    assert (result.stopped, result.results.keys()) == (None, {"gateway", "engine", "gateway.2", "engine.2"})
    assert len(bureau.payloads("session", "engine.2")) == 1
    said = {source: bureau.payloads("throughput", source) for source in ("gateway", "gateway.2", "engine.2")}
    rates = {source: [(rate["meter"], rate["rate_per_s"]) for rate in rates] for source, rates in said.items()}
    assert rates == {"gateway": [(1, 8_000)], "gateway.2": [(1, 7_000)], "engine.2": [(2, 6_000)]}


def test_samples_of_two_pairs_with_the_same_ids_are_paired_apart(bureau):
    second = TellingSource(bureau.link.url, Source.GATEWAY, SECOND_PAIR)
    handed_over, answered = Meter.ORDER_HANDED_OVER, Meter.ORDER_ANSWERED
    readings = [(bureau.gateway, handed_over, 100), (second, handed_over, 200), (second, answered, 201)]
    for source, meter, time_ns in [*readings, (bureau.gateway, answered, 101)]:
        source.reporting.message(Timestamp(meter, 10, time_ns))
        source.outbox.flush()
    assert bureau.run_to_the_end().samples == 2
    for source, handed_over_ns in (("gateway", 100), ("gateway.2", 200)):
        [sample] = bureau.payloads("sample", source)
        assert (sample["handed_over_ns"], sample["answered_ns"]) == (handed_over_ns, handed_over_ns + 1)


def test_who_has_ended_is_told_that_the_reporter_still_waits_for_others(bureau, clock, monkeypatch):
    """So that a source's patience, which is with silence, outlasts a pair that takes longer."""
    bureau.gateway.end()

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        if clock.now_ns >= Clock.now_ns + 3 * 10**9:
            bureau.engine.end()

    monkeypatch.setattr(bureau.link, "wait", wait)
    assert bureau.run().stopped is None
    batch = FrameBatch(16)
    bureau.gateway.link.receive(batch)
    *still_here, last = batch
    assert (still_here, type(decode(last))) == ([b""] * 3, End)


def test_who_is_gone_while_the_reporter_says_that_it_waits_does_not_end_it_for_the_others(bureau, clock, monkeypatch):
    bureau.gateway.end()

    def send(batch: FrameBatch, first: int) -> int:
        raise PeerGone("the peer closed the connection (Broken pipe)")

    def wait(until_ns: int, readable: bool = True, writable: bool = False) -> None:
        clock.wait(until_ns)
        bureau.engine.end()

    monkeypatch.setattr(bureau.link, "send", send)
    monkeypatch.setattr(bureau.link, "wait", wait)
    result = bureau.run()
    assert (result.stopped, set(result.results)) == (None, {"gateway", "engine"})


def test_who_is_none_of_the_reporter_s_own_sources_is_named(bureau):
    TellingSource(bureau.link.url, Source.ENGINE, SECOND_PAIR).outbox.flush()
    told = "engine.2, which is none of its own, reports to the reporter: see --instance, --pairs and --reporters"
    assert bureau.run_to_the_end().stopped == told


def test_two_that_say_that_they_are_the_same_are_told_apart_from_a_run_that_is_well(bureau):
    twin = TellingSource(bureau.link.url, Source.GATEWAY)
    twin.end()
    bureau.gateway.end()
    assert bureau.run().stopped == ("two components say that they are the gateway: give each pair its own --instance")
