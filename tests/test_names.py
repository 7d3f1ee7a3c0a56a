"""A class name stands for one thing in the whole house."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "OrderBook": "the Python API's class wraps the engine's with the same settings: to its users it is that book"
}
"""Names of two classes, each with the reason why both keep it."""


def files_by_class_name() -> dict[str, list[str]]:
    """Return the files that define each class of the product, by the class's name; a file twice if it defines two."""
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    files: defaultdict[str, list[str]] = defaultdict(list)
    for file in tracked.stdout.split():
        if file.startswith("tests/"):
            continue
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(file)
    return files


def test_each_class_name_is_defined_once_but_for_the_allowed_ones() -> None:
    shared = {name: files for name, files in files_by_class_name().items() if len(files) > 1}
    assert shared.keys() == ALLOWED.keys(), shared
