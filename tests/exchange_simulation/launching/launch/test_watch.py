"""Following the components of a run with several pairs and reporters; each is a shell that says what one would."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from exchange_simulation.launching.launch import watch
from exchange_simulation.launching.launch.watch import Moment, Watch
from exchange_simulation.launching.lineup import Lineup
from exchange_simulation.launching.notices import notices_to
from exchange_simulation.launching.process_group import ProcessGroup

READY = json.dumps({"event": "ready", "url": "there"})
STREAMS: dict[str, Any] = {"orders": {"messages": 0, "checksum": ""}, "answers": {"messages": 0, "checksum": ""}}
GATEWAY = {
    **STREAMS,
    "settings": {},
    "orders_answered": 0,
    "trades": 0,
    "confirmations": 0,
    "quotes": 0,
    "rejections": 0,
    "junk_frames": 0,
    "samples": 0,
    "duration_s": None,
    "backlog_growth": 0,
    "usage": {},
    "sockets": [],
    "engine_said": None,
}
ENGINE = {**STREAMS, "junk_frames": 0, "handshakes_refused": 0, "usage": {}, "sockets": [], "gateway_said": None}
REPORTER = {
    "received": 0,
    "announced": 0,
    "checksums_agree": True,
    "junk_frames": 0,
    "handshakes_refused": 0,
    "samples": 0,
}
RESULTS = {"gateway": GATEWAY, "engine": ENGINE, "reporter": REPORTER}


def says(*what: str) -> str:
    """A script that says so once it was told to start."""
    return "; ".join([f"echo '{READY}'", "read start", *what])


def result(role: str) -> str:
    return f"echo '{json.dumps({'event': 'result', 'result': RESULTS[role]})}'"


class Shells:
    """Stands in for a process group."""

    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, script: str) -> None:
        if name in self.children:  # it is started again
            self.children[name].communicate()
        self.children[name] = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, *names: str, known: dict[str, Any] | None = None) -> None:
        for name in names:
            stdin = self.children[name].stdin
            assert stdin is not None
            with contextlib.suppress(BrokenPipeError):
                stdin.write(json.dumps(known or {}).encode() + b"\n")
                stdin.flush()

    def signal(self, name: str, number: int = signal.SIGTERM) -> None:
        self.children[name].send_signal(number)

    def is_relayed(self, name: str) -> bool:
        return False


@pytest.fixture
def shells() -> Iterator[Shells]:
    shells = Shells()
    yield shells
    for child in shells.children.values():
        child.kill()
        child.communicate()


def follow(shells: Shells, lineup: Lineup, moments: list[Moment] | None = None) -> Watch:
    watch = Watch(cast(ProcessGroup, shells), lineup, [].append if moments is None else moments.append, timeout_s=0.0)
    watch.follow()
    watch.close()
    return watch


def test_a_killed_component_of_any_pair_ends_the_run_and_is_named(shells: Shells) -> None:
    lineup = Lineup((1, 2), (1,))
    for name in lineup.names:
        shells.start(name, says("kill -9 $$" if name == "gateway.2" else "exec sleep 300"))
    outcome = follow(shells, lineup).outcome()
    assert outcome.failures == ("the gateway.2 was killed by SIGKILL",)
    assert {"engine.2", "gateway", "reporter"} <= set(outcome.missing)


@pytest.mark.parametrize("gateway_dies", [False, True])
def test_an_engine_ends_with_its_gateway_if_another_component_died(
    gateway_dies: bool, shells: Shells, tmp_path: Path
) -> None:
    """It answers what the gateway has sent, and is asked to end only if nobody else tells it."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    end = "kill -9 $$" if gateway_dies else f"touch {ended}; {result('gateway')}; exit"
    waits, wait = (f"while [ ! -e {file} ]; do sleep 0.01; done" for file in (begun, ended))
    shells.start("gateway", says(f"end() {{ {end}; }}", "trap end TERM", f"touch {begun}", wait))
    shells.start("engine", says(wait, result("engine")))
    shells.start("reporter", says(waits, "kill -9 $$"))
    outcome = follow(shells, Lineup()).outcome()
    assert outcome.failures == ("the reporter was killed by SIGKILL",)
    assert set(outcome.engines) == set(outcome.gateways) == (set() if gateway_dies else {1})


def test_a_restarted_process_gets_the_facts_of_its_predecessor(shells: Shells, tmp_path: Path) -> None:
    told, heard, lineup = tmp_path / "told", tmp_path / "heard", Lineup()
    known = [{"event": "known", "role": "engine", "known": {"sent": 7, "records": [each]}} for each in "ab"]
    words = " ".join(f"'{json.dumps(each)}'" for each in known)
    shells.start("reporter", says(result("reporter")))
    shells.start("gateway", says(f"printf '%s\\n' {words}", f"touch {told}", result("gateway")))
    shells.start("engine", says(f"while [ ! -e {told} ]; do :; done", "kill -9 $$"))

    def start(name: str) -> None:
        """It may hear what is known while it starts, too: the last line has all."""
        hear = f'while read line; do echo "$line" > {heard}; case "$line" in *b*) break ;; esac; done'
        shells.start(name, f"echo '{READY}'; {hear}; {result('engine')}")

    watch = Watch(cast(ProcessGroup, shells), lineup, lambda _: None, 60.0, restart=start)
    watch.follow()
    outcome = watch.outcome()
    watch.close()
    assert outcome.failures == ()
    assert outcome.missing == []
    assert outcome.restarts == 1
    assert json.loads(heard.read_text()) == {"sent": 7, "records": ["b"]}, "the newest"


