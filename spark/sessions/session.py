"""The Spark session.

A session is quiet on the terminal, leaves nothing in the working directory, opens ports on 127.0.0.1 only if the
master is this machine, and is gone when closed.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark.errors import SparkUnavailableError, root_cause
from spark.sessions.class_archive import ClassArchive, class_archive
from spark.sessions.cluster import (
    LOOPBACK,
    SECRET,
    address_settings,
    authentication,
    driver_address,
    home_of,
    shipped_settings,
)
from spark.sessions.folders import SESSION_PREFIX, private_folders, session_folder
from spark.sessions.java import Java, find_java, launcher_home
from spark.sessions.jvm import remove_at_exit, restored_process_state, running_jvm
from spark.sessions.master import is_one_jvm, is_this_machine
from spark.sessions.nameless_user import log_in, nameless_user, needs_name
from spark.sessions.package import package_zip
from spark.sessions.settings import PYTHON_FILES, defaults_folder, settings_for, with_overrides
from spark.sessions.submit import is_submitted, submit

LOGGING = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n
"""

# Only the first compiler: a short job ends before the second one's work pays, which doubles the CPU time.
SHORT_LIVED = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
LONGEST_FOLDER = 60
"""The path of a Unix socket has 103 bytes at most, of which Spark's name takes 43."""


@contextmanager
def open_session(
    master: str = "local[2]",
    *,
    settings: Mapping[str, str] | None = None,
    private_settings: Mapping[str, str] | None = None,
    java: Java | None = None,
    write_archive: bool = False,
) -> Iterator[SparkSession]:
    """Open a session with a JVM of its own; SparkUnavailableError if none can be had.

    `private_settings` stand in no process's arguments. `write_archive` makes later sessions start faster, see
    spark.sessions.class_archive. Under spark-submit the session is that of the JVM which started this process, and
    spark-submit's master replaces `master`.
    """
    if is_submitted():
        _refuse_second_session()
        with _submitted_session(settings or {}) as submitted:
            yield submitted
        return
    user = nameless_user()
    if user is not None and not is_one_jvm(master):
        raise needs_name(master)
    java = java or find_java()
    archive = session_archive(java)
    address = driver_address(master)
    _refuse_second_session()  # a master that cannot be used is refused first
    tuning = [*SHORT_LIVED, *_archive_options(archive, write_archive)]
    with ExitStack() as resources:
        kept_folder = resources.enter_context(session_folder())
        folder = kept_folder.path
        environment = spark_environment(java, home_of(master, folder), address)
        resources.enter_context(restored_process_state(environment))
        our_settings = settings_for(master)
        our_settings["spark.master"] = master
        our_settings |= address_settings(address)
        our_settings |= shipped_settings(master, folder)
        if is_this_machine(master):
            our_settings["spark.executor.extraJavaOptions"] = shlex.join(SHORT_LIVED)
        our_settings |= _folder_settings(folder, _java_options(folder, tuning, user))
        our_settings |= socket_settings(master, folder)
        all_settings = with_overrides(our_settings, settings or {})
        # Defaults would come from another session's system properties.
        conf = SparkConf(loadDefaults=False).setAppName("exchange").setAll(list(all_settings.items()))
        with running_jvm(conf, folder, [kept_folder.descriptor]) as gateway:
            # Set only now, so that the JVM's arguments, which ps shows, have no secret.
            conf.setAll(list((authentication(master) | dict(private_settings or {})).items()))
            if user is not None:
                log_in(gateway, user)
            session = _session(conf, gateway)
            try:
                yield session
            finally:
                with suppress(Py4JError, OSError):  # the JVM may be dead already, and is ended next
                    session.stop()
    if archive and write_archive:
        archive.finish()


def submit_job(master: str, deploy_mode: str | None, given: Mapping[str, str], job: Sequence[str]) -> int:
    """Run one of our commands through spark-submit, with the `given` settings over ours; return its exit code."""
    if nameless_user() is not None:
        raise needs_name("spark-submit")
    java = find_java()
    address = driver_address(master)
    with session_folder() as kept_folder:
        folder = kept_folder.path
        home = home_of(master, folder)
        our_settings = _folder_settings(folder, _java_options(folder, [])) | address_settings(address)
        our_settings[PYTHON_FILES] = str(package_zip(folder))
        settings = with_overrides(our_settings, given)
        # spark-submit reads no setting of this name beside the option.
        options = ["--master", master, "--py-files", settings.pop(PYTHON_FILES)]
        if deploy_mode:
            options += ["--deploy-mode", deploy_mode]
        for name, value in settings.items():
            options += ["--conf", f"{name}={value}"]
        environment = spark_environment(java, home, address)
        return submit(folder, home, environment, options, job, [kept_folder.descriptor])


