"""Every class of the product has a unique name."""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "OrderBook": "the Python API's class wraps the engine's with the same settings: to its users it is that book"
}
"""Names that two classes have, each with the reason."""


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


def test_class_names_are_unique_except_the_allowed_ones() -> None:
    shared = {name: files for name, files in files_by_class_name().items() if len(files) > 1}
    assert shared.keys() == ALLOWED.keys(), shared
