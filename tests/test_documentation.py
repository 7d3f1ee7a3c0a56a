"""README and docs agree with the code."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
import xxhash
from click.testing import CliRunner

from exchange.messages import BID, Order, decode_all
from exchange.settings import RunSettings
from exchange_simulation.cli.main import COMMANDS, main
from exchange_simulation.experiments.sweep.planning import EXAMPLE
from gateway.due_times import due_times_of
from gateway.seeded_orders import SeededOrders
from gateway.seeds import instrument_seed
from tests.exchange_simulation.cli.test_recorded_results import unpack
from tests.exchange_simulation.experiments.tapes.market_files import Event, itch, lobster
from transports.declaration import Transport
from transports.frames import Longs
from transports.registry import built_in

pytestmark = pytest.mark.xdist_group("documentation")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
NAMES = "|".join(COMMANDS)
COMMAND = re.compile(rf"^\s*(?:\$ )?(?:\.venv/bin/)?exchange ((?:{NAMES})\b[^|>#\n]*)", re.MULTILINE)
IN_A_SENTENCE = re.compile(rf"`(?:\.venv/bin/)?exchange ((?:{NAMES})\b[^`\n]*-[^`\n]*)`")
"""A command with options. (A command without options may be used as a noun.)"""
VALUE_OF_PLACEHOLDER = {
    "--transport NAME": "--transport zeromq",
    "results/NAME/RUN": "results/run-zeromq",
    "results/first": "results/run-zeromq",
    "NAME": "run-zeromq",
    "OTHER": "run-amqp",
    " DIR": " .",
    " -->": "",
    " ...": "",
    "paper.toml": str(EXAMPLE),
}
RUNNABLE = re.compile(
    r"results (?:list|show|diff)|bench coverage|bench supply-chain.* --plan|network list|faults --list|report results/|"
    r"sweep --example|sweep .*--dry-run|tape |match "
)
"""Commands that measure nothing and need no Java. They are run; all others would take minutes, and are only parsed."""


def subcommands() -> dict[str, click.Command]:
    context = click.Context(main)
    commands = {}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if command is not None:
            commands[name] = command
    return commands


def written_commands() -> dict[str, bool]:
    """Return each command line of pages and helps; True if it is in a sentence, which may leave out options."""
    texts = [page.read_text() for page in PAGES]
    texts += [command.help or "" for command in subcommands().values()]
    lines: dict[str, bool] = {}
    for text in texts:
        lines.update({line.strip(): True for line in IN_A_SENTENCE.findall(text)})
    for text in texts:
        lines.update({line.strip(): False for line in COMMAND.findall(text)})
    return lines


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recorded results, a tape and a query, under the names that pages use."""
    folder = tmp_path_factory.mktemp("recorded")
    unpack(folder / "results")
    (folder / "ratios.sql").write_text("select 1")
    (folder / "messages.csv").write_text(lobster([Event("add", 1, BID, 5_000_000, 10)]))
    (folder / "01302020.NASDAQ_ITCH50").write_bytes(
        itch([Event("add", 1, BID, 5_000_000, 10)]).replace(b"TEST", b"AAPL")
    )
    for name in ("tape.bin", "orders.bin", "mixed.bin", "market.bin"):
        assert CliRunner().invoke(main, ["tape", "--orders", "1000", "--output", str(folder / name)]).exit_code == 0
    return folder


def filled_in(line: str) -> str:
    for placeholder, value in VALUE_OF_PLACEHOLDER.items():
        line = line.replace(placeholder, value)
    return line


