"""The noise of a run over several machines is that of the noisiest one with components."""

from __future__ import annotations

from typing import Any

import pytest

from exchange_simulation.launching.record.noise import noise_share


def machine(share: float | None, is_launchers: bool) -> dict[str, Any]:
    noise = {} if share is None else {"noise": {"share_of_all_cpus": share}}
    return {"is_launchers_machine": is_launchers, **noise}


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([], 0.2),
        ([machine(None, True)], 0.2),
        ([machine(None, True), machine(0.5, False)], 0.5),
        ([machine(None, True), machine(0.1, False)], 0.2),
        ([machine(0.1, False), machine(0.05, False)], 0.1),
        ([machine(None, False)], None),
    ],
)
def test_the_noisiest_machine_with_components_counts(hosts: list[dict[str, Any]], expected: float | None) -> None:
    assert noise_share({"noise": {"share_of_all_cpus": 0.2}, "hosts": hosts}) == expected
