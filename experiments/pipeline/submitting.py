"""The same jobs through spark-submit, whose options say where and with what."""

from __future__ import annotations

from collections.abc import Sequence

from runs.errors import UserError
from spark.errors import SparkUnavailableError
from spark.sessions.session import submit_job


def submit(master: str, deploy_mode: str | None, confs: Sequence[str], job: str, arguments: Sequence[str]) -> int:
    """The exit code of spark-submit, which is the job's."""
    if wrong := [conf for conf in confs if "=" not in conf]:
        raise UserError(f"--conf is {wrong[0]!r}; it takes NAME=VALUE, as in --conf spark.executor.memory=2g")
    options = ["--deploy-mode", deploy_mode] if deploy_mode else []
    options += [word for conf in confs for word in ("--conf", conf)]
    words = [job] if job == "simulate" else ["spark", job]
    try:
        return submit_job(master, options, [*words, *arguments])
    except SparkUnavailableError as error:
        raise UserError(str(error)) from error
