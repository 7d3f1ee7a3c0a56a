"""What a session needs beyond one machine: a master that answers, a way back to us, our packages, an executor.

A local master needs none but an address: its tasks run the Python of this process, with the packages it has.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError
from spark.package import package_zip

ANSWER_PATIENCE_S = 5.0
EXECUTOR_PATIENCE_S = 60.0
LOOPBACK = "127.0.0.1"


def is_local(master: str) -> bool:
    """Whether executors are threads of the session's own JVM."""
    return re.fullmatch(r"local(\[[^]]*\])?", master) is not None


def driver_address(master: str) -> str | None:
    """Where the driver listens: for this machine's executors on loopback; None leaves the choice to Spark.

    SparkUnavailableError where nobody answers at the master's address.
    """
    if master.startswith("spark://"):
        return _way_back(master)
    return LOOPBACK if master.startswith("local") else None


def address_settings(address: str | None) -> dict[str, str]:
    return {} if address is None else {"spark.driver.host": address, "spark.driver.bindAddress": address}


def shipped_settings(master: str, folder: Path) -> dict[str, str]:
    """Our packages for executors that are not ours."""
    return {} if is_local(master) else {"spark.submit.pyFiles": str(package_zip(folder))}


def _way_back(master: str) -> str:
    """Our address as the master sees it, and so its workers."""
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
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 0xFFFF:
            raise SparkUnavailableError(f"{master} is no address of a Spark master: give spark://HOST:PORT")
        yield host.strip("[]"), int(port)


def home_of(master: str, folder: Path) -> Path:
    """SPARK_HOME. The workers of local-cluster write into it, so they get one of links, in the session's folder."""
    installed = Path(pyspark.__file__).parent
    if not master.startswith("local-cluster"):
        return installed
    home = folder / "home"
    home.mkdir()
    for part in installed.iterdir():
        (home / part.name).symlink_to(part)
    return home


def wait_for_executor(spark: SparkSession, patience_s: float = EXECUTOR_PATIENCE_S) -> None:
    """SparkUnavailableError where a cluster gives us none; a job would wait for it forever."""
    context = spark.sparkContext
    if is_local(str(context.master)):
        return
    until_s = time.monotonic() + patience_s
    while len(context.statusTracker().getExecutorInfos()) < 2:  # the driver is one of them
        if time.monotonic() > until_s:
            raise SparkUnavailableError(
                f"{context.master} gave us no executor within {patience_s:g} s: "
                "see that it has a worker, and the worker a free core and 1 GB of memory"
            )
        time.sleep(0.05)
