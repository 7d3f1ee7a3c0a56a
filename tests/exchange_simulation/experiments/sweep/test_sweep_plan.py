"""A sweep's plan: all possible combinations, of which those are compared that differ in one factor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from exchange.settings import RunSettings
from exchange_simulation.cli.main import main
from exchange_simulation.experiments.sweep.planning import EXAMPLE, confirm, planned
from exchange_simulation.experiments.trials.plan import TrialPlan, read_plan, write_plan
from exchange_simulation.experiments.trials.verdicts import planned_rows
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.tape import write_tape


def plan_of(*vary: str, file: Path | None = None, **typed: Any) -> TrialPlan:
    return planned(file, {}, {"vary": vary, **typed})


def labels(plan: TrialPlan) -> set[str]:
    return {arm.label for arm in plan.arms}


def toml(folder: Path, text: str) -> Path:
    (folder / "sweep.toml").write_text(text)
    return folder / "sweep.toml"


def test_every_combination_is_an_arm_under_every_condition() -> None:
    plan = plan_of("transport=tcp,zeromq", "packing=1,10", "rate=1000,max", "prices=1..9,450..549", duration_s=1.0)
    assert len(plan.arms) == len(labels(plan)) == 2 * 2 * 2 * 2
    assert plan.contenders == ["tcp, packing 1", "tcp, packing 10", "zeromq, packing 1", "zeromq, packing 10"]
    assert "as fast as it goes, prices 1..9" in plan.blocks
    assert {(arm.settings.packing, arm.settings.prices[0]) for arm in plan.arms} == {
        (1, 1),
        (1, 450),
        (10, 1),
        (10, 450),
    }


@pytest.mark.parametrize(
    ("configured", "typed"),
    [
        ({"duration_s": 2.0}, {"vary": ("orders=1000,50000",)}),
        ({"duration_s": 2.0, "orders": 100}, {"vary": ("orders=1000,50000",)}),
    ],
)
def test_orders_that_vary_replace_a_duration_of_the_user_s_defaults(
    configured: dict[str, Any], typed: dict[str, Any]
) -> None:
    """Regression: a run of 50,000 orders ended with the 16,000 of a duration in exchange.toml."""
    arms = planned(None, configured, typed).arms
    assert [(arm.settings.orders, arm.settings.duration_s) for arm in arms] == [(1_000, None), (50_000, None)]


def test_a_duration_that_varies_replaces_the_orders_of_a_file(tmp_path: Path) -> None:
    file = toml(tmp_path, "[run]\norders = 3000\n")
    arms = plan_of("duration=1,5", file=file).arms
    assert [(arm.settings.orders, arm.settings.duration_s) for arm in arms] == [(None, 1.0), (None, 5.0)]


def test_a_typed_length_holds_beside_another_typed_one() -> None:
    arms = plan_of("orders=1000,50000", duration_s=2.0).arms
    assert [arm.settings.order_limit for arm in arms] == [1_000, 16_000]


def test_a_value_that_is_typed_replaces_one_of_the_user_s_defaults_that_varies() -> None:
    plan = planned(None, {"transports": "tcp,zeromq", "rates": "1k"}, {"vary": ("transport=memory",)})
    assert labels(plan) == {"memory at 1,000 orders/s"}


@pytest.mark.parametrize(
    ("vary", "run", "offered"),
    [
        ((), {}, {"zeromq at 2,000 orders/s": 2000}),
        (("packing=1,2",), {}, {"packing 1 at 2,000 orders/s": 2000, "packing 2 at 2,000 orders/s": 2000}),
        (
            ("arrivals=fixed,recorded",),
            {},
            {"arrivals fixed at 8,000 orders/s": 8000, "arrivals recorded at 2,000 orders/s": 2000},
        ),
        (
            ("rate=1000,4000",),
            {"arrivals": "fixed"},
            {"zeromq at 1,000 orders/s": 1000, "zeromq at 4,000 orders/s": 4000},
        ),
    ],
)
def test_an_arm_with_a_tape_is_named_by_the_rate_of_the_tape(
    tmp_path: Path, vary: tuple[str, ...], run: dict[str, Any], offered: dict[str, float]
) -> None:
    tape = tmp_path / "t.bin"
    settings = RunSettings(orders_per_s=2000.0, orders=100)
    write_tape(tape, settings)
    plan = plan_of(*vary, tape=str(tape), orders=100, **run)
    assert {arm.label: arm.settings.orders_per_s for arm in plan.arms} == offered


def test_only_arms_that_differ_in_one_factor_are_compared() -> None:
    plan = plan_of("transport=tcp,zeromq", "packing=1,10")
    pairs = {(first.contender, second.contender) for first, second in plan.compared_arms}
    assert pairs == {
        ("tcp, packing 1", "tcp, packing 10"),
        ("tcp, packing 1", "zeromq, packing 1"),
        ("tcp, packing 10", "zeromq, packing 10"),
        ("zeromq, packing 1", "zeromq, packing 10"),
    }
    assert len(planned_rows(plan)) == 4 * 3


def test_levels_that_need_a_broker_have_no_arms_without_one() -> None:
    plan = plan_of("transport=zeromq,amqp", "delivery=lossy,confirmed", "nagle=none,gateway+broker")
    by_transport = {name: [a for a in plan.arms if a.settings.transport == name] for name in ("zeromq", "amqp")}
    assert [arm.contender for arm in by_transport["zeromq"]] == ["zeromq, nagle none"]
    assert len(by_transport["amqp"]) == 4
    assert {arm.settings.nagle for arm in by_transport["amqp"]} == {(), ("gateway", "broker")}


def test_if_only_a_condition_varies_its_values_are_compared() -> None:
    plan = plan_of("prices=1..9,450..549")
    assert plan.contenders == ["prices 1..9", "prices 450..549"]
    assert plan.blocks == ["at 8,000 orders/s"]


def test_a_long_run_has_a_warm_up_of_a_second_by_default() -> None:
    plan = plan_of("rate=1000,8000", orders=20_000)
    assert {arm.settings.orders_per_s: arm.settings.warm_up_s for arm in plan.arms} == {1000.0: 1.0, 8000.0: 0.0}
    assert {arm.settings.warm_up_s for arm in plan_of("rate=1000,8000", orders=20_000, warm_up_s=0.5).arms} == {0.5}


def test_typed_keys_replace_those_of_the_file(tmp_path: Path) -> None:
    file = toml(tmp_path, "repeats = 3\n[vary]\nrate = [1000, 2000]\n[run]\norders = 1_000_000\nseed = 7\n")
    plan = plan_of("rate=4000", file=file, duration_s=2.0, repeats=1)
    assert [arm.settings.orders_per_s for arm in plan.arms] == [4000.0]
    assert plan.arms[0].settings.orders is None
    assert plan.arms[0].settings.duration_s == 2.0
    assert plan.repeats == 1
    assert plan.seed == 7
    assert plan.arms[0].settings.seed == 7


def test_the_example_is_the_papers_sweep() -> None:
    printed = CliRunner().invoke(main, ["sweep", "--example"]).output
    assert printed == EXAMPLE.read_text()
    plan = plan_of(file=EXAMPLE)
    assert [arm.settings.orders_per_s for arm in plan.arms[:5]] == [1000, 2000, 4000, 6000, 8000]
    assert {arm.settings.orders for arm in plan.arms} == {1_000_000}


def test_a_written_plan_is_read_as_it_was(tmp_path: Path) -> None:
    plan = plan_of("transport=tcp,zeromq", "packing=1,10", pause_s=0.25)
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[vary]\npakcing = [1]", "[vary]: 'pakcing' is not known: did you mean packing?"),
        (
            "[vary]\nbusy_wait = ['none', 'short']",
            "[vary]: busy_wait is an option of a transport's URL: name a transport for each of its values, as in "
            "--transports 'amqp,amqp?busy_wait=...'",
        ),
        ("[run]\nrecord = true", "[run]: record is for a run by itself"),
        ("repeat = 3", "'repeat' is not known: did you mean repeats?"),
        ('repeats = "3"', "repeats is '3'; it takes a whole number"),
        ("repeats = true", "repeats is True; it takes a whole number"),
        ("[vary]\npacking = 3", "packing is 3; it takes a list, as [3]"),
        ("[vary]\npacking = []", "packing has no values"),
        ("[vary]\npacking = [1, 1]", "packing has a value twice"),
        ("[vary]\nrate = [1000, 1000.0]", "rate has a value twice: 1000, 1000.0"),
        ("[vary]\npacking = [1, 'x']", "packing is x: 'x' is no whole number"),
        ("[vary]\npacking = [[1]]", "packing is [1]; it takes what --packing"),
        ("[run]\npacking = true", "packing is True; it takes what --packing"),
        ("vary = 3", "vary is 3; it is a table"),
        ("[vary]\nseed = [1]\n[run]\nseed = 2", "seed stands in both [vary] and [run]"),
        ("repeats = ", "is no TOML"),
    ],
)
def test_a_files_mistake_is_told_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        plan_of(file=toml(tmp_path, text))
    assert message in refused.value.message
    assert "sweep.toml" in refused.value.message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "packing"], "give NAME=VALUE,VALUE, as packing=1,10"),
        (["--vary", "packing=1", "--packing", "2"], "packing is given twice"),
        (["--vary", "rate=1", "--rates", "2"], "rate is given twice"),
        (["--vary", "packing=1", "--vary", "packing=10", "--vary", "nagle=none,all"], "Error: packing is given twice"),
        (["--vary", "timeout=1,1.0"], "timeout has a value twice: 1, 1.0"),
        (
            ["--rates", "1", "--orders", "4000", "--repeats", "6", "--until-decided"],
            "up to 24 runs take about 27.8 hours",
        ),
        (["--vary", "packing=0"], "--packing is 0; allowed is a whole number from 1 to 1,000"),
        (["--transports", "memory,tcp"], "memory runs in threads of one process, tcp in processes"),
        (["--rates", "1", "--orders", "1000000"], "127 days"),
        (["--resume", "it", "sweep.toml"], "leave out FILE.toml"),
        (
            ["--transports", "tcp,zeromq", "--vary", "delivery=lossy,durable"],
            "delivery is lossy,durable, which tcp, zeromq",
        ),
        (["none.toml"], "cannot read none.toml: No such file"),
    ],
)
def test_a_mistake_on_the_command_line_starts_nothing(words: list[str], message: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["sweep", "--results", str(tmp_path / "results"), *words])
    assert refused.exit_code == 2
    assert message in refused.output
    assert not (tmp_path / "results").exists()


def test_more_than_a_day_needs_a_yes() -> None:
    plan = plan_of("rate=1", orders=100_000)
    with pytest.raises(UserError, match=r"more than a day: say --yes, or shorten it"):
        confirm(plan, yes=False)
    confirm(plan, yes=True)
