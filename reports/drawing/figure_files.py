"""Figures as files for elsewhere: `figures/NAME.svg` and `.png` in the light colours, `.csv` with what is drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from reports.drawing.canvas import HEIGHT, WIDTH
from reports.drawing.chart import Chart, Numbers
from runs.errors import cannot_write
from runs.files import whole_file

PICTURES: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 216}}
AROUND: dict[str, Any] = {"facecolor": "white", "bbox_inches": "tight", "pad_inches": 0.12}


def write_figures(folder: Path, drawn: Iterable[tuple[str, str, Chart]]) -> Path:
    """Of each its name, title and chart. The page's style must hold, in colours of a file."""
    figures = folder / "figures"
    try:
        figures.mkdir(exist_ok=True)
        for name, title, chart in drawn:
            _write(figures / name, title, chart)
    except OSError as error:
        raise cannot_write(figures, error) from error
    return figures


def _write(path: Path, title: str, chart: Chart) -> None:
    chart.figure.text(2 / WIDTH, 1 + 14 / HEIGHT, title, fontsize="large", fontweight="bold")
    for kind, how in PICTURES.items():
        _write_bytes(path.with_name(f"{path.name}.{kind}"), _picture(chart.figure, kind, how))
    _write_bytes(path.with_name(f"{path.name}.csv"), csv_of(chart.numbers).encode())


def _picture(figure: Figure, kind: str, how: dict[str, Any]) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, **AROUND, **how)
    return picture.getvalue()


def csv_of(numbers: Numbers) -> str:
    """An empty cell has no value."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(numbers.columns)
    table.writerows(numbers.rows)
    return text.getvalue()


def _write_bytes(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)
