"""The name of an experiment's folder in a table, as Hive and Spark name the folder of a partition."""

from __future__ import annotations

import re

RESERVED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
"""The characters that Hive and Spark escape."""


def experiment_folder(experiment: str) -> str:
    """Return experiment=E, with reserved characters escaped."""
    escaped = RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", experiment)
    return f"experiment={escaped}"
