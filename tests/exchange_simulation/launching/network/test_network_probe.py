import json

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.probe import AS_ROOT, Machine, ProbeFinding
from exchange_simulation.launching.network.profile import PROFILES

WHAT_IT_TAKES = ("tools", "namespace", "veth", "bridge", "netem", "packet socket")


def machine(*lacking: str) -> Machine:
    found = {name: ProbeFinding(name, "refused" if name in lacking else "", f"get {name}") for name in WHAT_IT_TAKES}
    return Machine(AS_ROOT, found)


def test_netem_is_taken_where_there_is_one():
    assert machine().mechanism(PROFILES["wan10"]) == "netem"


def test_without_netem_the_wire_is_taken():
    assert machine("netem").mechanism(PROFILES["wan10"]) == "wire"


def test_with_neither_a_delay_is_refused_with_both_reasons_and_remedies():
    with pytest.raises(UserError) as refused:
        machine("netem", "packet socket").mechanism(PROFILES["wan10"])
    for name in ("netem", "packet socket"):
        assert f"{name}: refused; try: get {name}" in refused.value.message
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("lacking", WHAT_IT_TAKES[:4])
@pytest.mark.parametrize("name", ["veth", "gige"])
def test_without_namespaces_or_links_nothing_stands_in_for_them(name, lacking):
    with pytest.raises(UserError, match=f"{lacking}: refused; try: get {lacking}"):
        machine(lacking).mechanism(PROFILES[name])


def test_a_refusal_that_ends_with_a_full_stop_goes_on_with_what_to_try():
    refusal = "Error: Specified qdisc kind is unknown."
    assert str(ProbeFinding("netem", refusal, "get it")) == f"netem: {refusal[:-1]}; try: get it"
    assert str(ProbeFinding("netem", refusal)) == f"netem: {refusal}"


def test_local_takes_nothing():
    assert machine(*WHAT_IT_TAKES).mechanism(PROFILES["local"]) == "loopback"


def test_the_list_has_every_network_with_what_it_is_here():
    told = CliRunner().invoke(main, ["network", "list"])
    assert told.exit_code == 0
    assert [line.split()[0] for line in told.output.splitlines()[1:6]] == list(PROFILES)
    networks = json.loads(CliRunner().invoke(main, ["network", "list", "--json"]).output)["networks"]
    assert networks[0]["mechanism"] == "loopback"
    assert all(network["mechanism"] or network["reason"] for network in networks)
