"""A paper's folder: paper.json exists from the start on, and says which parts were measured."""

from __future__ import annotations

from pathlib import Path

from exchange.json_records import Record
from exchange.record_kinds import PaperRecord
from exchange_simulation.cli.results.difference import all_fields_of, print_rows
from exchange_simulation.cli.results.kind import FolderKind, ListedFolder, refuse_spark
from exchange_simulation.cli.results.rerun import warn_of_differences


class PaperKind(FolderKind):
    name = "paper"
    file = "paper.json"
    record = PaperRecord
    shown_by = "exchange_simulation.papers.terminal:show"
    marks = (file,)
    page = "paper.html"
    reported_by = "exchange_simulation.papers.reporting:report_paper"
    remarks = "caveats"
    fields = ("paper", "quick", "repeats")
    parts = all_fields_of("host", "versions")
    caveat = "Two papers were measured at different times, so what differs may be the machine's."

    def row_of(self, folder: Path, record: Record) -> ListedFolder:
        from exchange_simulation.papers.sentences import headline

        measured = [part for part in record["parts"] if part["status"] != "not measured"]
        return self.row_with(
            folder,
            record,
            what=f"paper {record['paper']}",
            runs=len(measured),
            planned_runs=len(record["parts"]),
            words=headline(record),
        )

    def findings(self, first: Record, second: Record) -> Record:
        """The claims that both records have, each with its outcomes."""
        second_claims = {claim["statistic"]: claim for claim in second["claims"]}
        rows = []
        for claim in first["claims"]:
            other = second_claims.get(claim["statistic"])
            if other is not None:
                rows.append({"field": claim["statistic"], "first": _outcome(claim), "second": _outcome(other)})
        return {"claims": rows}

    def show_findings(self, difference: Record) -> None:
        print_rows("what was found", difference["claims"], lambda _, outcome: str(outcome))

    def rerun(self, folder: Path, results: str, name: str | None, *, with_spark: bool | None, as_json: bool) -> int:
        refuse_spark(with_spark, self.name)
        from exchange_simulation.papers.catalogue import paper_of
        from exchange_simulation.papers.extent import recorded_extent
        from exchange_simulation.papers.measuring import measure_paper
        from exchange_simulation.papers.terminal import show
        from exchange_simulation.reports.exports import print_json

        record = self.read(folder)
        warn_of_differences(record)
        measured = measure_paper(paper_of(record["paper"]), recorded_extent(record), results=results, name=name)
        if as_json:
            print_json(measured.record)
        else:
            show(measured.record)
        return measured.exit_code


def _outcome(claim: Record) -> str:
    from exchange_simulation.papers.sentences import outcome_in_words, seen

    return f"{outcome_in_words(claim)}: {seen(claim)}"
