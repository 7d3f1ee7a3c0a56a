"""The page's text, without a browser."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from synthetic_run import SyntheticRun

from exchange_simulation.launching.errors import UserError
from exchange_simulation.reports.drawing.colours import DARK, LIGHT
from exchange_simulation.reports.formats.numbers import three_digits
from exchange_simulation.reports.formats.settings import setting_text
from exchange_simulation.reports.run.page import write_page
from exchange_simulation.reports.run.run_folder import read_run_folder
from exchange_simulation.reports.run.seconds_tables import show_seconds
from exchange_simulation.reports.run.sentences import circumstances, title, verdict


def written_page(folder: Path) -> str:
    """Write the folder's page and return its text."""
    return write_page(folder).read_text(encoding="utf-8")


def read_page(folder: Path) -> str:
    """Return the text of the page that the folder already has."""
    return (folder / "report.html").read_text(encoding="utf-8")


def words_of(page: str) -> str:
    """What a reader sees, without markup."""
    body = re.sub(r"<(svg|script).*?</\1>", "", page[page.index("<body>") :], flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_complete_run_says_so_and_has_no_banner(complete_run: Path) -> None:
    page = read_page(complete_run)
    assert "Complete: all orders were sent" in words_of(page)
    assert 'id="banner"' not in page


def test_the_page_says_what_was_run(complete_run: Path) -> None:
    words = words_of(read_page(complete_run))
    assert "40,000 orders over ZeroMQ at 8,000 orders/s" in words
    assert "Run on 21 November 2025, 03:05 UTC, for 5.00 s. Seed 7. TCP_NODELAY at every end." in words


@pytest.mark.parametrize(
    ("transport", "named"),
    [("zeromq+ipc", "ZeroMQ (ipc)"), ("amqp://guest:***@broker/", "AMQP"), ("tcp", "TCP"), ("carrier", "carrier")],
)
def test_the_title_names_the_transport(transport: str, named: str) -> None:
    assert title({"settings": {"transport": transport}}) == f"Orders over {named}"


def test_arrivals_that_are_not_at_a_fixed_rate_and_a_tape_are_named() -> None:
    settings = {"transport": "tcp", "orders_per_s": 799.5, "tape": "taped/orders.bin", "speed": 2.0}
    assert title({"settings": {**settings, "arrivals": "recorded"}}) == "Orders over TCP, as recorded, speed 2"
    for arrivals, words in (("fixed", ""), ("bursts:9", " (bursts:9)")):
        assert title({"settings": {**settings, "arrivals": arrivals}}) == f"Orders over TCP at 799.5 orders/s{words}"
    assert circumstances({"settings": settings}) == ["Orders of the tape taped/orders.bin."]


def test_the_hosts_of_a_run_are_among_its_circumstances():
    host = {"host": "ssh engine1", "components": ["engine"], "is_launchers_machine": False, "facts": {"cores": 2}}
    assert circumstances({"hosts": [host]})[-1] == "Engine on ssh engine1: 2 cores."


def test_a_run_of_pairs_is_named_by_all_orders_and_each_load() -> None:
    settings = {"transport": "zeromq", "orders_per_s": 8000.0, "orders": 40_000, "pairs": 2}
    assert title({"settings": settings}) == "80,000 orders over ZeroMQ, 2 pairs, each at 8,000 orders/s"


def test_a_run_bounded_by_time_is_named_by_what_it_sent() -> None:
    run = {"settings": {"transport": "tcp", "orders": None}, "counts": {"orders_sent": 12_345}}
    assert title(run) == "12,345 orders over TCP"


def test_the_size_that_the_paper_prints_is_called_as_there() -> None:
    words = circumstances({"settings": {"transport": "amqp"}, "mean_message_bytes": 13.2741})
    assert words == ["Weighted average message size: 13.3 bytes, of orders and answers."]


@pytest.mark.parametrize("transport", ["memory", "zeromq+inproc"])
def test_threads_of_one_process_are_labelled_and_claim_nothing_of_tcp(transport: str) -> None:
    words = " ".join(circumstances({"settings": {"transport": transport, "nagle": []}}))
    assert words == "All components ran as threads of one process: not comparable with runs over a network."


def test_shared_memory_is_labelled_as_no_network() -> None:
    words = " ".join(circumstances({"settings": {"transport": "shm?pace=spin"}}))
    assert words.startswith("There is no network: the components shared memory of one host.")


def test_nagle_is_named_where_it_was_on(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=1, nagle=("broker",)).write(tmp_path / "run")
    assert "TCP_NODELAY at every end, except at: broker (Nagle's algorithm)." in words_of(written_page(folder))


@pytest.mark.parametrize("status", ["saturated", "invalid", "partial"])
def test_any_other_status_is_a_banner_with_its_reasons(tmp_path: Path, status: str) -> None:
    folder = SyntheticRun(seconds=1).write(tmp_path / "run", status=status, reasons=["One.", "Two."])
    page = written_page(folder)
    assert f"<strong>{status.capitalize()}</strong>" in page
    assert "One. Two." in words_of(page)


def test_orders_lost_on_the_way_are_not_called_equal(tmp_path: Path) -> None:
    counts = {"orders_sent": 8_000, "orders_received": 7_999}
    folder = SyntheticRun(seconds=1).write(tmp_path / "run", counts=counts)
    assert "orders sent ≠ received 8,000 received: 7,999" in words_of(written_page(folder))


def test_every_count_is_shown_once(complete_run: Path) -> None:
    words = words_of(read_page(complete_run))
    assert "sent received checksum, xxh64 orders 40,000 40,000 3b0f6a1e77c2d954" in words
    assert "statistics 99 99 not measured" in words
    assert "Also counted trades confirmations quotes rejections junk frames handshakes refused samples" in words


def test_sockets_have_the_columns_that_were_measured(tmp_path: Path, complete_run: Path) -> None:
    assert "retransmits" in words_of(read_page(complete_run))
    socket = {"component": "gateway", "local": "a:1", "peer": "b:2", "tcp_nodelay": True}
    words = words_of(written_page(SyntheticRun(seconds=1).write(tmp_path / "run", sockets=[socket])))
    assert "Sockets local peer TCP_NODELAY gateway a:1 b:2 on" in words


def test_memory_is_in_the_unit_of_the_terminal(complete_run: Path) -> None:
    assert '<data value="140000000">140</data>' in read_page(complete_run)


def test_conditions_carry_their_units(complete_run: Path) -> None:
    words = words_of(read_page(complete_run))
    assert "warm up 0 s" in words
    assert "memory 31.0 GiB" in words
    assert "orders/s 8000" in words


def test_a_flat_out_run_has_no_due_times_lag_or_offered_rate(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=3, scheduled=False).write(tmp_path / "run")
    page = written_page(folder)
    assert "24,000 orders over ZeroMQ, as fast as it goes" in words_of(page)
    assert not re.search(r"\b(due|lag|offered)\b", words_of(page).replace("Completion time and lag", ""))
    assert not re.search(r">(from due|lag|offered)<", page)


def test_what_is_absent_was_not_measured_and_is_never_zero(tmp_path: Path) -> None:
    head = {"schema": 1, "name": "run", "status": "complete", "reasons": []}
    (tmp_path / "run.json").write_bytes(orjson.dumps({**head, "components": {"engine": {}}}))
    page = written_page(tmp_path)
    assert "<data" not in page
    assert words_of(page).count("not measured") > 15
    assert words_of(page).count("Not measured.") == 5


def test_a_killed_run_without_its_record_shows_what_the_spool_holds(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=4).write(tmp_path / "run")
    (folder / "run.json").unlink()
    page = written_page(folder)
    assert "before it wrote its record" in words_of(page)
    assert page.count("<svg") == 5


def test_a_folder_that_is_no_runs_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run's folder"):
        write_page(tmp_path)


@pytest.mark.parametrize("seconds", [1, 2, 3])
def test_a_short_run_has_curve_and_seconds_but_no_line_of_dots(tmp_path: Path, seconds: int) -> None:
    page = written_page(SyntheticRun(seconds=seconds).write(tmp_path / "run"))
    assert page.count("<svg") == 1
    assert f"The run took {seconds}.00 s: too short for lines over time." in words_of(page)
    assert "<details open>" in page


def test_a_run_under_a_second_says_so_in_place_of_a_rate(tmp_path: Path) -> None:
    page = written_page(SyntheticRun(seconds=1).write(tmp_path / "run", duration_s=0.54))
    words = words_of(page)
    assert "The run took 0.540 s, too short for rates by second" in words
    assert "second p50 p99 max" in words  # no offered, sent, answered


def test_a_percentile_of_too_few_orders_is_printed_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = SyntheticRun(seconds=2, orders_per_s=400).write(tmp_path / "run")
    times = orjson.loads((folder / "run.json").read_bytes())["completion_us"]["due"]
    show_seconds(read_run_folder(folder))
    printed = capsys.readouterr().out
    words = words_of(written_page(folder))
    assert printed.count("max of 400") == 2, "one for each second"
    assert words.count("max of 400") == 2 * 3, "for each second: from due, from handing over, lag"
    assert "max of 800" in words
    headline, _, _ = words.partition("second offered")
    assert "lag p99 " not in headline
    assert three_digits(times["p99"]) not in words


def test_the_page_begins_with_what_was_found(complete_run: Path) -> None:
    run = orjson.loads((complete_run / "run.json").read_bytes())
    due = run["completion_us"]["due"]
    first = f"Half of the orders were answered within {due['p50']:.0f} µs of when they were due, 99 % within"
    assert first in words_of(read_page(complete_run))
    assert "The offered 8,000 orders/s were held." in words_of(read_page(complete_run))


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (
            {"status": "saturated", "rates": {"offered_orders_per_s": 8000.0, "orders_per_s": 7100.4}},
            "Of 8,000 orders/s offered, 7,100 were answered. Half of the orders were answered within 230 µs",
        ),
        ({"status": "invalid"}, "Do not use these figures: both ends do not agree on what was sent."),
        ({"status": "partial"}, "The run ended early; until then: Half of the orders"),
        (
            {"status": "complete", "rates": {"orders_per_s": 1_060_182.0}},
            "As fast as it went, 1,060,182 orders/s were answered.",
        ),
        (
            {"completion_us": {"due": {"count": 999, "p50": 1.0, "p99": 2.0, "max": 3.0}}},
            "within 1.00 µs of when they were due, the slowest after 3.00 µs.",
        ),
        ({"completion_us": {}, "rates": {}}, "Nothing was measured."),
        (
            {"completion_us": {"due": {"p50": 9_999.0, "max": 46_155_427.0}}},
            "within 9,999 µs of when they were due, the slowest after 46.2 s.",
        ),
    ],
)
def test_the_verdict_says_whose_figures_they_are_and_what_was_held(changed: dict[str, Any], found: str) -> None:
    times = {"due": {"count": 40_000, "p50": 230.0, "p99": 949.0, "max": 5_759.0}}
    assert found in verdict({"status": "complete", "completion_us": times, "rates": {}, **changed})


