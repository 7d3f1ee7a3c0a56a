"""Masters on other hosts: the address by which they reach us, and the error if they do not answer."""

from __future__ import annotations

import socket
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from exchange_simulation.experiments.pipeline import jobs
from exchange_simulation.launching.errors import UserError
from spark.errors import SparkUnavailableError
from spark.sessions.cluster import (
    AUTHENTICATED,
    SECRET,
    address_settings,
    authentication,
    driver_address,
    home_of,
    shipped_settings,
    wait_for_executor,
)
from spark.sessions.master import is_one_jvm
from spark.sessions.session import open_session
from spark.sessions.settings import SETTINGS
from tests.machine import PATIENCE_S
from tests.own_process import in_own_process
from tests.spark.standalone import standalone_cluster


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_a_local_master_stays_on_loopback_and_needs_no_packages(master: str, tmp_path: Path) -> None:
    assert is_one_jvm(master)
    assert driver_address(master) == "127.0.0.1"
    assert shipped_settings(master, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "yarn", "k8s://https://host:443"])
def test_executors_of_other_masters_get_our_packages(master: str, tmp_path: Path) -> None:
    assert shipped_settings(master, tmp_path) == {"spark.submit.pyFiles": str(tmp_path / "exchange_packages.zip")}


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:443"])
def test_a_driver_with_executors_elsewhere_is_not_bound_to_loopback(master: str) -> None:
    assert driver_address(master) is None
    assert address_settings(None) == {}
    assert not any(name.startswith("spark.driver.") for name in SETTINGS)


def test_a_driver_listens_on_the_address_that_reaches_a_standalone_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        address = driver_address(f"spark://127.0.0.1:{master.getsockname()[1]}")
    assert address_settings(address) == {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_second_master_is_tried_if_the_first_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        assert driver_address(f"spark://127.0.0.1:{unused_port()},127.0.0.1:{port}")


def test_a_master_that_does_not_answer_is_named_in_the_error() -> None:
    port = unused_port()
    with pytest.raises(SparkUnavailableError, match=rf"no Spark master answers at spark://127.0.0.1:{port} .*refused"):
        driver_address(f"spark://127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["spark://", "spark://host", "spark://host:port", "spark://host:70000"])
def test_a_malformed_address_of_a_master_is_refused(master: str) -> None:
    with pytest.raises(SparkUnavailableError, match=r"give spark://HOST:PORT"):
        driver_address(master)


def test_workers_of_a_local_cluster_write_into_the_session_s_folder(tmp_path: Path) -> None:
    home = home_of("local-cluster[2,1,1024]", tmp_path)
    assert home.parent == tmp_path
    assert (home / "jars").samefile(home_of("local[2]", tmp_path) / "jars")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://host:443", "spark://host:7077"])
def test_masters_that_authenticate_in_other_ways_get_no_secret(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET, raising=False)
    assert authentication(master) == {}


def test_a_local_cluster_gets_a_new_secret_each_time() -> None:
    first = authentication("local-cluster[2,1,1024]")
    second = authentication("local-cluster[2,1,1024]")
    assert first["spark.authenticate"] == "true"
    assert first["spark.network.crypto.enabled"] == "true"
    assert len(first["spark.authenticate.secret"]) == 32
    assert first["spark.authenticate.secret"] != second["spark.authenticate.secret"]


def sum_on(master: str) -> int:
    """Return the sum of 0 to 99, added by the executors of a cluster."""
    with open_session(master, settings={"spark.executor.memory": "512m"}) as session:
        return int(session.sparkContext.parallelize(range(100), 2).sum())


@pytest.mark.jvm
@pytest.mark.long
def test_a_standalone_cluster_serves_only_sessions_with_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = {**AUTHENTICATED, "spark.authenticate.secret": "sesame"}
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", " ".join(f"-D{name}={value}" for name, value in daemons.items()))
    with standalone_cluster(tmp_path) as master:
        monkeypatch.setenv(SECRET, "sesame")
        assert in_own_process(sum_on, master) == 4950
        monkeypatch.setenv(SECRET, "guess")
        with pytest.raises(SparkUnavailableError, match="check the master's address, and EXCHANGE_SPARK_SECRET"):
            in_own_process(sum_on, master)


def session_without_executor(**settings: str) -> SparkSession:
    """Return what the wait for an executor asks of a session that has only a driver."""
    tracker = SimpleNamespace(getExecutorInfos=lambda: ["the driver"])
    context = SimpleNamespace(master="spark://somewhere:7077", statusTracker=lambda: tracker, getConf=lambda: settings)
    return cast(SparkSession, cast(Any, SimpleNamespace(sparkContext=context)))


def test_the_wait_for_an_executor_ends_with_an_error() -> None:
    start_s = time.monotonic()
    with pytest.raises(SparkUnavailableError, match=r"gave us no executor within 0.1 s: see that it has a worker"):
        wait_for_executor(session_without_executor(), patience_s=0.1)
    assert time.monotonic() - start_s < PATIENCE_S


def test_executors_that_come_only_for_a_job_are_not_waited_for() -> None:
    wait_for_executor(session_without_executor(**{"spark.dynamicAllocation.enabled": "true"}), patience_s=0.0)


def count_on(master: str) -> None:
    """Count to one by a session of the commands, which waits a second for an executor, and not a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "wait_for_executor", partial(wait_for_executor, patience_s=1.0))
        with jobs.session_for("tables", master, {}) as spark:
            spark.range(1).count()


@pytest.mark.jvm
@pytest.mark.long
def test_a_command_ends_with_an_error_if_the_cluster_has_no_worker(tmp_path: Path) -> None:
    refusal = pytest.raises(UserError, match=r"gave us no executor within 1 s: see that it has a worker")
    with standalone_cluster(tmp_path, work_folders=()) as master, refusal:
        in_own_process(count_on, master)
