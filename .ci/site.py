"""MkDocs' hook: the pages of the site that come from elsewhere, made when the site is made, so that none goes stale.

The home page is README.md; options come from the commands themselves, and run.json's fields from its kind and a run.
"""

from __future__ import annotations

import re
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_type_hints

import click
import orjson
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from exchange.record_kinds import RunRecord  # noqa: E402
from exchange.settings import RunSettings  # noqa: E402
from exchange_simulation.cli.command import heading_of  # noqa: E402
from exchange_simulation.cli.main import SECTIONS, main  # noqa: E402
from exchange_simulation.launching.option_table import TABLE  # noqa: E402

RECORDED = ROOT / "tests/exchange_simulation/cli/recorded/results.tar.xz", "./run-pairs/run.json"
UNITS = {"_us": "microseconds", "_s": "seconds", "_per_s": "per second", "_bytes": "bytes", "_ns": "nanoseconds"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {
        "index.md": from_root("README.md"),
        "contributing.md": from_root("CONTRIBUTING.md"),
        "changelog.md": from_root("CHANGELOG.md"),
        "examples.md": examples(),
        "options.md": "\n".join(options()),
        "run-json.md": "\n".join(run_json()),
    }
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links out of docs/ lead to the page that is made of what is there; a source file is named only."""
    markdown = markdown.replace("](../README.md)", "](index.md)")
    markdown = re.sub(r"\]\((?:\.\./)?examples\)", "](examples.md)", markdown)
    return re.sub(r"\[(`[^`]+`)\]\(\.\./[^)]+\)", r"\1", markdown)


def from_root(name: str) -> str:
    text = (ROOT / name).read_text()
    moved = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
    for old, new in moved.items():
        text = text.replace(f"]({old})", f"]({new})")
    return re.sub(r"(\]\(|src=\"|srcset=\")docs/", r"\1", text)


def examples() -> str:
    parts = [f"## {path.name}\n\n```python\n{path.read_text()}```" for path in sorted(ROOT.glob("examples/*.py"))]
    also = "`examples/first_look.ipynb` and `market_on_spark.ipynb` are notebooks. The tests run all of them."
    return "\n\n".join(["# Examples in Python", also, *parts])


def options() -> Iterator[str]:
    yield "# Options of every command\n\nMade of the commands themselves: `exchange COMMAND --help` says the same."
    context = click.Context(main, info_name="exchange")
    for section, commands in SECTIONS.items():
        yield f"\n## {section}"
        for name in commands:
            command = main.get_command(context, name)
            assert command
            yield from command_s(command, click.Context(command, info_name=name, parent=context))


def command_s(command: click.Command, context: click.Context) -> Iterator[str]:
    """A heading, the help, and its options under theirs; then the subcommands."""
    yield f"\n### {context.command_path}\n"
    yield as_text(re.sub(r"(?m)^\s*\x08\n", "", command.help or "").strip())
    rows: dict[str, list[str]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record:
            option, help_text = record
            rows.setdefault(heading_of(param.name or ""), []).append(f"| `{option}` | {cell(as_text(help_text))} |")
    for heading, lines in rows.items():
        yield f"\n**{heading}**\n\n| option | what |\n|---|---|"
        yield from lines
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part
            yield from command_s(part, click.Context(part, info_name=name, parent=context))


def as_text(words: str) -> str:
    return re.sub(r"([<>*_])", r"\\\1", words)


def cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def run_json() -> Iterator[str]:
    yield "# Fields of run.json\n\n<style>td code {white-space: nowrap}</style>\n"
    yield "[run-record.md](run-record.md) says what each field means. Names and kinds here are those of the code."
    yield "\n## Settings\n\n| field of `settings` | option | default | what |\n|---|---|---|---|"
    rows = {row.field: row for row in TABLE if "run" in row.commands}
    for field in fields(RunSettings):
        default = "" if field.default is MISSING else repr(field.default)
        row = rows.get(field.name)
        option = f"`{row.name}`" if row else ""
        help_text = cell(as_text(row.help)) if row else ""
        yield f"| `{field.name}` | {option} | `{default}` | {help_text} |"
    yield "\n## All fields, with the values of a recorded run of two pairs\n"
    yield "| field | kind | value | unit |\n|---|---|---|---|"
    with tarfile.open(RECORDED[0]) as archive:
        content = archive.extractfile(RECORDED[1])
        assert content
        record = orjson.loads(content.read())
    hints = get_type_hints(RunRecord)
    for path, value in leaves(record):
        kind = hints.get(path, type(value))
        name = cell(as_text(kind.__name__ if isinstance(kind, type) else str(kind)))
        yield f"| `{path}` | {name} | `{cell(str(value))[:60]}` | {unit(path)} |"
    absent = [f"`{name}`" for name in hints if name not in record]
    yield f"\nFields that only some runs have: {', '.join(absent)}."


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its path; the first entry stands for a list."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from leaves(value[0], f"{path}[]")
    else:
        yield path, value


def unit(path: str) -> str:
    """The unit that a name ends in, its own or that of the figures around it."""
    for name in reversed(path.replace("[]", "").split(".")):
        for ending in sorted(UNITS, key=len, reverse=True):
            if name.endswith(ending):
                return UNITS[ending]
    return ""