def test_markup_in_any_text_of_run_json_is_escaped(tmp_path: Path) -> None:
    run = SyntheticRun(seconds=1).write(tmp_path / "run")
    poisoned = poison(orjson.loads((run / "run.json").read_bytes()))
    (run / "run.json").write_bytes(orjson.dumps(poisoned))
    page = written_page(run)
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def poison(value: Any) -> Any:
    """Return the record with markup in every text, one more key in every dict and one more text in every list of texts.

    The added key and text are markup too.
    """
    if isinstance(value, dict):
        poisoned_dict = {key: poison(inner) for key, inner in value.items()}
        if poisoned_dict:
            poisoned_dict['"><b>'] = next(iter(poisoned_dict.values()))
        return poisoned_dict
    if isinstance(value, list):
        poisoned_list = [poison(inner) for inner in value]
        holds_only_texts = all(isinstance(inner, str) for inner in value)
        if holds_only_texts:
            poisoned_list.append("<b>")
        return poisoned_list
    if isinstance(value, str):
        return f"<b>{value}"
    return value


def test_equal_folders_give_equal_pages(tmp_path: Path) -> None:
    one = SyntheticRun(seconds=2).write(tmp_path / "one")
    other = SyntheticRun(seconds=2).write(tmp_path / "other")
    assert written_page(one) == written_page(other)


