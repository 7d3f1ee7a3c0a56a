"""Runs the cells of a notebook without Jupyter."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any


def cells_of(notebook: Path) -> list[dict[str, Any]]:
    """Its cells of code."""
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def values_of(notebook: Path, names: dict[str, Any]) -> list[Any]:
    """Run its cells in turn; what the last line of each is, None if it is no expression."""
    return [value_of("".join(cell["source"]), names) for cell in cells_of(notebook)]


def value_of(cell: str, names: dict[str, Any]) -> object:
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