def _refuse_second_session() -> None:
    """Raise SparkUnavailableError if this process has a session."""
    if SparkContext._active_spark_context is not None:
        raise SparkUnavailableError("this Python process has a Spark session open already: stop it first")


def _session(conf: SparkConf, gateway: JavaGateway) -> SparkSession:
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        updates: Any = context._accumulatorServer
        updates.handle_error = lambda *_: None  # it would print a stack trace if the JVM is killed, which we say
        return SparkSession(context)
    except (Py4JError, PySparkException) as failure:
        to_check = "the master's address"
        if conf.contains("spark.authenticate"):
            to_check += f", and {SECRET}"
        raise SparkUnavailableError(
            f"Spark did not start on {conf.get('spark.master')} ({root_cause(failure)}): check {to_check}"
        ) from failure


@contextmanager
def _submitted_session(given: Mapping[str, str]) -> Iterator[SparkSession]:
    """Open a session in the JVM that started this process; spark-submit's own settings precede ours."""
    conf = SparkConf()
    for name, value in settings_for(conf.get("spark.master") or "").items():
        conf.setIfMissing(name, value)
    conf.setAll(list(with_overrides(dict(conf.getAll()), given).items()))
    try:
        session = SparkSession(SparkContext.getOrCreate(conf))
    except (Py4JError, PySparkException) as failure:
        raise SparkUnavailableError(f"Spark did not start ({root_cause(failure)}): check the master") from failure
    folder = Path(session.conf.get("spark.local.dir") or "")
    if folder.name.startswith(SESSION_PREFIX):  # the submitter made it, and may be killed together with this JVM
        remove_at_exit(session.sparkContext._gateway, folder)
    try:
        yield session
    finally:
        session.stop()


def _folder_settings(folder: Path, java_options: list[str]) -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": shlex.join(java_options),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def socket_settings(master: str, folder: Path) -> dict[str, str]:
    """Let Java and its Python talk over Unix sockets in the session's folder, if its path is short enough for them.

    Over TCP every task waits 40 ms, by Nagle's algorithm and a delayed acknowledgement. Executors of a cluster cannot
    use this session's folder.
    """
    fits = len(os.fsencode(folder)) <= LONGEST_FOLDER
    uses_unix_sockets = fits and is_one_jvm(master)
    return {UNIX_SOCKETS: "true" if uses_unix_sockets else "false"}


def _java_options(folder: Path, tuning: list[str], user: str | None = None) -> list[str]:
    """Return the options of a JVM; `user` is the name that it takes for a user without one, whose home is `folder`."""
    identity = [] if user is None else [f"-Duser.name={user}", f"-Duser.home={folder}"]
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING)
    return [
        f"-Dlog4j2.configurationFile={logging}",
        f"-Djava.io.tmpdir={folder}",  # native libraries are unpacked there
        f"-XX:ErrorFile={folder / 'crash.log'}",  # by default it lands in the working directory
        "-XX:-UsePerfData",  # performance data would leave a file in the temporary folder
        "-Xlog:disable",
        *identity,
        *tuning,
    ]


def spark_environment(java: Java, spark_home: Path, address: str | None = LOOPBACK) -> dict[str, str]:
    """Return the environment of Spark's scripts and JVMs, which listen on `address`; None lets Spark choose it."""
    can_run_launcher = os.name == "posix"  # it is a shell script
    java_home = launcher_home(java.executable, private_folders()) if can_run_launcher else java.home
    environment = {
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(spark_home),
        "SPARK_LAUNCHER_OPTS": " ".join([*SHORT_LIVED, "-XX:-UsePerfData", "-Xlog:disable"]),
        "PYSPARK_PYTHON": sys.executable,
    }
    configuration = defaults_folder()
    if configuration is not None:
        environment["SPARK_CONF_DIR"] = str(configuration)
    if address is not None:
        environment["SPARK_LOCAL_IP"] = address
    return environment


def session_archive(java: Java) -> ClassArchive | None:
    """Return the archive that sessions of this Java use once it is written; None if they cannot have one."""
    if os.name != "posix":
        return None
    folder = next(private_folders(), None)
    return None if folder is None else class_archive(java, folder)


def _archive_options(archive: ClassArchive | None, write: bool) -> list[str]:
    if archive is None:
        return []
    return archive.options_to_write() if write else archive.options_to_use()
