"""The lines of the live window's picture."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from exchange.settings import RunSettings
from exchange_simulation.reports.formats.times import duration_in_words
from exchange_simulation.reports.live.figures import Figures
from exchange_simulation.reports.live.picture import (
    ASCII_BLOCKS,
    BLOCKS,
    WIDTH,
    graph,
    picture,
    short_number,
    time_left_s,
)
from tests.exchange_simulation.reports.live.spool_records import completion, figures_of, process, traffic

HEADLINE = "amqp at 100,000,000 orders/s: 4,294,967,295 of 4,294,967,295 orders answered, 1 s left"
LONGEST_COUNT = 98_765_432
CORES_IN_USE = 12.3456
COMPONENTS = ["gateway", "engine", "reporter", "broker"]


def busy_minute() -> Figures:
    """Return more than a minute of figures that take as many characters as possible."""
    figures = Figures()
    for second in range(70):
        figures.take([traffic(second, LONGEST_COUNT)])
        for clock in ("due", "lag"):
            figures.take([completion(second, clock, 1.5, LONGEST_COUNT)])
        for component in COMPONENTS:
            figures.take([process(second, component, CORES_IN_USE * (second + 1))])
    return figures


def drawn_lines(figures: Figures, columns: int = WIDTH, is_scheduled: bool = True, blocks: str = BLOCKS) -> list[str]:
    """Return the lines of the picture on a terminal of this width."""
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=columns)
    lines = console.render_lines(picture(HEADLINE, figures, is_scheduled, columns, blocks), pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


def row_of(label: str, lines: list[str]) -> str | None:
    """Return the line that begins with the label, or None."""
    for line in lines:
        if line.startswith(label):
            return line
    return None


@pytest.mark.parametrize("columns", [80, 61, 40])
def test_every_row_with_a_graph_is_as_wide_as_the_terminal(columns: int) -> None:
    lines = drawn_lines(busy_minute(), columns)
    assert max(map(len, lines)) == columns
    rows_with_graph = [line for line in lines if BLOCKS[-1] in line]
    assert len(rows_with_graph) == 3 + 2 + len(COMPONENTS)  # 3 rates; p50 and max, since two orders have no p99; cores
    assert all(len(row) == columns for row in rows_with_graph)


@pytest.mark.parametrize(("columns", "oldest"), [(80, "59 s ago"), (61, "40 s ago"), (40, "19 s ago"), (25, "")])
def test_the_last_line_says_when_the_graphs_begin_and_end(columns: int, oldest: str) -> None:
    *_, row_with_graph, axis = drawn_lines(busy_minute(), columns)
    graph_begins = min(row_with_graph.index(block) for block in BLOCKS if block in row_with_graph)
    graph_ends = max(row_with_graph.rindex(block) for block in BLOCKS if block in row_with_graph)
    words = axis[graph_begins : graph_ends + 1]
    assert words.split("now") == [oldest.ljust(len(words) - len("now")), ""]


def test_each_component_has_a_row_with_its_cores() -> None:
    lines = drawn_lines(busy_minute())
    for component in COMPONENTS:
        row = row_of(component, lines)
        assert row is not None
        assert row.endswith(" 12.3")


def test_a_row_shows_the_newest_value_its_graph_and_the_scale() -> None:
    lines = drawn_lines(figures_of(traffic(0, 8_000), traffic(1, 8_000), traffic(2, 4_000)))
    assert row_of("sent", lines) == "sent     4,000 " + " " * 57 + "██▄ 8.0k"


def test_a_component_without_figures_shows_a_dash_and_a_broker_no_row() -> None:
    lines = drawn_lines(figures_of(traffic(0, 8_000)))
    gateway = row_of("gateway", lines)
    assert gateway is not None
    assert gateway.split() == ["gateway", "-"]
    assert row_of("broker", lines) is None


def test_without_a_schedule_times_are_from_handing_over_without_lag() -> None:
    figures = figures_of(traffic(0, 8_000), completion(0, "handed_over", 230.0))
    lines = drawn_lines(figures, is_scheduled=False)
    assert "us from handing over" in lines
    assert row_of("lag", lines) is None
    p50 = row_of("p50", lines)
    assert p50 is not None
    assert p50.startswith("p50        230 ")


def test_a_terminal_without_blocks_gets_ascii_characters() -> None:
    assert "\n".join(drawn_lines(busy_minute(), blocks=ASCII_BLOCKS)).isascii()


@pytest.mark.parametrize(
    ("values", "top", "drawing"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, "▁▁▂▃▄▅▆▇█"),
        ([0.01, 4.01, 8.0], 8, "▁▅█"),
        ([None, 3, None], 3, " █ "),
        ([0, 0], 0, "▁▁"),
    ],
)
def test_a_graph_has_its_lowest_block_at_0_and_its_highest_at_the_top(
    values: list[float | None], top: float, drawing: str
) -> None:
    assert graph(values, top) == drawing


@pytest.mark.parametrize(
    ("value", "in_five_characters", "in_four_characters"),
    [
        (0, "0.00", "0.00"),
        (0.694, "0.69", "0.69"),
        (9.996, "10.0", "10.0"),
        (12.34, "12.3", "12.3"),
        (230.4, "230", "230"),
        (999.6, "1,000", "1.0k"),
        (5_759, "5,759", "5.8k"),
        (9_999.6, "10.0k", "10k"),
        (19_354, "19.4k", "19k"),
        (123_456, "123k", "123k"),
        (999_999, "1.00M", "1.0M"),
        (2_012_345, "2.01M", "2.0M"),
    ],
)
def test_a_number_fits_with_as_many_digits_as_possible(
    value: float, in_five_characters: str, in_four_characters: str
) -> None:
    assert short_number(value, 5) == in_five_characters
    assert short_number(value, 4) == in_four_characters


BY_ORDERS = RunSettings(orders_per_s=8_000.0, orders=80_000)
BY_DURATION = RunSettings(orders_per_s=8_000.0, orders=None, duration_s=10.0)


@pytest.mark.parametrize(
    ("settings", "answered", "elapsed_s", "left_s"),
    [
        pytest.param(BY_ORDERS, 32_000, 4.0, 6.0, id="at the offered rate"),
        pytest.param(BY_ORDERS, 16_000, 4.0, 16.0, id="at half of the offered rate"),
        pytest.param(BY_ORDERS, 0, 1.0, None, id="nothing answered"),
        pytest.param(replace(BY_ORDERS, pairs=2), 64_000, 4.0, 6.0, id="two pairs"),
        pytest.param(replace(BY_ORDERS, orders_per_s=None), 40_000, 4.0, 4.0, id="as fast as it goes"),
        pytest.param(BY_DURATION, 32_000, 4.0, 6.0, id="by the clock"),
        pytest.param(replace(BY_DURATION, orders_per_s=None), 40_000, 4.0, 6.0, id="by the clock, at rate max"),
        pytest.param(
            RunSettings(orders_per_s=None, orders=10**9, duration_s=10.0), 40_000, 11.0, 0.0, id="after the duration"
        ),
    ],
)
def test_the_time_left_follows_from_the_orders_or_from_the_duration(
    settings: RunSettings, answered: int, elapsed_s: float, left_s: float | None
) -> None:
    assert time_left_s(settings, answered, elapsed_s) == left_s


@pytest.mark.parametrize(
    ("seconds", "words"), [(5.6, "6 s"), (59.7, "1 min 0 s"), (200, "3 min 20 s"), (7_500, "2 h 5 min")]
)
def test_a_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words
