"""Estimates of comparison.json, as a reader wants them."""

from __future__ import annotations

from typing import Any

ABSENT = "-"


def rounded(estimate: dict[str, Any] | None) -> str:
    return number(estimate["median"]) if estimate else ABSENT


def with_interval(estimate: dict[str, Any] | None) -> str:
    """162 (151..180)"""
    return " ".join(filter(None, (rounded(estimate), interval(estimate))))


def interval(estimate: dict[str, Any] | None) -> str:
    """(151..180); empty where there is none."""
    if not estimate or estimate["low"] is None:
        return ""
    return f"({number(estimate['low'])}..{number(estimate['high'])})"


def number(value: float) -> str:
    """Whole numbers from 100 on; else three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
