"""`exchange bench --rate` with a load over time, and where messages are asked: figures from due, by step."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from exchange.load_shape import LoadShape
from exchange.measurements import LogBuckets
from exchange_simulation.messaging import flow, requests
from exchange_simulation.messaging.benchmarks import benchmark_of, names
from exchange_simulation.messaging.benchmarks.perftest import fell_behind
from exchange_simulation.messaging.cell import Cell
from exchange_simulation.messaging.flow import ConsumeShared, Lags
from exchange_simulation.messaging.message_load import MessageLoad
from exchange_simulation.messaging.requests import Ask, ThreadedClient
from exchange_simulation.messaging.roles import RoleResult
from exchange_simulation.stored_outcomes import open
from tests.exchange_command import exchange_in_process
from tests.exchange_simulation.messaging.bench_commands import benches
from transports.frames import FrameBatch, Longs

pytestmark = pytest.mark.xdist_group("benchmarks at a load over time")
"""The benchmarks are measured once, by the process that runs this group."""

MS = 1_000_000
LOAD = "500@400ms,2000@200ms,500@400ms"
COMMANDS = [
    "batch-size --sizes 24",
    "de-spsc --sizes 24",
    "de-mpmc --sizes 24 --pairs 2",
    "fe-spmc --sizes 24 --consumers 2",
    "te-spsc --sizes 24 --patterns 2",
    "throughput --sizes 24",
    "density --sizes 24",
    "streams --sizes 24 --streams 2",
    "perftest --qt 1 --clients 2",
    "perftest --qt 1 --npubs 1 --nsubs 2 --mode fanout",
    "latency --sizes 24",
    "de-pp --sizes 24",
    "request-reply --sizes 24 --clients 1 --threads 2 --warm-up 0.1",
]
PUBLISHERS = {"de-mpmc": 2, "streams": 2, "request-reply": 2, "perftest --qt 1 --clients 2": 2}
"""How many publishers, or threads, have the load each, by the begin of the command; 1 in the others."""
COPIES = {"fe-spmc": 2, "perftest --qt 1 --npubs": 2}
"""How often each message is delivered."""


def number_for(command: str, numbers: dict[str, int]) -> int:
    return next((number for begin, number in numbers.items() if command.startswith(begin)), 1)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The outcome of each benchmark with a load over time."""
    words = [f"{command} --transport zeromq --rate {LOAD} --repeats 1 --keep-noisy" for command in COMMANDS]
    outcomes = benches(tmp_path_factory.mktemp("loads"), *words)
    return dict(zip(COMMANDS, outcomes, strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_benchmark_with_a_rate_takes_a_load_over_time(command: str, measured: dict[str, dict[str, Any]]) -> None:
    outcome = measured[command]
    assert outcome["code"] == 0, outcome
    (row,) = outcome["record"]["rows"]
    assert row["point"]["rate_per_s"] == "500@0.4s,2000@0.2s,500@0.4s"
    assert {"due_p50_us", "lag_p50_us"} <= row["figures"].keys()
    assert [step["step"] for step in row["steps"]] == ["500@0.4s", "2000@0.2s", "500@0.4s"]
    publishers = number_for(command, PUBLISHERS)
    offered = [step["figures"]["offered_per_s"]["median"] for step in row["steps"]]
    assert offered == [500 * publishers, 2000 * publishers, 500 * publishers]
    (repeat,) = row["repeats"]
    counted = sum(part["received"] for role in repeat["roles"].values() for part in role["details"].get("steps", ()))
    assert counted == (200 + 400 + 200) * publishers * number_for(command, COPIES)
    assert "each step of the load" in outcome["out"]
    assert "2000@0.2s" in outcome["out"]


def test_page_terminal_and_python_number_the_steps_since_two_may_have_the_same_text(tmp_path: Path) -> None:
    words = ("--transport", "memory", "--sizes", 24, "--rate", "500@200ms,1000@200ms,500@200ms", "--repeats", 2)
    finished = exchange_in_process("bench", "de-spsc", *words, "--results", tmp_path, "--name", "loads", "--json")
    assert finished.code == 0, finished.err
    (row,) = finished.record["rows"]
    assert row["steps"][0]["figures"]["due_p50_us"]["n"] == 2
    page = (tmp_path / "loads" / "bench.html").read_text()
    assert "de-spsc: each step of the load" in page
    shown = exchange_in_process("results", "show", "loads", "--results", tmp_path).out
    steps = open(tmp_path / "loads").steps()
    for number, rate in enumerate(("500@0.2s", "1000@0.2s", "500@0.2s"), start=1):
        assert f"<td>{number}</td><td>{rate}</td>" in page
        assert re.search(rf" {number} +{rate} ", shown)
        assert (steps[number - 1]["step"], steps[number - 1]["rate"]) == (number, rate)
    assert steps[1]["offered_per_s.median"] == 1000
    assert steps[1]["transport"] == "memory"


class SlowSession:
    """A clock, and a session over a link whose answers take 1 ms; the answer to message 3 of 10 takes 25 ms."""

    def __init__(self) -> None:
        self.now_ns = 7 * MS
        self.link = self
        self._asked = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wait(self, until_ns: int, readable: bool = True) -> None:
        self.now_ns = max(self.now_ns, until_ns)

    def ask(self, questions: FrameBatch, answers: FrameBatch, took_ns: Longs) -> None:
        self._asked += 1
        took_ns[0] = 25 * MS if self._asked == 3 else MS
        self.now_ns += int(took_ns[0])
        answers.append(bytes(questions[0]))


def test_a_late_answer_makes_the_questions_after_it_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten questions, one every 10 ms. The third takes 25 ms, so the two after it wait until it is answered."""
    session = SlowSession()
    monkeypatch.setattr(flow, "time", session)
    monkeypatch.setattr(requests, "time", session)
    result = Ask(64, 10, MessageLoad.steady(100.0, 10))(session)  # type: ignore[arg-type]
    from_due = result.details["from_due"]
    assert result.stopped is None
    assert (from_due.count, from_due.max_ns) == (10, 25 * MS)
    fourth_ms = 25 - 10 + 1
    fifth_ms = 26 - 20 + 1
    assert from_due.sum_ns == (7 * 1 + 25 + fourth_ms + fifth_ms) * MS
    assert result.latency is not None
    assert result.latency.sum_ns == (9 * 1 + 25) * MS, "a round trip counts from asking"
    assert result.details["lag"].max_ns == 15 * MS


class EchoSession(SlowSession):
    """A session over a link that gives every request back at once, for one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.links = [self]
        self._unanswered: list[bytes] = []

    def send_all(self, _link: object, batch: FrameBatch) -> None:
        self._unanswered += batch

    def receive(self, *arguments: Any) -> int:
        """Both a link's `receive` and a session's: the batch is the last argument but the problem, if there is one."""
        batch = next(argument for argument in arguments if isinstance(argument, FrameBatch))
        for request in self._unanswered:
            batch.append(request)
        self._unanswered.clear()
        return self.now_ns if len(arguments) > 1 else batch.count

    def progressed(self) -> None: ...


def test_a_thread_that_the_system_starts_late_asks_for_its_whole_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its load would reach beyond the sample, and what is due there would not be asked."""
    session = EchoSession()

    class LateThread:
        def __init__(self, target: Any) -> None:
            self._target = target

        def start(self) -> None:
            session.now_ns += 130 * MS  # longer than the warm-up
            self._target()

        def join(self) -> None: ...

    monkeypatch.setattr(flow, "time", session)
    monkeypatch.setattr(requests, "time", session)
    monkeypatch.setattr(requests, "threading", SimpleNamespace(Thread=LateThread))
    load = MessageLoad.over_time(LoadShape.parse(LOAD))
    result = ThreadedClient(24, 0.1, 1.0, load=load)(session)  # type: ignore[arg-type]
    assert result.stopped is None
    assert sum(part.received for part in result.details["steps"]) == 200 + 400 + 200


class QueueOfSharers:
    """A link to a queue in memory, which is a session with this link twice; it stops once `count` messages came."""

    junk = 0
    clock_ahead_ns = 0

    def __init__(self, count: int) -> None:
        self.links = [self, self]
        self._queue: list[bytes] = []
        self._left = count

    def send(self, batch: FrameBatch, first: int) -> int:
        self._queue += [bytes(batch[frame]) for frame in range(first, batch.count)]
        return batch.count

    def receive(self, batch: FrameBatch) -> int:
        frames = self._queue
        self._queue = []
        for frame in frames:
            batch.append(frame)
        self._left -= len(frames)
        return len(frames)

    def wait(self, until_ns: int, **_: object) -> None:
        time.sleep(max(until_ns - time.monotonic_ns(), 0) / 1e9)

    def drain(self, _until_ns: int) -> bool:
        return True

    def serve(self, _link: object) -> None: ...

    def report_progress(self, _received: int) -> None: ...

    @property
    def must_stop(self) -> bool:
        return self._left <= 0


def test_a_client_of_perftest_publishes_when_messages_are_due() -> None:
    load = MessageLoad.steady(1000.0, 100)
    result = ConsumeShared(64, 1, rest_s=5.0, count=100, load=load)(QueueOfSharers(100))  # type: ignore[arg-type]
    assert (result.sent, result.received, result.wrong) == (100, 100, {})
    assert result.last_ns - result.first_ns >= 99 * MS, "the last message is due after 99 ms"
    assert result.details["given_s"] == pytest.approx(0.099)
    assert result.details["lag"].count == 100


def part_with_delay(delay_ms: int) -> SimpleNamespace:
    return SimpleNamespace(latency=LogBuckets.of(np.full(100, delay_ms * MS, np.int64)))


def subscribers_with_delays(before_ms: int, after_ms: int) -> dict[str, RoleResult]:
    """A publisher of 4,000 messages at 1,000/s, and two subscribers with these delays at the last quarter's ends."""
    lags = Lags()
    lags.add(np.ones(4_000, np.int64))
    details = {"lag": lags.all(), "load": "1000", "started_ns": 0, "given_s": 3.999, "taken_s": 3.999}
    windows = [part_with_delay(before_ms), part_with_delay(after_ms)]
    subscriber = RoleResult(received=2_000, details={"quarter_windows": windows})
    publisher = RoleResult(sent=4_000, details=details)
    return {"publisher 1.1": publisher, "subscriber 1.1": subscriber, "subscriber 1.2": subscriber}


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "reasons"),
    [
        (200, 200, []),
        (200, 900, ["undelivered messages were still growing at the end, by 700 in the last quarter"]),
    ],
)
def test_a_queue_that_grows_is_a_reason(before_ms: int, after_ms: int, reasons: list[str]) -> None:
    cell = Cell("amqp", {"size_bytes": 64, "rate_per_s": 1000}, {"mode": "shared", "count": 4000})
    assert fell_behind(cell, subscribers_with_delays(before_ms, after_ms)) == reasons


