"""Tables that an older version made. They are refused, since they would be read wrong."""

from __future__ import annotations

from collections.abc import Iterable

from spark.dataset.folder import TablesFolder
from spark.errors import DatasetUnreadableError

NEWEST_COLUMNS = {"runs": "settings", "orders": "kind"}
"""By table, a column that tables of older versions lack."""


def refuse_older(folder: TablesFolder) -> None:
    """Raise DatasetUnreadableError if the tables have an older layout, which shows by a manifest."""
    manifests = [name for name in folder.names() if name.startswith("manifest-")]
    if manifests:
        raise _refusal(folder.url, f"it has {manifests[-1]}")


def refuse_older_columns(table: str, columns: Iterable[str], url: str) -> None:
    """Raise DatasetUnreadableError if the table lacks a column, since an older version made it."""
    if table in NEWEST_COLUMNS and NEWEST_COLUMNS[table] not in columns:
        raise _refusal(url, f"{table} has no column {NEWEST_COLUMNS[table]}")


def _refusal(url: str, sign: str) -> DatasetUnreadableError:
    return DatasetUnreadableError(
        f"{url} has tables of an older version ({sign}), which would be read wrong: "
        "remove that folder, or name another by --tables, and make the tables again, with exchange spark ingest"
    )
