"""What the window shows, on a recorded terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from exchange.settings import RunSettings
from exchange_simulation.reports.formats.times import duration_in_words
from exchange_simulation.reports.live.figures import Figures
from exchange_simulation.reports.live.picture import BLOCKS, PLAIN, WIDTH, graph, left_s, picture, short
from tests.exchange_simulation.reports.live.spool_records import completion, figures_of, process, traffic

HEADLINE = "amqp at 100,000,000 orders/s: 4,294,967,295 of 4,294,967,295 orders answered, 1 s left"


def busy_minute() -> Figures:
    """More than a minute of figures as long as they get."""
    figures = figures_of(
        *(traffic(second, 98_765_432) for second in range(70)),
        *(completion(second, clock, 1.5, 98_765_432) for second in range(70) for clock in ("due", "lag")),
    )
    for component in ("gateway", "engine", "reporter", "broker"):
        figures.take(process(second, component, 12.3456 * (second + 1)) for second in range(70))
    return figures


def drawn(figures: Figures, columns: int = WIDTH, is_scheduled: bool = True, blocks: str = BLOCKS) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=columns)
    lines = console.render_lines(picture(HEADLINE, figures, is_scheduled, columns, blocks), pad=False)
    return ["".join(segment.text for segment in line) for line in lines]


@pytest.mark.parametrize("columns", [80, 61, 40])
def test_no_line_is_longer_than_the_terminal_is_wide(columns: int) -> None:
    lines = drawn(busy_minute(), columns)
    assert len(lines) == 15
    assert max(map(len, lines)) == columns
    assert {len(line) for line in lines if BLOCKS[-1] in line} == {columns}
    assert [line.split()[0] for line in lines if line.endswith("12.3")] == ["gateway", "engine", "reporter", "broker"]


def test_a_row_says_what_is_the_case_now_what_was_and_the_scale() -> None:
    sent = [8_000, 8_000, 4_000]
    row = drawn(figures_of(*(traffic(second, orders) for second, orders in enumerate(sent))))[2]
    assert row == "sent     4,000 " + " " * 57 + "██▄ 8.0k"


def test_a_row_without_figures_is_blank_or_left_out_if_a_broker_s() -> None:
    lines = drawn(figures_of(traffic(0, 8_000)))
    assert [line.split() for line in lines if line.startswith("gateway")] == [["gateway", "-"]]
    assert not any(line.startswith("broker") for line in lines)


def test_without_a_schedule_nothing_is_due_and_nothing_late() -> None:
    figures = figures_of(traffic(0, 8_000), completion(0, "handed_over", 230.0))
    lines = drawn(figures, is_scheduled=False)
    assert "us from handing over" in lines
    assert not any(line.startswith("lag") for line in lines)
    assert [line.split()[1] for line in lines if line.startswith("p50")] == ["230"]


def test_a_terminal_without_blocks_gets_characters() -> None:
    assert "\n".join(drawn(busy_minute(), blocks=PLAIN)).isascii()


@pytest.mark.parametrize(
    ("values", "top", "drawing"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, "▁▁▂▃▄▅▆▇█"),
        ([0.01, 4.01, 8.0], 8, "▁▅█"),
        ([None, 3, None], 3, " █ "),
        ([0, 0], 0, "▁▁"),
    ],
)
def test_a_graph_is_from_nothing_to_its_top(values: list[float | None], top: float, drawing: str) -> None:
    assert graph(values, top) == drawing


@pytest.mark.parametrize(
    ("value", "in_five", "in_four"),
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
def test_a_number_fits_with_the_digits_that_there_is_room_for(value: float, in_five: str, in_four: str) -> None:
    assert (short(value, 5), short(value, 4)) == (in_five, in_four)


@pytest.mark.parametrize(
    ("settings", "answered", "elapsed_s", "left"),
    [
        (RunSettings(), 32_000, 4.0, 6.0),
        (RunSettings(), 16_000, 4.0, 16.0),  # at the pace so far, not the one that was offered
        (RunSettings(orders=None, duration_s=10.0), 32_000, 4.0, 6.0),
        (RunSettings(orders_per_s=None), 40_000, 4.0, 4.0),
        (RunSettings(orders_per_s=None, orders=None, duration_s=10.0), 40_000, 4.0, 6.0),
        (RunSettings(orders_per_s=None, duration_s=10.0, orders=10**9), 40_000, 11.0, 0.0),
        (RunSettings(), 0, 1.0, None),
        (RunSettings(pairs=2), 64_000, 4.0, 6.0),
    ],
)
def test_the_time_left_is_that_of_the_orders_or_of_the_clock(
    settings: RunSettings, answered: int, elapsed_s: float, left: float | None
) -> None:
    assert left_s(settings, answered, elapsed_s) == left


@pytest.mark.parametrize(
    ("seconds", "words"), [(5.6, "6 s"), (59.7, "1 min 0 s"), (200, "3 min 20 s"), (7_500, "2 h 5 min")]
)
def test_time_is_said_in_two_units_at_most(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words