def test_the_supply_chain_alone_has_no_rate() -> None:
    without = [name for name in names() if not any(option.name == "rates" for option in benchmark_of(name).options)]
    assert without == ["supply-chain"]


class SlowFirstReply:
    """A clock, and a session over a link: the first reply takes 35 ms, and each other 1 ms."""

    def __init__(self) -> None:
        self.now_ns = 7 * MS
        self.links = [self]
        self._replies: list[bytes] = []
        self._came_ns = 0
        self._took_ns = 35 * MS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def progressed(self) -> None:
        """Nothing waits for this session."""

    def wait(self, until_ns: int, readable: bool = True) -> None:
        if readable and self._replies:
            until_ns = min(until_ns, self._came_ns)
        self.now_ns = max(self.now_ns, until_ns)

    def send_all(self, _link: object, requests: FrameBatch) -> None:
        self._replies.append(bytes(requests[0]))
        self._came_ns = self.now_ns + self._took_ns
        self._took_ns = MS

    def receive(self, *arguments: Any) -> int:
        """Take the reply that has come, as a link does. Called as a session, wait for the reply first."""
        is_session = len(arguments) > 1
        if is_session:
            self.now_ns = max(self.now_ns, self._came_ns)
        batch: FrameBatch = arguments[1] if is_session else arguments[0]
        if self.now_ns >= self._came_ns:
            for reply in self._replies:
                batch.append(reply)
            self._replies.clear()
        return self.now_ns if is_session else batch.count


def test_the_lag_of_request_reply_leaves_out_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a slow first reply in the warm-up made a point that kept its rate in the sample `saturated`."""
    session = SlowFirstReply()
    monkeypatch.setattr(flow, "time", session)
    monkeypatch.setattr(requests, "time", session)
    load = MessageLoad.steady(100.0, 10)
    result = requests.ThreadedClient(64, 0.05, 0.05, load=load)(session)  # type: ignore[arg-type]
    assert result.stopped is None
    assert result.details["lag"].count == result.details["from_due"].count == 5
    assert result.details["lag"].max_ns == 0