def test_a_repeated_line_of_the_spool_counts_once(tmp_path: Path, complete_run: Path) -> None:
    folder = SyntheticRun(seconds=5).write(tmp_path / "twice")
    lines = (folder / "spool" / "000001.jsonl").read_bytes()
    (folder / "spool" / "000002.jsonl").write_bytes(lines)
    assert written_page(folder) == read_page(complete_run)


def test_the_page_appears_by_rename_and_leaves_nothing_else(tmp_path: Path) -> None:
    folder = SyntheticRun(seconds=1).write(tmp_path / "run")
    assert write_page(folder) == folder / "report.html"
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json", "spool"]


def test_ids_are_unique_and_every_reference_has_its_target(complete_run: Path) -> None:
    page = read_page(complete_run).partition("<script>")[0]
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(|href=")#([^)"]*)', page)) <= set(ids)


def test_the_page_names_no_resource_to_fetch(complete_run: Path) -> None:
    page = read_page(complete_run)
    linked = re.findall(r'(?:src|href)="([^#"][^"]*)"', page)
    used_in_style = re.findall(r"url\(([^#)][^)]*)\)", page)
    assert [address for address in linked if not address.startswith("data:")] == []
    assert [address for address in used_in_style if not address.startswith("data:")] == []
    assert "@import" not in page


@pytest.mark.parametrize("value", [(1, 0.5), [1, 0.5]])
def test_a_setting_of_several_values_is_a_list_in_words(value: object) -> None:
    assert setting_text(value) == "1, 0.5"


def test_a_long_run_gives_a_small_page(tmp_path: Path) -> None:
    """One with a point for each second would be larger."""
    folder = SyntheticRun(seconds=1_000, orders_per_s=20).write(tmp_path / "run")
    assert len(written_page(folder)) < 160_000


def test_the_page_has_the_colours_of_the_table_in_light_and_in_dark(tmp_path: Path) -> None:
    style = written_page(SyntheticRun(seconds=1).write(tmp_path / "run")).partition("</style>")[0]
    light, dark = re.findall(r"--ink: #\w+;.*", style)
    for palette, written in ((LIGHT, light), (DARK, dark)):
        values = dict(re.findall(r"--(\w+): (#\w+);", written))
        assert values == {name.removeprefix("exchange:"): colour for name, colour in palette.items()}


@pytest.mark.parametrize(("share", "words"), [(0.474, ["Others took 47% of all processors meanwhile."]), (None, [])])
def test_what_others_took_of_the_machine_is_said_where_it_is_known(share: float | None, words: list[str]) -> None:
    assert circumstances({"noise": {"share_of_all_cpus": share}}) == words
