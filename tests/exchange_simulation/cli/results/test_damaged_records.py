"""Damaged records: every reader refuses them in a sentence, or shows them, and none ends in a traceback."""

from __future__ import annotations

import copy
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.exchange_command import exchange_in_process
from tests.exchange_simulation.cli.test_recorded_results import unpack
from tests.machine import EXAMPLES

RECORDED = Path(__file__).parents[1] / "recorded"
RECORDS = (
    "run-zeromq/run.json",
    "run-pairs/run.json",
    "run-amqp/run.json",
    "compare/comparison.json",
    "compare/plan.json",
    "nagle/comparison.json",
    "sweep/plan.json",
    "capacity/capacity.json",
    "faults/faults.json",
    "bench-de-spsc/bench.json",
    "bench-request-reply/bench.json",
    "simulate/simulation.json",
)
LONG_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in range(3, min(EXAMPLES, 40))]
DAMAGE_SEEDS = [0, 1, 2, *LONG_SEEDS]
"""Seeds of the random choice of damage."""
SPOOLS = ("run-zeromq", "run-pairs")
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
STRANGE_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**9,
    10**18,
    1e308,
    -0.5,
    "",
    "x",
    "../../etc",
    "os",
    "\x1b[2J\u202e",
    "pigeon://nowhere:99999999",
    [],
    [1],
    [[]],
    {},
    {"x": 1},
    DEEP,
)
CONTROL_CHARACTERS = "\x07\x1b\x9b\u202e"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded folders of every kind."""
    results = unpack(tmp_path_factory.mktemp("damaged"))
    (results / "faults").mkdir()
    shutil.copy(RECORDED / "faults.json", results / "faults")
    return results


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `results rerun` end where a measurement would begin."""
    for place in (
        "cli.run.run",
        "experiments.capacity.capacity.capacity",
        "experiments.faults.matrix.run_matrix",
        "messaging.running.run_benchmark",
        "messaging.running.run_suite",
        "experiments.simulate.simulate.simulate",
    ):
        monkeypatch.setattr(f"exchange_simulation.{place}", lambda *_, **__: 0)
    trial = SimpleNamespace(exit_code=0)
    monkeypatch.setattr("exchange_simulation.experiments.trials.trial.run_trial", lambda *_: trial)
    monkeypatch.setattr("exchange_simulation.cli.results.trial.make_tables", lambda *_: None)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value below a JSON value, to a depth of six; of long lists, of the first three."""
    if len(path) == 6:
        return
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value)
    elif isinstance(value, list):
        inner = list(range(min(len(value), 3)))
    for key in inner:
        yield (*path, key)
        yield from places_in(value[key], (*path, key))


def damage(record: Any, chance: random.Random) -> str:
    """Drop a value, or put a strange one in its place, once or twice; returns what was done."""
    deeds = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        places = list(places_in(record))
        if not places:
            break
        depth = chance.choice(sorted({len(place) for place in places}))
        path = chance.choice([place for place in places if len(place) == depth])
        parent = record
        for key in path[:-1]:
            parent = parent[key]
        if chance.random() < 0.4:
            del parent[path[-1]]
            deeds.append(f"dropped {path}")
        else:
            parent[path[-1]] = copy.deepcopy(chance.choice(STRANGE_VALUES))
            deeds.append(f"{path} = {str(parent[path[-1]])[:40]!r}")
    return "; ".join(deeds)


def read_by_all(folder: Path, original: Path, deed: str) -> None:
    """Run every reader over the folder."""
    results = folder.parent
    for words in (
        ("results", "list", "--results", results),
        ("results", "list", "--json", "--results", results),
        ("results", "show", folder.name, "--results", results),
        ("results", "diff", folder.name, original, "--results", results),
        ("results", "diff", original, folder.name, "--json", "--results", results),
        ("results", "rerun", folder.name, "--results", results),
        ("report", folder, "--csv"),
        ("report", folder, "--json", "--hlog"),
    ):
        try:
            outcome = exchange_in_process(*words)
        except Exception as error:
            raise AssertionError(f"{deed}: exchange {' '.join(map(str, words))}") from error
        assert outcome.code in (0, 1, 2), deed
        printed = outcome.err if "--json" in words else outcome.out + outcome.err
        assert not [character for character in printed if character in CONTROL_CHARACTERS], (deed, words)


@pytest.mark.parametrize("seed", DAMAGE_SEEDS)
@pytest.mark.parametrize("record", RECORDS)
def test_a_damaged_record_is_read_or_refused(record: str, seed: int, results: Path, tmp_path: Path) -> None:
    original = results / Path(record).parent
    folder = tmp_path / original.name
    shutil.copytree(original, folder)
    content = json.loads((results / record).read_bytes())
    deed = damage(content, random.Random(f"{record} {seed}"))
    (tmp_path / record).write_text(json.dumps(content))
    read_by_all(folder, original, f"{record}: {deed}")


@pytest.mark.parametrize("seed", DAMAGE_SEEDS)
@pytest.mark.parametrize("run", SPOOLS)
def test_a_damaged_spool_is_read_or_refused(run: str, seed: int, results: Path, tmp_path: Path) -> None:
    folder = tmp_path / run
    shutil.copytree(results / run, folder)
    chance = random.Random(f"{run} {seed}")
    file = chance.choice(sorted(folder.glob("spool/*.jsonl")))
    lines = file.read_bytes().splitlines()
    place = chance.randrange(len(lines))
    record = json.loads(lines[place])
    deed = damage(record, chance)
    lines[place] = json.dumps(record).encode()
    file.write_bytes(b"\n".join(lines) + b"\n")
    read_by_all(folder, results / run, f"{file.name}: {record.get('kind')}: {deed}")


def changed(results: Path, tmp_path: Path, record: str, change: Callable[[Any], None]) -> Path:
    """Copy a recorded folder and change its record; return the copy."""
    original = results / Path(record).parent
    folder = tmp_path / original.name
    shutil.copytree(original, folder)
    content = json.loads((results / record).read_bytes())
    change(content)
    (tmp_path / record).write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("record", "path", "value", "where"),
    [
        ("run-zeromq/run.json", ("settings", "arrivals"), "x", "`$.settings.arrivals`"),
        ("compare/plan.json", ("arms", 0, "settings", "arrivals"), "x", "`$.arms[0].settings.arrivals`"),
        ("capacity/capacity.json", ("settings", "arrivals"), "x", "`$.settings.arrivals`"),
        ("capacity/capacity.json", ("probes", 1, "holds"), "x", "`$.probes[1].holds`"),
        ("faults/faults.json", ("cells", 0, "transport"), 7, "`$.cells[0].transport`"),
        ("faults/faults.json", ("settings", "rate_per_s"), None, "`$.settings.rate_per_s`"),
        ("bench-de-spsc/bench.json", ("rows", 0, "figures"), [], "`$.rows[0].figures`"),
        ("compare/comparison.json", ("arms", 0, "metrics", "due_p50_us", "median"), "x", "median"),
    ],
)
@pytest.mark.parametrize("words", [("results", "show"), ("report",), ("results", "rerun")])
def test_a_wrong_field_is_named_with_its_file(
    words: tuple[str, ...],
    record: str,
    path: tuple[Any, ...],
    value: object,
    where: str,
    results: Path,
    tmp_path: Path,
) -> None:
    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    if words[0] == "report" and "comparison" in record:
        pytest.skip("a trial's report is made from its runs")
    if words[-1] == "rerun" and "comparison" in record:
        pytest.skip("a trial's rerun is made from its plan")
    folder = changed(results, tmp_path, record, change)
    outcome = exchange_in_process(*words, folder)
    if words == ("results", "show") and "plan" in record:
        assert outcome.code == 0, "a trial is shown from comparison.json, which is whole"
        return
    assert outcome.code in (1, 2)
    assert "is damaged" in outcome.err
    assert where in outcome.err
    assert Path(record).name in outcome.err


@pytest.mark.parametrize("name", ["os", "no-such", "../../x", "__init__", ""])
@pytest.mark.parametrize("words", [("results", "rerun"), ("results", "diff"), ("report",)])
def test_no_module_is_imported_by_a_name_from_a_record(
    words: tuple[str, ...], name: str, results: Path, tmp_path: Path
) -> None:
    folder = changed(results, tmp_path, "bench-de-spsc/bench.json", lambda content: content.update(benchmark=name))
    modules = set(sys.modules)
    folders = [folder, folder] if words[-1] == "diff" else [folder]
    outcome = exchange_in_process(*words, *folders)
    assert outcome.code == 2, outcome.out
    assert "is no benchmark; there are" in outcome.err
    assert not [module for module in set(sys.modules) - modules if module.endswith(f".{name.replace('-', '_')}")]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"bucket": [10**9], "bucket_count": [1]}, "bucket holds 1000000000, and buckets are 0 to"),
        ({"bucket": [-1], "bucket_count": [1]}, "bucket holds -1"),
        ({"bucket": [1, 2], "bucket_count": [1]}, "bucket has 2 values, and bucket_count 1"),
        ({"bucket": [1], "bucket_count": [2]}, "bucket_count adds up to 2, and count is "),
        ({"sum_ns": 2**63}, "a number of the histogram is not between"),
        ({"count": -1}, "a number of the histogram is not between"),
    ],
)
def test_a_spool_whose_histogram_cannot_be_is_refused(
    payload: dict[str, Any], reason: str, results: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run-zeromq"
    shutil.copytree(results / "run-zeromq", folder)
    file = next(path for path in sorted(folder.glob("spool/*.jsonl")) if b'"completion"' in path.read_bytes())
    lines = file.read_bytes().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if b'"completion"' in line)
    record = json.loads(lines[number - 1])
    record["payload"].update(payload)
    lines[number - 1] = json.dumps(record).encode()
    file.write_bytes(b"\n".join(lines) + b"\n")
    outcome = exchange_in_process("report", folder)
    assert outcome.code == 2
    assert f"{file}, line {number}, is damaged: " in outcome.err
    assert reason in outcome.err


def test_a_rerun_writes_no_journal_to_a_recorded_path(results: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"

    def with_journal(content: Any) -> None:
        content["settings"]["journal"] = str(elsewhere)

    outcome = exchange_in_process("results", "rerun", changed(results, tmp_path, "run-zeromq/run.json", with_journal))
    assert outcome.code == 2
    assert f"was run with --journal {elsewhere}, and a rerun would write into that file" in outcome.err
    assert not elsewhere.exists()


@pytest.mark.parametrize("word", ["--journal", "--journal=elsewhere"])
def test_a_rerun_of_faults_writes_no_journal_either(word: str, results: Path, tmp_path: Path) -> None:
    def with_journal(content: Any) -> None:
        content["settings"]["further"] = [word, "elsewhere"]

    outcome = exchange_in_process("results", "rerun", changed(results, tmp_path, "faults/faults.json", with_journal))
    assert outcome.code == 2
    assert "--journal, and a rerun would write into that journal" in outcome.err


def test_a_folder_s_name_reaches_the_terminal_escaped(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evil\x1b[2J\u202e"
    shutil.copytree(results / "run-zeromq", folder)
    outcome = exchange_in_process("report", folder)
    assert outcome.code == 0, outcome.err
    assert "page: " in outcome.out
    assert not [character for character in outcome.out + outcome.err if character in CONTROL_CHARACTERS]
