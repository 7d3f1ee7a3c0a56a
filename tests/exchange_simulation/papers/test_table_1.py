"""Table 1 of the exchange's paper stands on its page, beside ours."""

from __future__ import annotations

from exchange.json_records import Record
from exchange_simulation.papers.table_1 import table_1_beside_ours


def arm(orders_per_s: float, nagle: list[str], block: str, **metrics: float) -> Record:
    estimates = {name: {"median": value, "low": None, "high": None} for name, value in metrics.items()}
    settings = {"orders_per_s": orders_per_s, "nagle": nagle}
    return {"contender": "amqp", "block": block, "settings": settings, "metrics": estimates}


def test_each_value_of_table_1_stands_beside_the_arm_with_its_rate_and_its_nagle() -> None:
    arms = [
        arm(1000.0, [], "1,000/s", packets_per_order=4.0),
        arm(1000.0, ["broker"], "1,000/s", packets_per_order=3.0),
        arm(8000.0, [], "8,000/s", mean_message_bytes=8.5),
    ]

    rows = list(table_1_beside_ours({"arms": arms}))

    assert len(rows) == 13
    assert [row.title for row in rows[1::3]] == [
        "table 1: packets an order, 1,000 orders/s, Nagle off",
        "table 1: packets an order, 8,000 orders/s, Nagle off",
        "table 1: packets an order, 1,000 orders/s, Nagle on",
        "table 1: packets an order, 8,000 orders/s, Nagle on",
    ], "the paper's order"
    assert (rows[0].paper, rows[0].ours) == ("around 9", "8.5")
    packets = {row.title: (row.paper, row.ours) for row in rows if "packets an order" in row.title}
    assert packets["table 1: packets an order, 1,000 orders/s, Nagle off"] == (
        "5.10 (5,097,597 of 1,000,000 orders)",
        "4",
    )
    assert packets["table 1: packets an order, 1,000 orders/s, Nagle on"] == (
        "2.27 (2,269,111 of 1,000,000 orders)",
        "3",
    )
    assert packets["table 1: packets an order, 8,000 orders/s, Nagle on"] == (
        "2.28 (2,277,870 of 1,000,000 orders)",
        "",
    )


def test_several_networks_are_named() -> None:
    arms = [
        arm(1000.0, [], f"1,000/s, {network}", packets_per_order=packets)
        for network, packets in (("gige", 5.0), ("local", 4.0))
    ]

    rows = {row.title: row.ours for row in table_1_beside_ours({"arms": arms})}

    assert rows["table 1: packets an order, 1,000 orders/s, Nagle off"] == (
        "amqp, 1,000/s, gige: 5; amqp, 1,000/s, local: 4"
    )
