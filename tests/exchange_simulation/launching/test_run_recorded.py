"""Every run ends with a run.json, whichever process is killed, and leaves no process and no folder."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from exchange.messages import LAYOUTS, TYPES, Confirmation, Order, Quote, Rejection, Trade, decode_all, encode
from exchange_simulation.launching.process_group import ProcessGroup
from exchange_simulation.launching.record.begun import note_begun
from exchange_simulation.launching.run import conditions_here
from tests.broker import is_gone
from tests.exchange_command import Running, exchange, run_exchange_in_process
from tests.machine import until

Start = Callable[..., Running]
ENDLESS = ("--rate", 2000, "--duration", 600, "--no-page")


def only_run(run: Running) -> Path:
    (folder,) = run.results.iterdir()
    return folder


def is_idle(folder: Path) -> bool:
    """Whether the second record of a second's traffic is in the spool."""
    return sum(path.read_text().count('"traffic"') for path in folder.glob("spool/*.jsonl")) > 1


def kill_launcher(run: Running) -> Path:
    """The run's folder, once its launcher was killed and its components are gone."""
    until(lambda: is_idle(only_run(run)), "two seconds in the spool")
    family = run.family()
    assert len(family) == 4
    run.signal(signal.SIGKILL)
    run.finish()
    until(lambda: all(is_gone(process) for process in family), "components gone")
    return only_run(run)


def test_orders_of_a_killed_gateway_are_counted_unknown_ones_first(running: Start) -> None:
    run = running(*ENDLESS).wait_until_under_way()
    until(lambda: is_idle(only_run(run)), "two seconds in the spool")
    family = run.family()
    run.component("gateway").kill()
    finished = run.finish()
    record = finished.record
    assert finished.code == 1
    assert record["status"] == "partial"
    assert "Traceback" not in finished.err
    assert "the gateway was killed by SIGKILL" in record["reasons"]
    assert all(is_gone(process) for process in family)
    counts = record["counts"]
    assert counts["orders_sent"] >= counts["orders_answered"] > 0
    assert counts["orders_sent"] >= counts["orders_received"]
    assert "the gateway left no result; its counts end with the last second that it reported" in record["reasons"]
    sent = counts["orders_sent"]
    answered = counts["orders_answered"]
    assert record["reasons"][0] == f"orders sent at least {sent:,}, answered at least {answered:,}"


def test_a_run_whose_launcher_was_killed_is_repaired(running: Start) -> None:
    run = running(*ENDLESS, "--record").wait_until_under_way()
    before = exchange("results", "repair", only_run(run))
    assert before.code == 2
    assert "is under way: process" in before.err
    folder = kill_launcher(run)
    until(lambda: not list(run.scratch.iterdir()), "the scratch folder is empty")
    assert not (folder / "run.json").exists()
    finished = exchange("results", "repair", folder)
    assert finished.code == 0
    assert finished.err == ""
    record = json.loads((folder / "run.json").read_text())
    assert record["status"] == "partial"
    assert record["settings"]["orders_per_s"] == 2000.0
    sent = (folder / "orders.bin").stat().st_size // LAYOUTS[Order].size
    answers = [*decode_all(whole_records((folder / "answers.bin").read_bytes()))]
    answered = max(answer.id for answer in answers if isinstance(answer, Confirmation | Trade | Rejection))
    counts = record["counts"]
    assert counts["orders_sent"] >= sent > 0
    assert counts["orders_answered"] >= answered > 0
    assert counts["answers_received"] >= len(answers)
    assert (
        f"orders sent at least {counts['orders_sent']:,}, answered at least {counts['orders_answered']:,}"
        in finished.out
    )
    assert record["completion_us"]["due"]["count"] > 0
    assert "the launcher ended without writing run.json" in finished.out
    assert not (folder / "begun.json").exists()
    again = exchange("results", "repair", folder)
    assert again.code == 2
    assert "has its run.json" in again.err


