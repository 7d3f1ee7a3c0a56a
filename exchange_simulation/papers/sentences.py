"""What a paper's measurement says, in sentences: first how many claims hold, then those that do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exchange.json_records import Record
from exchange.words import counted
from exchange_simulation.launching.record.noise_summary import TOO_NOISY
from exchange_simulation.papers.claims import CANNOT_TELL, DOES_NOT_HOLD, HOLDS, NOT_MEASURED, OUTCOMES
from exchange_simulation.repeats.judging import ALPHA
from exchange_simulation.repeats.sign_flips import repeats_needed
from exchange_simulation.reports.formats.numbers import number_text

AS_EXPECTED_IN_WORDS = {False: ", seen otherwise", True: ", seen as it says", None: ""}
"""What too few repeats showed of a sentence, in a reader's order."""


def headline(record: Record) -> str:
    """How many claims hold; those that are delivered as planned are counted apart, since no paper can fail by them.

    For example: 17 of 21 claims hold here, 2 do not, 2 cannot be told. For example: 9 of 21 claims hold here, 1 does
    not, 2 cannot be told, 4 were not measured, 5 were too noisy to say. For example: 14 of 21 claims were seen as the
    paper says in 1 repeat, 7 otherwise; a verdict needs 6. For example: 25 of 33 values were delivered as planned, 8
    cannot be told
    """
    claims = [claim for claim in record["claims"] if not claim.get("by_construction")]
    planned = [claim["outcome"] for claim in record["claims"] if claim.get("by_construction")]
    clauses: list[str] = []
    if claims:
        outcomes = [claim["outcome"] for claim in claims]
        has_verdict = HOLDS in outcomes or DOES_NOT_HOLD in outcomes
        too_few = [claim for claim in claims if claim.get("as_expected") is not None]
        clauses.append(_too_few_in_words(claims) if too_few and not has_verdict else _claims_in_words(claims))
    if planned:
        clauses.append(_planned_in_words(planned))
    return "; ".join(clauses)


def _claims_in_words(claims: Sequence[Record]) -> str:
    outcomes = [claim["outcome"] for claim in claims]
    unmeasured = _unmeasured(claims)
    contradicted = outcomes.count(DOES_NOT_HOLD)
    verb = "does" if contradicted == 1 else "do"
    counts = (
        f"{outcomes.count(HOLDS)} of {len(outcomes)} claims hold here, {contradicted} {verb} not, "
        f"{outcomes.count(CANNOT_TELL) - unmeasured} cannot be told"
    )
    return counts + _unmeasured_in_words(unmeasured) + _noisy_in_words(outcomes)


def _too_few_in_words(claims: Sequence[Record]) -> str:
    """What was seen of claims of which none has a verdict, and some were measured too seldom for one."""
    too_few = [claim for claim in claims if claim.get("as_expected") is not None]
    as_expected = sum(claim["as_expected"] for claim in too_few)
    repeats = max(claim["repeats"] for claim in too_few)
    counts = (
        f"{as_expected} of {len(claims)} claims were seen as the paper says in {counted(repeats, 'repeats')}, "
        f"{len(too_few) - as_expected} otherwise"
    )
    unmeasured = _unmeasured(claims)
    untold = sum(claim["outcome"] == CANNOT_TELL for claim in claims) - len(too_few) - unmeasured
    if untold:
        counts += f", {untold} cannot be told"
    counts += _unmeasured_in_words(unmeasured)
    noisy = _noisy_in_words([claim["outcome"] for claim in claims])
    return f"{counts}{noisy}; a verdict needs {repeats_needed(ALPHA)}"


def _unmeasured(claims: Sequence[Record]) -> int:
    return sum(claim.get("why") == NOT_MEASURED for claim in claims)


def _unmeasured_in_words(unmeasured: int) -> str:
    return f", {unmeasured} {_were(unmeasured)} not measured" if unmeasured else ""


def _noisy_in_words(outcomes: Sequence[str]) -> str:
    noisy = outcomes.count(TOO_NOISY)
    return f", {noisy} {_were(noisy)} too noisy to say" if noisy else ""


def _planned_in_words(outcomes: Sequence[str]) -> str:
    counts = f"{outcomes.count(HOLDS)} of {len(outcomes)} values were delivered as planned"
    undelivered = outcomes.count(DOES_NOT_HOLD)
    if undelivered:
        counts += f", {undelivered} {_were(undelivered)} not"
    untold = outcomes.count(CANNOT_TELL)
    if untold:
        counts += f", {untold} cannot be told"
    return counts


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


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
    """The ratio with its interval, or why nothing can be told.

    For example: 1.2 (1.1 to 1.3). For example: 1.2 in 1 repeat.
    """
    if claim["ratio"] is None:
        return str(claim["why"])
    ratio = number_text(claim["ratio"])
    if claim.get("as_expected") is not None:
        return f"{ratio} in {counted(claim['repeats'], 'repeats')}"
    if claim["low"] is None:
        return f"{ratio} ({claim['why']})" if claim["why"] else ratio
    return f"{ratio} ({number_text(claim['low'])} to {number_text(claim['high'])})"


def outcome_in_words(claim: Record) -> str:
    """The outcome, and what too few repeats for a verdict showed. For example: cannot tell, seen otherwise."""
    return str(claim["outcome"]) + AS_EXPECTED_IN_WORDS[claim.get("as_expected")]


def in_readers_order(record: Record) -> list[Record]:
    """The claims: first those that do not hold, then those that do, then the others; each in the paper's order.

    Among claims with too few repeats for a verdict those come first that were seen otherwise than the paper says.
    """
    seen_as = list(AS_EXPECTED_IN_WORDS)
    return sorted(
        record["claims"],
        key=lambda claim: (OUTCOMES.index(claim["outcome"]), seen_as.index(claim.get("as_expected"))),
    )


def problems(record: Record) -> Iterator[str]:
    """A sentence for each part that is not complete."""
    for part in record["parts"]:
        if part["status"] != "complete":
            reason = f": {part['reasons'][0]}" if part["reasons"] else ""
            yield f"{part['part']}, {part['status']}{reason}"
