"""What sessions and submitted jobs beyond one machine need: an address towards the master, our packages, an executor.

A local master needs only an address: its tasks run the Python of this process, with the packages that it has.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError
from spark.sessions.master import (
    STANDALONE,
    is_connect,
    is_local_cluster,
    is_one_jvm,
    is_standalone,
    is_this_machine,
)
from spark.sessions.package import package_zip
from spark.sessions.settings import PYTHON_FILES
from transports.base import port_of

ANSWER_PATIENCE_S = 5.0
EXECUTOR_PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"
SECRET = "EXCHANGE_SPARK_SECRET"
"""The environment variable with the secret of a standalone cluster, its spark.authenticate.secret."""
DYNAMIC_ALLOCATION = "spark.dynamicAllocation.enabled"
AUTHENTICATED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def driver_address(master: str) -> str | None:
    """Return the address on which the driver listens: loopback for a local master, None if Spark is to choose.

    SparkUnavailableError if no one answers at the address of a standalone master, or if the master has no driver.
    """
    if is_connect(master):
        raise SparkUnavailableError(
            f"{master} is Spark Connect, which exchange spark summary, sql, bars and samples take, and nothing else: "
            "give local[N], spark://HOST:PORT, yarn or k8s://..."
        )
    if is_standalone(master):
        return _address_towards(master)
    return LOOPBACK if is_this_machine(master) else None


def address_settings(address: str | None) -> dict[str, str]:
    return {} if address is None else {"spark.driver.host": address, "spark.driver.bindAddress": address}


def authentication(master: str) -> dict[str, str]:
    """Return the settings by which driver and executors know each other, and encrypt their messages.

    Those of local-cluster share a new secret, those of a standalone cluster the one in EXCHANGE_SPARK_SECRET. Other
    masters have ways of their own, which spark-submit's options turn on.
    """
    if is_local_cluster(master):
        secret: str | None = secrets.token_hex(16)
    elif is_standalone(master):
        secret = os.environ.get(SECRET)
    else:
        secret = None
    if secret is None:
        return {}
    return {**AUTHENTICATED, "spark.authenticate.secret": secret}


def shipped_settings(master: str, folder: Path) -> dict[str, str]:
    """Zip our packages into `folder` for executors that are processes; return the setting that ships the zip."""
    if is_one_jvm(master):
        return {}
    return {PYTHON_FILES: str(package_zip(folder))}


def _address_towards(master: str) -> str:
    """Return our address as the master sees it; its workers use the same."""
    reasons = []
    for host, port in _addresses(master):
        try:
            with socket.create_connection((host, port), ANSWER_PATIENCE_S) as link:
                return str(link.getsockname()[0])
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise SparkUnavailableError(
        f"no Spark master answers at {master} ({'; '.join(reasons)}): start one, or correct the address; "
        "the master's own page shows it"
    )


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, digits = address.rpartition(":")
        port = port_of(digits)
        if not host or port is None:
            raise SparkUnavailableError(f"{master} is no address of a Spark master: give spark://HOST:PORT")
        yield host.strip("[]"), port


def home_of(master: str, folder: Path) -> Path:
    """Return SPARK_HOME. Workers of local-cluster write into it, so they get a folder of links, below `folder`."""
    installed = Path(pyspark.__file__).parent
    if not is_local_cluster(master):
        return installed
    home = folder / "home"
    home.mkdir()
    for path in installed.iterdir():
        (home / path.name).symlink_to(path)
    return home


def wait_for_executor(spark: SparkSession, patience_s: float = EXECUTOR_PATIENCE_S) -> None:
    """Wait for the first executor; SparkUnavailableError if none comes, since a job would wait for it forever.

    A session with dynamic allocation does not wait: its executors may come only when a job needs them.
    """
    context = spark.sparkContext
    is_dynamic = context.getConf().get(DYNAMIC_ALLOCATION, "false") == "true"
    if is_one_jvm(str(context.master)) or is_dynamic:
        return
    until_s = time.monotonic() + patience_s
    while len(context.statusTracker().getExecutorInfos()) < 2:  # the driver is one of them
        if time.monotonic() > until_s:
            raise SparkUnavailableError(
                f"{context.master} gave us no executor within {patience_s:g} s: "
                "see that it has a worker, and the worker a free core and 1 GB of memory"
            )
        time.sleep(0.05)
