"""`exchange sweep`, as its user sees it."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.exchange_command import exchange_in_process

SMALL = """
repeats = 2
pause = 0
[vary]
transport = ["memory"]
packing = [1, 10]
[run]
rate = 3000
orders = 300
"""


def test_a_sweep_runs_every_arm_in_every_repeat_and_leaves_its_page(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    finished = exchange_in_process(
        "sweep",
        tmp_path / "small.toml",
        "--results",
        tmp_path,
        "--name",
        "small",
        "--orders",
        200,
        "--keep-noisy",
        "--no-spark",
        "--json",
    )
    assert finished.code == 0, finished.err
    folder = tmp_path / "small"
    assert [(row["contender"], row["settings"], row["runs"]) for row in finished.record] == [
        ("packing 1", {"packing": 1}, 2),
        ("packing 10", {"packing": 10}, 2),
    ]
    assert "packing 10" in exchange_in_process("results", "show", "small", "--results", tmp_path).out
    assert (folder / "comparison.html").exists()
    runs = [orjson.loads(path.read_bytes()) for path in folder.glob("0[12]-*/run.json")]
    assert sorted(run["settings"]["packing"] for run in runs) == [1, 1, 10, 10]
    assert {run["settings"]["orders"] for run in runs} == {200}
    assert all(run["noise"]["window_s"] > 0 for run in runs)
