"""Filters of federated learning as mechanisms: what they do not change shows, whatever library they are of."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.audit.box import as_mechanism
from dovetail.audit.game import audit_mechanism
from dovetail.core.entropy import simulation
from dovetail.core.errors import UnsupportedError

CLAIM = 1.0
UPDATES = [[1.0, 2.0], [-1.0, -2.0]]  # no zeros: -0.0 would tell which one it was


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, made)
    return made


class DXO:
    """As NVFLARE has it: a kind, and arrays by name."""

    def __init__(self, kind: str, data: dict[str, Any]) -> None:
        self.kind, self.data = kind, data


@pytest.fixture
def nvflare(monkeypatch: pytest.MonkeyPatch) -> None:
    module(monkeypatch, "nvflare")
    module(monkeypatch, "nvflare.apis")
    module(monkeypatch, "nvflare.apis.dxo", DXO=DXO, DataKind=SimpleNamespace(WEIGHT_DIFF="WEIGHT_DIFF"))
    module(monkeypatch, "nvflare.apis.fl_context", FLContext=object)
    module(monkeypatch, "nvflare.apis.shareable", Shareable=object)


class Filter:
    """A filter that flips signs with probability 1 - `keep`, in place."""

    def __init__(self, keep: float, *, says_nothing: bool = False) -> None:
        self.rng, self.keep, self.says_nothing = np.random.default_rng(5), keep, says_nothing

    def process_dxo(self, dxo: Any, shareable: Any, context: Any) -> Any:
        assert dxo.kind == "WEIGHT_DIFF"
        dxo.data = {name: one if self.rng.random() < self.keep else -one for name, one in dxo.data.items()}
        return None if self.says_nothing else dxo


@pytest.mark.usefixtures("nvflare")
@pytest.mark.parametrize("says_nothing", [False, True])
def test_a_filter_that_keeps_too_much_is_caught_and_one_that_does_not_is_not(says_nothing: bool) -> None:
    """False alarms below 1e-9; nine of ten signs kept are epsilon log 9, 2.2 times the claim."""
    honest = Filter(0.73, says_nothing=says_nothing)  # log(.73 / .27) is below 1
    found = audit_mechanism(honest, UPDATES, epsilon=CLAIM, calls=2000, rng=simulation(1))
    assert not found.alarm and found.lower > 0.4
    assert audit_mechanism(
        Filter(0.9, says_nothing=says_nothing), UPDATES, epsilon=CLAIM, calls=2000, rng=simulation(1)
    ).alarm


def test_a_mod_of_flower_gets_the_update_of_a_client_that_was_sent_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {
        "Code": SimpleNamespace(OK=0),
        "Status": lambda code, text: (code, text),
        "FitIns": lambda parameters, config: SimpleNamespace(parameters=parameters),
        "FitRes": lambda status, parameters, count, metrics: SimpleNamespace(parameters=parameters),
        "ndarrays_to_parameters": tuple,
        "parameters_to_ndarrays": list,
    }
    module(monkeypatch, "flwr")
    module(monkeypatch, "flwr.common", **content)
    same = dict.fromkeys(
        ("fitins_to_recorddict", "fitres_to_recorddict", "recorddict_to_fitres"), lambda found, keep_input: found
    )
    home = module(monkeypatch, "flwr.mod", compat=SimpleNamespace(**same))

    class Mod:
        """Adds what it was sent to the negated update, as a mod that forgets the noise might."""

        __module__ = "flwr.mod"

        def __call__(self, message: Any, context: Any, call_next: Any) -> Any:
            assert message.metadata.message_type == "train"
            (sent,) = message.content.parameters
            answer = call_next(message, context)
            assert not answer.has_error()
            answer.content.parameters = [-each + sent for each in answer.content.parameters]
            return answer

    assert as_mechanism(Mod())([1.0, 0.5]).tolist() == [-1.0, -0.5]
    del home.compat
    with pytest.raises(UnsupportedError, match="of the kind that this audit sends"):
        as_mechanism(Mod())
