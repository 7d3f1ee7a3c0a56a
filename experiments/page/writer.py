"""A run's folder in, its page out."""

from __future__ import annotations

from pathlib import Path

from jinja2 import ChainableUndefined, Environment, FileSystemLoader

from experiments.errors import cannot_write
from experiments.page.figures import draw_figures
from experiments.page.formats import FORMATS, condition, is_number
from experiments.page.run_folder import RunFolder, read_run_folder
from experiments.page.story import told
from experiments.whole_file import whole_file

TEMPLATES = Path(__file__).parent


def write_page(run_folder: Path, known: RunFolder | None = None) -> Path:
    """Write `report.html` beside `run.json`; it appears whole, by rename. `known` is what the folder holds."""
    html, page = page_html(known or read_run_folder(run_folder)), run_folder / "report.html"
    try:
        with whole_file(page) as file:
            file.write(html.encode())
    except OSError as error:
        raise cannot_write(page, error) from error
    return page


def page_html(folder: RunFolder) -> str:
    """Equal folders give equal pages, to the byte."""
    return _environment().get_template("page.html").render(told(folder.run), drawings=draw_figures(folder))


def _environment() -> Environment:
    """What is absent at any depth is undefined, which the template writes as "not measured"."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=ChainableUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update(formats=FORMATS, condition=condition)
    environment.tests["measured"] = is_number
    return environment
