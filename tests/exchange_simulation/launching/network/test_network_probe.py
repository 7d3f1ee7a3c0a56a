import json

import pytest
from click.testing import CliRunner

from exchange_simulation.cli.main import main
from exchange_simulation.launching.errors import UserError
from exchange_simulation.launching.network.probe import AS_ROOT, Machine, ProbeFinding
from exchange_simulation.launching.network.profile import PROFILES

WHAT_IT_TAKES = ("tools", "namespace", "veth", "bridge", "netem", "packet socket")


def machine(*lacking: str) -> Machine:
    findings = {name: ProbeFinding(name, "refused" if name in lacking else "", f"get {name}") for name in WHAT_IT_TAKES}
    return Machine(AS_ROOT, findings)


def test_netem_is_preferred():
    assert machine().mechanism(PROFILES["wan10"]) == "netem"


def test_without_netem_the_wire_is_used():
    assert machine("netem").mechanism(PROFILES["wan10"]) == "wire"


def test_a_delay_without_netem_and_wire_is_refused_with_both_remedies():
    with pytest.raises(UserError) as refused:
        machine("netem", "packet socket").mechanism(PROFILES["wan10"])
    for name in ("netem", "packet socket"):
        assert f"{name}: refused; try: get {name}" in refused.value.message
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("lacking", WHAT_IT_TAKES[:4])
@pytest.mark.parametrize("name", ["veth", "gige"])
def test_namespaces_and_links_have_no_replacement(name, lacking):
    with pytest.raises(UserError, match=f"{lacking}: refused; try: get {lacking}"):
        machine(lacking).mechanism(PROFILES[name])


def test_the_full_stop_of_a_reason_is_dropped_before_the_remedy():
    refusal = "Error: Specified qdisc kind is unknown."
    assert str(ProbeFinding("netem", refusal, "get it")) == f"netem: {refusal[:-1]}; try: get it"
    assert str(ProbeFinding("netem", refusal)) == f"netem: {refusal}"


def test_the_profile_local_needs_nothing():
    assert machine(*WHAT_IT_TAKES).mechanism(PROFILES["local"]) == "loopback"


def test_the_list_has_every_network_with_its_mechanism():
    finished = CliRunner().invoke(main, ["network", "list"])
    assert finished.exit_code == 0
    assert [line.split()[0] for line in finished.output.splitlines()[1:6]] == list(PROFILES)
    networks = json.loads(CliRunner().invoke(main, ["network", "list", "--json"]).output)["networks"]
    assert networks[0]["mechanism"] == "loopback"
    assert all(network["mechanism"] or network["reason"] for network in networks)
