"""A part's command is what a user can type, and the part measures what the command measures."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from statistics import median

import click
import pytest
from click.testing import CliRunner

import exchange_simulation
from exchange.json_records import Record
from exchange_simulation import BadOption
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.capacity import capacity as capacity_module
from exchange_simulation.experiments.capacity.search import SearchSettings
from exchange_simulation.experiments.capacity.searched_load import SearchedLoad
from exchange_simulation.experiments.trials.plan import plan_as_dict
from exchange_simulation.papers import capacity_part
from exchange_simulation.papers.beside_ours import NOT_PRINTED, BesideOurs
from exchange_simulation.papers.capacity_part import CapacityPart
from exchange_simulation.papers.catalogue import PAPERS, coverage
from exchange_simulation.papers.extent import FULL, QUICK, Extent
from exchange_simulation.papers.paper import Paper, PaperItem, PaperPart, TrialPart
from exchange_simulation.reports.formats.times import duration_in_words

COVERAGE_PAGE = Path(__file__).parents[3] / "docs" / "bench-coverage.md"
PARTS = [part for paper in PAPERS.values() for part in paper.parts]
EXCHANGE_PARTS = [part for part in PARTS if isinstance(part, TrialPart)]
CAPACITY_PARTS = [part for part in PARTS if isinstance(part, CapacityPart)]


@pytest.mark.parametrize("extent", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_click_accepts_the_command_of_a_part(part: PaperPart, extent: Extent) -> None:
    """Click parses the command's words; nothing is measured."""
    _, *words = shlex.split(part.command(extent))
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, subcommand, words = command.resolve_command(context, words)
        assert name
        assert subcommand
        command = subcommand
        context = click.Context(command, info_name=name, parent=context)
    command.make_context(context.info_name, words)


