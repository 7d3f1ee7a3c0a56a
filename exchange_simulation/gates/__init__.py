"""Gates: conditions that a measurement must meet, for a pipeline that should fail when figures get worse.

| file | what |
|---|---|
| gate_report.py | the outcomes with what a pull request shows beside them, and the exit code of all of them |
| objectives.py | `--slo` of one run |
| conditions.py | `--fail-if` of a comparison, as "p99 of amqp over 2x zeromq" |
| condition_checks.py | what becomes of such a condition at each rate: passed, failed or undecided |
| judged_bound.py | the sentence of a check |
| baselines.py | a kept comparison, with which later ones are compared |
| comparison_gate.py | all gates of one comparison |
| junit.py, markdown.py | the outcomes as files, for a pipeline and for a pull request |
"""
