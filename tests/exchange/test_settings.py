"""A run's settings: an impossible value is refused with the name of its field."""

from __future__ import annotations

import dataclasses

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchange.allowed import BadSetting
from exchange.declared import ENGINE
from exchange.settings import DECIDE_ANSWERS, DECLARED, RunSettings

NAN = float("nan")
INFINITE = float("inf")
MAX_ORDERS = 2**32 - 1

IMPOSSIBLE_VALUES = [
    ("orders_per_s", [0, 0.0009, -1, 100_000_001, NAN, INFINITE]),
    (
        "arrivals",
        [
            "",
            "often",
            None,
            5,
            "poisson:3",
            "bursts",
            "bursts:",
            "bursts:0",
            "bursts:1000001",
            "bursts:-1",
            "bursts:1.5",
            "ramp",
            "ramp:1",
            "ramp:0..1",
            "ramp:0.1..1.1",
            "ramp:..",
            "ramp:1..2..3",
            "ramp:nan..1",
        ],
    ),
    ("orders", [0, -1, MAX_ORDERS + 1, 1.0, 1.5, "1"]),
    ("duration_s", [0, 0.0009, -1, 10**7 + 1, NAN, INFINITE]),
    ("seed", [-1, 2**64, 0.5, "x"]),
    ("prices", [(-1, 5), (5, 4), (0, 65_536)]),
    ("price_model", ["", "Normal", None, "narrow"]),
    ("sampling_interval", [0, -1, MAX_ORDERS + 1, 2.5]),
    ("policy", ["", "pro-rata", "Price-Time", None]),
    ("max_price", [0, -1, 65_535, 999.0]),
    ("packing", [0, -1, 1_001, 1.5]),
    ("window", [0, -1, MAX_ORDERS + 1, 1.5]),
    ("warm_up_s", [-0.1, 10**7 + 1, NAN]),
    ("timeout_s", [0, 0.09, 10**6 + 1, NAN, INFINITE]),
    ("cpus", [{"bank": 0}, {"gateway": -1}, {"engine": 4_096}, {"reporter": 1.5}]),
    ("network", [None, 5]),
    ("pace", ["", "spin", "spin:", "spin:0", "spin:-1", "spin:1.5", "spin:1000001", "sleep:1", None, 5]),
    ("record", [None, "yes", 1]),
    ("capture", [None, "yes", 1]),
]

EXTREME_VALUES = [
    ("arrivals", ["fixed", "poisson", "bursts:1", "bursts:1000000", "ramp:0.001..1", "ramp:1...5"]),
    ("orders_per_s", [0.001, 100_000_000, None]),
    ("orders", [1, MAX_ORDERS]),
    ("duration_s", [0.001, 10**7, None]),
    ("seed", [0, 2**64 - 1]),
    ("prices", [(0, 0), (1, 1), (0, 65_535), (450, 549)]),
    ("sampling_interval", [1, MAX_ORDERS]),
    ("policy", ["price-time", "exact-price"]),
    ("max_price", [1, 65_534]),
    ("packing", [1, 1_000]),
    ("window", [1, MAX_ORDERS, None]),
    ("warm_up_s", [0, 10**7]),
    ("timeout_s", [0.1, 10**6]),
    ("pace", ["sleep", "spin:1", "spin:1000000"]),
    ("cpus", [{}, {"gateway": 0, "engine": 4_095}, {"reporter": 3}]),
]


def cases(table):
    """Return a parameter set for each value of each field."""
    parameter_sets = []
    for name, values in table:
        parameter_sets += [pytest.param(name, value, id=f"{name}={value}") for value in values]
    return parameter_sets


