"""One benchmark compares messages in memory with messages on disk, and its record says what the disk is."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.messaging.report import page_html
from tests.broker import need_rabbitmq
from tests.exchange_simulation.messaging.bench_commands import benches


@pytest.fixture(autouse=True)
def _rabbitmq() -> None:
    need_rabbitmq()


def test_a_delivery_in_the_url_is_an_arm_of_its_own(tmp_path: Path) -> None:
    transports = "amqp?delivery=confirmed,amqp?delivery=durable"
    command = f"de-spsc --transport {transports} --sizes 64 --repeats 1 --quick"

    (outcome,) = benches(tmp_path, command)

    record = outcome["record"]
    assert record["status"] == "complete", outcome["err"]
    assert [row["transport"] for row in record["rows"]] == transports.split(",")
    assert any("amqp?delivery=durable is durable" in caveat for caveat in record["caveats"])
    assert record["disk"]["sync_us"] > 0
    assert "essages are kept on" in page_html(record)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("de-spsc --transport amqp?delivery=durable --delivery lossy", "--delivery lossy is given, too: say it once"),
        ("de-spsc --transport amqp?delivery=safe", "lossy"),
        ("supply-chain --transport amqp?delivery=durable", "links of this benchmark have several guarantees"),
    ],
)
def test_a_delivery_in_the_url_that_cannot_be_had_is_refused(words: str, sentence: str, tmp_path: Path) -> None:
    finished = CliRunner().invoke(main, ["bench", *words.split(), "--results", str(tmp_path)])

    assert finished.exit_code == 2
    assert sentence in finished.stderr
    assert list(tmp_path.iterdir()) == []
