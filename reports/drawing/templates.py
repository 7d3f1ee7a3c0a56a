"""The templates of pages: a folder's own, which may include this folder's style and macros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader

from reports.formats import FORMATS, condition, is_number

HERE = Path(__file__).parent


def templates(folder: Path, **filters: Callable[..., Any]) -> Environment:
    """The environment; a value that is absent at any depth is undefined, which a template writes as "not measured"."""
    environment = Environment(
        loader=FileSystemLoader([folder, HERE]), autoescape=True, undefined=ChainableUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update(formats=FORMATS, condition=condition)
    environment.tests["measured"] = is_number
    environment.filters.update(filters)
    return environment
