"""The ends of a user's SQL: what is cut off before the statement is tried in brackets."""

from __future__ import annotations

import pytest

from exchange_simulation.experiments.pipeline.statements import statement_alone


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("select 1", "select 1"),
        ("select 1;", "select 1"),
        ("select 1;;\n", "select 1"),
        ("select 1; /* all */ -- of them", "select 1"),
        ("-- which\n/* all */ show views;", "show views"),
        ("select ';--x'", "select ';--x'"),
        ("select 'it''s', 'a\\';' ;", "select 'it''s', 'a\\';'"),
        ("select r'\\';", "select r'\\'"),
        ("select `a;` -- name", "select `a;`"),
        ("select 1 /* one */ + 1", "select 1 /* one */ + 1"),
        ("select 1; select 2;", "select 1; select 2"),
        ("; -- nothing", ""),
    ],
)
def test_blanks_comments_and_semicolons_at_the_ends_are_cut_off(sql: str, statement: str) -> None:
    assert statement_alone(sql) == statement


@pytest.mark.parametrize(
    "sql",
    [
        "-- goes on \\\nshow views",
        "/* a /* b */ show views */ drop view traffic",
    ],
)
def test_text_that_spark_may_read_as_a_comment_in_another_way_is_kept(sql: str) -> None:
    assert statement_alone(sql) == sql


def test_a_rule_of_dashes_between_two_statements_is_read_at_once() -> None:
    two_statements = "select 1; " + "-" * 10_000 + "\nselect 2"
    assert statement_alone(two_statements) == two_statements