def whole_records(answers: bytes) -> bytes:
    """The answers without a record that was cut off at the end."""
    end = 0
    while end < len(answers):
        size = LAYOUTS[TYPES[answers[end]]].size
        if end + size > len(answers):
            break
        end += size
    return answers[:end]


def test_a_repaired_run_counts_what_its_recorded_streams_hold_beyond_its_spool(tmp_path: Path) -> None:
    """The spool may lack up to a second of orders."""
    folder = left_by_a_dead_launcher(tmp_path / "left")
    orders = b"".join(encode(Order(number, 1, 10, 5)) for number in (1, 2, 3))
    (folder / "orders.bin").write_bytes(orders + orders[:4])  # the fourth was cut off
    answers = [encode(Confirmation(1)), encode(Quote(10, 11)), encode(Trade(2, 10, 5)), encode(Quote(10, 11))]
    (folder / "answers.bin").write_bytes(b"".join(answers) + encode(Confirmation(3))[:2])
    finished = exchange("results", "repair", folder)
    assert "partial: orders sent at least 3, answered at least 2; the launcher ended" in finished.out
    counts = json.loads((folder / "run.json").read_text())["counts"]
    assert counts["orders_sent"] == 3
    assert counts["orders_answered"] == 2
    assert counts["answers_received"] == 4


def test_streams_that_are_links_are_not_counted(tmp_path: Path) -> None:
    folder = left_by_a_dead_launcher(tmp_path / "left")
    (tmp_path / "elsewhere").write_bytes(bytes(100))
    for name in ("orders.bin", "answers.bin"):
        (folder / name).symlink_to(tmp_path / "elsewhere")
    assert exchange("results", "repair", folder).code == 0
    assert "orders_sent" not in json.loads((folder / "run.json").read_text())["counts"]


def left_by_a_dead_launcher(folder: Path, **changed: Any) -> Path:
    """A run's folder with begun.json alone, of which fields may be changed."""
    folder.mkdir()
    note_begun(folder, conditions_here(folder.name))
    begun = json.loads((folder / "begun.json").read_text())
    begun["launcher"]["started_ticks"] -= 1  # another process has its number now
    (folder / "begun.json").write_text(json.dumps({**begun, **changed}))
    return folder


def test_a_run_that_cannot_be_repaired_does_not_stop_other_repairs(tmp_path: Path) -> None:
    damaged = left_by_a_dead_launcher(tmp_path / "damaged", settings={"pairs": "many"})
    newer = left_by_a_dead_launcher(
        tmp_path / "newer", settings={"orders_per_s": 1.0, "orders": 10, "arrivals": "weekly"}
    )
    whole = left_by_a_dead_launcher(tmp_path / "whole")
    finished = exchange("results", "repair", "--results", tmp_path)
    assert finished.code == 1
    assert f"{damaged} is left as it is: {damaged / 'begun.json'} is damaged: pairs is 'many'" in finished.err
    assert f"{newer} is left as it is: " in finished.err
    assert f"repaired {whole}: partial" in finished.out
    assert not (damaged / "run.json").exists()
    assert (whole / "run.json").exists()


def test_a_folder_without_a_run_is_not_said_to_have_a_spool(tmp_path: Path) -> None:
    finished = exchange("results", "repair", "nowhere", "--results", tmp_path)
    assert finished.code == 2
    assert "exchange results list shows what there is" in finished.err
    (tmp_path / "old" / "spool").mkdir(parents=True)
    assert "exchange report shows its spool" in exchange("results", "repair", "old", "--results", tmp_path).err


def test_the_next_run_repairs_an_unfinished_run(tmp_path: Path) -> None:
    left = left_by_a_dead_launcher(tmp_path / "left")
    finished = run_exchange_in_process(tmp_path, "--rate", "max", "--orders", 10)
    assert finished.code == 0
    assert f"repaired {left}: partial" in finished.err
    assert {path.name for path in left.iterdir()} == {"run.json"}


