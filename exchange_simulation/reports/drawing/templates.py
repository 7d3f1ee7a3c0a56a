"""The templates of pages: each extends base.html, and uses the style and the macros beside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader
from markupsafe import Markup

from exchange.percentiles import FIGURES
from exchange_simulation.reports.drawing.colours import DARK, LIGHT, css_variables
from exchange_simulation.reports.formats.few_orders import has_enough_orders, max_of
from exchange_simulation.reports.formats.numbers import is_number
from exchange_simulation.reports.formats.settings import condition_in_words
from exchange_simulation.reports.formats.template_formats import TEMPLATE_FORMATS
from exchange_simulation.reports.formats.times import date_and_time

SHARED = Path(__file__).parent


def _script() -> str:
    """Return the script of all pages, without comments and indentation."""
    source = (SHARED / "page.js").read_text(encoding="utf-8")
    lines = [line.strip() for line in source.splitlines()]
    return "\n".join(line for line in lines if not line.startswith("//"))


SCRIPT = _script()
SCRIPT_HASH = f"sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}"
"""The only script that a page's policy lets a browser run."""


def templates(folder: Path, **filters: Callable[..., Any]) -> Environment:
    """Return the templates of a folder; a value absent at any depth is undefined, and written as "not measured"."""
    environment = Environment(
        loader=FileSystemLoader([folder, SHARED]),
        autoescape=True,
        undefined=ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        formats=TEMPLATE_FORMATS, condition=condition_in_words, has_enough_orders=has_enough_orders, max_of=max_of
    )
    environment.globals.update(completion_figures=FIGURES)
    environment.globals.update(light=css_variables(LIGHT), dark=css_variables(DARK))
    environment.globals.update(script=Markup(SCRIPT), script_hash=Markup(SCRIPT_HASH))
    environment.tests["measured"] = is_number
    environment.filters.update(date_and_time=date_and_time, **filters)
    return environment