def test_an_engine_that_waits_for_a_lost_gateway_is_informed(shells: Shells) -> None:
    known = {"event": "known", "role": "engine", "known": {"sent": 7}}
    shells.start("reporter", says(result("reporter")))
    shells.start("gateway", says(f"echo '{json.dumps(known)}'", result("gateway")))
    hears = """read line; [ "$line" = '{"sent": 7}' ] || exit 1"""
    shells.start("engine", says(hears, result("engine")))
    outcome = follow(shells, Lineup()).outcome()
    assert outcome.failures == ()
    assert outcome.missing == []


@pytest.mark.parametrize("dies_first", [True, False])
def test_a_component_that_dies_after_its_last_report_is_not_missing(
    dies_first: bool, shells: Shells, tmp_path: Path
) -> None:
    """Its death may be seen first: then the process that took its place is asked to end."""
    there = tmp_path / "there"
    wait, note = f"while [ ! -e {there} ]; do sleep 0.01; done", f"touch {there}"
    reported = json.dumps({"event": "result", "result": REPORTER | {"results": {"engine": ENGINE, "gateway": GATEWAY}}})
    shells.start("reporter", says(*[wait] * dies_first, f"echo '{reported}'", "exec sleep 0.3"))
    shells.start("gateway", says(result("gateway")))
    shells.start("engine", says(*["sleep 0.3"] * (not dies_first), "kill -9 $$"))

    def start(name: str) -> None:
        shells.start(name, f"echo '{READY}'; {note}; exec sleep 300")

    watch = Watch(cast(ProcessGroup, shells), Lineup(), lambda _: None, 60.0, restart=start)
    watch.follow()
    outcome = watch.outcome()
    watch.close()
    assert outcome.failures == ()
    assert outcome.missing == []
    assert outcome.restarts == int(dies_first)


def test_results_are_kept_by_name_and_seconds_are_summed(shells: Shells) -> None:
    lineup = Lineup((1, 2), (1,))
    moments = list[Moment]()
    second = json.dumps({"event": "second", "sent": 5, "answered": 4})
    for name in lineup.names:
        role = name.partition(".")[0]
        shells.start(name, says(*[f"echo '{second}'"] * (role == "gateway"), result(role)))
    outcome = follow(shells, lineup, moments).outcome()
    assert outcome.missing == []
    assert outcome.failures == ()
    assert set(outcome.gateways) == {1, 2}
    assert set(outcome.engines) == {1, 2}
    assert set(outcome.reporters) == {1}
    assert moments == [Moment(10, 8)]


def test_components_of_another_reporter_may_end_later(shells: Shells, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair ends when it is done; its reporter and it are then to end together."""
    monkeypatch.setattr(watch, "PATIENCE_S", 2.0)
    lineup = Lineup((1, 2), (1, 2))
    for name in lineup.names:
        wait = ["sleep 4"] * name.endswith(".2")
        shells.start(name, says(*wait, result(name.partition(".")[0])))
    outcome = follow(shells, lineup).outcome()
    assert outcome.missing == []
    assert outcome.failures == ()


def test_a_component_that_outlives_its_reporter_is_named(shells: Shells, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are asked to end."""
    monkeypatch.setattr(watch, "PATIENCE_S", 2.0)
    lineup = Lineup((1, 2), (1, 2))
    for name in lineup.names:
        goes_on = name == "engine" or name.endswith(".2")
        shells.start(name, says("exec sleep 300" if goes_on else result(name)))
    outcome = follow(shells, lineup).outcome()
    assert "the engine did not end with the others" in outcome.failures
    assert set(outcome.gateways) == {1}
    for name in ("gateway.2", "engine.2", "reporter.2"):
        assert shells.children[name].wait() == -signal.SIGTERM


def test_a_stall_of_the_launcher_makes_no_component_late(shells: Shells, monkeypatch: pytest.MonkeyPatch) -> None:
    """The display of a second takes longer than the patience; meanwhile all end."""
    monkeypatch.setattr(watch, "PATIENCE_S", 2.0)
    lineup, second = Lineup((1,), (1,)), json.dumps({"event": "second", "sent": 5, "answered": 4})
    shells.start("gateway", says(result("gateway"), f"echo '{second}'"))
    for role in ("engine", "reporter"):
        shells.start(role, says("sleep 0.1", result(role)))
    stalled = Watch(cast(ProcessGroup, shells), lineup, lambda moment: time.sleep(3), timeout_s=0.0)
    stalled.follow()
    stalled.close()
    assert stalled.outcome().missing == []
    assert stalled.outcome().failures == ()


def test_components_that_are_not_ready_soon_are_named(
    shells: Shells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LONG_WAIT_S", 0.01)
    was_said = tmp_path / "said"
    output: list[str] = []

    def listen(sentence: str) -> None:
        output.append(sentence)
        was_said.touch()

    for role in ("gateway", "reporter"):
        shells.start(role, says(result(role)))
    shells.start("engine", f"while [ ! -e {was_said} ]; do sleep 0.01; done; {says(result('engine'))}")
    with notices_to(listen):
        follow(shells, Lineup())
    assert len(output) == 1, output
    assert output[0].startswith("waiting for ")
    assert "engine" in output[0].partition(" to be ready")[0]
