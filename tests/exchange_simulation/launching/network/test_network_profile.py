import pytest

from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.profile import PROFILES, Profile, parse


@pytest.mark.parametrize("name", PROFILES)
def test_a_name_without_options_is_the_profile(name):
    assert parse(name) == PROFILES[name]


def test_an_option_of_a_profile_changes_only_its_field():
    text = "gige?delay_us=80&rate_mbit=500"
    assert parse(text) == Profile(text, rate_bit_per_s=500_000_000, delay_us=80.0)
    assert parse("wan10?delay_us=0.5e4") == Profile("wan10?delay_us=0.5e4", 1_000_000_000, 5_000.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lan", "no network is called 'lan'; there are local, veth, gige, wan1, wan10"),
        ("", "no network is called ''"),
        ("veth?delay_us=5", "veth has neither rate nor delay to set; gige, wan1, wan10 have"),
        ("gige?delay=5", "'delay' is no setting of a network; delay_us, rate_mbit are"),
        ("gige?delay_us=soon", "delay_us is 'soon'; allowed is 1 to 100,000"),
        ("gige?delay_us=", "delay_us is ''; allowed is 1 to 100,000"),
        ("gige?delay_us=nan", "delay_us is 'nan'"),
        ("gige?rate_mbit=0", "rate_mbit is '0'; allowed is 1 to 10,000"),
        ("gige?rate_mbit=inf", "rate_mbit is 'inf'"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(text, message):
    with pytest.raises(UserError) as caught:
        parse(text)
    assert message in caught.value.message
