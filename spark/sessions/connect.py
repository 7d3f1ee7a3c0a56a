"""Sessions of Spark Connect: a running server does the work, and this process starts no Java."""

from __future__ import annotations

import os
import socket
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pyspark.errors import AnalysisException, PySparkException, PySparkImportError, PySparkValueError
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError
from spark.sessions.cluster import ANSWER_PATIENCE_S
from spark.sessions.folders import scratch_folder
from spark.sessions.jvm import quiet_loggers
from spark.sessions.package import package_zip

MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable by which pyspark.sql.functions decides for a server or a JVM."""
SETTINGS = {"spark.sql.session.timeZone": "UTC"}
"""Settings of every session."""
MOST_RETRIES = 4
"""After each retry, the client waits four times as long: 4 s in all. The client's default, 15, takes ten minutes."""


@contextmanager
def connected_session(url: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Open a session on the server at `url`, with these settings of Spark SQL.

    Call `ship_package` before the server is to run Python functions of ours.

    SparkUnavailableError if the client lacks a package, if no such server answers, or if it refuses a setting.
    """
    with quiet_loggers(), _functions_of_connect(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # an exception follows
        session = _session(url)
        try:
            _apply_settings(session, url, {**SETTINGS, **settings})
            yield session
        finally:
            session.stop()


@contextmanager
def _functions_of_connect() -> Iterator[None]:
    """Let pyspark.sql.functions make expressions for a server, in place of those of a JVM of our own."""
    earlier_mode = os.environ.get(MODE)
    os.environ[MODE] = "1"
    try:
        yield
    finally:
        del os.environ[MODE]
        if earlier_mode is not None:
            os.environ[MODE] = earlier_mode


def ship_package(session: SparkSession) -> None:
    """Send our packages to the server, for this session's Python functions."""
    with tempfile.TemporaryDirectory(prefix="exchange-package-", dir=scratch_folder()) as folder:
        session.addArtifacts(str(package_zip(Path(folder))), pyfile=True)


def _session(url: str) -> SparkSession:
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession as ConnectSession
    except PySparkImportError as missing:
        package = (missing.getMessageParameters() or {}).get("package_name", "a package")
        raise SparkUnavailableError(
            f"{url} needs {package}, which is not here or too old: pip install 'exchange-simulation[connect]'"
        ) from missing
    _check_that_server_answers(url)
    session: Any = ConnectSession.builder.remote(url).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=MOST_RETRIES)])
    return cast(SparkSession, session)


def _check_that_server_answers(url: str) -> None:
    """Raise SparkUnavailableError if the URL is no address of Spark Connect, or if no server listens there."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    try:
        host, _, port = DefaultChannelBuilder(url).endpoint.rpartition(":")
    except (PySparkValueError, ValueError) as error:
        raise SparkUnavailableError(f"{url} is no address of Spark Connect: give sc://HOST:PORT") from error
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_PATIENCE_S).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"no Spark Connect server answers at {url} ({error.strerror or error}): "
            "start one, with start-connect-server.sh of Spark, or correct the address"
        ) from error


def _apply_settings(session: SparkSession, url: str, settings: Mapping[str, str]) -> None:
    """Apply the settings. SparkUnavailableError if the server refuses one, or is no server of Spark Connect."""
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
    except AnalysisException as error:
        raise SparkUnavailableError(
            f"{url} lets no session set {name}: start its server with it, or leave it out"
        ) from error
    except PySparkException as error:
        raise SparkUnavailableError(
            f"what answers at {url} is no Spark Connect server, or wants ;use_ssl=true or ;token=... in its address"
        ) from error