@pytest.mark.parametrize(("name", "value"), cases(IMPOSSIBLE_VALUES))
def test_an_impossible_value_is_refused_with_its_field(name, value):
    with pytest.raises(BadSetting, match=f"^{name.replace('_', '-')} is .*; allowed is ") as refused:
        RunSettings(**{name: value})
    assert refused.value.field == name
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(("name", "value"), cases(EXTREME_VALUES))
def test_the_extreme_values_of_a_field_are_allowed(name, value):
    assert getattr(RunSettings(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    cases(
        [
            ("seed", [None, True]),
            ("packing", [None]),
            ("max_price", [None]),
            ("sampling_interval", [None]),
            ("timeout_s", [None]),
            ("warm_up_s", [None]),
            ("orders", [True]),
            ("orders_per_s", ["8", True]),
            ("prices", [(1, 2, 3), (450.5, 549), None, 5]),
            ("cpus", [{"gateway": None}, None]),
            ("transport", ["", None]),
            ("record", ["maybe", None, 1]),
            ("policy", [["price-time"]]),
        ]
    ),
)
def test_a_value_of_a_wrong_type_is_refused_with_its_field(name, value):
    test_an_impossible_value_is_refused_with_its_field(name, value)


def test_a_refusal_names_the_value_and_what_is_allowed():
    with pytest.raises(BadSetting) as refused:
        RunSettings(packing=1_001)
    assert str(refused.value) == "packing is 1001; allowed is a whole number from 1 to 1,000"


def test_a_run_without_an_end_is_refused():
    with pytest.raises(BadSetting, match=r"^orders is None") as refused:
        RunSettings(orders=None, duration_s=None)
    assert refused.value.field == "orders"


def test_a_window_smaller_than_a_pack_is_refused():
    assert RunSettings(packing=100, window=100).window == 100
    with pytest.raises(BadSetting, match=r"^window is 99; allowed is at least the packing, 100"):
        RunSettings(packing=100, window=99)


def test_settings_cannot_be_changed():
    settings = RunSettings()
    for field in dataclasses.fields(settings):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, field.name, None)


def test_a_changed_copy_is_checked():
    with pytest.raises(BadSetting, match=r"^orders-per-s"):
        dataclasses.replace(RunSettings(), orders_per_s=-1)


def test_replacing_a_field_keeps_the_other_fields():
    base = RunSettings()
    slower = dataclasses.replace(base, orders_per_s=1000.0)
    assert slower.orders_per_s == 1000.0
    assert slower != base
    assert dataclasses.replace(slower, orders_per_s=8000.0) == base


def test_subscribers_are_placed_as_other_components_are():
    assert RunSettings(subscribers=2, cpus={"subscriber": 1, "subscriber.2": 0}).cpus["subscriber.2"] == 0
    with pytest.raises(BadSetting, match="allowed is one of gateway, engine, reporter, subscriber, broker, or one of"):
        RunSettings(subscribers=2, cpus={"subscriber.3": 1})


def test_two_settings_share_no_dictionary_of_processors():
    assert RunSettings().cpus is not RunSettings().cpus


@pytest.mark.parametrize(
    ("orders", "duration_s", "orders_per_s", "limit"),
    [
        (80_000, None, 8000.0, 80_000),
        (80_000, None, None, 80_000),
        (80_000, 1.0, 8000.0, 8_000),
        (80_000, 100.0, 8000.0, 80_000),
        (None, 2.5, 1000.0, 2_500),
        (None, 0.001, 1.0, 1),
        (None, 1.0, 0.5, 1),
        (None, 1.0, 1.5, 2),
        (None, 10.0, None, MAX_ORDERS),
        (7, 10.0, None, 7),
        (None, 10**7, 100_000_000, MAX_ORDERS),
    ],
)
def test_the_order_limit_follows_from_orders_duration_and_rate(orders, duration_s, orders_per_s, limit):
    settings = RunSettings(orders=orders, duration_s=duration_s, orders_per_s=orders_per_s)
    assert settings.order_limit == limit