@pytest.fixture
def working_folder(line: str, recorded: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with the recorded files. Each command that is run has a new folder."""
    monkeypatch.chdir(recorded)
    if RUNNABLE.match(filled_in(line)):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
        Path("results").symlink_to(recorded / "results")
        for file in recorded.iterdir():
            if file.is_file():
                shutil.copy(file, file.name)


@pytest.mark.parametrize(("line", "is_part"), written_commands().items())
def test_every_documented_command_runs_or_parses(line: str, is_part: bool, working_folder: None) -> None:
    line = filled_in(line)
    if RUNNABLE.match(line):
        words = shlex.split(line)
        if words[0] == "report":
            words.append("--no-spark")
        if words[0] == "tape" and "--output" in words:
            Path(words[words.index("--output") + 1]).unlink(missing_ok=True)
        finished = CliRunner().invoke(main, words)
        assert finished.exit_code == 0, finished.output
        return
    if is_part:
        with contextlib.suppress(click.MissingParameter, click.BadOptionUsage):
            parse(main, "exchange", shlex.split(line))
    else:
        parse(main, "exchange", shlex.split(line))


def parse(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    """Parse a command line down to the last subcommand, as click does before it calls anything."""
    # click raises Exit for an option such as --list, which prints and ends.
    with contextlib.suppress(click.exceptions.Exit), command.make_context(name, words, parent=parent) as context:
        if not isinstance(command, click.Group):
            return
        _, rest, _ = command.make_parser(context).parse_args(list(words))
        if rest:
            subcommand_name, subcommand, arguments = command.resolve_command(context, rest)
            assert subcommand is not None
            parse(subcommand, str(subcommand_name), arguments, context)


def test_every_subcommand_s_help_has_an_example() -> None:
    for name, command in subcommands().items():
        assert f"Example: exchange {name}" in (command.help or "")


def test_documented_orders_and_their_checksum_agree_with_the_code() -> None:
    text = (ROOT / "docs" / "order-stream.md").read_text()
    rows = re.findall(r"^\| 7 \| (\d+) \| (\d) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    orders = list(decode_all(SeededOrders(7, (450, 549)).records(1, len(rows))))
    assert [Order(*map(int, row)) for row in rows] == orders
    stream = SeededOrders(1, (450, 549)).records(1, 1_000_000)
    assert f"`{xxhash.xxh64_hexdigest(stream)}`" in text


def test_documented_normal_prices_agree_with_the_code() -> None:
    text = " ".join((ROOT / "docs" / "workload.md").read_text().split())
    three = decode_all(SeededOrders(7, (450, 549), "normal").records(1, 3))
    prices = ", ".join(str(order.price) for order in three if isinstance(order, Order))
    million = xxhash.xxh64_hexdigest(SeededOrders(1, (450, 549), "normal").records(1, 1_000_000))
    assert f"orders 1 to 3 of seed 7 have the normal prices {prices};" in text
    assert f"the first 1,000,000 orders of seed 1 have XXH64 `{million}`" in text


def test_documented_seeds_of_instruments_agree_with_the_code() -> None:
    text = " ".join((ROOT / "docs" / "order-stream.md").read_text().split())
    three = ", ".join(str(instrument_seed(7, instrument)) for instrument in (1, 2, 3))
    assert f"For instruments 1 to 3 of seed 7 that is {three}." in text


def test_documented_due_times_agree_with_the_code() -> None:
    text = " ".join((ROOT / "docs" / "workload.md").read_text().split())
    four = ", ".join(str(due_ns) for due_ns in due_times("poisson", 7, 4))
    assert f"Test vectors at 8,000 orders/s: orders 1 to 4 of seed 7 are due at {four} under `poisson`;" in text
    assert f"orders is due at {due_times('ramp:0.1..1', 7, 4)[3]} under `ramp:0.1..1`." in text
    million = due_times("poisson", 1, 1_000_000).astype("<u8")
    assert f"as u64 little-endian, have XXH64 `{xxhash.xxh64_hexdigest(million.tobytes())}`" in text


def due_times(arrivals: str, seed: int, count: int) -> Longs:
    """Return the first `count` due times of 1,000,000 orders."""
    source = due_times_of(RunSettings(arrivals=arrivals, seed=seed, orders=1_000_000))
    assert source is not None
    due = np.zeros(count, np.int64)
    source.write(due, 0)
    return due


def test_the_transports_page_has_a_row_for_each_transport() -> None:
    page = (ROOT / "docs" / "transports.md").read_text()
    rows = []
    for transport in built_in().values():
        rows += declared_rows(transport)
    missing = [row for row in rows if not re.search(rf"^{re.escape(row)}.*\|$", page, re.MULTILINE)]
    assert missing == [], "put these rows into the table of docs/transports.md"
    in_table = re.findall(r"`([a-z+]+)`", "".join(re.findall(r"^\| (`.*?) \|", page.partition("## ")[0], re.MULTILINE)))
    assert sorted(in_table) == sorted(scheme for transport in built_in().values() for scheme in transport.places)


def test_the_transports_page_has_the_guarantees_that_each_transport_declares() -> None:
    page = (ROOT / "docs" / "transports.md").read_text()
    section = page.partition("## What each guarantees")[2].partition("\n## ")[0]
    rows = [row for row in re.findall(r"^\| .*\|$", section, re.MULTILINE) if row.startswith("| `")]
    expected = []
    for name, transport in sorted(built_in().items()):
        assert "" in transport.guarantees, f"{name} declares no guarantee"
        for query, guarantee in transport.guarantees.items():
            url = f"{name}?{query}" if query else name
            expected.append(f"| `{url}` | {' | '.join(guarantee.cells)} | {guarantee.level} |")
    assert rows == expected


def declared_rows(transport: Transport) -> Iterator[str]:
    """Yield the beginning of each row: schemes with the same place and description share a row."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for scheme, kind in transport.places.items():
        form = {"port": "host:port", "broker": transport.broker().place if transport.broker else "host:port"}
        kinds.setdefault((form.get(kind, kind), transport.about[scheme]), []).append(f"`{scheme}`")
    for (place, about), schemes in kinds.items():
        yield f"| {', '.join(schemes)} | {place} | {about}"


def test_every_documented_recipe_exists_and_is_listed_by_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    recipes = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    written = {name for page in PAGES for name in re.findall(r"`?make ([a-z-]+)`?", page.read_text())}
    assert {"run", "test", "check", "bench", "clean", "setup"} <= recipes
    assert {name for name in written if name in {"run", "test", "check", "bench", "setup", "test-bounds"}} <= recipes


def test_the_version_option_prints_the_project_s_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] in CliRunner().invoke(main, ["--version"]).output


