"""The pictures that `.ci/pictures` draws from a recorded comparison."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CI = Path(__file__).resolve().parents[1] / ".ci"


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], str]:
    """Return the function that draws a comparison by numbers of participants."""
    monkeypatch.syspath_prepend(CI)
    module = importlib.import_module("participants_picture")
    participants_picture: Callable[[dict[str, Any]], str] = module.participants_picture
    return participants_picture


def comparison(ratios: dict[tuple[int, int], dict[str, Any]]) -> dict[str, Any]:
    """Return the parts of a comparison's record that the picture needs, by gateways and subscribers."""
    arms = []
    verdicts = []
    for (gateways, subscribers), ratio in ratios.items():
        for contender, median in (("zeromq", 150.4), ("amqp", 1_302.0)):
            arms.append(
                {
                    "label": f"{contender} {gateways} {subscribers}",
                    "contender": contender,
                    "settings": {"gateways": gateways, "subscribers": subscribers},
                    "metrics": {"due_p50_us": {"median": median}},
                }
            )
        names = {"first": f"zeromq {gateways} {subscribers}", "second": f"amqp {gateways} {subscribers}"}
        verdicts.append({"metric": "due_p50_us", **names, **ratio})
        verdicts.append({"metric": "due_p99_us", **names, "outcome": "differ", "ratio": 77.0})
    return {"contenders": ["zeromq", "amqp"], "arms": arms, "verdicts": verdicts}


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_panel_has_the_ratios_of_one_number_of_subscribers(draw: Callable[[dict[str, Any]], str]) -> None:
    lower = {"outcome": "differ", "ratio": 0.612, "low": 0.5, "high": 0.7}
    higher = {"outcome": "differ", "ratio": 2.2, "low": 1.8, "high": 2.6}
    svg = draw(comparison({(1, 0): lower, (16, 0): higher, (1, 8): higher, (1, 1): higher}))
    words = texts(svg)
    titles = [text for text in words if text.startswith("Completion time")]
    assert titles == [
        "Completion time over ZeroMQ (p50), where RabbitMQ's is 1: no subscribers",
        "Completion time over ZeroMQ (p50), where RabbitMQ's is 1: 8 subscribers",
        "Completion time over ZeroMQ (p50), where RabbitMQ's is 1: 1 subscriber",
    ]
    first_panel = words[: words.index(titles[1])]
    assert [text for text in first_panel if "gateway" in text] == ["1 gateway", "16 gateways"]
    assert [text for text in first_panel if " to " in text] == ["0.61 (0.50 to 0.70)", "2.2 (1.8 to 2.6)"]
    assert {"150 us", "1,302 us"} <= set(first_panel)
    assert svg.count("<circle") == 4


def test_a_ratio_without_an_interval_has_no_whisker(draw: Callable[[dict[str, Any]], str]) -> None:
    svg = draw(comparison({(1, 0): {"outcome": "cannot tell", "ratio": 0.8, "low": None, "high": None}}))
    assert "0.80" in texts(svg)
    assert 'class="z"' not in svg


def test_a_row_that_was_not_compared_says_so(draw: Callable[[dict[str, Any]], str]) -> None:
    svg = draw(comparison({(16, 8): {"outcome": "not compared"}}))
    assert "not compared" in texts(svg)
    assert "<circle" not in svg


def test_a_comparison_of_three_transports_is_refused(draw: Callable[[dict[str, Any]], str]) -> None:
    record = comparison({(1, 0): {"outcome": "not compared"}})
    record["contenders"].append("tcp")
    with pytest.raises(SystemExit, match="zeromq, amqp, tcp: the picture takes two transports"):
        draw(record)
