"""Components in threads of one process: if one fails, the others end, and all links are closed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from exchange.instances import input_file
from exchange.settings import RunSettings
from exchange_simulation.launching.launch.threads import Stage, run_in_threads
from exchange_simulation.launching.launch.watch import Moment
from exchange_simulation.launching.record.outcome import RunOutcome
from exchange_simulation.launching.recorded_streams import RecordedStream
from gateway.intake import Intake
from matching_engine.service import EngineService
from tests.machine import until
from transports.memory import CAPACITY_FRAMES, LISTENERS


@pytest.fixture(autouse=True)
def same_switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device", "orders.bin"), "engine: orders.bin: No space left on device"),
        (ZeroDivisionError("by nothing"), "the engine broke: ZeroDivisionError: by nothing; see engine.log"),
    ],
)
def test_a_component_that_fails_ends_the_run_with_its_reason(
    error: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    step = EngineService._step

    def fail_once_greeted(engine: EngineService) -> None:
        if engine._started:
            raise error
        step(engine)

    monkeypatch.setattr(EngineService, "_step", fail_once_greeted)
    settings = RunSettings(transport="memory", orders_per_s=1000.0, orders=10_000_000, timeout_s=30.0)
    _, outcome = run_in_threads(tmp_path, settings, lambda moment: None)
    assert outcome.failures == (reason,)
    assert not outcome.engines
    assert outcome.gateways
    assert outcome.reporters
    assert not LISTENERS
    assert "Traceback" not in capfd.readouterr().err
    assert (tmp_path / "engine.log").exists() == isinstance(error, ZeroDivisionError)


def test_an_engine_ends_if_its_gateway_gave_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = Intake.take

    def deaf_once_greeted(intake: Intake) -> int:
        return take(intake) if intake.hello is None else 0

    monkeypatch.setattr(Intake, "take", deaf_once_greeted)
    orders = 4 * CAPACITY_FRAMES
    settings = RunSettings(transport="memory", orders_per_s=None, orders=orders, window=orders, timeout_s=0.5)
    outcomes: list[RunOutcome] = []
    run = Thread(target=lambda: outcomes.append(run_in_threads(tmp_path, settings, lambda _: None)[1]), daemon=True)
    run.start()
    run.join(60)
    assert outcomes
    assert outcomes[0].engines[1].stopped
    assert "the engine said nothing" in str(outcomes[0].gateways[1].stopped)


class Plays:
    """A component whose run is this function."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.run = run

    def stop(self, reason: str) -> None: ...

    def close(self) -> None: ...


def test_seconds_are_shown_until_the_last_gateway_has_ended(tmp_path: Path) -> None:
    stage = Stage(tmp_path, RunSettings(transport="memory", pairs=2))
    moments = list[Moment]()

    def go_on() -> str:
        until(lambda: all(thread.name != "gateway" for thread in threading.enumerate()), "the other's end")
        for sent in (10, 20):
            stage._put_second("gateway.2", sent, sent - 1)
        return "done"

    stage._services = {"gateway": Plays(lambda: "done"), "gateway.2": Plays(go_on)}  # type: ignore[dict-item]
    stage.run(moments.append)
    assert moments == [Moment(20, 19)]


def test_a_recorded_stream_that_cannot_be_closed_is_named_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = RecordedStream.close

    def fail_for_the_engine(stream: RecordedStream) -> None:
        close(stream)
        if stream._path.name == input_file(1):
            raise OSError(28, "No space left on device", str(stream._path))

    monkeypatch.setattr(RecordedStream, "close", fail_for_the_engine)
    settings = RunSettings(transport="memory", gateways=2, orders_per_s=1000.0, orders=100, record=True)
    _, outcome = run_in_threads(tmp_path, settings, lambda _: None)
    assert outcome.failures == (f"{tmp_path / input_file(1)}: No space left on device",)
