"""Sampled completion times in Spark: what do one in a hundred orders say of each second of a run?"""

from pathlib import Path

from exchange_simulation import run
from spark.samples import answered_at, sample_windows, samples_of_lines
from spark.sessions.session import open_session

measured = run(transport="zeromq", rate="8k", orders="16k", sampling_interval=100, results="results", on_progress=print)

with open_session() as spark:
    lines = spark.read.text(str(Path(measured.folder).resolve() / "spool"), pathGlobFilter="*.jsonl")
    seconds = sample_windows(samples_of_lines(lines), answered_at())
    columns = seconds.selectExpr(
        "source", "samples", "round(p50_us) p50_us", "round(p50_low_us) low", "round(p50_high_us) high"
    )
    columns.orderBy("window").show()
print(f"p50 of all orders: {measured.p50_us:,.0f} us")
