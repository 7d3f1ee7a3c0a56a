"""`exchange results rerun`: a run or a trial once more, from its own record."""

from __future__ import annotations

from pathlib import Path

from cli.looking_back.finding import find


def rerun(results: str, name: str, new_name: str | None, with_spark: bool, as_json: bool) -> int:
    """The exit code, as of the command that made it."""
    folder, kind = find(Path(results), name)
    return kind.rerun(folder, results, new_name, with_spark=with_spark, as_json=as_json)
