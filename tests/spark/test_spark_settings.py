"""Spark's settings: ours, the user's spark-defaults.conf in their place, --conf over both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from exchange_simulation.cli.main import main
from exchange_simulation.experiments.pipeline import jobs, live
from exchange_simulation.experiments.simulate import on_spark
from spark.errors import SparkUnavailableError
from spark.sessions.settings import (
    DRIVER_OPTIONS,
    PYTHON_FILES,
    SETTINGS,
    SETTINGS_OF_THIS_MACHINE,
    names_in,
    settings_for,
    with_overrides,
)
from spark.warm_up import write_smallest_run
from tests.machine import PATIENCE_S

PARTITIONS = "spark.sql.shuffle.partitions"
DEFAULTS = f"""\
# {PARTITIONS} 3
{PARTITIONS} 7
spark.ui.enabled=true
  spark.app.name : mine
spark.empty
"""


@pytest.fixture
def no_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_defaults")
@pytest.mark.parametrize(
    ("master", "is_this_machine"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://host:7077", False),
        ("yarn", False),
        ("k8s://https://host:443", False),
    ],
)
def test_settings_of_this_machine_are_for_local_masters_alone(master: str, is_this_machine: bool) -> None:
    expected = SETTINGS | SETTINGS_OF_THIS_MACHINE if is_this_machine else SETTINGS
    assert settings_for(master) == expected


@pytest.mark.usefixtures("no_defaults")
@pytest.mark.parametrize(("variable", "subfolder"), [("SPARK_CONF_DIR", "."), ("SPARK_HOME", "conf")])
def test_settings_in_the_user_s_own_file_replace_ours(
    variable: str, subfolder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / subfolder
    folder.mkdir(exist_ok=True)
    (folder / "spark-defaults.conf").write_text(DEFAULTS)
    monkeypatch.setenv(variable, str(tmp_path))
    assert names_in(folder) == {PARTITIONS, "spark.ui.enabled", "spark.app.name"}
    left_out = (SETTINGS | SETTINGS_OF_THIS_MACHINE).keys() - settings_for("local[2]").keys()
    assert left_out == {PARTITIONS, "spark.ui.enabled"}


@given(content=st.binary(max_size=200))
def test_a_file_of_defaults_may_hold_anything(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "spark-defaults.conf").write_bytes(content)
    assert all(name and name == name.strip() for name in names_in(folder))


def test_a_typed_setting_replaces_ours_and_adds_to_java_s_options() -> None:
    ours = {PARTITIONS: "2", DRIVER_OPTIONS: "-Da=1"}
    typed = {PARTITIONS: "9", DRIVER_OPTIONS: "-Db=2"}
    assert with_overrides(ours, typed) == {PARTITIONS: "9", DRIVER_OPTIONS: "-Da=1 -Db=2"}


@pytest.mark.parametrize("typed", ["mine.zip", ""])
def test_typed_python_files_are_shipped_beside_our_packages(typed: str) -> None:
    """Regression: executors got the user's files, and none of our packages."""
    expected = "ours.zip,mine.zip" if typed else "ours.zip"
    assert with_overrides({PYTHON_FILES: "ours.zip"}, {PYTHON_FILES: typed}) == {PYTHON_FILES: expected}


@pytest.fixture
def words_of_submit(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words with which spark-submit is run, without its path."""
    words: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        words.extend(command[1:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("spark.sessions.submit.subprocess.run", run)
    return words


def test_a_submitted_job_has_our_options_of_java_and_our_packages_beside_the_user_s(words_of_submit: list[str]) -> None:
    """Regression: spark-submit took the last --conf of a name, so ours were lost."""
    confs = {DRIVER_OPTIONS: "-Dmine=1", PYTHON_FILES: "mine.zip", PARTITIONS: "9"}
    options = [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
    done = CliRunner().invoke(main, ["spark", "submit", "--master", "local[1]", *options, "summary", "results"])
    assert done.exit_code == 0, done.output
    shipped = words_of_submit[words_of_submit.index("--py-files") + 1].split(",")
    assert [Path(file).name for file in shipped] == ["exchange_packages.zip", "mine.zip"]
    settings = dict(word.split("=", 1) for word in words_of_submit if word.startswith("spark."))
    java_options = settings[DRIVER_OPTIONS].split()
    assert java_options[-1] == "-Dmine=1"
    assert java_options[0].startswith("-Dlog4j2.configurationFile=")
    assert settings[PARTITIONS] == "9"
    assert sum(word.startswith(DRIVER_OPTIONS) for word in words_of_submit) == 1
    assert words_of_submit[-3:] == ["spark", "summary", "results"]


@pytest.mark.parametrize(
    "words",
    [
        ("spark", "summary", "{}"),
        ("spark", "sql", "select 1", "--tables", "{}"),
        ("spark", "bars", "--tables", "{}"),
        ("spark", "samples", "--tables", "{}"),
        ("spark", "live", "{}", "--once"),
        ("simulate", "--orders", "1000", "--results", "{}"),
    ],
)
def test_every_command_hands_its_settings_and_packages_to_spark(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_of_session: dict[str, str] = {}

    def open_session(_master: str = "", *, settings: Mapping[str, str], **_: object) -> None:
        settings_of_session.update(settings)
        raise SparkUnavailableError("no session here")

    for module in (jobs, live, on_spark):
        monkeypatch.setattr(module, "open_session", open_session)
    (tmp_path / "first").mkdir()
    write_smallest_run(tmp_path / "first")
    options = ("--conf", f"{PARTITIONS}=5", "--packages", "a:b:1")
    command = [*(word.format(tmp_path) for word in words), *options]
    finished = CliRunner().invoke(main, command)
    assert finished.exit_code == (1 if "live" in words else 2)
    assert finished.stderr.splitlines()[-1] == "Error: no session here"
    assert settings_of_session[PARTITIONS] == "5"
    assert settings_of_session["spark.jars.packages"] == "a:b:1"


@pytest.mark.parametrize("conf", ["nonsense", "spark.x", "x.y=1", "spark.master=yarn", ""])
@pytest.mark.parametrize("words", [("spark", "sql", "select 1"), ("simulate",), ("spark", "submit", "summary", ".")])
def test_a_malformed_setting_is_refused(words: tuple[str, ...], conf: str) -> None:
    # Words behind those of `submit` belong to the submitted command.
    place = words.index("submit") + 1 if "submit" in words else len(words)
    finished = CliRunner().invoke(main, [*words[:place], "--conf", conf, *words[place:]])
    assert finished.exit_code == 2
    assert f"it takes NAME=VALUE, as spark.driver.memory=2g, and is {conf!r}" in finished.stderr


def test_a_simulation_without_spark_takes_no_settings_of_it() -> None:
    done = CliRunner().invoke(main, ["simulate", "--master", "none", "--conf", "spark.driver.memory=2g"])
    assert done.exit_code == 2
    assert "--master none is without it" in done.stderr


SESSION = f"""
from spark.sessions.session import open_session
with open_session(settings={{"spark.default.parallelism": "3"}}) as spark:
    print(*(spark.conf.get(name) for name in ("{PARTITIONS}", "spark.default.parallelism", "spark.app.name")),
          spark.sparkContext.defaultParallelism, spark.conf.get("spark.sql.adaptive.enabled"))
"""


@pytest.mark.jvm
def test_a_session_prefers_typed_settings_then_the_user_s_file_then_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{PARTITIONS} 7\nspark.default.parallelism 9\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.stdout.split() == ["7", "3", "exchange", "3", "false"], done.stderr
