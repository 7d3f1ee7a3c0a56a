"""The scripts of examples/ run as they stand, each in a folder of its own; so do the cells of the notebook."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SAYS = {"one_run": "from due time ", "broker_or_none": "zeromq at 4,000 orders/s", "matching": "400 prices: "}


def test_every_script_is_run_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SAYS.keys()


@pytest.mark.parametrize("name", SAYS)
def test_a_script_runs(name: str, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


def value_of(cell: str, names: dict[str, Any]) -> object:
    """Run a cell; return the value of its last line if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "first_look.ipynb").read_text())
    names: dict[str, Any] = {}
    values = [value_of("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert len(shown) == 3
    assert sum("<iframe" in html for html in shown) == 2
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    assert values[-1][0] > 100_000
