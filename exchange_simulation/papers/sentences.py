"""What a paper's measurement says, in sentences: first how many claims hold, then those that do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise_summary import TOO_NOISY
from exchange_simulation.papers.claims import CANNOT_TELL, DOES_NOT_HOLD, HOLDS, OUTCOMES
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import repeats_needed
from exchange_simulation.reports.formats.numbers import number_text


def headline(record: Record) -> str:
    """How many claims hold; those that are delivered as planned are counted apart, since no paper can fail by them.

    For example: 17 of 21 claims hold here, 2 do not, 2 cannot be told. For example: 9 of 21 claims hold here, 1 does
    not, 2 cannot be told, 9 were too noisy to say. For example: 0 of 21 claims hold here, 0 do not, 21 cannot be told
    (1 repeat, and a verdict needs 6). For example: 25 of 33 values were delivered as planned, 8 cannot be told
    """
    claims = [claim["outcome"] for claim in record["claims"] if not claim.get("by_construction")]
    planned = [claim["outcome"] for claim in record["claims"] if claim.get("by_construction")]
    clauses: list[str] = []
    if claims:
        clauses.append(_claims_in_words(claims, record.get("repeats")))
    if planned:
        clauses.append(_planned_in_words(planned))
    return "; ".join(clauses)


def _claims_in_words(outcomes: Sequence[str], repeats: int | None) -> str:
    contradicted = outcomes.count(DOES_NOT_HOLD)
    noisy = outcomes.count(TOO_NOISY)
    verb = "does" if contradicted == 1 else "do"
    counts = (
        f"{outcomes.count(HOLDS)} of {len(outcomes)} claims hold here, {contradicted} {verb} not, "
        f"{_untold_in_words(outcomes.count(CANNOT_TELL), repeats)}"
    )
    if noisy:
        counts += f", {noisy} {'was' if noisy == 1 else 'were'} too noisy to say"
    return counts


def _planned_in_words(outcomes: Sequence[str]) -> str:
    counts = f"{outcomes.count(HOLDS)} of {len(outcomes)} values were delivered as planned"
    undelivered = outcomes.count(DOES_NOT_HOLD)
    if undelivered:
        counts += f", {undelivered} {'was' if undelivered == 1 else 'were'} not"
    untold = outcomes.count(CANNOT_TELL)
    if untold:
        counts += f", {untold} cannot be told"
    return counts


def _untold_in_words(untold: int, repeats: int | None) -> str:
    """The number of claims without a verdict, and whether there were too few repeats for one.

    For example: 21 cannot be told (1 repeat, and a verdict needs 6)
    """
    needed = repeats_needed(ALPHA)
    if untold and repeats is not None and repeats < needed:
        return f"{untold} cannot be told ({counted(repeats, 'repeats')}, and a verdict needs {needed})"
    return f"{untold} cannot be told"


def contradictions(record: Record) -> Iterator[str]:
    """A sentence for each claim that does not hold.

    For example: With eight pairs the bandwidth drops drastically (figure 4a): not so here. MB/s in all of 8 pairs over
    4: 1.2 (1.1 to 1.3), where at most 0.5 was expected.
    """
    for claim in record["claims"]:
        if claim["outcome"] == DOES_NOT_HOLD:
            hardware = " This claim is about the paper's hardware." if claim["of_hardware"] else ""
            sentence = claim["sentence"].removesuffix(".")
            statistic = claim["statistic"][0].upper() + claim["statistic"][1:]
            comparison = f"{statistic}: {seen(claim)}, where {claim['expected']} was expected."
            yield f"{sentence} ({claim['place']}): not so here. {comparison}{hardware}"


def seen(claim: Record) -> str:
    """The ratio with its interval, or why nothing can be told. For example: 1.2 (1.1 to 1.3)."""
    if claim["ratio"] is None:
        return str(claim["why"])
    ratio = number_text(claim["ratio"])
    if claim["low"] is None:
        return f"{ratio} ({claim['why']})" if claim["why"] else ratio
    return f"{ratio} ({number_text(claim['low'])} to {number_text(claim['high'])})"


def in_readers_order(record: Record) -> list[Record]:
    """The claims: first those that do not hold, then those that do, then the others; each in the paper's order."""
    return sorted(record["claims"], key=lambda claim: OUTCOMES.index(claim["outcome"]))


def problems(record: Record) -> Iterator[str]:
    """A sentence for each part that is not complete."""
    for part in record["parts"]:
        if part["status"] != "complete":
            reason = f": {part['reasons'][0]}" if part["reasons"] else ""
            yield f"{part['part']}, {part['status']}{reason}"