OTHER_SETTINGS_OF_ENGINES = {
    "mix": "equal orders are of one mix",
    "gateways": "an engine takes their orders as they come: no two runs need agree",
    "quotes_to": "goes together with several gateways alone",
    "packing": "the checksum is over bytes, however they are divided into messages",
    "sampling_interval": "what is measured",
    "timeout_s": "how long a peer is waited for",
    "work_s": "when an order is answered",
    "subscribers": "market data is beside the answers",
    "depth": "market data is beside the answers",
    "slow_subscriber": "market data is beside the answers",
    "journal": "the same orders are kept",
    "sync": "when orders are kept",
    "standby": "the same orders are matched elsewhere",
    "priority": "when a process runs",
    "secure": "how bytes travel",
    "insecure": "how bytes travel",
}
"""Settings of an engine that are not in DECIDE_ANSWERS, each with the reason."""


def test_of_every_setting_of_an_engine_somebody_has_said_whether_it_decides_answers() -> None:
    of_engine = {name for name, declared in DECLARED.items() if declared.commands >= ENGINE}
    assert of_engine == {*DECIDE_ANSWERS, *OTHER_SETTINGS_OF_ENGINES}
    assert not set(DECIDE_ANSWERS) & OTHER_SETTINGS_OF_ENGINES.keys()


@given(
    orders=st.none() | st.integers(1, MAX_ORDERS),
    duration_s=st.floats(0.001, 1e7),
    orders_per_s=st.none() | st.floats(0.001, 1e8),
)
def test_the_order_limit_never_exceeds_orders_or_the_highest_id(orders, duration_s, orders_per_s):
    limit = RunSettings(orders=orders, duration_s=duration_s, orders_per_s=orders_per_s).order_limit
    assert isinstance(limit, int)
    assert 1 <= limit <= (orders or MAX_ORDERS)


def test_with_wide_prices_the_range_is_that_of_the_book():
    assert RunSettings(price_model="wide", max_price=300).prices == (1, 300)
    assert RunSettings(price_model="wide", prices=(1, 300), max_price=300).prices == (1, 300)
    with pytest.raises(BadSetting, match=r"prices is '10..20'; allowed is 1..999, where the price model is wide"):
        RunSettings(price_model="wide", prices=(10, 20))


@pytest.mark.parametrize("arrivals", ["poisson", "bursts:2", "ramp:0.1..1"])
def test_without_a_rate_only_fixed_arrivals_are_allowed(arrivals):
    with pytest.raises(BadSetting, match="allowed is fixed, where there is no rate"):
        RunSettings(arrivals=arrivals, orders_per_s=None)


def test_a_ramp_offers_its_mean_rate_over_the_run():
    settings = RunSettings(arrivals="ramp:0.25..0.75", orders_per_s=8_000, orders=None, duration_s=10.0)
    assert settings.offered_orders_per_s == 4_000
    assert settings.order_limit == 40_000
    assert settings.length_s == 10.0


@pytest.mark.parametrize(
    ("orders", "duration_s", "orders_per_s", "length_s"),
    [(100, None, 50.0, 2.0), (100, 1.0, 50.0, 1.0), (100, None, None, None), (None, 3.0, None, 3.0)],
)
def test_the_length_of_a_run_follows_from_orders_duration_and_rate(orders, duration_s, orders_per_s, length_s):
    assert RunSettings(orders=orders, duration_s=duration_s, orders_per_s=orders_per_s).length_s == length_s


def test_the_settings_in_a_record_have_every_field():
    settings = RunSettings(prices=(1, 5), cpus={"engine": 1}, nagle=("engine", "gateway"))
    as_dict = settings.as_dict()
    fields = {field.name for field in dataclasses.fields(settings)}
    assert set(as_dict) == fields
    assert orjson.loads(orjson.dumps(as_dict)) == as_dict
    assert as_dict["prices"] == [1, 5]
    assert as_dict["cpus"] == {"engine": 1}
    assert as_dict["nagle"] == ["gateway", "engine"]


def test_nagle_accepts_only_roles_of_the_run():
    assert RunSettings(transport="amqp", nagle=("broker", "reporter")).nagle == ("reporter", "broker")
    with pytest.raises(BadSetting, match=r"nagle is 'pope'; allowed is gateway, engine, reporter, and broker where"):
        RunSettings(nagle=("pope",))
