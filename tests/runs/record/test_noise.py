"""What else the machine did while a run's clock ran."""

from __future__ import annotations

import time

import pytest

from runs.record.machine import Noise, NoiseMeter

QUIET = Noise(window_s=2.0, busy_s=1.0, steal_s=0.1, context_switches=300, load_after=[0.5, 0.4, 0.3])


def test_what_the_run_used_itself_is_nobody_elses() -> None:
    facts = QUIET.beside({"gateway": {"cpu_s": 0.5}, "engine": {"cpu_s": 0.25}})
    assert facts["other_cpu_s"] == pytest.approx(0.25)
    assert (facts["busy_s"], facts["steal_s"], facts["context_switches"]) == (1.0, 0.1, 300)


def test_two_clocks_that_do_not_quite_agree_make_no_negative_time() -> None:
    assert QUIET.beside({"gateway": {"cpu_s": 1.01}})["other_cpu_s"] == 0.0


def test_work_beside_the_run_shows() -> None:
    meter = NoiseMeter()
    meter.clock_starts()
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        pass
    meter.clock_stops()
    assert meter.noise is not None
    assert meter.noise.busy_s >= 0.08
    assert meter.noise.window_s >= 0.1


def test_the_first_stop_counts_and_a_stop_without_a_start_is_nothing() -> None:
    meter = NoiseMeter()
    meter.clock_stops()
    assert meter.noise is None
    meter.clock_starts()
    meter.clock_stops()
    first = meter.noise
    meter.clock_stops()
    assert meter.noise is first