@pytest.mark.parametrize("extent", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("part", EXCHANGE_PARTS, ids=lambda part: part.name)
def test_the_exchange_is_measured_as_its_command_says(part: TrialPart, extent: Extent) -> None:
    """`--dry-run --json` of the command prints the plan that the part makes by itself."""
    _, *words = shlex.split(part.command(extent))

    finished = CliRunner().invoke(main, [*words, "--dry-run", "--json"])

    assert finished.exit_code == 0, finished.output
    assert json.loads(finished.stdout) == json.loads(json.dumps(plan_as_dict(part.plan(extent))))


@pytest.mark.parametrize("extent", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("part", CAPACITY_PARTS, ids=lambda part: part.name)
def test_a_capacity_is_searched_as_its_command_says(
    part: CapacityPart, extent: Extent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    searched: list[tuple[SearchedLoad, SearchSettings]] = []

    def noted(load: SearchedLoad, search: SearchSettings, *_further: object) -> int:
        searched.append((load, search))
        return 0

    monkeypatch.setattr(capacity_module, "capacity", noted)
    monkeypatch.setattr(capacity_part, "measured_capacity", noted)
    monkeypatch.setattr(CapacityPart, "read", lambda _part, _folder: {})
    _, *words = shlex.split(part.command(extent))

    CliRunner().invoke(main, [*words, "--results", str(tmp_path)])
    part.measure(tmp_path, extent)

    by_command, by_part = searched
    assert by_command == by_part


def test_figures_that_the_paper_does_not_print_stand_beside_its_values() -> None:
    brokers = next(part for part in PAPERS["amqp"].parts if part.name == "several-brokers")
    row = {"words": "amqp, 64 B, 4 pairs, 2 brokers", "transport": "amqp", "point": {"size_bytes": 64}}
    figures = {"messages_per_s": {"median": 45_000.0}}
    record = {"benchmark": "de-mpmc", "rows": [{**row, "figures": figures, "repeats": []}], "settings": {}}

    assert brokers.values(record)[-1] == BesideOurs(row["words"], NOT_PRINTED, "45.0 k messages/s")


@pytest.mark.parametrize(
    ("options", "least_s", "most_s"), [(["--quick"], 120, 900), ([], 50_000, 120_000)], ids=["quick", "full"]
)
def test_a_dry_run_says_how_long_the_first_paper_takes(options: list[str], least_s: float, most_s: float) -> None:
    """In full the exchange alone takes 13.6 h: 1,000,000 orders at five rates, twice, six times, on two networks."""
    paper = PAPERS["amqp"]
    finished = CliRunner().invoke(main, ["paper", "amqp", *options, "--dry-run"])

    expected_s = sum(part.expected_s(Extent(quick=bool(options))) for part in paper.parts)
    *commands, total, _place = finished.stdout.splitlines()
    assert least_s < expected_s < most_s
    assert all("  # about " in command for command in commands)
    assert total.startswith(f"# 10 parts, in all about {duration_in_words(expected_s)} on a quiet machine")
    assert ("--resume" in total) == (not options)


def test_repeats_are_those_of_every_command_that_has_some_and_change_its_time() -> None:
    words = ["paper", "amqp", "--dry-run", "--repeats", "1"]

    finished = CliRunner().invoke(main, words)

    *commands, total, _place = finished.stdout.splitlines()
    search = next(command for command in commands if command.startswith("exchange capacity"))
    others = [command for command in commands if command != search]
    expected_s = sum(part.expected_s(replace(FULL, repeats=1)) for part in PAPERS["amqp"].parts)
    assert all("--repeats 1  # about " in command for command in others)
    assert search.endswith("no repeats here: a search probes each rate as often as it needs")
    assert expected_s < 5 * 3600
    assert total.startswith(f"# 10 parts, in all about {duration_in_words(expected_s)} ")


@pytest.mark.parametrize("repeats", ["0", "-1", "x", "1001"])
def test_a_number_of_repeats_that_a_paper_cannot_have_is_refused(repeats: str) -> None:
    refused = CliRunner().invoke(main, ["paper", "amqp", "--quick", "--dry-run", "--repeats", repeats])

    assert refused.exit_code == 2
    assert "Invalid value for '--repeats'" in refused.stderr


def test_repeats_from_python_are_checked_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="repeats is 0; allowed is a whole number from 1 to 1,000"):
        exchange_simulation.paper("amqp", repeats=0, results=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_compares_two_transports_says_how_far_they_are_apart_and_what_the_disk_is() -> None:
    persistence = next(part for part in PAPERS["mrg"].parts if part.name == "persistence")
    disk = {"device": "/dev/vda", "file_system": "ext4"}

    verdicts = [{"sentence": "a carries 2 times as much as b"}]
    remarks = persistence.remarks({"rows": [], "verdicts": verdicts, "disk": disk})

    assert remarks == ["a carries 2 times as much as b", "messages are kept on /dev/vda (ext4)"]
    assert persistence.remarks({"rows": [], "verdicts": [], "disk": None}) == []


def compared_record(repeats: int) -> Record:
    """A record of the exchange over two transports: the mean is 10 us more in each further repeat."""
    arms = []
    for transport, mean_us in (("amqp", 500.0), ("zeromq", 200.0)):
        by_repeat = {str(repeat + 1): mean_us + 10.0 * repeat for repeat in range(repeats)}
        metrics = {"handed_over_mean_us": {"median": median(by_repeat.values()), "by_repeat": by_repeat}}
        arms.append({"contender": transport, "block": "at 8,000 orders/s", "metrics": metrics})
    metric = {"title": "completion mean from handing over", "unit": "us"}
    verdict = {"metric": "handed_over_mean_us", "block": "at 8,000 orders/s", "sentence": "cannot tell"}
    return {"repeats": repeats, "arms": arms, "metrics": {"handed_over_mean_us": metric}, "verdicts": [verdict]}


def test_the_exchange_over_two_transports_has_our_figures_of_both_with_any_number_of_repeats() -> None:
    over_zeromq = next(part for part in PAPERS["amqp"].parts if part.name == "over-zeromq")

    assert over_zeromq.remarks(compared_record(1)) == [
        "ours over amqp, at 8,000 orders/s: completion mean from handing over 500 us",
        "ours over zeromq, at 8,000 orders/s: completion mean from handing over 200 us",
        "completion mean from handing over, at 8,000 orders/s: cannot tell",
    ]
    assert over_zeromq.remarks(compared_record(3))[:3] == [
        "ours over amqp, at 8,000 orders/s: completion mean from handing over 510 us (505..515)",
        "ours over zeromq, at 8,000 orders/s: completion mean from handing over 210 us (205..215)",
        "in brackets: the middle half of the repeats",
    ]


def test_networks_take_the_place_of_the_papers_and_transports_stand_beside_its_own() -> None:
    words = ["paper", "amqp", "--quick", "--dry-run", "--network", "local,gige", "--transport", "nats,amqp"]

    finished = CliRunner().invoke(main, words)

    *commands, total, _place = finished.stdout.splitlines()
    on_loopback_alone = ("exchange capacity", "exchange compare")
    over_networks = [command for command in commands if not command.startswith(on_loopback_alone)]
    assert finished.exit_code == 0, finished.output
    assert total.startswith("# 10 parts, in all about ")
    assert len(over_networks) == len(commands) - 2
    assert all("--network local,gige" in command for command in over_networks)
    assert commands[1].startswith("exchange bench de-spsc --transport amqp,nats --sizes")
    assert over_networks[-1].startswith("exchange nagle --transports amqp,nats ")
    assert commands[-1].startswith("exchange compare --transports amqp,zeromq,nats ")
    assert commands[-1].endswith("; on loopback alone: what is compared is the transports")


def test_what_the_short_form_leaves_out_depends_on_the_networks_that_a_user_names() -> None:
    item = PaperItem("figure 1", "rate", is_on_loopback_if_quick=True)

    assert item.left_out(QUICK) == "loopback alone"
    assert item.left_out(replace(QUICK, networks=["gige"])) == ""
    assert item.left_out(FULL) == ""


@pytest.mark.parametrize(("networks", "sentence"), [("moon", "no network is called 'moon'"), ("gige,gige", "twice")])
def test_networks_that_a_paper_cannot_have_are_refused(networks: str, sentence: str) -> None:
    refused = CliRunner().invoke(main, ["paper", "amqp", "--quick", "--network", networks])

    assert refused.exit_code == 2
    assert sentence in refused.stderr


def test_the_docs_have_the_same_list() -> None:
    page = COVERAGE_PAGE.read_text()

    for paper in PAPERS.values():
        assert as_markdown(paper) in page


def test_figure_6_of_request_reply_has_the_papers_lines() -> None:
    """Regression: a part that names the paper's values itself drew none of its lines."""
    preload = next(part for part in PAPERS["request-reply"].parts if part.name == "preload")
    rows = [
        {
            "transport": "amqp",
            "point": {"match": match, "clients": 6, "threads": 1, "size_bytes": 1024, "preloaded": preloaded},
            "figures": {"replies_per_s": {"median": 100.0, "low": None, "high": None, "n": 1}},
            "repeats": [],
        }
        for match in ("indexed", "scan")
        for preloaded in (0, 1000)
    ]

    (figure_6,) = preload.drawings({"benchmark": "request-reply", "rows": rows})

    svg = str(figure_6.svg)
    assert "the paper, indexed" in svg
    assert "the paper, searched" in svg


def as_markdown(paper: Paper) -> str:
    """The paper's section in the docs."""
    lines = [f"## {paper.name}", "", f"{paper.title}.", ""]
    for command, items in coverage(paper):
        lines.append(f"- `{command}`" if command else "- Not measured here:")
        lines += [f"    - {item}" for item in items]
    return "\n".join(lines)


def test_the_command_prints_every_item() -> None:
    finished = CliRunner().invoke(main, ["bench", "coverage"])

    assert finished.exit_code == 0
    output = " ".join(finished.stdout.split())
    for paper in PAPERS.values():
        for command, items in coverage(paper):
            assert command in output
            assert all(item in output for item in items)
