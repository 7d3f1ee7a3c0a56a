"""Which runs lie in a folder, and which of them have begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.kept.kinds import kind_of


def runs_in(results: Path) -> Iterator[Path]:
    """The folder itself where it is a run's, else those in it and in its trials; each with a file in its spool."""
    kind = kind_of(results)
    if kind is not None and kind.name == "run":
        folders = [results]
    else:
        folders = sorted(spool.parent for depth in ("*/spool", "*/*/spool") for spool in results.glob(depth))
    for folder in folders:
        hidden = any(part.startswith(".") for part in folder.relative_to(results).parts)
        if not hidden and any((folder / "spool").glob("[!.]*.jsonl")):
            yield folder
