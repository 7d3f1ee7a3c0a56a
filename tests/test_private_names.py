"""No private name of a library is used, except those of ALLOWED.

docs/decisions/0002-stock-parts.md says why they stay.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PUBLIC = {"_asdict", "_replace", "_fields", "_make", "_exit", "_repr_html_"}
"""Names that a library documents, although they begin with an underscore."""
ALLOWED = {
    ("spark/dataset/hadoop_folder.py", "_jsc"),
    ("spark/dataset/hadoop_folder.py", "_jvm"),
    ("spark/sessions/jvm.py", "_active_spark_context"),
    ("spark/sessions/jvm.py", "_activeSession"),
    ("spark/sessions/jvm.py", "_gateway"),
    ("spark/sessions/jvm.py", "_instantiatedSession"),
    ("spark/sessions/jvm.py", "_jvm"),
    ("spark/sessions/session.py", "_accumulatorServer"),
    ("spark/sessions/session.py", "_active_spark_context"),
    ("spark/sessions/session.py", "_gateway"),
    ("spark/sessions/warm_server.py", "_gateway"),
    ("spark/sessions/warm_server.py", "_jvm"),
    ("tests/spark/dataset/test_dataset.py", "_jvm"),
    ("tests/spark/live/test_live_damage.py", "_gateway"),
    ("transports/amqp/connection.py", "_on_data_available"),
    ("transports/amqp/connection.py", "_on_stream_connected"),
    ("transports/amqp/connection.py", "_on_stream_terminated"),
    ("transports/amqp/loops.py", "_terminate_stream"),
    ("transports/amqp/loops.py", "_transport"),
}
"""Pairs of a file and a private name of a library that the file uses."""
LIBRARY_NAMES = {name for _, name in ALLOWED}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Yield the functions, classes, fields and attributes of `self` that a file defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr


def is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def foreign_names(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    """Yield private attributes and private modules that no file of ours defines.

    A name of ALLOWED may also be the name of an attribute of ours: it is foreign unless it is read from `self`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            may_be_foreign = node.attr in LIBRARY_NAMES and not is_self(node.value)
            if node.attr not in ours or may_be_foreign:
                yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [name.name for name in node.names]
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                modules.append(node.module)
            for part in ".".join(modules).split("."):
                if is_private(part) and part not in ours:
                    yield part


def test_no_private_name_of_a_library_is_used_except_the_allowed_ones() -> None:
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    trees = {file: ast.parse((ROOT / file).read_text()) for file in tracked.stdout.split()}
    ours: set[str] = set()
    for tree in trees.values():
        ours.update(defined_names(tree))
    used = set()
    for file, tree in trees.items():
        for name in foreign_names(tree, ours):
            used.add((file, name))
    assert used == ALLOWED