def test_links_between_pages_have_a_target() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_source_files_that_pages_name_exist() -> None:
    """A page may leave out the first folders of a path. Decisions may name files that no longer exist."""
    rooms = [ROOT / name for name in (*ROOMS, "benchmarks", "tests", "examples")]
    paths = [path.as_posix() for room in rooms for path in room.rglob("*.py")]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]
    example = ("example-transport.md", "exchange_unix.py")
    named = [(page.name, name) for page in pages for name in re.findall(r"`([a-z_/]+\.py)`", page.read_text())]
    missing = [item for item in named if not any(path.endswith(f"/{item[1]}") for path in paths)]
    assert missing == [example]


def navigation(part: object) -> Iterator[str]:
    """Yield the pages of the site's navigation, at any depth."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for entry in part:
            yield from navigation(entry)
    elif isinstance(part, dict):
        for entry in part.values():
            yield from navigation(entry)


def test_the_site_is_built_and_its_navigation_has_every_page_once(tmp_path: Path) -> None:
    import yaml

    pages = list(navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert len(pages) == len(set(pages))
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} <= set(pages)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert {Path(page).stem for page in pages} <= {path.stem for path in (tmp_path / "site").rglob("*.html")}
    options = (tmp_path / "site" / "options.html").read_text()
    assert all(f"exchange {name}<" in options for name in subcommands())
    assert "completion_us.due.p99" in (tmp_path / "site" / "run-json.html").read_text()


def test_the_page_of_all_pages_follows_the_site_s_navigation() -> None:
    import yaml

    ours = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"pages.md"}
    site: dict[str, list[str]] = {}
    for section in yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]:
        for title, part in section.items():
            site[title] = [page for page in navigation(part) if page in ours]
    sections = re.split(r"^## (.+)$", (ROOT / "docs" / "pages.md").read_text(), flags=re.MULTILINE)[1:]
    listed = [re.findall(r"^\| \[(.+?)\]", text, re.MULTILINE) for text in sections[1::2]]
    assert list(zip(sections[::2], listed, strict=True)) == [(title, pages) for title, pages in site.items() if pages]


def test_the_readme_is_two_screens_and_names_no_list_of_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 110
    assert readme.index("$ make run") < readme.index("complete: ") < readme.index("## A broker, or none?")


def test_the_compose_file_and_the_workflow_name_existing_files() -> None:
    import yaml

    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    broker, exchange = services["rabbitmq"], services["exchange"]
    assert (ROOT / exchange["build"]["dockerfile"]).exists()
    assert exchange["depends_on"]["rabbitmq"]["condition"] == "service_healthy"
    assert "test" in broker["healthcheck"]
    assert broker["environment"]["RABBITMQ_DEFAULT_PASS"] == exchange["environment"]["EXCHANGE_AMQP_PASSWORD"]
    copied = re.findall(r"^COPY (.+) \./$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert all((ROOT / name).exists() for line in copied for name in line.split())
    jobs = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    recipes = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands
    assert all((ROOT / line).exists() or line.split()[1] in recipes for line in commands)


def test_the_gates_of_the_workflow_are_those_that_the_page_shows() -> None:
    import yaml

    (job,) = yaml.safe_load((ROOT / ".github/workflows/gate.yml").read_text())["jobs"].values()
    gates = [step["run"] for step in job["steps"] if step.get("run", "").startswith("exchange ")]
    lines = [line.strip() for line in (ROOT / "docs/gates.md").read_text().splitlines()]
    assert len(gates) == 2
    assert set(gates) <= set(lines), "another test parses the page's commands"


def main_path() -> list[str]:
    """Return the files of the main path in docs/architecture.md, in reading order."""
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## The main path")[2].partition("\n## ")[0]
    return re.findall(r"^ +\d+ +(\S+\.py) ", text, re.MULTILINE)


CHECKS_OF_DIFFS = (
    "from exchange.settings import DECLARED; assert DECLARED['comment'].option == '--comment'",
    "from exchange.second_columns import COLUMNS; assert 'lag_max_us' in [column.figure for column in COLUMNS]",
    "from exchange_simulation.experiments.faults.injection import FAULTS; assert 'out-of-files' in FAULTS",
)
"""What must hold once a worked diff of docs/architecture.md is applied, by the order of the diffs."""


@pytest.mark.parametrize("number", range(3))
def test_a_worked_diff_does_what_the_page_says(number: int, tmp_path: Path) -> None:
    diffs = re.findall(r"```diff\n(.*?)```", (DOCS / "architecture.md").read_text(), re.DOTALL)
    assert len(diffs) == len(CHECKS_OF_DIFFS)
    for package in ("exchange", "exchange_simulation"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    apply(diffs[number], tmp_path)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-P", "-c", CHECKS_OF_DIFFS[number]]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr


def apply(diff: str, folder: Path) -> None:
    """Apply a diff without line numbers: `+` lines go behind the context above them, or before the context below."""
    for part in diff.split("--- a/")[1:]:
        name, _, changes = part.partition("\n")
        file = folder / name
        lines = file.read_text().splitlines()
        for hunk in re.split(r"^@@.*\n", changes, flags=re.MULTILINE):
            lines = with_hunk(lines, hunk.splitlines())
        file.write_text("\n".join(lines) + "\n")


def with_hunk(lines: list[str], hunk: list[str]) -> list[str]:
    """Return the lines with a hunk's added lines. AssertionError if its context is not there once."""
    if not hunk:
        return lines
    context = [line[1:] for line in hunk if line.startswith(" ")]
    added = [line[1:] for line in hunk if line.startswith("+")]
    places = [place for place in range(len(lines)) if lines[place : place + len(context)] == context]
    assert len(places) == 1, f"{context} stands in the file {len(places)} times"
    place = places[0]
    if hunk[0].startswith(" "):
        place += 1
    return [*lines[:place], *added, *lines[place:]]


def test_no_file_of_the_main_path_imports_an_earlier_one() -> None:
    path = main_path()
    assert 8 < len(path) <= 13
    modules = [file.removesuffix(".py").replace("/", ".") for file in path]
    for at, file in enumerate(path):
        imported = imported_modules(ROOT / file)
        assert imported.isdisjoint(modules[:at]), f"{file} imports an earlier file"


def imported_modules(file: Path) -> set[str]:
    """Return the modules that a file imports; for `from a import b` both a and a.b, since b may be a module."""
    modules = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules.add(node.module)
            modules.update(f"{node.module}.{name.name}" for name in node.names)
    return modules