def test_a_step_of_the_wall_clock_does_not_make_a_live_run_unfinished(tmp_path: Path) -> None:
    note_begun(tmp_path, conditions_here("live"))
    begun = json.loads((tmp_path / "begun.json").read_text())
    begun["launcher"]["started_s"] -= 3600  # the clock was set an hour forward since
    (tmp_path / "begun.json").write_text(json.dumps(begun))
    assert "is under way" in exchange("results", "repair", tmp_path).err
    begun["launcher"]["boot_id"] = "of another boot"
    (tmp_path / "begun.json").write_text(json.dumps(begun))
    assert exchange("results", "repair", tmp_path).code == 0


def test_a_signal_after_a_run_s_end_is_heeded_once_its_record_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes while the components' processes and their scratch folder are removed."""
    from exchange.settings import RunSettings
    from exchange_simulation.launching.files import new_run_folder
    from exchange_simulation.launching.run import measure
    from exchange_simulation.reports.progress import progress_bar

    leave = ProcessGroup.__exit__

    def interrupted(self: ProcessGroup, *how: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        leave(self, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(ProcessGroup, "__exit__", interrupted)
    settings = RunSettings(orders=10, orders_per_s=None)
    folder = new_run_folder(tmp_path, "here")
    with pytest.raises(KeyboardInterrupt):
        measure(folder, settings, progress_bar(settings))
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"


@pytest.mark.parametrize("transport", ["zeromq", pytest.param("amqp", marks=pytest.mark.long)])
def test_an_engine_asked_to_end_loses_no_result(transport: str, running: Start, request: pytest.FixtureRequest) -> None:
    """A killed watchdog leaves no scratch folder."""
    if transport == "amqp":
        request.getfixturevalue("no_standing_broker")
    run = running("--transport", transport, *ENDLESS).wait_until_under_way()
    next(each for each in run.family() if any("watchdog" in word for word in each.cmdline())).kill()
    run.component("engine").terminate()
    record = run.finish().record
    assert record["status"] == "partial"
    assert list(run.scratch.iterdir()) == []
    assert not [reason for reason in record["reasons"] if "left no result" in reason], record["reasons"]
    assert record["counts"]["orders_sent"] > 0


@pytest.mark.long
@pytest.mark.usefixtures("no_standing_broker")
def test_a_broker_that_is_paused_for_longer_than_a_look_ends_nothing(running: Start) -> None:
    run = running(
        "--transport", "amqp", "--rate", 500, "--duration", 12, "--timeout", 60, "--no-page"
    ).wait_until_under_way()
    broker = next(process for process in run.family() if "beam" in process.name())
    broker.suspend()
    with pytest.raises(psutil.TimeoutExpired):
        broker.wait(7)  # a look's patience is 5 s
    broker.resume()
    record = run.finish().record
    assert record["counts"]["orders_answered"] == 6000
    assert "last_look" in record["broker"]


def test_only_the_scratch_folder_with_a_line_break_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line break is in its path."""
    strange = tmp_path / "two\nlines"
    other = tmp_path / "two"
    strange.mkdir()
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(strange))
    with ProcessGroup() as processes:
        assert processes.folder.parent == strange
        monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # so that the watchdog does it
    assert list(strange.iterdir()) == []
    assert other.exists()


@pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="no pipes of another size here")
def test_a_stopped_launcher_does_not_block_its_components() -> None:
    """Under --recover a gateway tells it some 40 kB a second, and waits where the pipe is full."""
    with ProcessGroup() as processes:
        processes.start("reporter", ["reporter", "--help"], None, {})
        stdout = processes.children["reporter"].stdout
        assert stdout is not None
        assert fcntl.fcntl(stdout, fcntl.F_GETPIPE_SZ) >= 20 * 41_917
