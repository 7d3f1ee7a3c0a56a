"""A results directory whose runs were never made."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner, Result

from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.trials.plan import write_plan
from exchange_simulation.experiments.trials.results import results as results_of_trial
from tests.exchange_simulation.experiments.trials.sample_trials import HOST, VERSIONS, plan, put_all

DAY = f"{datetime.now().year}-11-21T14:42"
"""A day of this year; lists leave the year out."""


def results(folder: Path, *words: object) -> Result:
    """`exchange results WORDS --results FOLDER`, in 80 columns."""
    return CliRunner().invoke(main, ["results", *map(str, words), "--results", str(folder)], env={"COLUMNS": "80"})


def figures(us: float) -> dict[str, float]:
    return {"count": 1_999, "mean": us, "p50": us, "p90": 2 * us, "p99": 3 * us, "p999": 4 * us, "max": 5 * us}


def record(name: str, us: float = 100.0, **changed: Any) -> dict[str, Any]:
    """A run's record; of `settings`, those given are unlike the defaults."""
    settings = RunSettings(**changed.pop("settings", {})).as_dict()
    unchanged = {
        "schema": 1,
        "name": name,
        "status": "complete",
        "reasons": [],
        "settings": {**orjson.loads(orjson.dumps(settings)), "url": f"zeromq://127.0.0.1:{4000 + len(name)}"},
        "counts": {
            "orders_sent": 1000,
            "orders_received": 1000,
            "orders_answered": 1000,
            "answers_sent": 2400,
            "answers_received": 2400,
        },
        "checksums": {"hash": "xxh64", "orders": "aa", "answers": "bb"},
        "rates": {"offered_orders_per_s": settings["orders_per_s"], "orders_per_s": 8000.0, "answers_per_s": 19200.0},
        "completion_us": {"handed_over": figures(us), "due": figures(us + 10)},
        "lag_us": figures(10.0),
        "components": {
            "gateway": {"cpu_s": us / 100, "max_rss_bytes": 10**8},
            "engine": {"cpu_s": us / 100, "max_rss_bytes": 10**8},
        },
        "sockets": [
            {
                "component": "gateway",
                "local": "127.0.0.1:1",
                "peer": "127.0.0.1:2",
                "tcp_nodelay": True,
                "tcp_nodelay_asked": True,
            }
        ],
        "host": {**HOST, "load_before": [us, 0.0, 0.0]},
        "versions": VERSIONS,
        "started_at": f"{DAY}:20+00:00",
        "duration_s": 0.125,
    }
    return {**unchanged, **changed}


def put_run(results_folder: Path, name: str, us: float = 100.0, **changed: Any) -> Path:
    folder = results_folder / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(orjson.dumps(record(name, us, **changed)))
    return folder


def put_bytes(results_folder: Path, name: str, content: bytes) -> Path:
    folder = results_folder / name
    folder.mkdir()
    (folder / "run.json").write_bytes(content)
    return folder


def put_trial(results_folder: Path, name: str, us: float = 100.0, finished: bool = True, **plan_fields: Any) -> Path:
    """Contender b takes twice as long as a."""
    folder = results_folder / name
    folder.mkdir(parents=True)
    trial = plan(**{"repeats": 2, **plan_fields})
    write_plan(folder, trial)
    put_all(folder, trial, {"a": [us] * trial.repeats, "b": [2 * us] * trial.repeats})
    if finished:
        (folder / "comparison.json").write_bytes(orjson.dumps(results_of_trial(folder, trial)))
    return folder
