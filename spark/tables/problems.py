"""The problems that a line of a spool may have, whoever reads it: Arrow, for tables, or Spark, for streams.

A line with a problem is in no table of its kind, but in `quarantine`.
"""

from __future__ import annotations

from exchange.json_records import SCHEMA

NO_RECORD = "no record: not one JSON object with the fields of a spool record"
UNKNOWN_SCHEMA = f"unknown schema: not {SCHEMA}"
UNKNOWN_KIND = "unknown kind"
WRONG_PAYLOAD = "wrong payload: not that of its kind"
COPY = "copy: the same line stands in the spool before"
"""Only Arrow, which reads a spool from its beginning, knows a copy."""

EXAMPLE_CHARACTERS = 160
"""The length of the beginning of a line that is shown with its problem."""
