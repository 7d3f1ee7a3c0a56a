"""`exchange report` of a run's folder, as its user sees it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from exchange_simulation.cli.main import main
from exchange_simulation.reports.run import samples_table, spark_tables
from tests.exchange_simulation.reports.run.synthetic_run import SyntheticRun

pytestmark = pytest.mark.xdist_group("report of run")

FIGURES = ("completion", "heat", "percentiles", "rates", "cpu")


def report(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["report", str(folder), "--no-spark", *words])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return SyntheticRun(seconds=1, orders_per_s=500).write(tmp_path / "run")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder with its figures."""
    folder = SyntheticRun(seconds=4).write(tmp_path_factory.mktemp("results") / "run")
    result = report(folder, "--figures")
    assert result.exit_code == 0, result.output
    return folder


def test_every_figure_is_written_as_svg_png_and_csv(drawn: Path) -> None:
    figures = drawn / "figures"
    assert len(list(figures.iterdir())) == 3 * len(FIGURES)
    for name in FIGURES:
        svg = (figures / f"{name}.svg").read_text()
        ElementTree.fromstring(svg)
        assert "#0102" not in svg  # a stand-in for a colour of the page
        with Image.open(figures / f"{name}.png") as picture:
            assert picture.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
            assert picture.width > 1_000
        assert len((figures / f"{name}.csv").read_text().splitlines()) > 3


def test_the_numbers_of_a_figure_are_those_of_the_record(drawn: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((drawn / "figures" / "percentiles.csv").read_text())))
    record = orjson.loads((drawn / "run.json").read_bytes())
    slowest = [float(row["us"]) for row in rows if row["series"] == "due"]
    assert max(slowest) == record["completion_us"]["due"]["max"]
    rates = list(csv.DictReader(io.StringIO((drawn / "figures" / "rates.csv").read_text())))
    assert [row["per_s"] for row in rates if row["series"] == "offered"] == ["8000.0"]


def test_json_prints_run_json_alone_and_writes_only_the_page(run: Path) -> None:
    result = report(run, "--json")
    assert result.exit_code == 0
    assert result.stdout.encode() == (run / "run.json").read_bytes()
    assert sorted(path.name for path in run.iterdir()) == ["report.html", "run.json", "spool"]


def test_csv_is_run_json_as_one_row(run: Path) -> None:
    (row,) = csv.DictReader(io.StringIO(report(run, "--csv").stdout))
    record = orjson.loads((run / "run.json").read_bytes())
    assert float(row["completion_us.due.p99"]) == record["completion_us"]["due"]["p99"]
    assert row["settings.transport"] == "zeromq"
    assert orjson.loads(row["sockets"]) == record["sockets"]


def test_hlog_is_written_beside_the_record(run: Path) -> None:
    pytest.importorskip("hdrh.histogram", reason="hdrhistogram has no wheel for Linux on ARM")
    assert "completion.hlog" in report(run, "--hlog").output
    assert (run / "completion.hlog").read_text().startswith("#[Histogram log format version")


WITHOUT_SECOND = b'{"schema":1,"source":"gateway","kind":"completion","wall_ns":1,"monotonic_ns":1,"payload":{}}\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"schema": 1, "na', "run.json is damaged: "),
        (b"[]", "it holds no JSON object"),
        (b'{"schema": 1, "status": "complete"}', "missing required field `name`"),
        (b'{"schema": 2}', "run.json has schema 2, and this version of exchange reads 1"),
    ],
)
def test_a_damaged_or_newer_record_is_refused(run: Path, content: bytes, sentence: str) -> None:
    (run / "run.json").write_bytes(content)
    assert_refused(run, sentence)


@pytest.mark.parametrize(
    ("second_line", "sentence"),
    [
        (b'{"schem', "000001.jsonl, line 2, is damaged"),
        (b'{"schema": 1}\n', "missing required field `source`"),
        (WITHOUT_SECOND, "missing required field `second`"),
    ],
)
def test_a_damaged_spool_is_refused(run: Path, second_line: bytes, sentence: str) -> None:
    spool_file = run / "spool" / "000001.jsonl"
    first_line, _, _ = spool_file.read_bytes().partition(b"\n")
    spool_file.write_bytes(first_line + b"\n" + second_line)
    assert_refused(run, sentence)


def assert_refused(run: Path, sentence: str) -> None:
    result = report(run)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert isinstance(result.exception, SystemExit)
    assert not (run / "report.html").exists()


def test_a_killed_run_has_a_page_but_no_record_to_print(run: Path) -> None:
    (run / "run.json").unlink()
    assert report(run, "--figures").exit_code == 0
    assert (run / "report.html").exists()
    refused = report(run, "--json")
    assert refused.exit_code == 2
    assert "no record to print" in refused.output


def test_json_and_csv_together_are_refused(run: Path) -> None:
    assert report(run, "--json", "--csv").exit_code == 2


def test_an_export_makes_tables_only_if_missing_or_outdated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: each export waited some ten seconds for tables that were up to date."""
    makings = 0

    def make_tables(folder: Path, _quiet: bool) -> bool:
        nonlocal makings
        makings += 1
        (folder / "tables").mkdir(exist_ok=True)
        (folder / "tables" / "sample_summary.parquet").write_bytes(b"")
        return True

    def report_with_spark(*words: str) -> None:
        result = CliRunner().invoke(main, ["report", str(run), "--spark", *words])
        assert result.exit_code == 0, result.output

    monkeypatch.setattr(spark_tables, "make_tables", make_tables)
    monkeypatch.setattr(samples_table, "show_samples", lambda _folder, _record: None)
    for export in ("--csv", "--csv", "--hlog", "--json"):
        report_with_spark(export)
    assert makings == 1
    report_with_spark()
    assert makings == 2, "a report that is no export makes the tables anew"
    (run / "run.json").write_bytes((run / "run.json").read_bytes())  # now the record is newer than the tables
    report_with_spark("--csv")
    report_with_spark("--csv")
    assert makings == 3
