"""MkDocs' hook: it makes the pages of the site that are not in docs/, each time the site is made.

The home page is README.md. The page of options is made from the commands, and the page of run.json's fields from the
type of the record and a recorded run.
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

ARCHIVE = ROOT / "tests/exchange_simulation/cli/recorded/results.tar.xz"
RECORD_IN_ARCHIVE = "./run-pairs/run.json"
LONGEST_VALUE = 60
"""The most characters of a value in the table of run.json's fields."""
UNITS = {"_us": "microseconds", "_s": "seconds", "_per_s": "per second", "_bytes": "bytes", "_ns": "nanoseconds"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages. MkDocs calls this function."""
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
    """Replace links out of docs/ by links to the generated pages, and links to source files by the files' names.

    MkDocs calls this function for each page.
    """
    markdown = markdown.replace("](../README.md)", "](index.md)")
    markdown = re.sub(r"\]\((?:\.\./)?examples\)", "](examples.md)", markdown)
    return re.sub(r"\[(`[^`]+`)\]\(\.\./[^)]+\)", r"\1", markdown)


def from_root(name: str) -> str:
    """Return a page of the repository's root, with links that fit the site."""
    text = (ROOT / name).read_text()
    page_of_file = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
    for old, new in page_of_file.items():
        text = text.replace(f"]({old})", f"]({new})")
    return re.sub(r"(\]\(|src=\"|srcset=\")docs/", r"\1", text)


def examples() -> str:
    """Return the page with all examples in Python."""
    notebooks = "`examples/first_look.ipynb` and `market_on_spark.ipynb` are notebooks. The tests run all of them."
    parts = ["# Examples in Python", notebooks]
    for path in sorted(ROOT.glob("examples/*.py")):
        parts.append(f"## {path.name}\n\n```python\n{path.read_text()}```")
    return "\n\n".join(parts)


def options() -> Iterator[str]:
    """Yield the lines of the page of options."""
    yield "# Options of every command\n\nMade of the commands themselves: `exchange COMMAND --help` says the same."
    context = click.Context(main, info_name="exchange")
    for section, commands in SECTIONS.items():
        yield f"\n## {section}"
        for name in commands:
            command = main.get_command(context, name)
            assert command
            yield from section_of_command(command, click.Context(command, info_name=name, parent=context))


def section_of_command(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield a heading, the command's help, and its options, grouped as in the help; then its subcommands."""
    yield f"\n### {context.command_path}\n"
    yield escaped(re.sub(r"(?m)^\s*\x08\n", "", command.help or "").strip())
    rows: dict[str, list[str]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record:
            option, help_text = record
            rows.setdefault(heading_of(param.name or ""), []).append(f"| `{option}` | {cell(escaped(help_text))} |")
    for heading, lines in rows.items():
        yield f"\n**{heading}**\n\n| option | what |\n|---|---|"
        yield from lines
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand
            yield from section_of_command(subcommand, click.Context(subcommand, info_name=name, parent=context))


def escaped(text: str) -> str:
    """Return the text with Markdown's special characters escaped."""
    return re.sub(r"([<>*_])", r"\\\1", text)


def cell(text: str) -> str:
    """Return the text as a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def run_json() -> Iterator[str]:
    """Yield the lines of the page of run.json's fields."""
    yield "# Fields of run.json\n\n<style>td code {white-space: nowrap}</style>\n"
    yield "[run-record.md](run-record.md) says what each field means. Names and kinds here are those of the code."
    yield "\n## Settings\n\n| field of `settings` | option | default | what |\n|---|---|---|---|"
    rows = {row.field: row for row in TABLE if "run" in row.commands}
    for field in fields(RunSettings):
        default = "" if field.default is MISSING else repr(field.default)
        row = rows.get(field.name)
        option = f"`{row.name}`" if row else ""
        help_text = cell(escaped(row.help)) if row else ""
        yield f"| `{field.name}` | {option} | `{default}` | {help_text} |"
    yield "\n## All fields, with the values of a recorded run of two pairs\n"
    yield "| field | kind | value | unit |\n|---|---|---|---|"
    with tarfile.open(ARCHIVE) as archive:
        content = archive.extractfile(RECORD_IN_ARCHIVE)
        assert content
        record = orjson.loads(content.read())
    hints = get_type_hints(RunRecord)
    for path, value in leaves(record):
        kind = hints.get(path, type(value))
        name = cell(escaped(kind.__name__ if isinstance(kind, type) else str(kind)))
        yield f"| `{path}` | {name} | `{cell(str(value))[:LONGEST_VALUE]}` | {unit(path)} |"
    absent = [f"`{name}`" for name in hints if name not in record]
    yield f"\nFields that only some runs have: {', '.join(absent)}."


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its path. Of a list of objects only the first is shown."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from leaves(value[0], f"{path}[]")
    else:
        yield path, value


def unit(path: str) -> str:
    """Return the unit at the end of a field's name, or else of a name above it in the path; empty without one."""
    for name in reversed(path.replace("[]", "").split(".")):
        for ending in sorted(UNITS, key=len, reverse=True):  # `_per_s` before `_s`
            if name.endswith(ending):
                return UNITS[ending]
    return ""
