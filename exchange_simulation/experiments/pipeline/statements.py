"""A user's SQL: whether it only reads, its rows, and its mistakes as sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from spark.errors import SparkError

DESCRIBING_STATEMENT = re.compile(r"(show|describe|desc|explain)\b", re.IGNORECASE)
"""The beginnings of statements that change nothing and are no queries."""
SQL_TOKEN = re.compile(
    r"""
    (?P<insignificant> \s+ | ; | --[^\r\n\\]*(?=[\r\n]|\Z) | /\*(?:(?!/\*).)*?\*/ )
    | [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
    | \w+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""A blank, semicolon or comment; a text or a name in quotes; a word; or one other character.

In Spark a comment that ends with a backslash goes on in the next line, and a comment in a comment has an end of its
own. Neither counts as a comment here, so that nothing that Spark would run is taken for one.
"""


class BadQueryError(SparkError):
    """A query does not parse, names what is not there, or would write."""


def query(spark: SparkSession, sql: str, tables: Collection[str]) -> DataFrame:
    """Return the rows of one statement that only reads, and read none of them yet. `tables` are all that there are.

    BadQueryError, a sentence, if the statement does not parse, names what is not there, or would write.
    """
    with bad_queries(tables):
        if not _reads(spark, sql):
            raise BadQueryError(
                "this SQL would write; exchange spark sql takes what only reads: SELECT, WITH, SHOW, DESCRIBE"
            )
        rows = spark.sql(sql)
        _ = rows.schema  # Spark Connect looks for tables and columns only now
        return rows


@contextmanager
def bad_queries(tables: Collection[str]) -> Iterator[None]:
    """Raise BadQueryError, a sentence, if a statement does not parse, or names what is not there."""
    try:
        yield
    except ParseException as error:
        raise BadQueryError(f"this SQL does not parse: {_first_line(error)}") from error
    except AnalysisException as error:
        raise BadQueryError(_sentence_about(error, tables)) from error


def _reads(spark: SparkSession, sql: str) -> bool:
    """Return whether a statement only reads. ParseException if it is no SQL.

    Only a query can stand in brackets.
    """
    statement = statement_alone(sql)
    if DESCRIBING_STATEMENT.match(statement):
        return True
    try:
        spark.sql(f"SELECT * FROM (\n{statement}\n)")
    except ParseException:
        # This is no query. EXPLAIN runs nothing, and raises ParseException if it is no SQL either.
        spark.sql(f"EXPLAIN {statement}")
        return False
    return True


def statement_alone(sql: str) -> str:
    """Return a statement without the blanks, comments and semicolons in front of it and behind it."""
    significant = [token.span() for token in SQL_TOKEN.finditer(sql) if token.lastgroup != "insignificant"]
    if not significant:
        return ""
    first, last = significant[0], significant[-1]
    return sql[first[0] : last[1]]


def _sentence_about(error: AnalysisException, tables: Collection[str]) -> str:
    """Return a sentence: the names of all tables if one is unknown, the columns that Spark proposes if a column is
    unknown, or the first line of Spark's message.
    """
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        unknown = _without_backticks(parameters["relationName"])
        return f"there is no table {unknown}; there are: {', '.join(sorted(tables))}{_commands_for_missing(tables)}"
    if condition.startswith("UNRESOLVED_COLUMN.WITH_SUGGESTION"):
        unknown = _without_backticks(parameters["objectName"])
        return f"there is no column {unknown}; near it are: {_without_backticks(parameters['proposal'])}"
    return f"this SQL cannot be answered: {_first_line(error)}"


def _commands_for_missing(tables: Collection[str]) -> str:
    """Return clauses with the commands that make the tables which are missing."""
    clauses = ""
    if "summary" not in tables:
        clauses += "; exchange spark summary makes summary, seconds, arms and comparison"
    if "trades" not in tables:
        clauses += "; exchange spark ingest --events makes orders, trades, confirmations and quotes"
    return clauses


def _without_backticks(names: str) -> str:
    return names.replace("`", "")


def _first_line(error: AnalysisException) -> str:
    """Return the first line of Spark's message, without the error's code in front and SQLSTATE at its end."""
    first_line = str(error).strip().splitlines()[0]
    sentence, _, _ = first_line.partition(" SQLSTATE:")
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", sentence)
