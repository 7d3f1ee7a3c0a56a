"""How often the gate finds a slower engine, and how often it fails unchanged code.

    python -m benchmarks.gate_power --trials 10 --slower 20

Each trial holds a copy of this tree to another one by `exchange compare --against FOLDER`, which measures both in
turns. In half of the trials the copies are equal; in the other half the engine of the first takes so much longer for
each turn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.comparison import processor

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("exchange", "transports", "gateway", "matching_engine", "stats_reporter", "spark", "exchange_simulation")
RECEIVES = "        received = receive(link_numbers, link_memory, orders, order_ends, matched, largest_order)\n"
"""The line of the engine's compiled loop with which a turn begins."""
HASHES_ANSWERS = "            hash_into(answers_sum, answers, 0, answer_ends[sent])\n"
"""The line with which the work of a turn ends."""
FAILED = 3
"""The exit code of a comparison that failed its gate."""
LOAD = ("--transports", "zeromq", "--rates", "max", "--packing", "100")
"""A load that the engine limits: as fast as it goes, a hundred orders in a message."""


def copy_of_tree(folder: Path, slower_percent: int) -> Path:
    """Copy the packages into the folder. The engine of the copy takes this many percent longer for each turn."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    if slower_percent:
        turns = folder / "matching_engine" / "turns.py"
        source = turns.read_text()
        if source.count(RECEIVES) != 1 or source.count(HASHES_ANSWERS) != 1:
            raise SystemExit(f"{turns} has changed: say here again where a turn begins and ends")
        source = source.replace(RECEIVES, f"        began_ns = monotonic_ns(timespec)\n{RECEIVES}")
        delay = (
            f"            took_ns = monotonic_ns(timespec) - began_ns\n"
            f"            ends_ns = began_ns + took_ns + took_ns * {slower_percent} // 100\n"
            f"            while monotonic_ns(timespec) < ends_ns:\n"
            f"                pass\n"
        )
        turns.write_text(source.replace(HASHES_ANSWERS, HASHES_ANSWERS + delay))
    return folder


def is_failed(tree: Path, base: Path, results: Path, name: str, options: argparse.Namespace) -> bool:
    """Return whether the gate failed a tree's code against the base's. SystemExit if the comparison did not measure."""
    command = [sys.executable, "-P", "-m", "exchange_simulation.cli", "compare", *LOAD, "--no-spark", "--keep-noisy"]
    command += ["--repeats", str(options.repeats), "--seconds", str(options.seconds)]
    command += ["--against", str(base), "--fail-if-slower", f"{options.fail_if_slower}%"]
    command += ["--name", name, "--results", str(results)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "120"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode not in (0, FAILED):
        raise SystemExit(f"the comparison ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}")
    for line in finished.stdout.splitlines():
        if line.startswith(("passed", "failed", "undecided")):
            print(f"    {line}", flush=True)
    return finished.returncode == FAILED


def trials(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each trial, and whether the gate failed. Kinds alternate, so both meet the same machine."""
    base = copy_of_tree(scratch / "base", slower_percent=0)
    trees = {
        "unchanged": copy_of_tree(scratch / "unchanged", slower_percent=0),
        "slower": copy_of_tree(scratch / "slower", slower_percent=options.slower),
    }
    for number in range(1, options.trials + 1):
        for kind, tree in trees.items():
            yield kind, is_failed(tree, base, scratch / "results", f"{kind}-{number}", options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10, help="of each kind")
    parser.add_argument("--slower", type=int, default=20, help="percent by which a turn of the engine takes longer")
    parser.add_argument("--fail-if-slower", type=int, default=3, help="the gate, percent")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.8)
    options = parser.parse_args()
    failed = {"unchanged": 0, "slower": 0}
    with tempfile.TemporaryDirectory(prefix="gate-power-") as scratch:
        for done, (kind, has_failed) in enumerate(trials(options, Path(scratch)), 1):
            failed[kind] += has_failed
            print(f"{done} of {2 * options.trials}: {kind}: {'failed' if has_failed else 'passed'}", flush=True)
    print(
        f"{processor()}, load {os.getloadavg()[0]:.1f}, exchange compare {' '.join(LOAD)} --repeats {options.repeats}"
    )
    print(f"a turn {options.slower} % slower: found {failed['slower']} of {options.trials}")
    print(f"unchanged: false alarms {failed['unchanged']} of {options.trials}")


if __name__ == "__main__":
    main()
